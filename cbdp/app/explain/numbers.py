"""What a plan means in numbers: noise by table, what other budgets would do, which ε a wish needs. Public facts only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from cbdp.app.plan.facts import PlannedRelease
from cbdp.errors import InputError
from cbdp.parts import did_you_mean
from cbdp.privacy.budget import DemandFacts
from cbdp.privacy.numbers import Number, positive
from cbdp.report.uses import average_count

DIGITS = 3  # of an ε that is worked out: it is rounded up to so many
LARGEST = 2**40  # an ε beyond which none is looked for


@dataclass(frozen=True)
class ExpectedNoise:
    """The noise on a measured table, by its law alone: post-processing, which mostly makes it smaller, comes after."""

    feature: str
    elements: int
    epsilon: Fraction
    delta: Fraction
    scale: Fraction
    half_width: int  # in trips, at the plan's confidence
    expected: (
        Fraction | None
    )  # the average count, by which the table is judged, from the public order of magnitude

    @property
    def relative(self) -> float | None:
        """The half width as a part of the expected count."""
        return None if self.expected is None else float(self.half_width / self.expected)


def noise(plan: PlannedRelease) -> tuple[ExpectedNoise, ...]:
    """The noise on each measured table."""
    dag, trips = plan.mechanism.measured_features, plan.expected_trips
    found = []
    for a in plan.mechanism.answers():
        size = dag.size(a.feature)
        half = a.law.half_width(plan.confidence)
        expected = None if trips is None else Fraction(average_count(trips, size))
        found.append(ExpectedNoise(a.feature, size, a.share, a.delta, Fraction(a.law.scale), half, expected))
    return tuple(found)


def choices(plan: PlannedRelease) -> dict[str, dict[str, float]]:
    """What each way to share ε would do to each table: the expected error of a count in trips, the configured way first."""
    return {name: dict(errors) for name, errors in plan.mechanism.expected_errors(facts_of(plan)).items()}


def facts_of(plan: PlannedRelease) -> DemandFacts:
    """What a plan says publicly about its trips."""
    return DemandFacts(plan.unit.sensitivity, plan.expected_trips, plan.config.data.expected_filled)


def sign_of(plan: PlannedRelease) -> str:
    """The letter of what the noise is paid for in."""
    return "ρ" if plan.mechanism.currency == "rho" else "ε"


def told_by_others(plan: PlannedRelease, noise: ExpectedNoise, bound: float) -> bool:
    """Whether a table's noise is within a part of its counts once all tables agree: finer ones may tell it better than its own share."""
    if noise.expected is None:
        return False
    error = next(iter(plan.mechanism.expected_errors(DemandFacts(plan.unit.sensitivity)).values()), {})
    wide = NormalDist().inv_cdf((1 + plan.confidence) / 2)
    return wide * error.get(noise.feature, math.inf) <= bound * noise.expected


def unmeasured(plan: PlannedRelease) -> tuple[str, ...]:
    """Tables that are published without a measurement of their own, and were not public before."""
    known = {*(a.feature for a in plan.mechanism.answers()), *plan.public}
    return tuple(n for n in plan.features.features if n not in known)


def epsilon_for(
    plan: PlannedRelease,
    feature: str,
    relative: Number,
    confidence: float | None = None,
    expected_trips: int | None = None,
) -> Fraction:
    """The least ε of the whole release (or ρ, if that is what its noise costs), rounded up to three digits, that brings a feature within a part
    of its counts.

    Within means: the noise on an element of average size is at most `relative` of its count with this confidence. It is
    worked out by the law of the noise before post-processing, with ε shared among the features as the plan shares it.
    """
    given = {a.feature: a for a in plan.mechanism.answers()}
    if feature not in given:
        raise InputError(f"{feature!r} is not measured: {did_you_mean(feature, list(given))}")
    trips = expected_trips or plan.expected_trips
    if trips is None:
        raise InputError("how many trips are there, about? Say so in data.expected_trips")
    law, share = type(given[feature].law), plan.mechanism.share_of(feature)
    allowed = positive(relative, "relative") * trips / plan.mechanism.measured_features.size(feature)
    sure = plan.confidence if confidence is None else confidence

    def enough(epsilon: Fraction) -> bool:
        return bool(law.costing(share(epsilon), plan.mechanism.change(feature)).half_width(sure) <= allowed)

    high = Fraction(1)
    while not enough(high):
        high *= 2
        if high > LARGEST:
            raise InputError(
                f"with this budget {feature!r} does not get within {percent(float(positive(relative)))} by any {sign_of(plan)}: "
                "use budget 'balanced' or 'tables', or state a target"
            )
    while high > Fraction(1, 10**12) and enough(high / 2):
        high /= 2
    low = high / 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return _rounded_up(high)


def _rounded_up(value: Fraction) -> Fraction:
    step = Fraction(10) ** (math.floor(math.log10(value)) + 1 - DIGITS)
    return math.ceil(value / step) * step


def number(value: Fraction) -> str:
    """A fraction as people write it: 1/3 stays, 1/5 is 0.2."""
    decimal = f"{float(value):.6g}"
    return decimal if Fraction(decimal) == value or value.denominator > 10**4 else str(value)


def trips_text(value: Fraction | None) -> str:
    return "" if value is None else f"{float(value):,.0f}" if value >= 100 else f"{float(value):.3g}"


def percent(part: float | None) -> str:
    if part is None:
        return ""
    hundred = 100 * part
    return f"{hundred:,.0f} %" if hundred >= 10 else f"{hundred:.2g} %"
