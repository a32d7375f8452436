"""Protection that is paid for in ρ, in plain words: a factor, a δ, and what both mean."""

from __future__ import annotations

import math

from cbdp.privacy.accounting import curve, in_words
from cbdp.privacy.claim import Claim
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp.release.counted import TRIPS, Noun
from cbdp.report.markup import Html, join, tag
from cbdp.report.text import at_most, bounded


def question_of(unit: Unit, noun: Noun = TRIPS) -> str:
    """What nobody can be sure of."""
    if isinstance(unit, Person):
        who = "one person" if unit.per == RELEASE else f"one {unit.per} of one person"
        return f"any {who} is in the data"
    if unit.neighbours == "add-remove":
        return f"any one {noun.one} is in the data"
    return f"any one {noun.one} was this one or another"


def suspected(unit: Unit, noun: Noun = TRIPS) -> str:
    """What somebody may think has happened, as far as one unit goes: of a person whose days are protected, what they did on one day.

    >>> suspected(Person("card", 4, per="day")), suspected(Person("card", 4))
    ('a certain person travelled on a certain day', 'a certain person is in the data')
    """
    if not isinstance(unit, Person):
        return f"a certain {noun.one} was made"
    if unit.per == RELEASE:
        return "a certain person is in the data"
    return f"a certain person travelled {'on' if unit.per == 'day' else 'in'} a certain {unit.per}"


def concentrated(claim: Claim, noun: Noun = TRIPS) -> Html:
    """The protection as a sentence, and as what a sceptic could learn at most."""
    epsilon, delta = claim.cost.epsilon, claim.cost.delta
    bound = join("e", tag("sup", in_words(epsilon)), f", which is {bounded(float(epsilon))}")
    said = tag(
        "p", f"In general: whether {question_of(claim.unit, noun)} changes the chance of any conclusion by at most a factor of ",
        tag("strong", bound, id="factor"), f", and δ = {_small(float(delta))} on top.",
    )  # fmt: skip
    means = (
        "What δ means: the chance of a conclusion may be larger than the factor allows, by this much and no more. It is not a chance that somebody’s "
        f"{noun.many} become visible: with this noise the protection becomes weaker little by little; it never fails all at once."
    )
    others = tag(
        "details", tag("summary", "For reviewers: the same promise with other δ"), tag("p", _levels(claim))
    )
    return join(tag("p", _example(claim, noun), class_="lead"), said, tag("p", means, id="delta"), others)


def _example(claim: Claim, noun: Noun) -> str:
    """By the tail of the privacy loss: it exceeds ε with a probability of at most exp(−(ε − ρ)²/4ρ) (Bun and Steinke 2016)."""
    epsilon, rho = float(claim.cost.epsilon), float(claim.cost.rho)
    sure = 1 / (1 + math.exp(-min(epsilon, 700.0)))
    rare = math.exp(-((epsilon - rho) ** 2) / (4 * rho)) if epsilon > rho else 1.0
    return (
        f"Suppose somebody thinks there is a 50 % chance that {suspected(claim.unit, noun)}. "
        f"This release can raise that to at most {at_most(sure)}, whatever else they know, except with a probability of at "
        f"most {_small(rare)}."
    )


def _levels(claim: Claim) -> str:
    """The same promise at other δ."""
    said = [f"e^{in_words(e)} with δ = {float(d):.0e}" for e, d in curve(claim.cost.rho)[1::3]]
    return f"All of these hold at once: {', '.join(said)}. They follow from ρ = {float(claim.cost.rho):.4g} (zero-concentrated differential privacy)."


def _small(chance: float) -> str:
    """A small chance to read, rounded up.

    >>> _small(1e-6), _small(1.37e-5), _small(0.3)
    ('1e-06 (one in 1,000,000)', '1.4e-05 (one in 71,428)', '0.3 (one in 3)')
    """
    scale = 10.0 ** (math.floor(math.log10(chance)) - 1)
    up = math.ceil(chance / scale - 1e-9) * scale
    return f"{up:.2g} (one in {math.floor(1 / up + 1e-9):,})"
