"""The unit of privacy, and how far it can move the counts of a partition."""

from __future__ import annotations

import pytest

from cbdp.errors import InputError
from cbdp.privacy.unit import Person, PrivateQuantile, Trip, unit_of


def test_sensitivity_follows_from_the_unit() -> None:
    """One trip added moves a partition's counts by 1, replaced by 2, a person with m trips by m."""
    assert [Trip().sensitivity, Trip("replace").sensitivity, Person("card", 4).sensitivity] == [1, 2, 4]
    assert unit_of("trip") == Trip()
    assert unit_of({"person": "card", "max_trips": 3}) == Person("card", 3)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True])
def test_a_person_makes_at_least_one_trip(bad: object) -> None:
    """m < 1 protects nobody, and a fraction of a trip is none."""
    with pytest.raises(InputError, match="max_trips"):
        Person("card", bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["household", {"person": "card"}, 3])
def test_unknown_units_are_refused(bad: object) -> None:
    """The message lists what there is."""
    with pytest.raises(InputError, match="unknown unit"):
        unit_of(bad)


def test_a_person_may_have_a_period_and_trips_kept_apart() -> None:
    """By constructor and by mapping alike; a release is the default, and a trip has no other."""
    unit = unit_of({"person": "card", "max_trips": 3, "per": "day", "apart": "time"})
    assert unit == Person("card", 3, per="day", apart="time")
    assert (Person("card", 3).per, Trip().per, Trip().apart) == ("release", "release", None)
    assert str(unit) == "one day of one person with at most 3 trips, kept apart by time, added or removed"
    assert (unit.sensitivity, Person("card", 3, "week").period, Person("card", 3).period) == (
        3,
        " a week",
        "",
    )


@pytest.mark.parametrize("bad", ["hour", "", None, 7])
def test_other_periods_are_refused(bad: object) -> None:
    """With those that there are."""
    with pytest.raises(InputError, match="use 'day', 'week', 'month', 'release'"):
        Person("card", 3, per=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["", 3])
def test_trips_are_kept_apart_by_a_dimension(bad: object) -> None:
    """Which has a name."""
    with pytest.raises(InputError, match="name a dimension"):
        Person("card", 3, apart=bad)  # type: ignore[arg-type]


def test_a_purchase_is_spoken_of() -> None:
    """A max_trips that the data had a say in costs ε of its own."""
    unit = Person("card", 4, bought=PrivateQuantile("0.95", "0.05"))
    assert "at most 4 trips (4 was bought for ε = 1/20 more)" in str(unit)
