"""What only the curator can look at: the published noise itself, for it takes the true counts to see it.

Everything here is private: a residual is a published number less a true one. Results are marked sensitive and must not be
published.

**The test.** The noise Z of each answer has a declared law p. Against it stand other laws q: of scales up to 16 times smaller or
larger, and laws in which a share of the answers has no noise at all. The odds Σ q(data) / Σ p(data) of a uniform mixture of them
have expectation at most 1 if the declared law is true, so they exceed 10⁶ with a chance of at most 10⁻⁶ (Markov; Ville where
noise was revealed from the top down to floors that depend on what had been revealed). What lies below a floor or a threshold
counts with the probability of lying there. Where all noise is visible, two more tests look at its shape: the largest distance
between the distribution functions, with Massart's constant in the bound of Dvoretzky, Kiefer and Wolfowitz, which holds for
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

from cbdp.app.audit.noised import Noised, noised
from cbdp.app.audit.truth import Truth
from cbdp.arrays import Floats, Ints
from cbdp.audit.finding import Finding
from cbdp.features.index import among
from cbdp.privacy.laws import Law
from cbdp.release.release import Release

ALARM = 1e-6  # the chance of any false alarm
FACTORS = tuple(2.0 ** (k / 4) for k in range(-16, 17) if k)  # of the declared scale
SHARES = (0.01, 0.03, 0.1, 0.3, 0.6, 0.9, 1.0)  # of answers without noise
SAID = 4  # groups of which the power is told
DENSE = 2**24  # elements of which the true count of each may be listed


@dataclass(frozen=True, eq=False)
class Group:
    """The noise in some answers: visible values with how many have them, and bounds below which others are hidden."""

    noised: Noised
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
        declared = self._log(self.noised.law, 0.0)
        others = [self._log(self.noised.law.times(f), 0.0) for f in FACTORS]
        return np.array([*others, *(self._log(self.noised.law, share) for share in SHARES)]) - declared

    def _log(self, law: Law, share: float) -> float:
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
        if best < len(FACTORS):
            scale = float(self.noised.law.scale)
            return f"noise of scale {scale * FACTORS[best]:.3g} instead of {scale:.3g}"
        return f"{100 * SHARES[best - len(FACTORS)]:.0f} % of the counts published without noise"


def groups(answers: Noised, true: Truth) -> list[Group]:
    """The noise of an answer, on true zeros and on other counts apart; what is not known is left out."""
    made = _large(answers, true) if answers.size > DENSE or answers.adaptive else _listed(answers, true)
    return [g for g in made if g.size]


def _listed(answers: Noised, true: Truth) -> Iterator[Group]:
    counts = np.zeros(answers.size, dtype=np.int64)
    np.add.at(counts, answers.element_of(true.index), true.value)
    known = np.ones(answers.size, dtype=bool)
    known[answers.element_of(true.loose)] = False
    every = np.arange(answers.size, dtype=np.int64)
    values, shown = answers.at(every)
    floor = answers.floor_at(every)
    bound = floor - counts
    for what, here in (("true zeros", known & (counts == 0)), ("other counts", known & (counts > 0))):
        if what == "true zeros" and not answers.zeros:
            continue
        expected = answers.law.survival(bound[here]).sum()
        yield _group(answers, what, (values - counts)[here & shown], bound[here & ~shown], float(expected))


def _group(
    answers: Noised, what: str, z: Ints, bound: Ints, expected: float, many: Ints | None = None
) -> Group:
    z, times = np.unique(z, return_counts=True)
    if many is None:
        bound, many = np.unique(bound, return_counts=True)
    return Group(answers, what, z, times.astype(np.int64), bound, many.astype(np.int64), expected)


def _large(answers: Noised, true: Truth) -> Iterator[Group]:
    """The same where types are too many to list: those without trips are told apart by their cell only."""
    assert answers.elements is not None
    own = ~among(true.index, true.loose)
    index, value = true.index[own], true.value[own]
    noisy, shown = answers.at(index)
    bound = answers.floor_at(index) - value
    above = float(answers.law.survival(bound).sum())
    yield _group(answers, "other counts", (noisy - value)[shown], bound[~shown], above)
    empty = ~among(answers.elements, true.index) & ~among(answers.elements, true.loose)
    known = np.union1d(true.index, true.loose)
    sizes = answers.dag.cells.partition.sizes.astype(np.int64)
    every = sizes - np.bincount(answers.cell_of(known), minlength=len(sizes))
    rest = every - np.bincount(answers.cell_of(answers.elements[empty]), minlength=len(sizes))
    low = answers.floor if isinstance(answers.floor, np.ndarray) else np.full(len(sizes), answers.floor or 0)
    above = float(every @ answers.law.survival(low))
    bound, which = np.unique(low[rest > 0], return_inverse=True)
    many = np.zeros(len(bound), dtype=np.int64)
    np.add.at(many, which, rest[rest > 0])
    yield _group(answers, "true zeros", answers.values[empty], bound, above, many)


# Findings


def attack(release: Release, true: Truth) -> list[Finding]:
    """The noise of every answer against its declared law, on true zeros and on other counts apart."""
    every = [g for n in noised(release) for g in groups(n, true)]
    if not every:
        return []
    risk = ALARM / 2 / (3 * len(every))  # the other half is for membership
    found = [(g, _alarms(g, risk)) for g in every]
    findings = [_contradiction(g, why) for g, why in found if why]
    sound = [g for g, why in found if not why]
    if sound:
        text = " ".join(_described(g) for g in sound)
        figures: dict[str, float | str] = {"groups of answers": len(sound), "chance of a false alarm": ALARM}
        title = "The noise follows its declared law, on true zeros and on other counts"
        findings.append(
            Finding("residuals", "clear", title if not findings else "The other noise follows its declared law", text, figures=figures, power=_power(sound, risk))
        )  # fmt: skip
    return findings


def _power(sound: Sequence[Group], risk: float) -> str:
    """How small the noise of each group would have had to be to be noticed with 95 %, and how many answers without any."""
    said = []
    for g in sorted(sound, key=lambda g: -g.shown)[:SAID]:
        factor = _factor_found(g.noised.law, g.shown, risk)
        many = int(binom.isf(risk, g.shown, float(g.noised.law.pmf(0)))) + 1
        scale = (
            f"noise of {factor:.2g} times the scale" if factor else "no smaller noise, for want of answers"
        )
        exact = f", or {many:,} answers without noise" if not len(g.bound) and many <= g.shown else ""
        said.append(f"{g.noised.name}, {g.what}: {scale}{exact}")
    return f"What would have been found with a probability of 95 %: {'; '.join(said)}."


def _factor_found(law: Law, answers: int, risk: float) -> float | None:
    """The largest factor below 1 of the scale at which so many answers would have raised the alarm with 95 %; None if none would."""
    needed = math.log(len(FACTORS) + len(SHARES)) - math.log(risk)
    reach = law.half_width(1 - 1e-9)
    z = np.arange(-reach, reach + 1)
    for factor in reversed([f for f in FACTORS if f < 1]):
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
        law, n = group.noised.law, group.shown
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
    return zero, float(group.noised.law.pmf(0))


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _described(group: Group) -> str:
    law = group.noised.law
    words = f"{group.noised.name}, {group.what}: "
    if len(group.bound):
        return f"{words}{group.shown:,} of {group.size:,} shown ({_amount(group.expected)} expected)."
    size = float(group.times @ np.abs(group.z)) / group.shown
    zero, share = _unperturbed(group)
    return (
        f"{words}{group.shown:,} {'answer' if group.shown == 1 else 'answers'}, mean size of the noise {size:.3g} (law: {law.mean_size():.3g}), "
        f"{zero:,} exact (law: {_amount(group.shown * share)})."
    )


def _contradiction(group: Group, why: Sequence[str]) -> Finding:
    name, zeros = group.noised.name, group.what == "true zeros"
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
    text = f"{_described(group)} Tests: {'; '.join(why)}."
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
            "declared scale": round(float(group.noised.law.scale), 6),
            "log10 of the odds": round(group.evidence / math.log(10), 1),
        },
    )
