"""The comparison of accuracy: its fits, ratios and verdicts, the days it draws, and which results it keeps."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
import pytest

import cbdp
from benchmarks import accuracy
from benchmarks.harness import keep, registry, rivals
from benchmarks.harness.comparison import O5, Found, Ratio, Tally
from benchmarks.harness.data import dense_city
from benchmarks.harness.registry import MECHANISMS, Setup, answer, prepare
from benchmarks.harness.specs import ERRORS, Spec
from benchmarks.harness.store import FAILED, OK, Row
from benchmarks.harness.worker import scores
from cbdp.errors import InputError

prepare(Setup())


@pytest.fixture(scope="module")
def tiny() -> registry.Case:
    return dense_city(30, stations=5, half_hours=2, mean=4)


@pytest.fixture
def plugged() -> object:
    """What plug-ins register is gone after the test."""
    before = [(t, dict(t)) for t in (registry.DATA, registry.MECHANISMS, registry.METRICS)]
    yield
    for table, held in before:
        table.clear()
        table.update(held)
    registry._done.clear()
    prepare(Setup())


# Mechanisms


@pytest.mark.parametrize("seed", range(3))
def test_children_are_the_closest_that_add_up(seed: int) -> None:
    """Top-down fitting gives each parent the solution of its quadratic program, by another solver."""
    import cvxpy as cp

    rng = np.random.default_rng(seed)
    parent = rng.integers(0, 4, 30)
    parent[:4] = range(4)
    wanted, total = rng.normal(0, 5, 30), np.array([0.0, 2.5, 40.0, 7.0])
    found = rivals.closest(parent, wanted, total)
    x = cp.Variable(30, nonneg=True)
    rules = [cp.sum(x[np.flatnonzero(parent == p)]) == total[p] for p in range(4)]
    cp.Problem(cp.Minimize(cp.sum_squares(x - wanted)), rules).solve(solver=cp.CLARABEL)
    assert found == pytest.approx(x.value, abs=1e-4)
    assert np.bincount(parent, found) == pytest.approx(total)


def test_simple_answers_are_spread_evenly(tiny: registry.Case) -> None:
    """With almost no noise the zone table comes out exact, and every type of an element gets the same."""
    found = answer(tiny, MECHANISMS["uniform in zone"].make(tiny, "1000")(0))
    assert tiny.added("zone", found.raw) == pytest.approx(tiny.by_feature["zone"])
    dag = tiny.features
    element = dag.cells.element_of_cell["zone"][dag.cell_of_leaf]
    for e in range(dag.size("zone")):
        assert np.ptp(found.raw[element == e]) == 0
    assert found.leaves.sum() == tiny.trips
    total = answer(tiny, MECHANISMS["total only"].make(tiny, "1000")(0))
    assert np.ptp(total.raw) == 0
    assert total.leaves.sum() == tiny.trips
    assert not answer(tiny, MECHANISMS["zeros"].make(tiny, "1")(0)).leaves.any()


def test_errors_before_rounding_are_of_the_estimate(tiny: registry.Case) -> None:
    """Half a trip too many in every type is an error of half a trip each before rounding, and of sums above."""
    made = scores(tiny, answer(tiny, tiny.truth + 0.5))
    assert made["before/singleton"] == pytest.approx(0.5)
    assert made["before/total"] == pytest.approx(0.5 * len(tiny.truth))
    assert made["covered"] == 1
    assert scores(tiny, answer(tiny, np.minimum(tiny.truth, 1)))["covered"] == pytest.approx(
        (tiny.truth > 0).sum() / tiny.trips
    )


# Ratios


def _rows(values: dict[str, list[float]]) -> list[Row]:
    return [
        Row(Spec(ERRORS, "d", name, "1", seed), "v", OK, metrics={"rmse/zone": v})
        for name, own in values.items()
        for seed, v in enumerate(own)
    ]


def _found(values: dict[str, list[float]]) -> Found:
    return Found(_rows(values), ["d"], ["1"], list(values))


def test_tables_stand_beside_what_was_measured(tiny: registry.Case) -> None:
    """The noisy table itself, and the projection that the mechanism with that estimator makes of the same seed's noise."""
    ours, papers = (
        cbdp.ConstraintBased(tiny.features, 1, tiny.unit, budget="tables", estimator=name).simulate(
            tiny.counts, 4
        )
        for name in ("posterior", "projection")
    )
    found = scores(tiny, answer(tiny, ours))
    for m in ours.measurements:
        truth = tiny.summed(m.feature, tiny.truth)
        assert found[f"noise/{m.feature}"] == pytest.approx(np.sqrt(np.mean((m.values - truth) ** 2)))
        assert papers.estimate is not None
        off = papers.estimate.counts(m.feature) - truth
        assert found[f"projected/{m.feature}"] == pytest.approx(np.sqrt(np.mean(off**2)), rel=1e-6, abs=1e-6)
        assert found[f"table/{m.feature}"] == pytest.approx(found[f"before/{m.feature}"])
    assert not [name for name in scores(tiny, answer(tiny, papers)) if name.startswith(("noise/", "table/"))]


def test_a_table_is_judged_by_the_better_of_both() -> None:
    metrics = [{"table/zone": 2.0, "noise/zone": 1.0, "projected/zone": 4.0}] * 2
    rows = [Row(Spec(ERRORS, "d", "P tables", "1", n), "", OK, "", None, m) for n, m in enumerate(metrics)]
    found = Found(rows, ["d"], ["1"], ["P tables"])
    assert found.measured("d") == ["zone"]
    assert found.own("d", "1", "P tables", "zone") == Ratio("its own noise", 2.0, 0.0)
    assert found.own("d", "1", "P tables", "time") is None


def test_persons_are_compared_with_what_was_left_of_their_trips() -> None:
    case = registry.DATA["persons, four trips a day"].load()
    assert case.counts.dense().sum() < case.trips
    release = cbdp.ConstraintBased(case.features, 100, case.unit).simulate(case.counts, 1)
    assert scores(case, answer(case, release))["table/total"] < case.trips - case.counts.dense().sum()


def test_ratio_is_to_the_best_other_on_shared_seeds() -> None:
    """A mechanism with fewer runs is compared on those; ours are no rivals of each other; the largest ratio counts."""
    found = _found(
        {"P leaves": [2.0, 4.0, 90.0], "P tables": [0.1, 0.1, 0.1], O5: [4.0, 4.0, 4.0], "mbi": [1, 2]}
    )
    worst = found.worst("d", "1", "P leaves", "rmse/zone")
    assert worst is not None
    assert worst.to == O5
    assert worst.ratio == 8.0
    mbi = found.ratio("d", "1", "P leaves", "mbi", "rmse/zone")
    assert mbi is not None
    assert (mbi.ratio, mbi.error) == (2.0, 0.0)
    aside = found.worst("d", "1", "P leaves", "rmse/zone", aside=[O5])
    assert aside == mbi
    assert found.ratio("d", "1", "P leaves", "H5", "rmse/zone") is None


def test_ratios_error_is_that_of_paired_runs() -> None:
    """Over many simulated experiments the stated error is the ratio's spread, though both errors share most of theirs."""
    rng = np.random.default_rng(3)
    ratios, errors = [], []
    for _ in range(400):
        day = rng.gamma(20, size=12)  # harder days are harder for both
        found = _found({"P leaves": list(day * rng.normal(1, 0.1, 12)), O5: list(2 * day)})
        one = found.ratio("d", "1", "P leaves", O5, "rmse/zone")
        assert one is not None
        ratios.append(one.ratio)
        errors.append(one.error)
    assert np.mean(ratios) == pytest.approx(0.5, abs=0.01)
    assert np.mean(errors) == pytest.approx(np.std(ratios), rel=0.15)


def test_verdicts_count() -> None:
    """At the limit holds; within two standard errors of it is near; beyond is not; no limit gives no verdict."""
    tally = Tally("claim")
    cells = [tally.add(Ratio("x", r, 0.1), 1.0) for r in (1.0, 1.15, 1.25)]
    assert [c.split()[-1] for c in cells] == ["yes", "near", "NO"]
    assert tally.add(None, 1.0) == "–"
    assert tally.add(Ratio("x", 9.0, 0.1), math.inf) == "9 ± 0.1"
    assert (tally.held, tally.near, tally.rows, tally.worst) == (1, 1, 3, 1.25)


# Days


def test_days_are_drawn_afresh_or_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No day comes twice; a number repeats the draw, and of fewer runs its beginning; without one it is another."""
    every = [f"2014-{m:02d}-{d:02d}" for m in range(1, 13) for d in range(1, 29)]
    (tmp_path / accuracy.BIKES).mkdir()
    (tmp_path / accuracy.BIKES / "trips.parquet").touch()
    monkeypatch.setattr(accuracy, "bike_days", lambda _: every)
    rows = ["day 1", "day 2", "day 3"]
    five, two = (accuracy.days(str(tmp_path), rows, runs, 9) for runs in (5, 2))
    assert len({d for own in five.values() for d in own}) == 15
    assert {row: own[:2] for row, own in five.items()} == two
    # 15 of 336 days in the same order: a chance of less than 1e-37
    assert accuracy.days(str(tmp_path), rows, 5, None) != accuracy.days(str(tmp_path), rows, 5, None)
    with pytest.raises(InputError, match="336 days"):
        accuracy.days(str(tmp_path), rows, 200, None)


# The command

PLUGIN = """
from pathlib import Path
from benchmarks.harness import mechanism

@mechanism("P leaves", group="ours", what="one trip too many in every type")
def ours(case, epsilon):
    return lambda seed: case.truth + 1.0

def other(name, file):
    @mechanism(name, what="off by what a file says")
    def made(case, epsilon):
        return lambda seed: case.truth + float(Path(file).read_text())

other("Two", {two!r})
other("Three", {three!r})
"""


@pytest.mark.slow
@pytest.mark.usefixtures("plugged")
def test_page_keeps_what_is_still_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ratios stand on the page; after a change of the code what repeats is kept, and said so; what differs is run again."""
    pytest.importorskip("matplotlib")
    two, three = tmp_path / "two.txt", tmp_path / "three.txt"
    two.write_text("2")
    three.write_text("3")
    plugin = tmp_path / "plug.py"
    plugin.write_text(PLUGIN.format(two=str(two), three=str(three)))
    out = tmp_path / "out"
    asked = ["--data", "metro", "--mechanisms", "P leaves,Two,Three", "--epsilon", "1", "--runs", "2"]
    places = ["--out", str(out), "--store", str(tmp_path / "store"), "--with", str(plugin), "--jobs", "1"]
    out.mkdir()
    (out / "accuracy.md").write_text(f"# Mine\n\n{accuracy.BEGIN}\n{accuracy.END}\n\nEnd.\n")
    assert accuracy.main([*asked, *places]) == 0
    page = (out / "accuracy.md").read_text()
    assert page.startswith("# Mine\n")
    assert page.endswith("\n\nEnd.\n")
    assert "| metro, 60 % full | 1.00 · – · 2.00 (Two) |" in page
    ratios = (out / "accuracy" / "ratios-to-the-best-other-mechanism-before-rounding.csv").read_text()
    assert '"metro, 60 % full, ε = 1",1.00 ± 0.00,2.00 ± 0.00,Two,0.5 ± 0 yes,' in ratios
    assert "at most 1.02 × the best other's | 1 | 0 | 1 | 0.500 |" in capsys.readouterr().out
    three.write_text("0.5")
    monkeypatch.setattr(registry, "code_version", lambda: "changed")
    monkeypatch.setattr(keep, "code_version", lambda: "changed")
    assert accuracy.main([*asked, *places, "--keep"]) == 0
    page = (out / "accuracy.md").read_text()
    assert "Results of earlier versions of the code are used for Two (one run repeated, same result)." in page
    rows = list(csv.DictReader(io.StringIO((out / "accuracy.csv").read_text())))
    errors = {r["mechanism"]: r["mean"] for r in rows if r["metric"] == "before/singleton"}
    assert errors == {"P leaves": "1", "Two": "2", "Three": "0.5"}


def test_a_failed_or_other_result_is_not_the_same() -> None:
    """Errors that differ, numbers that are missing, and failures are told apart; times are not compared."""
    spec = Spec(ERRORS, "d", "m", "1", 0)
    one = Row(spec, "v", OK, metrics={"rmse/x": 1.0, "emd": math.nan, "cpu": 1.0})
    assert keep.same(one, Row(spec, "w", OK, metrics={"rmse/x": 1.0 + 1e-13, "emd": math.nan, "cpu": 9.0}))
    assert not keep.same(one, Row(spec, "w", OK, metrics={"rmse/x": 1.1, "emd": math.nan, "cpu": 1.0}))
    assert not keep.same(one, Row(spec, "w", OK, metrics={"rmse/x": 1.0}))
    assert not keep.same(Row(spec, "w", FAILED), one)


def test_bad_options_are_told_in_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Unknown names and impossible numbers end with exit code 2 and one line; a page without marks is not overwritten."""
    for asked in (["--data", "x"], ["--mechanisms", "O6"], ["--runs", "0"], ["--epsilon", "-1"]):
        assert accuracy.main([*asked, "--days-seed", "1"]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    (tmp_path / "accuracy.md").write_text("# Mine\n")
    assert accuracy.main(["--out", str(tmp_path), "--data", "metro"]) == 2
    assert "begin" in capsys.readouterr().err
    assert (tmp_path / "accuracy.md").read_text() == "# Mine\n"
