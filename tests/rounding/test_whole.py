"""Whole trips against plain enumeration: floors and ceilings at every level, and the least distance."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Model
from twins import FAMILIES, Twin, check, filled, grids, line, tiny, twins

import cbdp
from cbdp.errors import InputError
from cbdp.rounding.controlled import round_to_cell_counts, round_trips


@settings(deadline=None, max_examples=150)
@given(twins())
def test_floors_and_ceilings_in_any_universe(twin: Twin) -> None:
    """Counts add up and are floors or ceilings wherever two laminar families hold all elements."""
    rounded, whole = twin.round()
    check(twin, rounded, whole)
    if twin.families():
        assert not rounded.violation


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(grids())
def test_floors_and_ceilings_by_number_of_families(case: tuple[str, Twin]) -> None:
    """None, one or two crossing families are always exact; three are as reported."""
    name, twin = case
    rounded, whole = twin.round()
    check(twin, rounded, whole)
    if not name.startswith("three"):
        assert rounded.violation == {}


@settings(deadline=None, max_examples=150)
@given(twins(types=14).map(tiny))
def test_nearest_by_enumeration(twin: Twin) -> None:
    """No rounding that keeps all features and cells is nearer, if two families hold them."""
    rounded, whole = twin.round()
    distance, broken = twin.enumerated(twin.sets())
    if twin.families():
        assert float(twin.distance(whole)) == pytest.approx(distance[broken == 0].min(), abs=1e-9)
    if (broken == 0).any():
        assert not rounded.violation


def test_cells_are_kept_though_least_squares_would_not() -> None:
    """Two cells of ten leaves of 0.1 keep a trip each; without cells, the larger leaves beside them would take it."""
    model = Model((("n", "s"), ("bus", "rail"), tuple(range(10))), {}, ())
    small = {("n", "bus"), ("s", "rail")}
    real = {t: Fraction(1, 10) if t[:2] in small else Fraction(3, 10) for t in model.types}
    twin = Twin(model, {"total": (), "zone": ("d0",), "mode": ("d1",), "singleton": model.names}, real)
    rounded, whole = twin.round()
    check(twin, rounded, whole)
    cells = itertools.product("ns", ["bus", "rail"])
    counts = {c: sum(n for t, n in whole.items() if t[:2] == c) for c in cells}
    assert set(counts.values()) == {1, 3}
    assert all(counts[c] == 1 for c in small)
    # zones and modes of 4 trips, too, and nearer
    stripped = {t: int(t[:2] not in small and t[2] < 4) for t in model.types}
    assert twin.distance(stripped) < twin.distance(whole)


@settings(deadline=None, max_examples=60)
@given(twins(), st.randoms(use_true_random=False))
def test_order_of_features_does_not_matter(twin: Twin, shuffle: Any) -> None:
    """The same answer for any order of the features, and the same again."""
    order = list(twin.features)
    shuffle.shuffle(order)
    assert twin.round()[1] == twin.round(order)[1] == twin.round()[1]


@pytest.mark.parametrize("unit", [2, 16])
@pytest.mark.parametrize("name", FAMILIES)
def test_reversed_features(name: str, unit: int) -> None:
    """Cells are numbered by their trip types: features listed backwards give the same answer, among halves too."""
    model = Model(((0, 1, 2), (0, 1, 2), (0, 1, 2), (0, 1)), {}, ())
    twin = filled(model, FAMILIES[name], 4, unit)
    assert twin.round()[1] == twin.round(list(twin.features)[::-1])[1]


@settings(deadline=None, max_examples=60)
@given(twins())
def test_whole_numbers_stay(twin: Twin) -> None:
    """Whole counts are their own rounding, and so is a rounding."""
    whole = twin.round()[1]
    again, same = Twin(twin.model, twin.features, {t: Fraction(n) for t, n in whole.items()}).round()
    assert same == whole
    assert again.violation == {}


def test_nothing_stays_nothing() -> None:
    """An estimate of no trips, listed or not, gives no trips."""
    for index, value in [((), ()), ((1, 2), (0.0, 0.0)), ((0, 1), (1e-9, 1e-12))]:
        rounded = round_trips(line(3), np.array(index, dtype=np.int64), np.array(value, dtype=float))
        assert len(rounded.index) == len(rounded.value) == 0
        assert rounded.violation == {}


@pytest.mark.parametrize(
    ("value", "whole"), [(0.4, 0), (0.6, 1), (7.2, 7), (7.9999999, 8), (1e12 + 0.75, 10**12 + 1)]
)
def test_single_leaf(value: float, whole: int) -> None:
    """One type in the whole universe goes to the nearest whole number."""
    rounded = round_trips(line(1), np.array([0]), np.array([value]))
    assert rounded.value.sum() == whole


def test_equal_leaves_go_up_in_order() -> None:
    """Among equals the first types go up, in every element as many as it needs."""
    dag = line(12, cbdp.Feature("half", by="x.half"))
    rounded = round_trips(dag, np.arange(12), np.full(12, 1 / 3))
    assert rounded.index.tolist() == [0, 1, 6, 7]


def test_a_city() -> None:
    """Zones and modes under time, a hundred thousand sparse types: exact in whole numbers, and all margins kept."""
    rng = np.random.default_rng(2)
    stops = cbdp.Dimension(range(60), zone=[i // 6 for i in range(60)])
    universe = cbdp.Universe(origin=stops, destination=stops, time=range(40)).without_equal(
        "origin", "destination"
    )
    dag = cbdp.features.odmts(universe, modes=rng.integers(0, 4, (60, 60)))
    index = np.sort(rng.choice(universe.size, 100_000, replace=False))
    units = rng.integers(1, 64, len(index))
    rounded = round_trips(dag, index, units / 32)
    assert rounded.violation == {}
    for name in ("total", "time", "zone", "mode", "singleton"):
        partition = dag.partition(name)
        real, whole = np.zeros(partition.size, dtype=np.int64), np.zeros(partition.size, dtype=np.int64)
        np.add.at(real, partition.element_of(universe.unrank_codes(index)), units)
        np.add.at(whole, partition.element_of(universe.unrank_codes(rounded.index)), rounded.value)
        assert (np.abs(32 * whole - real) < 32).all()


# Rounding again.


@settings(deadline=None, max_examples=80)
@given(twins())
def test_a_rounding_is_found_again_from_the_counts_of_its_cells(twin: Twin) -> None:
    """The trips themselves, wherever they stand within their cells."""
    dag = twin.dag()
    _, index, value = twin.estimate(dag)
    rounded = round_trips(dag, index, value)
    cells = dag.cell_of_leaf
    first = np.unique(cells, return_index=True)[1]
    counts = np.bincount(cells[rounded.index], rounded.value, minlength=len(first)).astype(np.int64)
    moved = np.sort(first[np.flatnonzero(counts)])  # all trips of a cell on its first type
    made = round_to_cell_counts(dag, index, value, (moved, counts[cells[moved]]))
    assert made is not None
    assert made[0].tolist() == rounded.index.tolist()
    assert made[1].tolist() == rounded.value.tolist()


@pytest.mark.parametrize(
    ("trips", "made"),
    [
        (([0, 3], [3, 2]), ([0, 1, 2], [1, 2, 2])),
        (([0, 3], [4, 2]), ([0, 1, 2], [2, 2, 2])),  # the other neighbour of 3.2
        (([0, 3], [5, 2]), None),
        (([0, 3], [2, 2]), None),
        (([0], [3]), None),  # the right half has two trips
    ],
)
def test_only_counts_that_a_rounding_can_have_are_rounded_again(trips: Any, made: Any) -> None:
    """The left half has 3.2 trips and the right half 2: any other number of trips is not theirs."""
    dag = line(4, cbdp.Feature("half", by="x.half"))
    given_trips = tuple(np.array(each, dtype=np.int64) for each in trips)
    found = round_to_cell_counts(dag, np.arange(3), np.array([1.3, 1.9, 2.0]), given_trips)
    assert (found and tuple(each.tolist() for each in found)) == made


def test_trips_in_a_cell_without_any_are_not_rounded_again() -> None:
    """A cell for which nothing is estimated has no trips."""
    dag, one = line(4, cbdp.Feature("half", by="x.half")), np.ones(1, dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    assert round_to_cell_counts(dag, np.array([0]), np.array([1.0]), (np.array([3]), one)) is None
    assert round_to_cell_counts(dag, none, np.zeros(0), (np.array([3]), one)) is None
    made = round_to_cell_counts(dag, none, np.zeros(0), (none, none))
    assert made is not None
    assert len(made[0]) == len(made[1]) == 0


# Wrong input.


@pytest.mark.parametrize(
    ("index", "value", "says"),
    [
        ([0, 1], [1.0], "same length"),
        ([0.5], [1.0], "index is of type float64"),
        ([1, 0], [1.0, 1.0], "index has 0 after 1: sort it"),
        ([1, 1], [1.0, 1.0], "index has 1 after 1: sort it"),
        ([3], [1.0], "index 3 is outside the universe: .* 0 … 2"),
        ([-1], [1.0], "index -1 is outside the universe"),
        ([0], [-0.5], "value -0.5"),
        ([0], [math.nan], "value nan"),
        ([0], [math.inf], "value inf"),
        ([0], [1e19], r"add up to 1e\+19: .* below 2"),
    ],
)
def test_wrong_input_is_named(index: list[Any], value: list[float], says: str) -> None:
    """An invalid estimate is refused with the value that is wrong."""
    with pytest.raises(InputError, match=says):
        round_trips(line(3), np.array(index), np.array(value))
