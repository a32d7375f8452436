"""What a plan means in numbers: noise by table, expected errors, what tables leave undetermined, what an ε means,
and what could be configured instead. Public facts only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from cbdp.arrays import Floats
from cbdp.errors import CbdpError, InputError
from cbdp.features import SINGLETON
from cbdp.forecast.plan import (
    ModelledMechanism,
    PlannedMechanism,
    PlannedRelease,
    Variant,
    is_modelled,
    seconds,
)
from cbdp.numbers import Number, percent_at_most, positive
from cbdp.parts import did_you_mean
from cbdp.privacy.accounting import epsilon_of, readable_epsilon
from cbdp.privacy.expected_error import DemandFacts, ErrorModel, error_model
from cbdp.privacy.noise import DiscreteGaussian, DiscreteLaplace
from cbdp.privacy.unit import RELEASE, Person, group_sensitivity
from cbdp.report.reliability import GOOD_RELATIVE_ERROR, Use, average_count, use_of
from cbdp.text import aligned
from cbdp_features.contribution import contribution_structure
from cbdp_features.dag import distinguished_attributes, undistinguished

SIGNIFICANT_DIGITS = 3  # of an ε that is worked out: it is rounded up to so many
MAX_EPSILON_TRIED = 2**40  # ε at which the search ends: the share of the table is 0 or nearly so


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


def noise_by_table(plan: PlannedRelease) -> tuple[ExpectedNoise, ...]:
    """The noise on each measured table."""
    dag, trips = plan.mechanism.measured_features, plan.expected_trips
    noise = []
    for a in plan.mechanism.answers():
        size = dag.size(a.feature)
        half = a.law.half_width(plan.confidence)
        expected = None if trips is None else Fraction(average_count(trips, size))
        noise.append(ExpectedNoise(a.feature, size, a.share, a.delta, Fraction(a.law.scale), half, expected))
    return tuple(noise)


def errors_by_budget(plan: PlannedRelease) -> dict[str, dict[str, float]]:
    """What each way to share ε would do to each table: the expected error of a count in trips, the configured way first."""
    return {name: dict(errors) for name, errors in plan.mechanism.expected_errors(facts_of(plan)).items()}


def facts_of(plan: PlannedRelease) -> DemandFacts:
    """What a plan says publicly about its trips."""
    return DemandFacts(plan.unit.sensitivity, plan.expected_trips, plan.config.data.expected_filled)


def sign_of(plan: PlannedRelease) -> str:
    """The letter of what the noise is paid for in."""
    return "ρ" if plan.mechanism.currency == "rho" else "ε"


def determined_by_other_tables(plan: PlannedRelease, noise: ExpectedNoise, bound: float) -> bool:
    """Whether a table's noise is within a part of its counts once all tables agree: finer ones may tell it better than its own share."""
    if noise.expected is None:
        return False
    error = next(iter(plan.mechanism.expected_errors(DemandFacts(plan.unit.sensitivity)).values()), {})
    wide = NormalDist().inv_cdf((1 + plan.confidence) / 2)
    return wide * error.get(noise.feature, math.inf) <= bound * noise.expected


def unmeasured(plan: PlannedRelease) -> tuple[str, ...]:
    """Tables that are published without a measurement of their own, and were not public before."""
    answered = {*(a.feature for a in plan.mechanism.answers()), *plan.public}
    return tuple(n for n in plan.features.features if n not in answered)


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
    answers = {a.feature: a for a in plan.mechanism.answers()}
    if feature not in answers:
        raise InputError(f"{feature!r} is not measured: {did_you_mean(feature, list(answers))}")
    trips = expected_trips or plan.expected_trips
    if trips is None:
        raise InputError("how many trips are there, about? Say so in data.expected_trips")
    law, share = type(answers[feature].law), plan.mechanism.share_of(feature)
    allowed = positive(relative, "relative") * trips / plan.mechanism.measured_features.size(feature)
    sure = plan.confidence if confidence is None else confidence

    def enough(epsilon: Fraction) -> bool:
        return bool(law.calibrate(share(epsilon), plan.mechanism.change(feature)).half_width(sure) <= allowed)

    high = Fraction(1)
    while not enough(high):
        high *= 2
        if high > MAX_EPSILON_TRIED:
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
    step = Fraction(10) ** (math.floor(math.log10(value)) + 1 - SIGNIFICANT_DIGITS)
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


# Published tables: how far an average count is off, as a range, and what that is good for
#
# The range goes by the model of expected errors (`cbdp.privacy.expected_error`), on the safe side: the noise of a count once all tables agree, with no
# credit for shrinking, or what shrinking takes away from a count of this size, whichever is more. `python -m benchmarks planned` compares both with simulated
# releases; the page of `cbdp plan` works out the same numbers in the browser.


EXAMPLE_COUNT = 100.0  # the count of an example, where nobody says how many trips there are
MAX_SEARCH_STEPS = 100  # steps of a fixed point that settles after a few


@dataclass(frozen=True)
class ExpectedTable:
    """What is to be expected of a published table."""

    feature: str
    error: float  # of a count in trips, root mean square over all counts
    count: float  # its average count
    half: int  # how far it may be off, at the plan's confidence
    use: Use | None  # None: nobody says how many trips there are, so that no average is known
    good: int = 1  # the least count that is within 20 %

    @property
    def low(self) -> int:
        return max(0, math.floor(self.count) - self.half)

    @property
    def high(self) -> int:
        return math.ceil(self.count) + self.half

    @property
    def relative(self) -> float:
        return self.half / self.count


def expected_tables(plan: PlannedRelease) -> tuple[ExpectedTable, ...]:
    """Of each table, by the model of errors; nothing where the mechanism has none."""
    mechanism = plan.mechanism
    if not is_modelled(mechanism):
        return ()
    return expected_of(mechanism, facts_of(plan), plan.confidence)


def expected_of(
    mechanism: ModelledMechanism, facts: DemandFacts, confidence: float
) -> tuple[ExpectedTable, ...]:
    """The same of a mechanism, from what is public about the trips."""
    of, precision = model_of_mechanism(mechanism, facts)
    noise, errors = of.reconciled(precision), np.sqrt(of.errors(precision))
    tables = []
    for n, name in enumerate(of.names):
        count, exact = typical(of, n, facts), name in of.public
        half = 0 if exact else margin(of, n, float(noise[n]), count, confidence)
        error = 0.0 if exact else float(errors[n])
        use = use_of(half / count) if exact or of.signals[n] is not None else None
        good = 1 if exact else least_good(of, n, float(noise[n]), confidence)
        tables.append(ExpectedTable(name, error, count, half, use, good))
    return tuple(tables)


def model_of_mechanism(mechanism: ModelledMechanism, facts: DemandFacts) -> tuple[ErrorModel, Floats]:
    """The model of a mechanism's errors, and the precision of what it measures."""
    shares = {a.feature: a.share for a in mechanism.answers()}
    public = tuple(mechanism.public or ())
    stated = replace(facts, public=public, law=mechanism.law, changes=mechanism.changes())
    of = error_model(mechanism.features, list(shares), mechanism.amount, stated)
    part = np.array([float(share / mechanism.amount) for share in shares.values()])
    return of, of.precision(part)


def margins(of: ErrorModel, feature: int, noise: float, counts: Floats, confidence: float) -> Floats:
    """How far counts of these sizes may be off: by the noise, or by what shrinking takes away from them, whichever is more."""
    signal, variance = of.signals[feature], np.full(counts.shape, noise)
    if signal is not None:
        variance = np.maximum(variance, signal.risk(counts**2, variance))
    half_widths: Floats = np.ceil(reach(confidence) * np.sqrt(variance))
    return half_widths


def margin(of: ErrorModel, feature: int, noise: float, count: float, confidence: float) -> int:
    """How far one count may be off."""
    return int(margins(of, feature, noise, np.array([count]), confidence)[0])


def least_good(of: ErrorModel, feature: int, noise: float, confidence: float) -> int:
    """The least count that is within 20 %: from there on noise hardly grows with the count."""
    count = 1
    for _ in range(MAX_SEARCH_STEPS):
        half = margin(of, feature, noise, float(count), confidence)
        if half <= GOOD_RELATIVE_ERROR * count:
            break
        count = math.ceil(half / GOOD_RELATIVE_ERROR)
    return count


def typical(of: ErrorModel, feature: int, facts: DemandFacts) -> float:
    """The average count, to two digits; of the total, all trips."""
    if of.signals[feature] is None or facts.trips is None:
        return EXAMPLE_COUNT
    return average_count(float(facts.trips), int(of.strata.sizes[feature]))


def reach(confidence: float) -> float:
    """How many standard deviations hold so often: of normal errors, or of Laplace noise that stands alone, whichever is more.

    >>> round(reach(0.9), 3), round(reach(0.99), 3)
    (1.645, 3.256)
    """
    return max(NormalDist().inv_cdf((1 + confidence) / 2), -math.log(1 - confidence) / math.sqrt(2))


def amount_text(value: float) -> str:
    """An error in trips as `check` and the page of `plan` print it.

    >>> amount_text(0.40123), amount_text(8.3828), amount_text(1234.5), amount_text(1e-5)
    ('0.401', '8.38', '1,234', '< 0.001')
    """
    if 0 < value < 0.001:
        return "< 0.001"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# A table's counts in words


TRIP_ENDS = ("origin", "destination")
ATTRIBUTE_NAMES = {"tap": "kind of tap"}
TIME_PHRASES = {"time": ("a time period", " in one time period"), "day": ("a day", " on one day")}


def what_of(by: Sequence[str]) -> str:
    """What one count of a table is of, by the attributes that it groups by.

    >>> what_of(["origin.zone", "destination.zone", "time"]), what_of(["mode", "time"]), what_of(["day", "time"])
    ('a pair of zones in one time period', 'one mode in one time period', 'a day in one time period')
    >>> what_of(["origin", "destination"]), what_of(["origin.zone"]), what_of([])
    ('a pair of stops', 'one origin zone', 'all trips')
    """
    left, parts = list(by), []
    for attribute in [a.removeprefix(TRIP_ENDS[0]) for a in by if a.split(".")[0] == TRIP_ENDS[0]]:
        pair = [f"{place}{attribute}" for place in TRIP_ENDS]
        if set(pair) <= set(left):
            left = [name for name in left if name not in pair]
            parts.append(f"a pair of {attribute.removeprefix('.') or 'stop'}s")
    parts += [
        f"one {ATTRIBUTE_NAMES.get(name, name.replace('.', ' '))}"
        for name in left
        if name not in TIME_PHRASES
    ]
    when = [name for name in left if name in TIME_PHRASES]
    if not parts and when:
        parts.append(TIME_PHRASES[when.pop(0)][0])
    return ", ".join(parts) + "".join(TIME_PHRASES[name][1] for name in when) or "all trips"


def example(by: Sequence[str], expected: ExpectedTable) -> str:
    """How a typical count would be published.

    >>> from cbdp.forecast.errors import use_of
    >>> example(["mode"], ExpectedTable("mode", 8.0, 200.0, 13, use_of(0.1)))
    'One mode with 200 trips would be published as 187–213.'
    """
    what = what_of(by)
    trips = f"{expected.count:,.0f} trip" + ("" if expected.count == 1 else "s")
    subject = f"{what[0].upper()}{what[1:]} with {trips}" if by else f"A total of {trips}"
    return f"{subject} would be published as {range_text(expected)}."


def range_text(expected: ExpectedTable) -> str:
    """From the least to the most, or the count alone where there is no noise to speak of."""
    if not expected.half:
        return f"{expected.count:,.0f}"
    return f"{expected.low:,}–{expected.high:,}"


# Gaps: what a plan's tables do not tell apart


@dataclass(frozen=True)
class Gap:
    """A dimension or attribute that no measured table covers."""

    name: str
    instead: tuple[str, ...]  # attributes of it that tables do tell apart, like the zones of stops
    half_width: (
        int | None
    )  # trips by which the noise of single trip types alone moves a count by it; None: not measured

    def __str__(self) -> str:
        noise = (
            ""
            if self.half_width is None
            else f", whose noise adds up to about ±{self.half_width:,} trips in each"
        )
        guess = f"a guess from the noisy counts of single combinations{noise}"
        add = f'add a table by {self.name}: [[feature]] with name = "{self.name}" and by = ["{self.name}"]'
        if self.instead:
            return f"{self.name}: tables know its {', '.join(self.instead)} only; counts by {self.name} itself are {guess}. If you need them, {add}"
        return f"no table tells {self.name} apart: counts by {self.name} are {guess}; {add}"


def gaps(plan: PlannedRelease) -> tuple[Gap, ...]:
    """What no measured or public table tells apart. A mechanism that measures only trip types has no use for tables."""
    if not plan.mechanism.asks_tables:
        return ()
    features, answers = plan.mechanism.measured_features, {a.feature: a for a in plan.mechanism.answers()}
    answered = [n for n in (*answers, *plan.public) if n in features]
    leaves = answers.get(SINGLETON)
    undetermined = []
    for name in undistinguished(features, answered):
        half = None
        if leaves is not None:
            types = plan.universe.size / len(plan.universe.attribute(name).labels)
            deviation = math.sqrt(types * float(leaves.law.variance()))
            half = math.ceil(NormalDist().inv_cdf(0.5 + plan.confidence / 2) * deviation)
        undetermined.append(Gap(name, distinguished_attributes(features, answered, name), half))
    return tuple(undetermined)


def uncovered_gaps(every: tuple[Gap, ...]) -> Iterator[Gap]:
    """The gaps that deserve a warning: nothing at all is told of them."""
    return (gap for gap in every if not gap.instead)


# What an ε means to somebody who has to sign it
#
# NIST's Cybersecurity Insights (“Differential Privacy: Future Work & Open Challenges”) reports that researchers recommend ε around 1, that values below 5 are
# widely held to be a careful choice, and that systems in use with larger ones have not been attacked with success so far; that is experience, and no promise.
# The third limit, 10, is ours: e^10 is above 22,000, so that somebody who thought a trip one in a thousand likely may be 96 % sure afterwards.


CAREFUL_EPSILON = 5.0  # ε up to which a choice counts as careful (NIST)
MAX_MEANINGFUL_EPSILON = 10.0  # ε above which `check` warns; no wish for precision is met with more
PRIOR_BELIEF = 0.001  # prior probability in the sentence that gives the reason


@dataclass(frozen=True)
class Level:
    """A range of ε, and what to think of it."""

    upto: float
    judgement: str


LEVELS = (
    Level(1.0, "Strong: about 1 or less is what researchers recommend."),
    Level(CAREFUL_EPSILON, "Usual: below 5 counts as a careful choice (NIST), if the right unit is protected."),
    Level(MAX_MEANINGFUL_EPSILON, "Weak: say publicly why so much is needed."),
    Level(math.inf, "Hardly any: somebody may become all but sure. Merge periods or zones, or protect less detail."),
)  # fmt: skip


def level_of(epsilon: float) -> Level:
    """What to think of an ε.

    >>> level_of(0.5).judgement.split(":")[0], level_of(14.8).judgement.split(":")[0]
    ('Strong', 'Hardly any')
    """
    return next(level for level in LEVELS if epsilon <= level.upto)


def posterior_belief(prior: float, epsilon: float) -> float:
    """The most that somebody can believe afterwards, by Bayes' rule: ε bounds the likelihood ratio, so odds grow by a factor of e^ε at most.

    >>> round(posterior_belief(0.5, 1), 3), round(posterior_belief(0.001, 10), 2)
    (0.731, 0.96)
    """
    return 1 / (1 + (1 - prior) / prior * math.exp(-min(epsilon, 700.0)))


def reason(epsilon: float) -> str:
    """Why an ε is too large, as a sentence about somebody who hardly suspected anything.

    >>> reason(14.8)
    'somebody who thought it 0.1 % likely may become over 99.9 % sure'
    """
    sure = posterior_belief(PRIOR_BELIEF, epsilon)
    certainty = "over 99.9 %" if sure > 0.999 else percent_at_most(sure)
    return f"somebody who thought it {100 * PRIOR_BELIEF:g} % likely may become {certainty} sure"


# What could be configured instead: the ε that a wish for precision needs, coarser periods or zones, the other noise distribution


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
