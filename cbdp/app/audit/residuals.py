"""The curator's goodness-of-fit test of a release's noise. Private: a residual is a published number less a true one.

The noise Z of each answer has a declared law p. Against it stand other laws q: of scales up to 16 times smaller or
larger, and laws in which a share of the answers has no noise at all. The odds Σ q(data) / Σ p(data) of a uniform mixture of them
are an e-value: their expectation is at most 1 if the declared law is true, so they exceed 10⁶ with a chance of at most 10⁻⁶ (Markov; Ville
where noise was revealed from the top down to floors that depend on what had been revealed). What lies below a floor or a threshold
counts with the probability of lying there. Where all noise is visible, two more tests look at its shape: the largest distance
between the distribution functions, with Massart's constant (1990) in the bound of Dvoretzky, Kiefer and Wolfowitz, which holds for
every law and number, and the exact binomial law of the number of answers without any noise. The chance that any test of an
audit raises a false alarm is at most 10⁻⁶.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import logsumexp
from scipy.stats import binom

from cbdp.app.audit.truth import TrueCounts
from cbdp.arrays import Floats, Ints
from cbdp.audit.findings import Finding, clear_finding
from cbdp.audit.membership import FALSE_ALARM_CHANCE, PublishedAnswer, noisy_answers
from cbdp.privacy.noise import NoiseDistribution
from cbdp.release.release import Release
from cbdp_features.universe import is_member

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

    @property
    def exact(self) -> int:
        """How many answers have no noise at all."""
        return int(self.times[self.z == 0].sum())

    def log_odds(self) -> Floats:
        """For each other law, the logarithm of how much likelier it makes the data than the declared one."""
        law = self.answer.law
        others = [self._log(law.times(factor), 0.0) for factor in SCALE_FACTORS]
        others += [self._log(law, share) for share in NOISELESS_SHARES]
        return np.array(others) - self._log(law, 0.0)

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
        share = NOISELESS_SHARES[best - len(SCALE_FACTORS)]
        return f"{100 * share:.0f} % of the counts published without noise"


def groups(answers: PublishedAnswer, true: TrueCounts) -> list[Group]:
    """The noise of an answer, on true zeros and on other counts apart; what is not known is left out."""
    unlisted = answers.size > MAX_DENSE_ELEMENTS or answers.adaptive
    return [g for g in (_groups_of_unlisted if unlisted else _groups_of_listed)(answers, true) if g.size]


def _groups_of_listed(answers: PublishedAnswer, true: TrueCounts) -> Iterator[Group]:
    counts = np.zeros(answers.size, dtype=np.int64)
    np.add.at(counts, answers.element_of(true.index), true.value)
    determined = np.ones(answers.size, dtype=bool)
    determined[answers.element_of(true.loose)] = False
    every = np.arange(answers.size, dtype=np.int64)
    values, shown = answers.at(every)
    floor = answers.floor_at(every)
    bound = floor - counts
    kinds = [("true zeros", counts == 0)] if answers.zeros else []
    for what, kind in [*kinds, ("other counts", counts > 0)]:
        here = determined & kind
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
    if not sound:
        return findings
    title = "The noise follows its declared law, on true zeros and on other counts"
    if findings:
        title = "The other noise follows its declared law"
    text = " ".join(_group_text(g) for g in sound)
    figures = {"groups of answers": len(sound), "chance of a false alarm": FALSE_ALARM_CHANCE}
    return [*findings, clear_finding("residuals", title, text, _residual_power(sound, risk), figures)]


def _residual_power(sound: Sequence[Group], risk: float) -> str:
    """How small the noise of each group would have had to be to be noticed with 95 %, and how many answers without any."""
    parts = []
    for g in sorted(sound, key=lambda g: -g.shown)[:MAX_GROUPS_REPORTED]:
        factor = _detectable_factor(g.answer.law, g.shown, risk)
        exact_answers = int(binom.isf(risk, g.shown, float(g.answer.law.pmf(0)))) + 1
        text = f"noise of {factor:.2g} times the scale" if factor else "no smaller noise, for want of answers"
        if not len(g.bound) and exact_answers <= g.shown:
            text += f", or {exact_answers:,} answers without noise"
        parts.append(f"{g.answer.name}, {g.what}: {text}")
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
        share = float(law.pmf(0))
        if binom.sf(group.exact - 1, n, share) < risk:
            why.append(
                f"{group.exact:,} of {n:,} have no noise at all, where the law expects {_amount(n * share)}"
            )
    return why


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _group_text(group: Group) -> str:
    law = group.answer.law
    words = f"{group.answer.name}, {group.what}: "
    if len(group.bound):
        return f"{words}{group.shown:,} of {group.size:,} shown ({_amount(group.expected)} expected)."
    size = float(group.times @ np.abs(group.z)) / group.shown
    share = float(law.pmf(0))
    return (
        f"{words}{group.shown:,} {'answer' if group.shown == 1 else 'answers'}, mean size of the noise {size:.3g} (law: {law.mean_size():.3g}), "
        f"{group.exact:,} exact (law: {_amount(group.shown * share)})."
    )


def _contradiction(group: Group, why: Sequence[str]) -> Finding:
    name, zeros = group.answer.name, group.what == "true zeros"
    title = f"{name}: the noise on {group.what} does not follow its declared law"
    attack = "Whoever knows which noise was really added can undo it better than the claim allows."
    if zeros and (group.shown == 0 if len(group.bound) else group.exact == group.shown):
        title = f"{name}: true zeros were published without noise"
        attack = "Every published count above zero then proves that somebody was there: no ε protects against that."
    text = f"{_group_text(group)} Tests: {'; '.join(why)}."
    cure = "Withdraw the release. Draw fresh noise of the declared law on every count, zeros included, under a new charge."
    figures = {
        "answers": group.size,
        "declared scale": round(float(group.answer.law.scale), 6),
        "log10 of the odds": round(group.evidence / math.log(10), 1),
    }
    return Finding("residuals", "contradicts", title, text, attack, cure, figures)
