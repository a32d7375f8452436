"""Units of privacy as manifests state them, and back."""

from __future__ import annotations

import pytest

from cbdp.privacy.unit import Person, PrivateQuantile, Trip, Unit
from cbdp.release.serialization import unit_from, unit_json

UNITS = [
    Trip(),
    Trip("replace"),
    Person("card", 4),
    Person("card", 4, per="day", apart="time"),
    Person("card", 1, per="month"),
    Person("card", 7, bought=PrivateQuantile("0.95", "1/20")),
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_unit_comes_back_as_it_was(unit: Unit) -> None:
    """Period, slots and purchase included."""
    assert unit_from(unit_json(unit)) == unit


def test_neighbours_are_said_in_words() -> None:
    """What differs, and what is counted."""
    said = unit_json(Person("card", 4, per="day", apart="time"))["neighbouring"]
    assert "all trips of one person on one day added or removed" in said
    assert "at most 4 trips of each person on each day, chosen at random, are counted" in said
    assert "of those with the same time (and day, where days are counted) one" in said


def test_what_is_the_default_is_not_stated() -> None:
    """Manifests of a whole release stay as they were, and those of earlier versions are read."""
    assert not {"per", "apart", "bought"} & set(unit_json(Person("card", 4)))
