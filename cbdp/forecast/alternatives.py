"""What could be configured instead: the ε that a wish for precision needs, coarser periods or zones, the other noise distribution."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cbdp.errors import CbdpError, InputError
from cbdp.forecast.errors import (
    CAREFUL_EPSILON,
    MAX_MEANINGFUL_EPSILON,
    epsilon_for,
    facts_of,
    number,
    percent,
    reason,
    sign_of,
    trips_text,
)
from cbdp.forecast.plan import PlannedMechanism, PlannedRelease, Variant, seconds
from cbdp.privacy.accounting import epsilon_of, readable_epsilon
from cbdp.privacy.noise import DiscreteGaussian, DiscreteLaplace
from cbdp.privacy.numbers import positive
from cbdp.privacy.unit import RELEASE, Person, group_sensitivity
from cbdp.text import aligned
from cbdp_features.contribution import contribution_structure


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
        coarser = coarser_cure(plan, feature, part, confidence, expected_trips)
        return f"{wish}: not with meaningful protection. {_too_much_because(plan, amount, part * mean)}. {coarser}"
    return (
        f"{wish}, {sign_of(plan)} of the whole release must be at least {number(amount)}. "
        f"This is by the law of the noise before post-processing, with {sign_of(plan)} shared as configured."
    )


def answers(plan: PlannedRelease, wishes: Sequence[str]) -> list[str]:
    """The answers to wishes like "zone=5", all of them or, if one cannot be answered, none."""
    sentences = []
    for wish in wishes:
        feature, equals, percent = wish.partition("=")
        if not equals:
            raise InputError(f"--within takes FEATURE=PERCENT, for example zone=5, not {wish!r}")
        sentences.append(answer(plan, feature, percent))
    return sentences


def epsilon_promised(plan: PlannedRelease, amount: Fraction) -> float:
    """The ε that an amount of ε or ρ gives."""
    if plan.mechanism.currency == "epsilon":
        return float(amount)
    return float(epsilon_of(amount, plan.mechanism.claim().cost.delta))


def meaningful(plan: PlannedRelease, amount: Fraction, allowed: Fraction) -> bool:
    """Whether an amount still protects: ε is not too much, and noise of at least one trip is allowed."""
    return epsilon_promised(plan, amount) <= MAX_MEANINGFUL_EPSILON and allowed >= 1


def _too_much_because(plan: PlannedRelease, amount: Fraction, allowed: Fraction) -> str:
    epsilon = epsilon_promised(plan, amount)
    epsilon_text = "" if plan.mechanism.currency == "epsilon" else f", which is ε = {epsilon:.3g}"
    text = f"{sign_of(plan)} would have to be {number(amount)}{epsilon_text}"
    if epsilon > MAX_MEANINGFUL_EPSILON:
        text += f", above {MAX_MEANINGFUL_EPSILON:g}: {reason(epsilon)}"
    if allowed >= 1:
        return text
    joint = ";" if epsilon > MAX_MEANINGFUL_EPSILON else ":"
    return f"{text}{joint} less than one trip is allowed, so noise would have to round to zero nearly always"


def coarser_cure(
    plan: PlannedRelease,
    feature: str,
    part: Fraction,
    confidence: float | None = None,
    trips: int | None = None,
) -> str:
    """The most detailed periods or zones with which a careful ε would do, else any that is not too much."""
    candidates = list(_coarser(plan, feature, part, confidence, trips))
    for limit in (CAREFUL_EPSILON, MAX_MEANINGFUL_EPSILON):
        for other, amount in candidates:
            if epsilon_promised(plan, amount) <= limit:
                return f"Merge periods or zones: with {_variant_name(other)} {sign_of(plan)} = {number(amount)} would do."
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


def _variant_name(other: Variant) -> str:
    """A variant in words.

    >>> from types import SimpleNamespace
    >>> _variant_name(SimpleNamespace(every="60min", clusters=None)), _variant_name(SimpleNamespace(every="840min", clusters=3))
    ('60-minute periods', '840-minute periods and 3 zones')
    """
    parts = [] if other.every is None else [f"{seconds(other.every) / 60:g}-minute periods"]
    return " and ".join(parts if other.clusters is None else [*parts, f"{other.clusters} zones"])


# The noise distribution with the smaller expected errors, for the same (ε, δ)


EQUAL_ERROR_RATIO = 1.02  # ratio of errors below which two noise distributions are as good as equal


@dataclass(frozen=True)
class NoiseComparison:
    """By law, the configured one first, the expected error of each table's counts in trips; both give (ε, δ)."""

    errors: Mapping[str, Mapping[str, float]]
    epsilon: Fraction
    delta: Fraction

    @property
    def ratio(self) -> float:
        """How many times the configured law's error the other's is, as a geometric mean over all tables that have any error."""
        configured, other = self.errors.values()
        logs = [
            math.log(other[name] / error)
            for name, error in configured.items()
            if error > 0 and other[name] > 0
        ]
        return math.exp(sum(logs) / len(logs)) if logs else 1.0

    @property
    def better(self) -> str | None:
        """The law with the smaller errors; None where they are as good as equal."""
        configured, other = self.errors
        if 1 / EQUAL_ERROR_RATIO < self.ratio < EQUAL_ERROR_RATIO:
            return None
        return configured if self.ratio > 1 else other


def compare_noise(plan: PlannedRelease) -> NoiseComparison | None:
    """Both laws compared; None where the mechanism has no choice."""
    mechanism = plan.mechanism
    cost = mechanism.claim().cost
    try:
        other = mechanism.with_other_law()
        if other is None:
            return None
        errors = {_noise_name(m): _errors_by_table(plan, m) for m in (mechanism, other)}
    except CbdpError:  # what cannot be had with the other law cannot be compared
        return None
    return NoiseComparison(errors, cost.epsilon, cost.delta or other.claim().cost.delta)


def _noise_name(mechanism: PlannedMechanism) -> str:
    """The law that is paid for in the mechanism's currency."""
    return DiscreteGaussian.name if mechanism.currency == DiscreteGaussian.currency else DiscreteLaplace.name


def _errors_by_table(plan: PlannedRelease, mechanism: PlannedMechanism) -> dict[str, float]:
    """By the model of errors where the mechanism has one, else those of the noise alone."""
    modelled = next(iter(mechanism.expected_errors(facts_of(plan)).values()), None)
    if modelled is not None:
        return {name: modelled[name] for name in plan.features.features}
    return {a.feature: math.sqrt(a.law.variance()) for a in mechanism.answers()}


def noise_comparison_table(choice: NoiseComparison) -> list[str]:
    names = list(next(iter(choice.errors.values())))
    rows = [("law", *names)]
    for n, (law, errors) in enumerate(choice.errors.items()):
        rows.append((f"{law} (configured)" if n == 0 else law, *(f"{errors[name]:,.3g}" for name in names)))
    return aligned(rows, right=range(1, len(rows[0])))


def noise_comparison_remarks(choice: NoiseComparison) -> Iterator[str]:
    configured = next(iter(choice.errors))
    delta = f"δ = {float(choice.delta):.3g}"
    yield (
        f"Expected errors of a count in trips, both for ε = {readable_epsilon(choice.epsilon)}. Gaussian noise gives that at {delta} only; geometric "
        "noise needs no δ."
    )
    if choice.better is None:
        yield "Both are as good as equal here: keep geometric noise, whose promise has no exception."
        return
    times = choice.ratio if choice.better == configured else 1 / choice.ratio
    remark = (
        f"{choice.better.capitalize()} noise is better here: errors are {times:.2g} times smaller on average."
    )
    if choice.better == DiscreteGaussian.name and configured != DiscreteGaussian.name:
        remark += f' To use it, write law = "gaussian" and delta = {float(choice.delta):g} in [privacy].'
    elif choice.better != configured:
        remark += f" To use it, write epsilon = {number(choice.epsilon)} in [privacy], and leave law, rho and delta out."
    yield remark


# Sensitivity of each table, as `cbdp check` shows it


PERIODS_SHOWN = {"day": 7, "week": 4, "month": 12}  # periods that a person may ask about


def change_title(unit: Person) -> str:
    whose = "One person" if unit.per == RELEASE else f"One {unit.per} of one person"
    return f"{whose} can change"


def sensitivity_table(plan: PlannedRelease, unit: Person) -> list[str]:
    """Of each measured table: all counts together, their Euclidean length, how many counts, a single count; and the length over several periods."""
    measured, many = plan.mechanism.measured_features, PERIODS_SHOWN.get(unit.per)
    rows = [["table", "all counts by", "length", "counts", "one count by"]]
    rows[0] += [] if many is None else [f"length in {many} {unit.per}s"]
    for answer in plan.mechanism.answers():
        change = plan.mechanism.change(answer.feature)
        lengths = [change.l2_squared]
        if many is not None:
            tells = contribution_structure(measured, answer.feature, unit.per, unit.apart)
            lengths.append(group_sensitivity(unit, tells, periods=many).l2_squared)
        length, *over = (f"{math.sqrt(squared):,.3g}" for squared in lengths)
        rows.append([answer.feature, f"{change.l1:,}", length, f"{change.l0:,}", f"{change.linf:,}", *over])
    return aligned(rows, right=range(1, len(rows[0])))


def sensitivity_remarks(unit: Person) -> list[str]:
    """What the numbers decide."""
    remarks = [
        "Geometric noise follows the first number, Gaussian noise the length (the root of the squares' sum)."
    ]
    if unit.apart is None:
        remarks.append(
            'All trips of a person may fall into one count. With apart = "time", at most one is counted in each time period, and the '
            "length shrinks in tables that tell periods apart."
        )
    return remarks
