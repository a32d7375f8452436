"""Opal's days as a series, small: ferries on the last day of one week and the first of the other."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from benchmarks import opal_series
from benchmarks.harness.opal_taps import opal_taps
from cbdp.ledger import Ledger

TAPS = functools.cache(opal_taps)
DAYS = opal_series.DATES[6:8]  # 31 July and 8 August, with the week between that was not published


@pytest.fixture(scope="module")
def true() -> opal_series.Truth:
    return opal_series.truth(TAPS(), DAYS, ["ferry"])


def test_truth_is_that_of_the_taps(true: opal_series.Truth) -> None:
    """Each trip is two taps, and every table adds up to them."""
    taps = TAPS()
    for day in DAYS:
        trips = len(taps.parts[f"{day:%Y%m%d}", "ferry"]["on_time"])
        assert {int(counts.sum()) for counts in true.tables[day].values()} == {2 * trips}


def test_one_trip_costs_what_opal_stated(true: opal_series.Truth, tmp_path: Path) -> None:
    """ε = 4 for a trip that is added or removed on a day, 8 for one that is replaced; the ledger knows both days, and tables beat Opal's."""
    found = opal_series.published(true, opal_series.ways(2)["trip"], tmp_path)
    assert sorted(p.name for p in (tmp_path / "releases").iterdir()) == [f"{day}" for day in DAYS]
    with Ledger.view(tmp_path / "ledger.sqlite") as ledger:
        assert [str(c.covers.first) for c in ledger.charges() if c.covers] == [f"{day}" for day in DAYS]
    assert found.person is not None
    costs = {worst.days: float(worst.epsilon) for worst in found.person.windows}
    assert costs[1] == costs[7] == opal_series.EPSILON / 2, "the days are eight days apart"
    assert costs[None] == opal_series.EPSILON
    theirs = opal_series.as_released(TAPS(), true)
    for name in ("time", "singleton"):
        assert max(found.daily[name]) < 0.7 * min(theirs.daily[name])
        assert found.whole[name] < 0.7 * theirs.whole[name]


def test_a_person_over_all_days_costs_no_more_than_one_trip_did(
    true: opal_series.Truth, tmp_path: Path
) -> None:
    """With Gaussian noise, (8, δ) holds for everything that a person does on all of the days, and the table by both is still nearer."""
    found = opal_series.published(true, opal_series.ways(2)["weeks"], tmp_path)
    assert found.person is not None
    last = found.person.windows[-1]
    assert last.days is None
    assert 7 < last.epsilon <= opal_series.EPSILON
    rows = list(opal_series.lines({"weeks": found}, {"weeks": "a person"}))
    assert rows[-1].count("ρ") == 3
    assert max(found.daily["singleton"]) < 0.8 * min(opal_series.as_released(TAPS(), true).daily["singleton"])
