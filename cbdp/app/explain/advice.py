"""Which ε a wish for precision needs; and where that would protect nobody, what to merge so that a smaller one will do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from cbdp.app.explain.meaning import CAREFUL, TOO_MUCH, reason
from cbdp.app.explain.numbers import epsilon_for, number, percent, sign_of, trips_text
from cbdp.app.plan.facts import PlannedRelease, Variant, seconds
from cbdp.errors import InputError
from cbdp.privacy.accounting import epsilon_of
from cbdp.privacy.numbers import positive


def answer(
    plan: PlannedRelease,
    feature: str,
    within: str,
    confidence: float | None = None,
    expected_trips: int | None = None,
) -> str:
    """Which ε brings a feature within so many per cent, as a sentence; or that none does with meaningful protection."""
    part = positive(within.replace("%", "").strip(), "within") / 100
    amount = epsilon_for(plan, feature, part, confidence, expected_trips)
    size = plan.mechanism.measured_features.size(feature)
    mean = Fraction(expected_trips or plan.expected_trips or 0, size)
    sure = plan.confidence if confidence is None else confidence
    wish = (
        f"For {feature!r} to be within {percent(float(part))} ({trips_text(part * mean)} of {trips_text(mean)} trips on average) "
        f"with {percent(sure)} confidence"
    )
    if not meaningful(plan, amount, part * mean):
        coarser = cure(plan, feature, part, confidence, expected_trips)
        return f"{wish}: not with meaningful protection. {_why(plan, amount, part * mean)}. {coarser}"
    return (
        f"{wish}, {sign_of(plan)} of the whole release must be at least {number(amount)}. "
        f"This is by the law of the noise before post-processing, with {sign_of(plan)} shared as configured."
    )


def answers(plan: PlannedRelease, wishes: Sequence[str]) -> list[str]:
    """The answers to wishes like "zone=5", all of them or, if one cannot be answered, none."""
    made = []
    for wish in wishes:
        feature, equals, percent = wish.partition("=")
        if not equals:
            raise InputError(f"--within takes FEATURE=PERCENT, for example zone=5, not {wish!r}")
        made.append(answer(plan, feature, percent))
    return made


def promised(plan: PlannedRelease, amount: Fraction) -> float:
    """The ε that an amount of ε or ρ gives."""
    if plan.mechanism.currency == "epsilon":
        return float(amount)
    return float(epsilon_of(amount, plan.mechanism.claim().cost.delta))


def meaningful(plan: PlannedRelease, amount: Fraction, allowed: Fraction) -> bool:
    """Whether an amount still protects: ε is not too much, and noise of at least one trip is allowed."""
    return promised(plan, amount) <= TOO_MUCH and allowed >= 1


def _why(plan: PlannedRelease, amount: Fraction, allowed: Fraction) -> str:
    epsilon = promised(plan, amount)
    given = "" if plan.mechanism.currency == "epsilon" else f", which is ε = {epsilon:.3g}"
    said = f"{sign_of(plan)} would have to be {number(amount)}{given}"
    if epsilon > TOO_MUCH:
        said += f", above {TOO_MUCH:g}: {reason(epsilon)}"
    if allowed >= 1:
        return said
    joint = ";" if epsilon > TOO_MUCH else ":"
    return f"{said}{joint} less than one trip is allowed, so noise would have to round to zero nearly always"


def cure(
    plan: PlannedRelease,
    feature: str,
    part: Fraction,
    confidence: float | None = None,
    trips: int | None = None,
) -> str:
    """The most detailed periods or zones with which a careful ε would do, else any that is not too much."""
    found = list(_coarser(plan, feature, part, confidence, trips))
    for limit in (CAREFUL, TOO_MUCH):
        for other, amount in found:
            if promised(plan, amount) <= limit:
                return f"Merge periods or zones: with {_named(other)} {sign_of(plan)} = {number(amount)} would do."
    return "Coarser periods or zones would not do either: ask for less precision, or use a table with fewer counts."


def _coarser(
    plan: PlannedRelease, feature: str, part: Fraction, confidence: float | None, trips: int | None
) -> Iterator[tuple[Variant, Fraction]]:
    """Variants that have fewer counts in a table, the most detailed first, with what they need."""
    size = plan.features.size(feature)
    others = [v for v in plan.variants() if feature in v.features and v.features.size(feature) < size]
    for other in sorted(others, key=lambda v: -v.features.size(feature)):
        changed = plan.varied(other)
        if part * (trips or plan.expected_trips or 0) < other.features.size(feature):  # less than one trip
            continue
        try:
            yield other, epsilon_for(changed, feature, part, confidence, trips)
        except InputError:  # no ε does, with a budget that gives tables enough
            continue


def _named(other: Variant) -> str:
    """A variant in words.

    >>> from types import SimpleNamespace
    >>> _named(SimpleNamespace(every="60min", clusters=None)), _named(SimpleNamespace(every="840min", clusters=3))
    ('60-minute periods', '840-minute periods and 3 zones')
    """
    said = [] if other.every is None else [f"{seconds(other.every) / 60:g}-minute periods"]
    return " and ".join(said if other.clusters is None else [*said, f"{other.clusters} zones"])
