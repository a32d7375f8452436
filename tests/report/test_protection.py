"""What is protected, in words: the bound, the unit, δ, and where nothing is promised."""

from __future__ import annotations

import datetime as dt
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from reported import Page, secured

import cbdp
from cbdp.features import opal
from cbdp.report import build


@pytest.mark.parametrize(
    ("epsilon", "factor"), [("1/10", "1.11"), ("1", "2.8"), ("3", "20.1"), ("10", "22,027")]
)
def test_protection_in_words(epsilon: str, factor: str):
    """The bound is e to the ε, and the example is the belief that follows from even odds."""
    universe = cbdp.Universe(origin=["A", "B"], destination=["A", "B"])
    release = cbdp.ConstraintBased(cbdp.FeatureDag(universe, []), epsilon=epsilon).simulate(
        np.array([3, 1, 4, 1]), 1
    )
    text = Page(build(secured(release))).text
    assert (
        f"changes the odds of any conclusion by at most a factor of e{'0.1' if '/' in epsilon else epsilon}, which is less than {factor}."
        in text
    )
    odds = math.exp(Fraction(epsilon))
    sure = float(re.search(r"50 % chance .* can raise that to at most ([\d.]+) %, whatever else", text)[1])
    assert sure / 100 == pytest.approx(odds / (1 + odds), abs=0.005)
    assert "The unit of protection is one trip" in text


def test_unit_delta_and_missing_promises_are_spoken_of():
    """A person as the unit, a replaced trip, a δ, no promise at all, and a simulation are each said in words."""
    dag = opal(
        cbdp.Universe(tap=["on", "off"], time=cbdp.periods("08:00", "09:00", "15min"), location=["M", "Q"])
    )
    counts = np.full(16, 40)
    person = cbdp.Person("card & co", 4)
    trips = {"tap": ["on"] * 3, "time": ["08:00"] * 3, "location": ["M"] * 3, "card & co": [1, 1, 2]}
    simulation = cbdp.ConstraintBased(dag, 1, unit=person).simulate(trips, 1)
    text = Page(build(secured(simulation))).text
    assert "The unit of protection is one person" in text
    assert "50 % chance that a certain person is in the data." in text
    assert "At most 4 taps of each person are counted, chosen at random" in text
    assert "(The column “card & co” says who made a tap.)" in text
    assert "Simulation, not a release." in Page(build(simulation)).text
    text = Page(build(secured(cbdp.StabilityHistogram(dag, 2).simulate(counts, 1)))).text
    assert "whether any one tap was this one or another" in text
    assert "may fail with a probability of at most δ = 5e-07" in text
    assert "Simulation" not in text
    text = Page(build(secured(cbdp.ThresholdLaplace(dag, 2).simulate(counts, 1)))).text
    assert "This release promises no differential privacy." in text
    assert "changes the odds" not in text


def test_a_period_of_a_person_is_what_is_protected() -> None:
    """A day of a person and no habit; trips kept apart; the caveat stands on the headline; what the publisher expected tells how many may be missing."""
    universe = cbdp.Universe(time=cbdp.periods("08:00", "10:00", "1h"), stop=["M", "Q"])
    dag = cbdp.FeatureDag(universe, [])
    person = cbdp.Person("card", 2, per="day", apart="time")
    stamps = [dt.datetime(2026, 3, d, 8) for d in (2, 3) for _ in range(40)]  # noqa: DTZ001
    trips = {"time": stamps, "stop": ["M"] * 80, "card": list(range(40)) * 2}
    simulation = cbdp.ConstraintBased(dag, 50, unit=person, expected_trips=100).simulate(trips, 1)
    text = Page(build(secured(simulation))).text
    assert "The unit of protection is one day of one person" in text
    assert "All trips of a person on one day are protected together" in text
    assert "A habit that shows on many days is protected less" in text
    assert (
        "At most 2 trips of each person a day are counted, chosen at random, at most one in each time" in text
    )
    assert "the true numbers of trips may be higher, and no interval includes that" in text
    assert "whether any one day of one person is in the data" in text
    assert "50 % chance that a certain person travelled on a certain day." in text, (
        "no more is promised than for one day"
    )
    assert "; at most 2 trips of each person a day are counted, so the true number may be higher" in text
    assert "about 100 trips were expected; 80 are published" in text
    assert "up to 20 % of all" in text
    for other in (None, 80):
        made = cbdp.ConstraintBased(dag, 50, unit=person, expected_trips=other).simulate(trips, 1)
        assert "were expected" not in Page(build(secured(made))).text, (
            "nothing is said without a public figure"
        )
