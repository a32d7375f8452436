"""The unit of privacy, and how far it can move the counts of a partition."""

from __future__ import annotations

import pytest

from cbdp.errors import InputError
from cbdp.privacy.unit import Person, Trip, unit_of


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
