"""Values that are whole but for the last bits, and values that are not: which whole numbers they may become."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from twins import Twin, check, line, twins

import cbdp
from cbdp.rounding.controlled import Exactness, exactness, round_trips

HALVES = cbdp.Feature("half", by="x.half")


@settings(deadline=None, max_examples=60)
@given(twins(unit=3))
def test_thirds_add_up(twin: Twin) -> None:
    """Sums that are whole are met exactly although the floats do not add up to them."""
    check(twin, *twin.round())


@pytest.mark.parametrize("features", [(), (HALVES,)], ids=["one cell", "two cells"])
def test_leaves_just_below_a_whole_number_are_that_number(features: tuple[cbdp.Feature, ...]) -> None:
    """A fraction that rounds to a whole trip is carried over: no trip is lost, in the leaves or in any sum."""
    value = np.array([np.nextafter(3, 0), 1, 1 - 1e-16, 2])
    assert np.floor(value).sum() == 5  # what is left without the carry
    rounded = round_trips(line(4, *features), np.arange(4), value)
    assert rounded.index.tolist() == [0, 1, 2, 3]
    assert rounded.value.tolist() == [3, 1, 1, 2]
    assert rounded.value.sum() == 7
    assert rounded.violation == {}


@pytest.mark.parametrize("short", [1e-16, 1e-13, 1e-12, 1e-9])
def test_sums_carry_too(short: float) -> None:
    """Fractions that add up to just below a whole number, beside leaves just below one, are counted with them."""
    value = np.array([1 - short, 0.5, 0.5 - short, 2 - 2 * short, 0.25, 0.75 - short])
    rounded = round_trips(line(6, HALVES), np.arange(6), value)
    assert rounded.value.sum() == 5
    assert rounded.value[np.isin(rounded.index, [0, 1, 2])].sum() == 2
    assert rounded.violation == {}


def test_public_total_is_met() -> None:
    """Sums within float error of a whole number are that number; far larger counts keep their fractions."""
    tenth = np.full(100, 0.1)
    assert round_trips(line(100), np.arange(100), tenth).value.sum() == 10
    assert round_trips(line(100), np.arange(100), tenth - 1e-9).value.sum() == 10
    large = round_trips(line(2), np.arange(2), np.array([600_000.4, 600_000.4]))
    assert sorted(large.value.tolist()) == [600_000, 600_000]
    large = round_trips(line(2), np.arange(2), np.array([600_000.4, 600_000.5]))
    assert large.value.sum() in {1_200_000, 1_200_001}


def test_large_counts_keep_their_fractions() -> None:
    """A sum of 300,001.2 is not taken for 300,001, though it is within a millionth of it: both leaves go up."""
    rounded = round_trips(line(2), np.arange(2), np.array([200_000.6, 100_000.6]))
    assert rounded.value.tolist() == [200_001, 100_001]


def test_many_small_errors_do_not_contradict_each_other() -> None:
    """Leaves that each pass for whole, and add up to a trip more: they are then not taken for whole."""
    n = 1200
    value = np.full(n, 1000 + 9e-4)
    rounded = round_trips(line(n, HALVES), np.arange(n), value)
    assert rounded.value.sum() in {1000 * n + 1, 1000 * n + 2}
    assert set(rounded.value.tolist()) == {1000, 1001}
    assert rounded.violation == {}


def test_leaves_that_pass_for_whole_bind_their_cell() -> None:
    """Two leaves of 1,000.0009 pass for 1,000 each; their sum of 2,000.0018 does not, but nothing is left to go up."""
    rounded = round_trips(line(4, HALVES), np.arange(4), np.array([1000.0009, 1000.0009, 0.6, 0.6]))
    assert rounded.value.tolist() == [1000, 1000, 1, 1]
    assert rounded.violation == {}


@settings(deadline=None, max_examples=60)
@given(twins(unit=3))
def test_whoever_checks_uses_the_ranges_of_the_rounding(twin: Twin) -> None:
    """Violations and tolerance are the rounding's own, worked out from the whole trips alone."""
    rounded, _ = twin.round()
    dag = twin.dag()
    again = exactness(dag, *twin.estimate(dag)[1:], (rounded.index, rounded.value))
    assert (dict(again.violations), again.tolerance) == (dict(rounded.violation), rounded.tolerance)


def test_a_lowered_tolerance_is_stated_and_used_by_whoever_checks() -> None:
    """1,200 leaves just below 2,000 add up to 1.08 less: one of them goes down, and is no violation, though it is within 1e-6 of 2,000."""
    dag, index, value = line(1200, HALVES), np.arange(1200), np.full(1200, 2000 - 9e-4)
    rounded = round_trips(dag, index, value)
    trips = (rounded.index, rounded.value)
    assert rounded.tolerance == 1e-9
    assert rounded.value.sum() == 2_399_999
    assert exactness(dag, index, value, trips) == Exactness(1e-9, {})
    assert exactness(dag, index, value, trips, tolerance=1e-6).violations["singleton"] == 1
    for moved in ((0, 2), (1, -2)):  # what was changed afterwards is off by any tolerance
        changed = rounded.value.copy()
        changed[moved[0]] += moved[1]
        assert exactness(dag, index, value, (rounded.index, changed)).violations["singleton"] == 1


def test_trips_of_types_without_an_estimate_are_violations() -> None:
    """A type that the estimate does not list is 0: a trip of it is off, and so is every sum that has room for none."""
    dag = line(4, HALVES)
    off = exactness(dag, np.array([0]), np.array([1.0]), (np.array([0, 3]), np.array([1, 1])))
    assert dict(off.violations) == {"singleton": 1, "half": 1, "total": 1}
