"""What was protected, how strongly, and what was not: in plain words, and precisely for reviewers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cbdp.estimation.invariants import INVARIANTS_NOTE
from cbdp.numbers import (
    MAX_PICTURABLE_EPSILON,
    amount_text,
    factor_text,
    percent,
    percent_at_most,
    probability_at_most,
)
from cbdp.privacy.accounting import PrivacyGuarantee, epsilon_delta_curve, epsilon_of, readable_epsilon
from cbdp.privacy.noise import DiscreteGaussian, DiscreteLaplace
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp.release.roles import TRIP_NOUN, Noun, counted_noun, enumerated
from cbdp.release.summary import left_out
from cbdp.release.views import Published
from cbdp.report.reliability import attribute_words

NOISE_DESCRIPTIONS = {
    DiscreteLaplace.name: "two-sided geometric (discrete Laplace) on whole numbers: P(z) ∝ exp(−|z|/scale)",
    DiscreteGaussian.name: "discrete Gaussian on whole numbers: P(z) ∝ exp(−z²/(2·scale²))",
}


@dataclass(frozen=True)
class Odds:
    """What one ε, or a promise in ρ, means: a factor e^exponent, a δ, and what somebody with a suspicion could learn at most.

    `rare` and `others` are for ρ: how rarely a belief may exceed `sure`, and the same promise at other δ.
    """

    suspicion: str
    question: str
    sure: str
    exponent: str
    factor: str
    delta: str | None = None
    rare: str | None = None
    others: str | None = None


@dataclass(frozen=True)
class ProtectedPerson:
    """The unit of protection where it is a person, or what one does in a period."""

    what: str
    together: str
    habit: str
    left_out: str
    column: str


@dataclass(frozen=True)
class ExpectedTrips:
    """How many trips were expected before anything was counted, how many are published, and the share that bounding may have left out."""

    trips: float
    published: int
    share: str


@dataclass(frozen=True)
class Protection:
    """What the page says of it. `odds` is None where nothing is promised; `several` is the factor for several trips of a person."""

    odds: Odds | None
    person: ProtectedPerson | None
    several: str
    expected: ExpectedTrips | None
    formal: dict[str, str]
    public_inputs: dict[str, str]
    public_counts: str | None


def protection_of(published: Published) -> Protection:
    """Protection of a release in words."""
    claim, noun = published.release.promise, counted_noun(published.dag.universe)
    unit = claim.unit
    return Protection(
        _odds(claim, noun) if claim.holds else None,
        _person(unit, noun) if isinstance(unit, Person) else None,
        enumerated([f"{factor_text(_group_epsilon(claim, k))} for {k} {noun.many}" for k in (2, 5)]) if claim.holds else "",
        _expected_trips(published),
        {
            "Guarantee": noun.say(str(claim)),
            "Neighbouring data sets": noun.say(f"differ by {unit}"),
            "Sensitivity of a table": f"{unit.sensitivity} (the most by which all its counts together can change)",
            "Mechanism": published.release.mechanism,
            **_noise(published),
        },
        _public_inputs(published),
        _public_counts(published),
    )  # fmt: skip


def _odds(claim: PrivacyGuarantee, noun: Noun) -> Odds:
    cost, unit = claim.cost, claim.unit
    epsilon, delta = float(cost.epsilon), float(cost.delta)
    sure = percent_at_most(1 / (1 + math.exp(-min(epsilon, 700.0))))
    factor = factor_text(epsilon) if epsilon > MAX_PICTURABLE_EPSILON else f"less than {factor_text(epsilon)}"
    asked = adversary_suspicion(unit, noun), adversary_question(unit, noun), sure
    if cost.currency != "rho":
        return Odds(*asked, amount_text(cost.epsilon), factor, f"{delta:.2g}" if delta else None)
    # the tail of the privacy loss under ρ-zCDP: it exceeds ε with a probability of at most exp(−(ε − ρ)²/4ρ) (Bun and Steinke 2016)
    rho = float(cost.rho)
    rare = math.exp(-((epsilon - rho) ** 2) / (4 * rho)) if epsilon > rho else 1.0
    pairs = [
        f"e^{readable_epsilon(e)} with δ = {float(d):.0e}" for e, d in epsilon_delta_curve(cost.rho)[1::3]
    ]
    others = f"All of these hold at once: {', '.join(pairs)}. They follow from ρ = {rho:.4g} (zero-concentrated differential privacy)."
    return Odds(
        *asked, readable_epsilon(cost.epsilon), factor, probability_at_most(delta), probability_at_most(rare), others
    )  # fmt: skip


def _group_epsilon(claim: PrivacyGuarantee, trips: int) -> float:
    """The ε of several trips together; under ρ, k of them cost k² times ρ (Bun and Steinke 2016)."""
    cost = claim.cost
    if cost.currency == "rho":
        return float(epsilon_of(trips * trips * cost.rho, cost.delta))
    return float(trips * cost.epsilon)


def _person(unit: Person, noun: Noun) -> ProtectedPerson:
    if unit.per == RELEASE:
        what, together, habit = "one person", f"All {noun.many} of a person", ""
    else:
        what = f"one {unit.per} of one person"
        together = f"All {noun.many} of a person {'on' if unit.per == 'day' else 'in'} one {unit.per}"
        habit = (
            f" A habit that shows on many {unit.per}s is protected less: over several {unit.per}s, ε adds up."
        )
    return ProtectedPerson(what, together, habit, left_out(unit, noun), unit.column)


def _expected_trips(published: Published) -> ExpectedTrips | None:
    """How many trips bounding may have left out, where a public figure tells: what the publisher expected before anything was counted."""
    release = published.release
    expected, total = release.recipe.settings.get("expected_trips"), int(published.grouped().counts.sum())
    if not isinstance(expected, int | float) or release.recipe.public or not 0 < total < expected:
        return None
    return ExpectedTrips(expected, total, percent(1 - total / expected))


def _noise(published: Published) -> dict[str, str]:
    measured = [m for m in published.release.measurements if m.scale is not None and len(m.values)]
    laws = {m.law for m in measured}
    if len(laws) != 1 or not laws <= set(NOISE_DESCRIPTIONS):
        return {}
    return {"Noise": NOISE_DESCRIPTIONS[laws.pop()]}


def _public_counts(published: Published) -> str | None:
    """Counts that were public: unlike the inputs, they depend on the trips."""
    public = published.release.recipe.public
    if not public:
        return None
    names = [n for n in published.dag.features if n in public]
    shown = [
        f"{n} ({sum(public[n]):,} trips{f' in {len(public[n]):,} counts' if len(public[n]) > 1 else ''})"
        for n in names
    ]
    return f"{enumerated(shown)}. {INVARIANTS_NOTE}"


def _public_inputs(published: Published) -> dict[str, str]:
    """What was given, not learnt from trips."""
    universe = published.dag.universe

    def values(name: str, many: int) -> str:
        return f"{attribute_words(name)} ({'1 value' if many == 1 else f'{many:,} values'})"

    dimensions = [values(name, len(d)) for name, d in universe.dimensions.items()]
    extra = [
        values(name, len(a.labels))
        for name, a in universe.attributes.items()
        if name not in universe.dimensions
    ]
    lines = {f"What describes a {counted_noun(universe).one}:": f"{enumerated(dimensions)}."}
    if extra:
        lines["What follows from that:"] = f"{enumerated(extra)}."
    if universe.zeros:
        tied = [" and ".join(of) for of, _ in universe.zeros]
        lines["What cannot happen:"] = (
            f"some combinations of {enumerated(tied)} were declared impossible. They have no noise and no count."
        )
    if published.places is not None:
        lines["Coordinates and names"] = "of the stops."
    lines["Settings:"] = "which tables are counted, the budget, the noise, the method and its software."
    return lines


# What somebody could learn at most


def adversary_question(unit: Unit, noun: Noun = TRIP_NOUN) -> str:
    """What nobody can be sure of."""
    if isinstance(unit, Person):
        who = "one person" if unit.per == RELEASE else f"one {unit.per} of one person"
        return f"any {who} is in the data"
    if unit.neighbours == "add-remove":
        return f"any one {noun.one} is in the data"
    return f"any one {noun.one} was this one or another"


def adversary_suspicion(unit: Unit, noun: Noun = TRIP_NOUN) -> str:
    """What somebody may think has happened, as far as one unit goes: of a person whose days are protected, what they did on one day.

    >>> adversary_suspicion(Person("card", 4, per="day")), adversary_suspicion(Person("card", 4))
    ('a certain person travelled on a certain day', 'a certain person is in the data')
    """
    if not isinstance(unit, Person):
        return f"a certain {noun.one} was made"
    if unit.per == RELEASE:
        return "a certain person is in the data"
    return f"a certain person travelled {'on' if unit.per == 'day' else 'in'} a certain {unit.per}"
