"""How much one unit can change a feature's counts: the rule against every possible person on tiny universes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cbdp
from cbdp.errors import InputError
from cbdp.features import Dimension, Feature, FeatureDag, Universe, days
from cbdp.privacy.unit import Person, Sensitivity, Trip, group_sensitivity, sensitivity
from cbdp_features.calendar import dates_or_none, day_dimension, period_of
from cbdp_features.contribution import ContributionStructure, contribution_structure

Vector = tuple[int, ...]


def test_without_knowing_the_feature_trips_may_pile_up() -> None:
    """A trip changes one count by one; replaced, two counts; a person's trips may all fall into one count, or into as many as they are."""
    assert sensitivity(Trip()) == Sensitivity(1, 1, 1, 1)
    assert sensitivity(Trip("replace")) == Sensitivity(2, 2, 2, 1)
    assert sensitivity(Person("card", 4)) == Sensitivity(4, 16, 4, 4)


def test_trips_kept_apart_cannot_pile_up_where_periods_are_told_apart() -> None:
    """L2 is √k instead of k by time; by half days it lies between; the total tells nothing apart."""
    halves = Dimension(["6", "7", "8", "9"], half=["a", "a", "b", "b"])
    universe = Universe(stop=["A", "B"], time=halves)
    dag = FeatureDag(universe, [Feature("half", by=["stop", "time.half"])])
    unit = Person("card", 3, apart="time")
    found = {
        name: sensitivity(unit, contribution_structure(dag, name, unit.per, unit.apart))
        for name in dag.features
    }
    assert found == {
        "total": Sensitivity(3, 9, 1, 3),
        "half": Sensitivity(3, 5, 3, 2),
        "singleton": Sensitivity(3, 3, 3, 1),
    }
    many = Person("card", 9, apart="time")
    assert sensitivity(many, contribution_structure(dag, "singleton", apart="time")) == Sensitivity(
        4, 4, 4, 1
    ), "there are four times"


def test_a_week_of_days() -> None:
    """Where days are told apart, squares add up; where they are pooled, lengths do."""
    universe = Universe(stop=["A", "B"], time=["am", "pm"], day=days("2026-03-02", "2026-03-15"))
    dag = FeatureDag(
        universe, [Feature("pooled", by=["stop", "time"]), Feature("kinds", by=["time", "day.type"])]
    )
    unit = Person("card", 2, per="day", apart="time")
    found = {
        name: group_sensitivity(unit, contribution_structure(dag, name, unit.per, unit.apart), periods=7)
        for name in dag.features
    }
    assert found["singleton"] == Sensitivity(14, 14, 14, 1)
    assert found["pooled"] == Sensitivity(14, 98, 4, 7)
    assert found["kinds"].l2_squared == 98, (
        "at most: a week has five days of one kind, and all seven are allowed for"
    )
    assert group_sensitivity(
        unit, contribution_structure(dag, "pooled", "day", "time"), periods=1
    ) == Sensitivity(2, 2, 2, 1)


def test_a_release_has_one_period() -> None:
    """What protects all of a person's trips together has no seven of them."""
    with pytest.raises(InputError, match="one period, the release"):
        group_sensitivity(Person("card", 4), periods=7)
    with pytest.raises(InputError, match="at least 1"):
        group_sensitivity(Person("card", 4, per="day"), periods=0)


# By brute force


def possible(universe: Universe, unit: Person) -> Iterator[tuple[int, ...]]:
    """What can be left of one person's one period after bounding: every multiset of types, up to `max_trips`, kept apart."""
    names, codes = list(universe.dimensions), universe.unrank_codes(np.arange(universe.size))
    day = day_dimension(universe.dimensions)
    dates = None if day is None else dates_or_none(universe.dimensions[day])
    slots = list(zip(*(codes[names.index(n)].tolist() for n in {day, unit.apart} - {None}), strict=True))

    def period(index: int) -> Any:
        """Types of one period can meet; a kind of days stands for many days, of which one period may have any, and a day one."""
        if day is None or unit.per == "release":
            return 0
        code = int(codes[names.index(day)][index])
        if dates is None:
            return code if unit.per == "day" else 0
        return period_of(dates[code], unit.per)

    for many in range(unit.max_trips + 1):
        for types in itertools.combinations_with_replacement(range(universe.size), many):
            apart = unit.apart is None or len({slots[t] for t in types}) == many
            if apart and len({period(t) for t in types}) <= 1:
                yield types


def people(universe: Universe, unit: Person) -> Any:
    """A row for every person there can be: how many trips of each type are left of one period."""
    kept = list(possible(universe, unit))
    made = np.zeros((len(kept), universe.size), dtype=np.int64)
    for row, types in enumerate(kept):
        np.add.at(made[row], list(types), 1)
    return made


def worst(universe: Universe, by: Sequence[str], everybody: Any) -> Sensitivity:
    """The greatest change of all neighbouring pairs: one has the person's period, the other has not."""
    element = universe.partition(by).of_every_type()
    vectors = everybody @ np.eye(element.max() + 1, dtype=np.int64)[element]
    sums = (vectors.sum(axis=1), (vectors**2).sum(axis=1), (vectors > 0).sum(axis=1), vectors.max(axis=1))
    return Sensitivity(*(int(each.max()) for each in sums))


@st.composite
def universes(draw: st.DrawFn) -> Universe:
    """A few stops, times and perhaps days, with attributes of one and of two dimensions, and perhaps structural zeros."""
    labels = st.sampled_from("xyz")
    times = draw(st.integers(1, 4))
    dims: dict[str, Any] = {
        "stop": Dimension(["A", "B"], zone=draw(st.lists(labels, min_size=2, max_size=2))),
        "time": Dimension(range(times), part=draw(st.lists(labels, min_size=times, max_size=times))),
    }
    kind = draw(st.sampled_from(["none", "dates", "kinds"]))
    if kind == "dates":
        dims["day"] = days("2026-02-28", draw(st.sampled_from(["2026-02-28", "2026-03-01", "2026-03-02"])))
    if kind == "kinds":
        dims["day"] = ["weekday", "weekend"]
    universe = Universe(**dims)
    table = np.array(draw(st.lists(labels, min_size=2 * times, max_size=2 * times))).reshape(2, times)
    universe = universe.with_attribute("mode", ["stop", "time"], table)
    zero = np.array(draw(st.lists(st.booleans(), min_size=2 * times, max_size=2 * times))).reshape(2, times)
    return universe if zero.all() or draw(st.booleans()) else universe.without(["stop", "time"], zero)


@settings(max_examples=120, deadline=None)
@given(
    universe=universes(),
    most=st.sampled_from([3, 2, 1]),
    per=st.sampled_from(["week", "day", "release", "month"]),
)
def test_no_person_changes_more(universe: Universe, most: int, per: str) -> None:
    """Of all persons there can be, none changes the counts by more than stated; where nothing overlaps, one does by as much.

    For every feature of up to two attributes, with trips kept apart or not.
    """
    every = [by for n in range(3) for by in itertools.combinations(sorted(universe.attributes), n)]
    dag = FeatureDag(universe, [Feature(f"{n}", by=by) for n, by in enumerate(every)])
    for apart in (None, "time", "stop"):
        unit = Person("card", most, per, apart)
        everybody = people(universe, unit)
        for n, by in enumerate(every):
            stated, found = (
                sensitivity(unit, contribution_structure(dag, f"{n}", per, apart)),
                worst(universe, by, everybody),
            )
            assert found.l1 <= stated.l1
            assert found.l2_squared <= stated.l2_squared
            assert found.l0 <= stated.l0
            assert found.linf == stated.linf
            if not universe.zeros and "mode" not in by:
                assert (found.l1, found.l2_squared) == (stated.l1, stated.l2_squared), (unit, by)


@settings(max_examples=40, deadline=None)
@given(universe=universes(), most=st.integers(1, 2), data=st.data())
def test_no_person_changes_more_over_two_periods(universe: Universe, most: int, data: Any) -> None:
    """Two days of one person, both added: their vectors may meet in the same counts, or cannot where days are told apart."""
    by = data.draw(st.lists(st.sampled_from(sorted(universe.attributes)), unique=True, max_size=3))
    unit = Person("card", most, "day", "time")
    tells = contribution_structure(FeatureDag(universe, [Feature("some", by=by)]), "some", "day", "time")
    stated = group_sensitivity(unit, tells, periods=2)
    element = universe.partition(by).of_every_type()
    names = list(universe.dimensions)
    day = universe.unrank_codes(np.arange(universe.size))[names.index("day")] if "day" in names else None
    dates = "day" in names and dates_or_none(universe.dimensions["day"]) is not None
    for one, other in itertools.combinations_with_replacement(list(possible(universe, unit)), 2):
        if day is not None and dates and {*day[list(one)]} & {*day[list(other)]}:
            continue  # they are two days
        vector = np.bincount(element[[*one, *other]], minlength=1)
        assert vector.sum() <= stated.l1
        assert (vector**2).sum() <= stated.l2_squared
        assert (vector > 0).sum() <= stated.l0
        assert vector.max(initial=0) <= stated.linf


def test_large_universes_are_not_listed() -> None:
    """A trillion types: what is told apart follows from the dimensions and attributes alone."""
    stops = Dimension(range(100_000), zone=[s // 1000 for s in range(100_000)])
    universe = Universe(origin=stops, destination=stops, time=cbdp.periods("00:00", "24:00", "15min"))
    dag = FeatureDag(universe, [Feature("zone", by=["origin.zone", "time"])])
    assert contribution_structure(dag, "singleton", apart="time") == ContributionStructure(
        universe.size, 96, (1,) * 96
    )
    assert contribution_structure(dag, "zone", apart="time").in_one == (1,) * 96
    assert contribution_structure(dag, "total", apart="time").in_one == (96,)


def test_what_cannot_be_listed_is_taken_to_tell_nothing_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attribute over too many combinations: its counts may hold all slots, which is never too little."""
    monkeypatch.setattr("cbdp_features.contribution.MAX_EXAMINED_PAIRS", 3)
    universe = Universe(stop=["A", "B"], time=[1, 2]).with_attribute(
        "mode", ["stop", "time"], [["a", "b"], ["b", "c"]]
    )
    dag = FeatureDag(universe, [Feature("mode", by=["mode"])])
    assert contribution_structure(dag, "mode", apart="time") == ContributionStructure(3, 2, (2,))
