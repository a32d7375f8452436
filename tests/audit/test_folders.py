"""Whole folders of tables, exact, rounded, suppressed well or badly, noisy as declared or not: what is said of each is right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from table_folders import COLUMNS, ROWS, truth, without, written

import cbdp
from cbdp.app import cli
from cbdp.audit.findings import Audit


def found(audit: Audit, check: str) -> dict[str, str]:
    """Titles of one check with their verdicts."""
    return {f.title: f.verdict for f in audit.findings if f.check == check}


def geometric(rng: np.random.Generator, scale: float, shape: object) -> np.ndarray:
    p = -np.expm1(-1 / scale)
    return rng.geometric(p, shape) - rng.geometric(p, shape)  # type: ignore[call-overload]


def test_hidden_counts_of_exact_tables_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exact counts, one below 5 hidden in each of 40 rows, totals shown: 40 of 40 are told, each as it is; the audit fails."""
    rng = np.random.default_rng(5)
    counts = rng.integers(6, 60, (40, 12))
    where = rng.integers(0, 12, 40)
    counts[np.arange(40), where] = rng.integers(0, 5, 40)
    folder = written(
        tmp_path, without(counts, counts < 5), counts.sum(1), counts.sum(0), of_both="threshold = 5"
    )
    audit = cbdp.audit_release(folder)
    [told] = [f for f in audit.findings if f.check == "differencing"]
    assert (told.verdict, told.figures["hidden"], told.figures["pinned"], told.figures["exactly"]) == (
        "contradicts",
        40,
        40,
        40,
    )
    assert f"both: origin o00, time t{where[0]:02d} is {counts[0, where[0]]}" in told.evidence
    assert found(audit, "exact counts") == {"The counts of 'both', 'origin', 'time' are exact": "weakness"}
    assert cli.main(["audit", str(folder)]) == 1
    assert "40 exactly" in capsys.readouterr().out


@pytest.mark.parametrize("said", ["", 'noise = { law = "none" }'])
def test_exact_counts_are_never_clear(tmp_path: Path, said: str) -> None:
    """Where every count is shown there is nothing to subtract, and the counts are exact all the same; ε cannot be claimed for them."""
    counts = truth(np.random.default_rng(1), 0.05)
    tables = (counts, counts.sum(1), counts.sum(0))
    audit = cbdp.audit_release(written(tmp_path / "plain", *tables, said))
    assert audit.verdict == "weakness"
    [exact] = [f for f in audit.findings if f.check == "exact counts"]
    assert exact.figures["small"] == int(((counts > 0) & (counts < 5)).sum())
    assert found(audit, "differencing") == {"No count is suppressed": "clear"}
    claimed = cbdp.audit_release(written(tmp_path / "claimed", *tables, said, top="epsilon = 1"))
    assert claimed.verdict == ("contradicts" if said else "weakness")


def test_an_exact_table_that_disagrees_contradicts_itself(tmp_path: Path) -> None:
    """With no noise declared a changed total contradicts the declaration; where nothing is declared, it says that there is noise."""
    counts = truth(np.random.default_rng(2))
    totals = counts.sum(1)
    totals[3] += 2
    exact = cbdp.audit_release(
        written(tmp_path / "a", counts, totals, counts.sum(0), 'noise = { law = "none" }')
    )
    assert found(exact, "consistency") == {
        "'origin' disagrees with the sums of 'both' in 1 of 24 counts": "contradicts"
    }
    silent = cbdp.audit_release(written(tmp_path / "b", counts, totals, counts.sum(0)))
    assert silent.verdict == "weakness"
    assert "'both', 'origin'" not in str(found(silent, "exact counts"))


def complementary(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Small counts, each hidden in a square of four, of which the other three are large."""
    counts, hidden = truth(rng), np.zeros((ROWS, COLUMNS), dtype=bool)
    for k in range(6):
        row, column = 3 * k, int(rng.integers(COLUMNS - 1))
        hidden[row : row + 2, column : column + 2] = True
        counts[row, column] = rng.integers(1, 5)
    return counts, hidden


def test_complementary_suppression_done_right_and_wrong(tmp_path: Path) -> None:
    """Squares of hidden counts stay hidden, and how far is said; where the neighbour of a small count is shown, the small count is told."""
    counts, hidden = complementary(np.random.default_rng(3))
    said = 'threshold = 5\nhidden = "any"'
    totals = (counts.sum(1), counts.sum(0))
    right = cbdp.audit_release(written(tmp_path / "right", without(counts, hidden), *totals, of_both=said))
    [clear] = [f for f in right.findings if f.check == "differencing"]
    assert clear.verdict == "clear"
    assert "for 24 hidden counts" in clear.power
    assert "for certain" in clear.power
    opened = hidden.copy()
    row, column = np.argwhere(hidden)[1]  # beside the first small count
    opened[row, column] = False
    wrong = cbdp.audit_release(written(tmp_path / "wrong", without(counts, opened), *totals, of_both=said))
    [told] = [f for f in wrong.findings if f.check == "differencing"]
    assert told.verdict == "contradicts"
    assert f"origin o00, time t{column - 1:02d} is {counts[0, column - 1]}" in told.evidence


def test_sums_at_their_ends_tell_every_part(tmp_path: Path) -> None:
    """Two hidden in each row and no totals by column: a sum of 0 or of 8 tells both, one of 4 neither."""
    rng = np.random.default_rng(4)
    counts = truth(rng)
    counts[:, :2] = 2
    counts[3, :2], counts[5, :2] = 0, 4
    hidden = np.zeros(counts.shape, dtype=bool)
    hidden[:, :2] = True
    by_time = np.where(np.arange(COLUMNS) < 2, np.nan, counts.sum(0))
    audit = cbdp.audit_release(
        written(tmp_path, without(counts, hidden), counts.sum(1), by_time, of_both="threshold = 5")
    )
    [told] = [f for f in audit.findings if f.check == "differencing" and f.verdict != "clear"]
    assert told.figures["exactly"] == 4


@pytest.mark.parametrize("at_random", [False, True])
def test_rounding_is_recognised_and_is_no_noise(tmp_path: Path, at_random: bool) -> None:
    """Multiples of 5, to the nearest or up and down at random: no law of noise is fitted, and hidden counts are bounded truly."""
    rng = np.random.default_rng(6)
    counts = truth(rng, 0.05)

    def rounded(values: np.ndarray) -> np.ndarray:
        return 5 * (np.floor(values / 5 + rng.random(values.shape)) if at_random else np.rint(values / 5))

    audit = cbdp.audit_release(
        written(
            tmp_path,
            without(rounded(counts), counts < 5),
            rounded(counts.sum(1)),
            rounded(counts.sum(0)),
            of_both="threshold = 5",
        )
    )
    assert found(audit, "scale") == {}
    [exact] = found(audit, "exact counts")
    assert exact.endswith("are rounded, and otherwise exact")
    assert all(verdict != "contradicts" for verdict in found(audit, "differencing").values())


@pytest.mark.parametrize(
    ("law", "declared", "verdict"),
    [
        ("geometric", 3, "clear"), ("geometric", 15, "contradicts"), ("gaussian", 4, "clear"), ("gaussian", 20, "contradicts"),
        ("laplace", 3, "clear"), ("laplace", 0.6, "contradicts"),
    ],
)  # fmt: skip
def test_noise_as_declared_or_not(tmp_path: Path, law: str, declared: float, verdict: str) -> None:
    """Tables noised on their own are clear with the right scale and contradicted with a wrong one."""
    rng = np.random.default_rng(7)
    counts = truth(rng, 0.05)
    draw = {
        "geometric": lambda shape: geometric(rng, 3, shape),
        "gaussian": lambda shape: np.rint(rng.normal(0, 4, shape)),
        "laplace": lambda shape: rng.laplace(0, 3, shape),
    }[law]
    tables = (counts + draw(counts.shape), counts.sum(1) + draw(ROWS), counts.sum(0) + draw(COLUMNS))
    said = f'noise = {{ law = "{law}", scale = {declared} }}'
    assert (
        cbdp.audit_release(written(tmp_path, *tables, said, top="epsilon = 1\ndelta = 1e-6")).verdict
        == verdict
    )


def test_noise_that_nobody_declares_is_recovered_and_used(tmp_path: Path) -> None:
    """Undeclared noise is no exactness: its scale is told, no table is called exact, and hidden counts get intervals with that noise."""
    rng = np.random.default_rng(8)
    counts = truth(rng, 0.03)
    tables = (
        counts + geometric(rng, 2, counts.shape),
        counts.sum(1) + geometric(rng, 2, ROWS),
        counts.sum(0) + geometric(rng, 2, COLUMNS),
    )
    audit = cbdp.audit_release(
        written(tmp_path, without(tables[0], counts < 5), *tables[1:], of_both="threshold = 5")
    )
    assert audit.verdict == "weakness"
    assert found(audit, "exact counts") == {}
    assert any("can be recovered" in title for title in found(audit, "scale"))
    [told] = [f for f in audit.findings if f.check == "differencing"]
    assert float(told.figures["best_deviation"]) > np.sqrt(COLUMNS) * 2  # of ten noises, each of about 2.8
    assert told.figures["exactly"] == 0


def test_exact_totals_show_the_noise_of_their_parts(tmp_path: Path) -> None:
    """A total without noise less its noisy parts is noise alone: a scale five times too large is contradicted."""
    rng = np.random.default_rng(9)
    counts = truth(rng)
    tables = (counts + geometric(rng, 3, counts.shape), counts.sum(1), counts.sum(0))
    for scale, verdict in ((3, "clear"), (15, "contradicts")):
        noise = f'noise = {{ law = "geometric", scale = {scale} }}'
        audit = cbdp.audit_release(written(tmp_path / str(scale), *tables, of_both=noise))
        assert verdict in found(audit, "scale").values()
        assert list(found(audit, "exact counts")) == ["The counts of 'origin', 'time' are exact"]


@pytest.mark.parametrize("seed", range(5))
def test_large_counts_are_no_threshold(tmp_path: Path, seed: int) -> None:
    """Counts of 600 and more, and totals of thousands, betray no threshold: nothing was cut off."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(600, 900, (ROWS, COLUMNS)) + rng.integers(0, 900, (ROWS, 1))
    audit = cbdp.audit_release(written(tmp_path, counts, counts.sum(1), counts.sum(0)))
    assert found(audit, "detection") == {}


def test_what_is_clear_says_with_what_power(tmp_path: Path) -> None:
    """A sound noisy folder is clear in every check, and each says what it would have found; what was not looked at is listed."""
    rng = np.random.default_rng(10)
    counts = truth(rng)
    tables = (
        counts + geometric(rng, 3, counts.shape),
        counts.sum(1) + geometric(rng, 3, ROWS),
        counts.sum(0) + geometric(rng, 3, COLUMNS),
    )
    said = 'noise = { law = "geometric", scale = 3 }'
    audit = cbdp.audit_release(written(tmp_path / "sound", *tables, said, top="epsilon = 1"))
    assert audit.verdict == "clear"
    assert all("found" in f.power or "seen" in f.power for f in audit.findings)
    alone = written(tmp_path / "alone", *tables, said, top='sums = "none"')
    told = " ".join(cbdp.audit_release(alone).left_out)
    assert "whether the tables agree was not checked" in told
    assert "its size was not checked" in told
