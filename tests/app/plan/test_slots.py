"""Whether a charge may say that tables tell a person's days apart: against every person there can be, on tiny universes."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from cbdp.features import Feature, FeatureDag, Universe
from cbdp.forecast.calendar import covers_of, tells_periods_apart
from cbdp.ledger import Amount, Charge
from cbdp.ledger.charges import NANO_UNITS
from cbdp.ledger.windows import window_sums
from cbdp.mechanisms import ConstraintBased, Hierarchical
from cbdp.privacy.unit import Person, Trip, Unit

DAYS = [dt.date(2026, 3, n) for n in (1, 2, 3)]
UNIVERSE = Universe(stop=["A", "B"], day=DAYS)
DAG = FeatureDag(UNIVERSE, [Feature("by day", by="day"), Feature("by stop", by="stop")])
MOST = 2
PERSON = Person("card", MOST, "day")


def mechanism(measured: Sequence[str], unit: Unit) -> ConstraintBased:
    return ConstraintBased(DAG, rho="1/2", law="gaussian", measured=measured, budget="uniform", unit=unit)


def everybody(unit: Unit) -> list[np.ndarray]:
    """What a person can do: at most two trips a day where persons are protected, one where trips are; by stop and day."""
    most = MOST if isinstance(unit, Person) else 1
    day = [v for v in itertools.product(range(most + 1), repeat=2) if sum(v) <= most]
    return [np.array(days).T for days in itertools.product(day, repeat=len(DAYS))]


def cost(made: ConstraintBased, person: np.ndarray) -> Fraction:
    """ρ of taking a person's trips away, added up over what is measured."""
    flat, total = person.reshape(-1), Fraction(0)
    for answer in made.answers():
        element = DAG.partition(answer.feature).element_of(UNIVERSE.unrank_codes(np.arange(UNIVERSE.size)))
        change = np.bincount(element, weights=flat)
        total += Fraction(int((change**2).sum())) / (2 * Fraction(answer.law.scale) ** 2)
    return total


@pytest.mark.parametrize("unit", [PERSON, Trip()])
@pytest.mark.parametrize(
    ("measured", "apart"),
    [
        (["by day", "singleton"], True),
        (["singleton"], True),
        (["total", "by day", "singleton"], False),
        (["by stop", "singleton"], False),
    ],
)
def test_what_a_charge_says_holds_for_everybody(unit: Unit, measured: Sequence[str], apart: bool) -> None:
    """Over all persons and windows the ledger's cost is enough. Where a table adds days up, that of days told apart would not be."""
    made = mechanism(measured, unit)
    assert tells_periods_apart(made) is apart
    covers = covers_of(unit, UNIVERSE, None, made)
    assert covers.disjoint_periods is apart
    charge = Charge("c", "r", Amount.charge_rho(made.claim().cost.rho), "", "", "", covers)
    worst = dict.fromkeys((1, 2, 3), Fraction(0))
    for person in everybody(unit):
        days = np.flatnonzero(person.any(axis=0))
        if len(days):
            window = int(days[-1] - days[0] + 1)
            worst[window] = max(worst[window], cost(made, person))
    for days, found in worst.items():
        said = window_sums([charge], days).worst()[0].nano
        assert found * NANO_UNITS <= said
        if not apart and days > 1:
            assert found > days * Fraction(charge.amount.rho)


def test_a_tree_tells_days_apart_unless_it_has_a_root() -> None:
    """The hierarchical mechanism measures levels of its own."""
    for root in (False, True):
        made = Hierarchical(DAG, rho="1/2", law="gaussian", unit=PERSON, root=root)
        assert tells_periods_apart(made) is not root


def test_a_release_as_the_unit_has_one_period() -> None:
    """There is nothing to tell apart."""
    assert not covers_of(
        Person("card", 2), UNIVERSE, None, mechanism(["singleton"], Person("card", 2))
    ).disjoint_periods
