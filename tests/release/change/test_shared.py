"""Universes that differ: what both have is compared, and what differs is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.errors import InputError
from cbdp.release.comparison import compare


def _release(seed: int = 1, **dimensions: Any) -> cbdp.Release:
    universe = cbdp.Universe(**dimensions)
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("all", by=[n for n in ("origin",) if n in dimensions])])
    return cbdp.ConstraintBased(dag, 2).simulate(np.full(universe.size, 50), seed)


def _stops(*ids: str, zone: Any = None) -> cbdp.Dimension:
    return cbdp.Dimension(ids, zone=zone or ["z"] * len(ids))


HOURS = cbdp.periods("08:00", "10:00", "1h")


def test_a_new_stop_is_left_out() -> None:
    """Both sides are counted over the stops that both have."""
    made = compare(
        _release(1, origin=_stops("A", "B"), time=HOURS),
        _release(2, origin=_stops("B", "C", "A"), time=HOURS),
    )
    assert 150 < made.columns["first"][0] < 250
    assert 150 < made.columns["second"][0] < 250  # of 300
    assert any("2 values of origin that both have" in n and "C of the second" in n for n in made.notes)
    by = compare(
        _release(1, origin=_stops("A", "B"), time=HOURS),
        _release(2, origin=_stops("B", "C", "A"), time=HOURS),
        "origin",
    )
    assert by.columns["origin"] == ["A", "B"]


def test_months_are_compared_as_wholes() -> None:
    """Dates have nothing in common and are added up; asking by them is refused."""
    march, april = cbdp.days("2026-03-01", "2026-03-03"), cbdp.days("2026-04-01", "2026-04-02")
    first, second = _release(1, origin=_stops("A"), day=march), _release(2, origin=_stops("A"), day=april)
    made = compare(first, second)
    assert any("3 days of day, the second 2 days" in note for note in made.notes)
    assert made.columns["first"][0] > made.columns["second"][0] + 20
    with pytest.raises(InputError, match="no value of day means the same in both releases: leave it out"):
        compare(first, second, "day")


def test_periods_of_another_length_are_not_the_same() -> None:
    """08:00 to 08:30 is not 08:00 to 09:00, whatever both are called; the same hours as wholes can be compared."""
    half = cbdp.periods("08:00", "10:00", "30min")
    first, second = _release(1, origin=_stops("A"), time=HOURS), _release(2, origin=_stops("A"), time=half)
    assert any("2 and 4 periods of time" in note for note in compare(first, second).notes)
    with pytest.raises(InputError, match="no value of time means the same"):
        compare(first, second, "time")


def test_hours_that_only_one_has_are_left_out() -> None:
    """A longer service day is compared over the hours of the shorter."""
    first = _release(1, origin=_stops("A"), time=HOURS)
    second = _release(2, origin=_stops("A"), time=cbdp.periods("08:00", "12:00", "1h"))
    made = compare(first, second, "time")
    assert made.columns["time"] == ["08:00", "09:00"]
    assert any("10:00, 11:00 of the second" in note for note in made.notes)


def test_a_dimension_of_one_release_is_added_up() -> None:
    """And cannot be asked for."""
    first = _release(1, origin=_stops("A"), time=HOURS)
    second = _release(2, origin=_stops("A"), time=HOURS, mode=["bus", "rail"])
    made = compare(first, second)
    assert any("Only the second release tells mode apart (2 values)" in note for note in made.notes)
    with pytest.raises(InputError, match="the first release has no 'mode': compare by what both have"):
        compare(first, second, "mode")


def test_zones_that_were_redrawn_are_refused() -> None:
    """A change of the zones would look like one of the trips."""
    first = _release(1, origin=_stops("A", "B", zone=["n", "s"]), time=HOURS)
    second = _release(2, origin=_stops("A", "B", zone=["n", "n"]), time=HOURS)
    with pytest.raises(
        InputError,
        match=r"'origin.zone' of B is 's' in the first release and 'n' in the second: compare by origin",
    ):
        compare(first, second, "origin.zone")
    assert compare(first, second, "origin").rows == 2


def test_nothing_in_common_is_refused() -> None:
    """Two cities cannot be compared."""
    with pytest.raises(
        InputError, match="no value of origin means the same in both releases: they cannot be compared"
    ):
        compare(_release(1, origin=_stops("A"), time=HOURS), _release(2, origin=_stops("B"), time=HOURS))
