"""The curator's tests of a release against the true counts: a goodness-of-fit test of the noise, and membership inference.

A residual is a published number less a true one, and as private as that: whoever calls these functions has the trips (`cbdp.app.audit.truth`),
marks the results as sensitive, and publishes none. Nothing here reads or counts a trip. The parts follow each other: the noisy answers
whose noise has a declared distribution; the true counts; the residuals and their test; the likelihood-ratio attack on membership
and its advantage.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.special import logsumexp
from scipy.stats import binom

from cbdp.arrays import Bools, Floats, Ints
from cbdp.audit.findings import Figure, Finding, Verdict, clear_finding
from cbdp.audit.lower_bound import lower_limit, upper_limit
from cbdp.audit.tables import declared_distribution
from cbdp.features import SINGLETON, FeatureDag, Universe
from cbdp.privacy.accounting import Cost, PrivacyGuarantee, cost_amount
from cbdp.privacy.noise import NoiseDistribution
from cbdp.release.manifest import cost_of_feature
from cbdp.release.release import Release
from cbdp.release.roles import enumerated
from cbdp_features.universe import is_member


@dataclass(frozen=True, eq=False)
class PublishedAnswer:
    """A published noisy answer to a feature: of all elements, or of those that exceed a floor (by cell, or one for all).

    `zeros` says that empty elements got noise like all others.
    """

    name: str
    dag: FeatureDag = field(repr=False)
    law: NoiseDistribution
    spent: float  # on it: ε, or ρ where its law is paid for in ρ
    values: Ints = field(repr=False)
    elements: Ints | None = field(default=None, repr=False)
    floor: Ints | int | None = field(default=None, repr=False)
    zeros: bool = True

    @property
    def adaptive(self) -> bool:
        """Whether what is hidden depends on other answers' noise."""
        return isinstance(self.floor, np.ndarray)

    @property
    def size(self) -> int:
        return self.dag.size(self.name)

    def element_of(self, types: Ints) -> Ints:
        """The element that holds each trip type."""
        if self.name == SINGLETON:
            return types
        return self.dag.partition(self.name).element_of(self.dag.universe.unrank_codes(types))

    def cell_of(self, types: Ints) -> Ints:
        return self.dag.cells.partition.element_of(self.dag.universe.unrank_codes(types))

    def floor_at(self, elements: Ints) -> Ints:
        if self.floor is None:
            return np.full(len(elements), np.iinfo(np.int64).min // 2)
        if isinstance(self.floor, np.ndarray):
            return self.floor[self.cell_of(elements)]
        return np.full(len(elements), self.floor, dtype=np.int64)

    def at(self, elements: Ints) -> tuple[Ints, Bools]:
        """The noisy answer of each element, and whether it is shown."""
        if self.elements is None:
            return self.values[elements], np.ones(len(elements), dtype=bool)
        if not len(self.elements):
            return np.zeros(len(elements), dtype=np.int64), np.zeros(len(elements), dtype=bool)
        row = np.minimum(np.searchsorted(self.elements, elements), len(self.elements) - 1)
        return self.values[row], np.asarray(self.elements[row] == elements)


def noisy_answers(release: Release) -> list[PublishedAnswer]:
    """All answers of a release whose noise has a declared law, coarse ones first."""
    return sorted([*_measured(release), *_tables(release)], key=lambda n: n.size)


def _measured(release: Release) -> Iterator[PublishedAnswer]:
    for m in release.measurements:
        law = declared_distribution(m)
        if law is None or not law.whole or m.values.dtype.kind != "i":
            continue
        if m.elements is None or m.floor is not None:
            spent = m.rho if law.currency == "rho" else m.epsilon
            dag = release.levels or release.features
            yield PublishedAnswer(m.feature, dag, law, float(spent or 0), m.values, m.elements, m.floor)


def _tables(release: Release) -> Iterator[PublishedAnswer]:
    """Tables that are published as they were measured."""
    for name, table in release.tables.items():
        noise = release.recipe.tables.get(name)
        if noise is None or not noise.law.whole:
            continue
        shown = np.flatnonzero(table).astype(np.int64)
        floor = 0 if noise.threshold is None else math.ceil(noise.threshold) - 1
        law = noise.law.times(1.0)
        spent = float(cost_of_feature(release, name).get(law.currency) or 0)
        yield PublishedAnswer(
            name, release.features, law, spent, table[shown], shown, floor, not noise.skips_zeros
        )


# True counts


@dataclass(frozen=True, eq=False)
class TrueCounts:
    """True counts, and the riders behind them: what a curator compares a release with. Private.

    `loose` are trip types of which bounding may have dropped trips: what was counted there is not known.
    """

    universe: Universe = field(repr=False)
    index: Ints = field(repr=False)
    value: Ints = field(repr=False)
    loose: Ints = field(repr=False)
    riders: Sequence[Ints] = field(repr=False)  # the trip types of each of some riders

    @property
    def total(self) -> int:
        return int(self.value.sum())


# Residuals: a test of the declared noise distribution.
#
# The noise Z of each answer has a declared law p. Against it stand other laws q: of scales up to 16 times smaller or
# larger, and laws in which a share of the answers has no noise at all. The odds Σ q(data) / Σ p(data) of a uniform mixture of them
# are an e-value: their expectation is at most 1 if the declared law is true, so they exceed 10⁶ with a chance of at most 10⁻⁶ (Markov; Ville
# where noise was revealed from the top down to floors that depend on what had been revealed). What lies below a floor or a threshold
# counts with the probability of lying there. Where all noise is visible, two more tests look at its shape: the largest distance
# between the distribution functions, with Massart's constant (1990) in the bound of Dvoretzky, Kiefer and Wolfowitz, which holds for
# every law and number, and the exact binomial law of the number of answers without any noise. The chance that any test of an
# audit raises a false alarm is at most 10⁻⁶.


FALSE_ALARM_CHANCE = 1e-6  # of any test of an audit, over all answers together
SCALE_FACTORS = tuple(2.0 ** (k / 4) for k in range(-16, 17) if k)  # of the declared scale
NOISELESS_SHARES = (0.01, 0.03, 0.1, 0.3, 0.6, 0.9, 1.0)  # of answers without noise
MAX_GROUPS_REPORTED = 4  # groups of answers whose power a finding states: it is a paragraph, not a table
MAX_DENSE_ELEMENTS = 2**24  # elements of a feature whose true counts are held as one array of 8 bytes each


@dataclass(frozen=True, eq=False)
class Group:
    """The noise in some answers: visible values with how many have them, and bounds below which others are hidden."""

    answer: PublishedAnswer
    what: str
    z: Ints = field(repr=False)
    times: Ints = field(repr=False)
    bound: Ints = field(repr=False)
    hidden: Ints = field(repr=False)
    expected: float  # how many should be visible

    @property
    def shown(self) -> int:
        return int(self.times.sum())

    @property
    def size(self) -> int:
        return self.shown + int(self.hidden.sum())

    def log_odds(self) -> Floats:
        """For each other law, the logarithm of how much likelier it makes the data than the declared one."""
        declared = self._log(self.answer.law, 0.0)
        others = [self._log(self.answer.law.times(f), 0.0) for f in SCALE_FACTORS]
        return (
            np.array([*others, *(self._log(self.answer.law, share) for share in NOISELESS_SHARES)]) - declared
        )

    def _log(self, law: NoiseDistribution, share: float) -> float:
        """The log-likelihood where this share of the answers has no noise."""
        seen, unseen = law.log_pmf(self.z), law.log_cdf(self.bound)
        if share:
            with np.errstate(divide="ignore"):
                rest = np.log1p(-share) if share < 1 else -np.inf
                seen = np.logaddexp(rest + seen, np.where(self.z == 0, math.log(share), -np.inf))
                unseen = np.logaddexp(rest + unseen, np.where(self.bound >= 0, math.log(share), -np.inf))
        return float(self.times @ seen + self.hidden @ unseen) if len(self.z) or len(self.bound) else 0.0

    @cached_property
    def evidence(self) -> float:
        """The logarithm of the odds of the mixture of all other laws against the declared one."""
        odds = self.log_odds()
        return float(logsumexp(odds) - math.log(len(odds)))

    def likeliest(self) -> str:
        """The other law that explains the noise best, in words."""
        best = int(np.argmax(self.log_odds()))
        if best < len(SCALE_FACTORS):
            scale = float(self.answer.law.scale)
            return f"noise of scale {scale * SCALE_FACTORS[best]:.3g} instead of {scale:.3g}"
        return (
            f"{100 * NOISELESS_SHARES[best - len(SCALE_FACTORS)]:.0f} % of the counts published without noise"
        )


def groups(answers: PublishedAnswer, true: TrueCounts) -> list[Group]:
    """The noise of an answer, on true zeros and on other counts apart; what is not known is left out."""
    candidates = (
        _groups_of_unlisted(answers, true)
        if answers.size > MAX_DENSE_ELEMENTS or answers.adaptive
        else _groups_of_listed(answers, true)
    )
    return [g for g in candidates if g.size]


def _groups_of_listed(answers: PublishedAnswer, true: TrueCounts) -> Iterator[Group]:
    counts = np.zeros(answers.size, dtype=np.int64)
    np.add.at(counts, answers.element_of(true.index), true.value)
    determined = np.ones(answers.size, dtype=bool)
    determined[answers.element_of(true.loose)] = False
    every = np.arange(answers.size, dtype=np.int64)
    values, shown = answers.at(every)
    floor = answers.floor_at(every)
    bound = floor - counts
    for what, here in (
        ("true zeros", determined & (counts == 0)),
        ("other counts", determined & (counts > 0)),
    ):
        if what == "true zeros" and not answers.zeros:
            continue
        expected = answers.law.survival(bound[here]).sum()
        yield _group(answers, what, (values - counts)[here & shown], bound[here & ~shown], float(expected))


def _group(
    answers: PublishedAnswer, what: str, z: Ints, bound: Ints, expected: float, hidden: Ints | None = None
) -> Group:
    z, times = np.unique(z, return_counts=True)
    if hidden is None:
        bound, hidden = np.unique(bound, return_counts=True)
    return Group(answers, what, z, times.astype(np.int64), bound, hidden.astype(np.int64), expected)


def _groups_of_unlisted(answers: PublishedAnswer, true: TrueCounts) -> Iterator[Group]:
    """The same where types are too many to list: those without trips are told apart by their cell only."""
    assert answers.elements is not None
    determined = ~is_member(true.index, true.loose)
    index, value = true.index[determined], true.value[determined]
    noisy, shown = answers.at(index)
    bound = answers.floor_at(index) - value
    above = float(answers.law.survival(bound).sum())
    yield _group(answers, "other counts", (noisy - value)[shown], bound[~shown], above)
    empty = ~is_member(answers.elements, true.index) & ~is_member(answers.elements, true.loose)
    occupied = np.union1d(true.index, true.loose)
    sizes = answers.dag.cells.partition.sizes.astype(np.int64)
    every = sizes - np.bincount(answers.cell_of(occupied), minlength=len(sizes))
    rest = every - np.bincount(answers.cell_of(answers.elements[empty]), minlength=len(sizes))
    low = answers.floor if isinstance(answers.floor, np.ndarray) else np.full(len(sizes), answers.floor or 0)
    above = float(every @ answers.law.survival(low))
    bound, which = np.unique(low[rest > 0], return_inverse=True)
    hidden = np.zeros(len(bound), dtype=np.int64)
    np.add.at(hidden, which, rest[rest > 0])
    yield _group(answers, "true zeros", answers.values[empty], bound, above, hidden)


# Findings


def attack_residuals(release: Release, true: TrueCounts) -> list[Finding]:
    """The noise of every answer against its declared law, on true zeros and on other counts apart."""
    every = [g for n in noisy_answers(release) for g in groups(n, true)]
    if not every:
        return []
    risk = FALSE_ALARM_CHANCE / 2 / (3 * len(every))  # the other half is for membership
    tested = [(g, _alarms(g, risk)) for g in every]
    findings = [_contradiction(g, why) for g, why in tested if why]
    sound = [g for g, why in tested if not why]
    if sound:
        text = " ".join(_group_text(g) for g in sound)
        figures: dict[str, Figure] = {
            "groups of answers": len(sound),
            "chance of a false alarm": FALSE_ALARM_CHANCE,
        }
        title = "The noise follows its declared law, on true zeros and on other counts"
        findings.append(
            clear_finding(
                "residuals",
                title if not findings else "The other noise follows its declared law",
                text,
                _residual_power(sound, risk),
                figures,
            )
        )
    return findings


def _residual_power(sound: Sequence[Group], risk: float) -> str:
    """How small the noise of each group would have had to be to be noticed with 95 %, and how many answers without any."""
    parts = []
    for g in sorted(sound, key=lambda g: -g.shown)[:MAX_GROUPS_REPORTED]:
        factor = _detectable_factor(g.answer.law, g.shown, risk)
        exact_answers = int(binom.isf(risk, g.shown, float(g.answer.law.pmf(0)))) + 1
        scale = (
            f"noise of {factor:.2g} times the scale" if factor else "no smaller noise, for want of answers"
        )
        exact = (
            f", or {exact_answers:,} answers without noise"
            if not len(g.bound) and exact_answers <= g.shown
            else ""
        )
        parts.append(f"{g.answer.name}, {g.what}: {scale}{exact}")
    return f"What would have been found with a probability of 95 %: {'; '.join(parts)}."


def _detectable_factor(law: NoiseDistribution, answers: int, risk: float) -> float | None:
    """The largest factor below 1 of the scale at which so many answers would have raised the alarm with 95 %; None if none would."""
    needed = math.log(len(SCALE_FACTORS) + len(NOISELESS_SHARES)) - math.log(risk)
    reach = law.half_width(1 - 1e-9)
    z = np.arange(-reach, reach + 1)
    for factor in reversed([f for f in SCALE_FACTORS if f < 1]):
        smaller = law.times(factor)
        mass, odds = smaller.pmf(z), smaller.log_pmf(z) - law.log_pmf(z)
        odds = np.where(mass > 0, odds, 0.0)
        mean = float(mass @ odds)
        spread = math.sqrt(max(0.0, float(mass @ odds**2) - mean**2))
        if answers * mean - 1.645 * math.sqrt(answers) * spread > needed:
            return float(factor)
    return None


def _alarms(group: Group, risk: float) -> list[str]:
    """Which tests fail, in words."""
    why = []
    if group.evidence > -math.log(risk):
        odds = group.evidence / math.log(10)
        why.append(f"odds of 10^{odds:.0f} to 1 for {group.likeliest()}")
    if not len(group.bound):
        law, n = group.answer.law, group.shown
        ends = np.concatenate([[0], np.cumsum(group.times)]) / n
        # both are steps: the largest distance is at a value that was seen, or just below one
        at, just_below = (np.exp(law.log_cdf(group.z - step)) for step in (0, 1))
        distance = float(max(np.abs(ends[1:] - at).max(), np.abs(ends[:-1] - just_below).max()))
        if 2 * math.exp(-2 * n * distance**2) < risk:
            why.append(f"their distribution is {distance:.2f} away from the declared one")
        zero, share = _unperturbed(group)
        if binom.sf(zero - 1, n, share) < risk:
            why.append(f"{zero:,} of {n:,} have no noise at all, where the law expects {_amount(n * share)}")
    return why


def _unperturbed(group: Group) -> tuple[int, float]:
    """How many answers are exact, and the probability of that."""
    zero = int(group.times[group.z == 0].sum())
    return zero, float(group.answer.law.pmf(0))


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _group_text(group: Group) -> str:
    law = group.answer.law
    words = f"{group.answer.name}, {group.what}: "
    if len(group.bound):
        return f"{words}{group.shown:,} of {group.size:,} shown ({_amount(group.expected)} expected)."
    size = float(group.times @ np.abs(group.z)) / group.shown
    zero, share = _unperturbed(group)
    return (
        f"{words}{group.shown:,} {'answer' if group.shown == 1 else 'answers'}, mean size of the noise {size:.3g} (law: {law.mean_size():.3g}), "
        f"{zero:,} exact (law: {_amount(group.shown * share)})."
    )


def _contradiction(group: Group, why: Sequence[str]) -> Finding:
    name, zeros = group.answer.name, group.what == "true zeros"
    exact = len(group.bound) == 0 and int(group.times[group.z == 0].sum()) == group.shown
    nothing = zeros and (exact or (len(group.bound) > 0 and group.shown == 0))
    title = (
        f"{name}: true zeros were published without noise"
        if nothing
        else f"{name}: the noise on {group.what} does not follow its declared law"
    )
    attack = (
        "Every published count above zero then proves that somebody was there: no ε protects against that."
        if nothing
        else "Whoever knows which noise was really added can undo it better than the claim allows."
    )
    text = f"{_group_text(group)} Tests: {'; '.join(why)}."
    cure = "Withdraw the release. Draw fresh noise of the declared law on every count, zeros included, under a new charge."
    return Finding(
        "residuals",
        "contradicts",
        title,
        text,
        attack,
        cure,
        {
            "answers": group.size,
            "declared scale": round(float(group.answer.law.scale), 6),
            "log10 of the odds": round(group.evidence / math.log(10), 1),
        },
    )


# Membership inference: can an attacker who knows everybody else tell whether a rider is in the data?
#
# The attacker knows the rider's trips and all other trips, so of each published answer y they know the count c without the noise,
# up to the rider. The best test (Neyman and Pearson) compares the likelihoods: log P(y | with) − log P(y | without), added up over
# tables, and says "in" where it is above 0. For any mechanism that is (ε, δ)-differentially private its advantage, the share of
# members it says "in" of less that of others (Yeom et al., 2018), is at most (e^ε − 1 + 2δ) / (e^ε + 1) (Kairouz, Oh and Viswanath, 2015).
#
# There is one draw of the noise. A rider who is in the data is tested with c and c less their trips; a
# fresh rider with the same trips, who is not, with c plus their trips and c. Both use the noise as it was published; nothing is
# simulated. Riders who share a count share its noise, so trials of them are no evidence of a probability; the total has one
# draw for all riders. Therefore riders are chosen of whom no two share a count in the tables used, and only tables with
# many such riders are used; the bound is then that of the ε spent on these tables, which is the stricter one. Trials are
# independent, and the intervals are Clopper and Pearson's. The attack on all tables at once is reported too, without an interval.
# In a release of a large universe what is hidden of the trip types depends a little on others' noise: where nothing else can be
# used, an advantage beyond the bound is reported as a weakness, not as a contradiction.


# riders of whom no two share a count: with fewer, the interval of the advantage says nothing
MIN_RIDERS = 200
# riders tested, at most: the interval of the advantage is then about 0.03 wide to either side
MAX_RIDERS = 5_000


@dataclass(frozen=True, eq=False)
class Trials:
    """The attacker's scores for riders who are in the data, and for fresh ones with the same trips who are not."""

    member: Floats = field(repr=False)
    stranger: Floats = field(repr=False)
    tables: tuple[str, ...]
    spent: float  # on these tables: ε, or ρ
    exact: bool = (
        True  # False: what is hidden depends on others' noise, so trials are only nearly independent
    )

    @property
    def caught(self) -> int:
        """Members that the attacker says are in."""
        return int((self.member > 0).sum())

    @property
    def falsely(self) -> int:
        """Strangers that the attacker says are in."""
        return int((self.stranger > 0).sum())

    @property
    def advantage(self) -> float:
        return (self.caught - self.falsely) / len(self.member)

    def interval(self, risk: float) -> tuple[float, float]:
        """Where the true advantage lies, except with this probability."""
        n, tail = len(self.member), risk / 4  # each of two shares is on either side of its interval
        low = lower_limit(self.caught, n, tail) - upper_limit(self.falsely, n, tail)
        high = upper_limit(self.caught, n, tail) - lower_limit(self.falsely, n, tail)
        return float(low), float(high)


def bound(epsilon: float, delta: float = 0.0) -> float:
    """The largest advantage that (ε, δ)-differential privacy allows: its total variation distance (Kairouz, Oh and Viswanath, 2015).

    >>> round(bound(1), 4)
    0.4621
    """
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta / (1 + math.exp(min(epsilon, 700))))


def bound_of_rho(rho: float) -> float:
    """The largest advantage that ρ-zCDP allows: its Kullback-Leibler divergence is at most ρ (Pinsker; Bretagnolle and Huber).

    >>> round(bound_of_rho(0.02), 4), round(bound_of_rho(5), 4)
    (0.1, 0.9966)
    """
    return min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))


def allowed(cost: Cost, spent: float) -> float:
    """The largest advantage that is allowed where so much was spent, in the currency of the claim."""
    return bound_of_rho(spent) if cost.currency == "rho" else bound(spent, float(cost.delta))


# Scores


@dataclass(frozen=True, eq=False)
class _Scored:
    """What riders do to one answer: for each of their elements, the true count and by how much they change it."""

    answers: PublishedAnswer
    rider: Ints
    element: Ints
    change: Ints
    count: Ints
    determined: Bools  # by rider: the true counts of all their elements are known

    def scores(self, riders: int, *, member: bool) -> Floats:
        without, within = (
            (self.count - self.change, self.count) if member else (self.count, self.count + self.change)
        )
        score = np.zeros(riders)
        np.add.at(score, self.rider, _log_odds(self.answers, self.element, within, without))
        return score


def _log_odds(answers: PublishedAnswer, element: Ints, within: Ints, without: Ints) -> Floats:
    """The logarithm of P(published | within) / P(published | without)."""
    values, shown = answers.at(element)
    floor = answers.floor_at(element)

    def log(count: Ints) -> Floats:
        log_likelihood = np.where(
            shown, answers.law.log_pmf(values - count), answers.law.log_cdf(floor - count)
        )
        if answers.zeros:
            return log_likelihood
        return np.where(
            count > 0, log_likelihood, np.where(shown, -np.inf, 0.0)
        )  # nobody there: certainly not shown

    return np.asarray(log(within) - log(without))


def _scored_riders(answers: PublishedAnswer, true: TrueCounts, riders: Sequence[Ints]) -> _Scored:
    types = np.concatenate(riders)
    rider = np.repeat(np.arange(len(riders)), [len(r) for r in riders])
    pairs, change = np.unique(
        np.stack([rider, answers.element_of(types)]), axis=1, return_counts=True
    )  # ascending by rider
    rider, element = pairs
    elements, inside = np.unique(answers.element_of(true.index), return_inverse=True)
    counts = np.zeros(len(elements), dtype=np.int64)
    np.add.at(counts, inside, true.value)
    row = np.searchsorted(elements, element)
    loose = np.unique(answers.element_of(true.loose)) if len(true.loose) else true.loose
    determined = np.ones(len(riders), dtype=bool)
    determined[rider[is_member(element, loose)]] = False
    return _Scored(answers, rider, element, change.astype(np.int64), counts[row], determined)


def trials(release: Release, true: TrueCounts) -> tuple[Trials | None, float | None]:
    """Independent trials on the tables that allow many, and the advantage on all tables at once."""
    riders = true.riders
    every = [_scored_riders(n, true, riders) for n in noisy_answers(release)] if len(riders) else []
    fixed = [s for s in every if not s.answers.adaptive]
    chosen, apart = _chosen_answers(fixed, len(riders))
    if not chosen:
        chosen, apart = _chosen_answers(every, len(riders))
    if not chosen:
        return None, None
    member, stranger = (
        sum((s.scores(len(riders), member=m) for s in chosen), np.zeros(len(riders)))[apart]
        for m in (True, False)
    )
    tables = tuple(s.answers.name for s in chosen)
    spent, exact = sum(s.answers.spent for s in chosen), not any(s.answers.adaptive for s in chosen)
    independent = Trials(member, stranger, tables, spent, exact)
    sure = np.logical_and.reduce([s.determined for s in every])
    if not sure.any():
        return independent, None
    together = [
        sum((s.scores(len(riders), member=m) for s in every), np.zeros(len(riders)))[sure] > 0
        for m in (True, False)
    ]
    return independent, float(together[0].mean() - together[1].mean())


def _chosen_answers(scored: Sequence[_Scored], riders: int) -> tuple[list[_Scored], Ints]:
    """Tables, the finest first, as long as many riders share no count in them; and those riders."""
    chosen: list[_Scored] = []
    apart: Ints = np.empty(0, dtype=np.int64)
    for s in sorted(scored, key=lambda s: -s.answers.size):
        disjoint = _riders_apart([*chosen, s], riders)
        if len(disjoint) >= MIN_RIDERS:
            chosen, apart = [*chosen, s], disjoint
    return chosen, apart


def _riders_apart(scored: Sequence[_Scored], riders: int) -> Ints:
    """Riders of whom no two share an element, taken as they come (their order is random)."""
    used: list[set[int]] = [set() for _ in scored]
    elements_by_rider: list[list[list[int]]] = []
    for s in scored:
        edges = np.searchsorted(s.rider, np.arange(riders + 1)).tolist()
        element = s.element.tolist()
        elements_by_rider.append([element[a:b] for a, b in pairwise(edges)])
    determined = np.logical_and.reduce([s.determined for s in scored])
    taken = []
    for r in np.flatnonzero(determined).tolist():
        if all(
            taken_elements.isdisjoint(elements[r])
            for taken_elements, elements in zip(used, elements_by_rider, strict=True)
        ):
            for taken_elements, elements in zip(used, elements_by_rider, strict=True):
                taken_elements.update(elements[r])
            taken.append(r)
            if len(taken) == MAX_RIDERS:
                break
    return np.array(taken, dtype=np.int64)


def attack_membership(release: Release, true: TrueCounts) -> list[Finding]:
    """The advantage of the best attacker over sampled riders, against what the claim allows."""
    outcome, together = trials(release, true)
    if outcome is None:
        return []
    claim, n = release.claim, len(outcome.member)
    most = allowed(claim.cost, outcome.spent) if claim.holds else 1.0
    low, high = outcome.interval(0.05)
    floor = outcome.interval(FALSE_ALARM_CHANCE / 2)[0]
    tables = enumerated(outcome.tables)
    text = (
        f"Of {n:,} riders of whom no two share a count in {tables}, the attacker recognises {outcome.caught:,}, and takes "
        f"{outcome.falsely:,} of as many others, who are not in the data, for riders: an advantage of {outcome.advantage:.3f} (95 % interval "
        f"{low:.3f} to {high:.3f})."
    )
    if claim.holds:
        sign = "ρ" if claim.cost.currency == "rho" else "ε"
        text += f" {sign} = {outcome.spent:.4g} on {tables} allows {most:.3f}."
    if together is not None:
        whole = f", where the whole claim allows {allowed(claim.cost, float(cost_amount(claim.cost))):.3f}"
        text += f" On all tables at once, in this one draw: {together:.3f}{whole if claim.holds else ''}."
    figures: dict[str, Figure] = {
        "riders": n,
        "advantage": round(outcome.advantage, 4),
        "advantage at least": round(floor, 4),
    }
    if claim.holds:
        figures["allowed"] = round(most, 4)
    verdict, title = _verdict(outcome, claim, floor, most)
    if verdict == "clear":
        return [
            Finding(
                "membership",
                verdict,
                title,
                text,
                figures=figures,
                power=_membership_power(outcome, floor, most),
            )
        ]
    attack = "Whoever knows all other trips learns whether a particular rider is in the data."
    cure = "Withdraw the release; look for noise that is missing or too small."
    if not claim.holds:
        cure = "Use a mechanism with a guarantee, such as constraint-based."
    return [Finding("membership", verdict, title, text, attack, cure, figures)]


def _membership_power(outcome: Trials, floor: float, most: float) -> str:
    """The advantage that would have been found: above what is allowed by the widths of both intervals."""
    reach = most + (outcome.advantage - floor) + (outcome.advantage - outcome.interval(0.1)[0])
    if reach >= 1:
        return f"{len(outcome.member):,} riders are too few to tell any advantage from the {most:.2f} that is allowed."
    return f"An advantage of {reach:.2f} or more would have been found with a probability of 95 %."


def _verdict(outcome: Trials, claim: PrivacyGuarantee, floor: float, most: float) -> tuple[Verdict, str]:
    sign = "ρ" if claim.cost.currency == "rho" else "ε"
    if claim.holds and floor > most:
        return (
            "contradicts" if outcome.exact else "weakness",
            f"Riders can be told apart better than {sign} allows",
        )
    if claim.holds:
        return "clear", f"Riders cannot be told apart better than {sign} allows"
    if floor > 0:
        return (
            "weakness",
            f"An attacker tells riders from others, with an advantage of {outcome.advantage:.2f}",
        )
    return "clear", "No advantage over guessing could be shown"
