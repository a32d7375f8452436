"""Running totals inside a series: one charge for a span, days that add up, and a state that may be lost."""

from __future__ import annotations

import datetime as dt
import shutil
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from daily_city import CONFIG, write_daily_city

import cbdp
from cbdp.app import publish
from cbdp.app.cli import main
from cbdp.app.publish import LostChargeError
from cbdp.app.series import Ran, run_series, status_of
from cbdp.audit.guarantee_check import attack
from cbdp.config import read
from cbdp.errors import BudgetError, CbdpError, InputError
from cbdp.forecast.running import REDRAWN_SUMS
from cbdp.ledger import Charge, Ledger
from cbdp.release.series import RUNNING_TOTALS

RUNNING_CONFIG = (
    CONFIG.replace("epsilon = 1", 'rho = 0.5\nlaw = "gaussian"')
    .replace("per_day = 3, per_30_days = 60", "per_day = 3, per_year = 9000")
    .replace(
        "start = 2026-03-01", 'start = 2026-03-01\nrunning = { tables = ["total", "zone"], periods = 5 }'
    )
)


@pytest.fixture
def city(tmp_path: Path) -> Path:
    return write_daily_city(tmp_path, days=8, config=RUNNING_CONFIG)


def run(folder: Path, until: str) -> Ran:
    create = not (folder / "ledger.sqlite").exists()
    day = dt.date.fromisoformat(until)
    return run_series(
        read(folder / "cbdp.toml"), day, create_ledger=create, accept_dropped=True, accept_unusual=True
    )


def change(folder: Path, old: str, new: str) -> None:
    text = (folder / "cbdp.toml").read_text()
    assert text.count(old) == 1, old
    (folder / "cbdp.toml").write_text(text.replace(old, new))


def charges(folder: Path, what: str | None = None) -> list[Charge]:
    with Ledger.view(folder / "ledger.sqlite") as ledger:
        ledger.verify()
        return [c for c in ledger.charges() if what in (None, c.what)]


def totals(folder: Path, day: str, table: str = "zone") -> np.ndarray:
    held = pq.read_table(folder / "releases" / day / "running" / f"{table}.parquet")
    return np.asarray(held["running total"].to_numpy())


def test_days_add_up_to_totals_that_are_never_rewritten(city: Path) -> None:
    """In files, as whole numbers, over two runs; what was published on a day stays to the byte. A release can be made again from its folder."""
    run(city, "2026-03-02")
    files = {p: p.read_bytes() for p in (city / "releases").rglob("*") if p.is_file()}
    run(city, "2026-03-04")
    assert all(path.read_bytes() == text for path, text in files.items())
    made = [cbdp.load(city / "releases" / f"2026-03-0{n}") for n in (1, 2, 3, 4)]
    for table in ("total", "zone"):
        added = np.cumsum([release.counts(table) for release in made], axis=0)
        for n, total in enumerate(added, 1):
            assert totals(city, f"2026-03-0{n}", table).tolist() == total.tolist()
    assert [r.running and r.running.number for r in made] == [1, 2, 3, 4]
    again = cbdp.mechanisms.of(made[3]).finish(made[3].measurements)
    assert (again.index.tolist(), again.value.tolist()) == (made[3].index.tolist(), made[3].value.tolist())


def test_a_span_is_charged_once_before_its_first_release(city: Path) -> None:
    """As much as each release spends on the same tables; for a day that is all, for more days what the sums cost; then a new span begins."""
    run(city, "2026-03-05")
    (span,) = charges(city, RUNNING_TOTALS)
    first = charges(city)[0]
    assert first == span
    assert span.covers is not None
    assert (span.covers.first, span.covers.last) == (dt.date(2026, 3, 1), dt.date(2026, 3, 5))
    assert (span.covers.strategy, span.covers.periods) == ("square root", 5)
    assert float(span.amount.rho) == pytest.approx(2 * 0.5 / 3)  # two of three tables with even shares
    person = status_of(read(city / "cbdp.toml"), dt.date(2026, 3, 5)).person
    assert person is not None
    assert float(person.window(1).amount.rho) == pytest.approx(0.5 + 1 / 3)
    assert 0.5 * 5 + 5 / 3 < float(person.window(7).amount.rho) < 0.5 * 5 + 25 / 3
    assert not status_of(read(city / "cbdp.toml"), dt.date(2026, 3, 5)).lost
    run(city, "2026-03-06")
    assert [c.covers and c.covers.first for c in charges(city, RUNNING_TOTALS)] == [
        dt.date(2026, 3, n) for n in (1, 6)
    ]
    found = cbdp.load(city / "releases" / "2026-03-06")
    assert found.running is not None
    assert (found.running.first, found.running.number) == (dt.date(2026, 3, 6), 1)
    assert totals(city, "2026-03-06").tolist() == found.counts("zone").tolist()


def test_sums_that_were_drawn_by_a_run_that_died_are_paid_for_again(
    city: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The span is not charged anew, the lost draw is; the next day pays nothing of the kind."""
    run(city, "2026-03-01")
    with monkeypatch.context() as broken:
        broken.setattr(publish, "written", _fails)
        broken.setattr("cbdp.app.publish.written", _fails)
        with pytest.raises(LostChargeError):
            run(city, "2026-03-02")
    assert not charges(city, REDRAWN_SUMS)
    run(city, "2026-03-03")
    (again,) = charges(city, REDRAWN_SUMS)
    assert again.covers is not None
    assert (again.covers.first, again.covers.last) == (dt.date(2026, 3, 1), dt.date(2026, 3, 2))
    (span,) = charges(city, RUNNING_TOTALS)
    assert 0.4 < float(again.amount.rho / span.amount.rho) < 1  # the newest day weighs most in a sum
    with Ledger.view(city / "ledger.sqlite") as ledger:
        assert [c.what for c in ledger.unfinished()] == ["constraint-based"]
    assert totals(city, "2026-03-03").sum() == sum(
        cbdp.load(city / "releases" / f"2026-03-0{n}").total for n in (1, 2, 3)
    )


def _fails(*_: object) -> None:
    raise OSError("the disk is full")


def test_the_state_is_private_and_may_be_lost(city: Path) -> None:
    """For the owner's eyes; without it, rows are counted again. Where the rows are gone too, a line says so and nothing is spent."""
    run(city, "2026-03-02")
    state = city / "ledger.sqlite.running-internal"
    files = list(state.glob("*.npz"))
    assert len(files) == 2
    assert all(f.stat().st_mode & 0o077 == 0 for f in [state, *files])
    shutil.rmtree(state)
    run(city, "2026-03-03")
    assert len(list(state.glob("*.npz"))) == 3
    shutil.rmtree(state)
    table = pq.read_table(city / "trips.parquet")
    late = np.asarray(table["at"].to_numpy()) >= np.datetime64("2026-03-03")
    pq.write_table(table.filter(late), city / "trips.parquet")
    before = charges(city)
    with pytest.raises(InputError, match=r"need the trips of 2026-03-01, which are no longer in the data"):
        run(city, "2026-03-04")
    assert charges(city) == before


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "start = 2026-03-01",
            'start = 2026-03-01\nrevise = "once"\nfinal_after = 2\nshares = { preliminary = 0.5, final = 0.5 }',
            'running totals are of periods that are released once, and revise is "once"',
        ),
        ('tables = ["total"', 'tables = ["singleton"', "no running totals of 'singleton' can be kept"),
        ('tables = ["total"', 'tables = ["zone"', "no running totals of 'zone' can be kept: list it once"),
        ('tables = ["total"', 'tables = ["zon"', "no running totals of 'zon' can be kept: .*'zone'"),
        ("periods = 5", "periods = 5, strategy = 'cube root'", "strategy is 'cube root'"),
        ("per_day = 3", "per_day = 0.7", "cap ρ 0.7 for a day"),
    ],
)
def test_what_does_not_fit_is_one_line_and_nothing_is_spent(
    city: Path, old: str, new: str, says: str
) -> None:
    """Also where each of two charges fits the cap, and not both."""
    change(city, old, new)
    with pytest.raises(CbdpError, match=rf"cbdp\.toml:\d+: .*{says}"):
        run(city, "2026-03-07")
    assert not (city / "ledger.sqlite").exists()
    assert not list((city / "releases").iterdir())


def test_what_a_span_measures_stays_until_it_is_over(city: Path) -> None:
    """Other tables within a span are refused, and begin with a new version; a day that was left out cannot be made later."""
    change(city, "start = 2026-03-01\n", "start = 2026-03-01\ngaps = [2026-03-02]\n")
    run(city, "2026-03-03")
    change(city, 'tables = ["total", "zone"]', 'tables = ["zone"]')
    with pytest.raises(
        InputError, match=r"running totals of total, zone by the square root are charged from 2026-03-01 on"
    ):
        run(city, "2026-03-04")
    change(city, 'tables = ["zone"]', 'tables = ["zone", "total"]')
    change(city, "gaps = [2026-03-02]\n", "")
    with pytest.raises(
        InputError, match=r"2026-03-02 is before 2026-03-03, .* List 2026-03-02 in series.gaps"
    ):
        run(city, "2026-03-04")
    assert len(charges(city)) == 3
    change(city, "start = 2026-03-01\n", "start = 2026-03-01\ngaps = [2026-03-02]\nversion = 2\n")
    run(city, "2026-03-04")
    assert [c.covers and c.covers.first for c in charges(city, RUNNING_TOTALS)] == [
        dt.date(2026, 3, n) for n in (1, 4)
    ]


def test_pure_noise_in_a_ledger_of_rho_counts_days_as_a_group(city: Path) -> None:
    """ε²/2 of sums of days is not the price of their squares: such a charge states no strategy, and m days cost m² times as much."""
    change(city, 'rho = 0.5\nlaw = "gaussian"', 'epsilon = 1\ncurrency = "rho"')
    run(city, "2026-03-02")
    (span,) = charges(city, RUNNING_TOTALS)
    assert span.covers is not None
    assert not span.covers.strategy
    assert float(span.amount.rho) == pytest.approx((2 / 3) ** 2 / 2)
    found = cbdp.load(city / "releases" / "2026-03-02")
    assert found.running is not None
    assert found.running.strategy == "binary tree"
    person = status_of(read(city / "cbdp.toml"), dt.date(2026, 3, 2)).person
    assert person is not None
    assert float(person.window(7).amount.rho) == pytest.approx(2 * 0.5 + 25 * (2 / 3) ** 2 / 2, rel=1e-6)


def test_a_cap_of_the_year_refuses_a_span_before_it_is_charged(city: Path) -> None:
    """A second span does not fit: the line names the window, and the ledger is as it was."""
    change(city, "per_year = 9000", "per_year = 9")
    with pytest.raises((BudgetError, CbdpError), match=r"365 days"):
        run(city, "2026-03-08")
    assert len(charges(city, RUNNING_TOTALS)) == 1


def test_a_release_claims_what_all_that_it_holds_costs(city: Path) -> None:
    """Its own answers and the sums of the whole span: what a folder promises is true of every file in it. An audit agrees."""
    run(city, "2026-03-02")
    found = cbdp.load(city / "releases" / "2026-03-02")
    assert float(found.claim.cost.rho) == pytest.approx(0.5 + 1 / 3)
    assert found.manifest["privacy"]["rho"]["decimal"] == pytest.approx(0.5 + 1 / 3)
    with Ledger.view(city / "ledger.sqlite") as ledger:
        assert [float(c.amount.rho) for c in ledger.charges()] == pytest.approx([1 / 3, 0.5, 0.5])
    audited = ["audit", str(city / "releases" / "2026-03-02"), "--ledger", str(city / "ledger.sqlite")]
    assert main(audited) == 0
    assert not _contradictions(found.manifest, found)
    halved = deepcopy(found.manifest)
    scale = halved["running"]["tables"][0]["scale"]
    scale |= {"exact": str(Fraction(scale["exact"]) / 2), "decimal": scale["decimal"] / 2}
    assert {"noise scales", "composition"} <= {*_contradictions(halved, found)}
    forgotten = deepcopy(found.manifest)
    parts = forgotten["privacy"]["spent"]["parts"][0]["parts"]
    parts[:] = [part for part in parts if not part["what"].startswith("running")]
    assert "composition" in _contradictions(forgotten, found)


def _contradictions(manifest: dict[str, Any], release: cbdp.Release) -> list[str]:
    return [f.check for f in attack(manifest, release.features) if f.verdict == "contradicts"]


def test_pure_releases_can_be_made_again_too(city: Path) -> None:
    """The mechanism of a folder spends on its tables what it spent, and not what the sums cost."""
    change(city, 'rho = 0.5\nlaw = "gaussian"', "epsilon = 1")
    change(city, "per_day = 3, per_year = 9000", "per_day = 3")
    run(city, "2026-03-02")
    found = cbdp.load(city / "releases" / "2026-03-02")
    assert float(found.claim.cost.epsilon) == pytest.approx(1 + 2 / 3)
    made = cbdp.mechanisms.of(found)
    assert float(made.epsilon) == pytest.approx(1)
    assert made.claim() == found.claim
    again = made.finish(found.measurements)
    assert again.value.tolist() == found.value.tolist()
    assert main(["audit", str(city / "releases" / "2026-03-02")]) == 0
