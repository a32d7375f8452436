"""What only the curator can look at: the published noise itself, for it takes the true counts to see it.

Everything here is private: a residual is a published number less a true one. Results are marked sensitive and must not be
published.

**Truth.** With a trip as the unit, the counts. With a person, at most `max_trips` of each were kept at random, and which ones
nobody knows any more; so trips of persons with more are unknown, and every element that holds one of their trips is left out.

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import binom

from cbdp.audit.finding import Finding
from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag, Universe
from cbdp.features.index import among
from cbdp.privacy.unit import Person
from cbdp.release import manifest as said
from cbdp.release.release import Release
from cbdp.trips.count import Counts, count
from cbdp.trips.sources import Clock, coded

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ALARM = 1e-6  # the chance of any false alarm
FACTORS = tuple(2.0 ** (k / 4) for k in range(-16, 17) if k)  # of the declared scale
SHARES = (0.01, 0.03, 0.1, 0.3, 0.6, 0.9, 1.0)  # of answers without noise
DENSE = 2**24  # elements of which the true count of each may be listed
SEED = 20_161_116  # which riders are looked at; their noise is the release's own


# Truth


@dataclass(frozen=True, eq=False)
class Truth:
    """True counts, and the riders behind them. Private.

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


def truth(
    trips: Any,
    release: Release,
    *,
    columns: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    riders: int = 20_000,
) -> Truth:
    """The counts that a release was made from, as far as they can be known again, and a sample of riders."""
    universe, unit = release.features.universe, release.claim.unit
    if isinstance(unit, Person) and not isinstance(trips, Counts | np.ndarray):
        return _of_persons(trips, universe, unit, columns or {}, clock or Clock(), riders)
    if isinstance(trips, Counts):
        if trips.universe.size != universe.size:
            raise InputError(
                f"the trips are counted over {trips.universe!r}, the release is of {universe!r}: count with its universe"
            )
        counts = trips
    else:
        counts = count(trips, universe, columns=columns, clock=clock)
    rng = np.random.default_rng(SEED)
    total = int(counts.value.sum())
    at = np.sort(rng.integers(0, max(total, 1), min(riders, total)))
    types = counts.index[np.searchsorted(np.cumsum(counts.value), at, side="right")]
    return Truth(universe, counts.index, counts.value, _none(), [t[None] for t in rng.permutation(types)])


def _none() -> Ints:
    return np.empty(0, dtype=np.int64)


def _of_persons(
    trips: Any, universe: Universe, unit: Person, columns: Mapping[str, str], clock: Clock, riders: int
) -> Truth:
    dimensions = {n: (columns.get(n, n), d) for n, d in universe.dimensions.items()}
    person = columns.get(unit.column, unit.column)
    ranks, new, last = [_none()], [np.empty(0, dtype=bool)], None
    with coded(trips, dimensions, person, clock) as batches:
        for batch in batches:
            codes = [batch.column(f"c{d}").to_numpy().astype(np.int64) for d in range(len(dimensions))]
            rank = universe.rank_codes(codes) if len(batch) else _none()
            persons = batch.column("person").filter(rank >= 0)
            if not len(persons):
                continue
            ranks.append(rank[rank >= 0])
            new.append(_starts(persons, last))
            last = persons[-1]
    return _bounded(universe, np.concatenate(ranks), np.concatenate(new), unit.max_trips, riders)


def _starts(persons: Any, last: Any) -> NDArray[np.bool_]:
    """Where another person's trips begin."""
    import pyarrow.compute as pc

    made = np.ones(len(persons), dtype=bool)
    made[0] = last is None or not persons[0].equals(last)
    made[1:] = np.asarray(pc.not_equal(persons[1:], persons[:-1]).to_numpy(zero_copy_only=False), dtype=bool)
    return made


def _bounded(universe: Universe, rank: Ints, new: NDArray[np.bool_], most: int, riders: int) -> Truth:
    """Trips sorted by person: those of persons within the bound are counted, the others' types are loose."""
    begin = np.flatnonzero(new)
    many = np.diff(np.append(begin, len(rank)))
    over = np.repeat(many > most, many)
    index, value = np.unique(rank[~over], return_counts=True)
    rng = np.random.default_rng(SEED)
    within = np.flatnonzero(many <= most)
    chosen = rng.permutation(within)[:riders]
    listed = [rank[begin[p] : begin[p] + many[p]] for p in chosen.tolist()]
    return Truth(universe, index.astype(np.int64), value.astype(np.int64), np.unique(rank[over]), listed)


# Laws


@dataclass(frozen=True)
class Law:
    """Two-sided geometric noise, or continuous Laplace noise rounded to whole numbers: logarithms of its probabilities."""

    scale: float
    rounded: bool = False

    def log_pmf(self, z: Ints) -> Floats:
        """The logarithm of P(Z = z)."""
        rate, size = 1 / self.scale, np.abs(z).astype(float)
        if self.rounded:
            outer = (
                math.log(math.sinh(rate / 2)) - size * rate
                if rate < 700
                else -(size - 0.5) * rate - math.log(2)
            )
            return np.where(z == 0, math.log(-math.expm1(-rate / 2)), outer)
        return np.asarray(math.log(math.tanh(rate / 2)) - size * rate)  # fmt: skip

    def log_cdf(self, t: Ints) -> Floats:
        """The logarithm of P(Z ≤ t)."""
        rate, at = 1 / self.scale, np.asarray(t, dtype=float)
        tail = np.where(at < 0, -at, at + 1)  # P(Z ≥ tail)
        if self.rounded:
            log_tail = -(tail - 0.5) * rate - math.log(2)
        else:
            log_tail = -tail * rate - math.log1p(math.exp(-rate))
        return np.where(at < 0, log_tail, np.log1p(-np.exp(log_tail)))

    def mean_size(self) -> float:
        """E |Z|."""
        rate = 1 / self.scale
        return 0.5 / math.sinh(rate / 2) if self.rounded else 1 / math.sinh(rate)


# What was noised


@dataclass(frozen=True, eq=False)
class Noised:
    """A published noisy answer to a feature: of all elements, or of those that exceed a floor (by cell, or one for all).

    `zeros` says that elements in which nobody is are noised like all others.
    """

    name: str
    dag: FeatureDag = field(repr=False)
    law: Law
    epsilon: float
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

    def at(self, elements: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """The noisy answer of each element, and whether it is shown."""
        if self.elements is None:
            return self.values[elements], np.ones(len(elements), dtype=bool)
        if not len(self.elements):
            return np.zeros(len(elements), dtype=np.int64), np.zeros(len(elements), dtype=bool)
        place = np.minimum(np.searchsorted(self.elements, elements), len(self.elements) - 1)
        return self.values[place], np.asarray(self.elements[place] == elements)


def noised(release: Release) -> list[Noised]:
    """All answers of a release whose noise has a declared law, coarse ones first."""
    dag = release.levels or release.features
    found = []
    for m in release.measurements:
        if m.scale is None or (m.elements is not None and m.floor is None):
            continue
        law = _law(float(m.scale), None if m.variance is None or not len(m.variance) else m.variance[0])
        if law is not None and m.values.dtype.kind == "i":
            epsilon = 0.0 if m.epsilon is None else float(m.epsilon)
            found.append(Noised(m.feature, dag, law, epsilon, m.values, m.elements, m.floor))
    stated = release.manifest["features"] if release.tables else []
    skipped = release.mechanism == "stability-histogram" or _setting(release, "zeros") == "skipped"
    for f in stated:
        noise = f["noise"]
        if f["published"] == "table" and noise is not None and noise["scale"] is not None:
            table = release.tables[f["name"]]
            shown = np.flatnonzero(table).astype(np.int64)
            floor = 0 if noise["threshold"] is None else math.ceil(noise["threshold"]) - 1
            epsilon = 0.0 if f["epsilon"] is None else float(said.number(f["epsilon"]))
            law = Law(float(said.number(noise["scale"])), noise["law"] == said.ROUNDED)
            found.append(
                Noised(f["name"], release.features, law, epsilon, table[shown], shown, floor, not skipped)
            )
    return sorted(found, key=lambda n: n.size)


def _setting(release: Release, name: str) -> Any:
    return release.manifest["mechanism"]["settings"].get(name)


def _law(scale: float, variance: float | None) -> Law | None:
    """The law that has this scale and variance."""
    from fractions import Fraction

    from cbdp.measuring.samplers.rounded import RoundedSampler
    from cbdp.privacy.measurement import geometric_variance

    if variance is None or math.isclose(variance, geometric_variance(scale), rel_tol=1e-6):
        return Law(scale)
    if math.isclose(variance, RoundedSampler(Fraction(scale)).variance(), rel_tol=1e-6):
        return Law(scale, rounded=True)
    return None


# Residuals


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
        others = [self._log(Law(self.noised.law.scale * f, self.noised.law.rounded), 0.0) for f in FACTORS]
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
            return f"noise of scale {self.noised.law.scale * FACTORS[best]:.3g} instead of {self.noised.law.scale:.3g}"
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
        expected = _above(answers.law, bound[here]).sum()
        yield _group(answers, what, (values - counts)[here & shown], bound[here & ~shown], float(expected))


def _above(law: Law, bound: Ints) -> Floats:
    """P(Z > bound)."""
    return np.asarray(-np.expm1(law.log_cdf(bound)))


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
    above = float(_above(answers.law, bound).sum())
    yield _group(answers, "other counts", (noisy - value)[shown], bound[~shown], above)
    empty = ~among(answers.elements, true.index) & ~among(answers.elements, true.loose)
    known = np.union1d(true.index, true.loose)
    sizes = answers.dag.cells.partition.sizes.astype(np.int64)
    every = sizes - np.bincount(answers.cell_of(known), minlength=len(sizes))
    rest = every - np.bincount(answers.cell_of(answers.elements[empty]), minlength=len(sizes))
    low = answers.floor if isinstance(answers.floor, np.ndarray) else np.full(len(sizes), answers.floor or 0)
    above = float(every @ _above(answers.law, low))
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
        title = "The noise has its declared law, on true zeros and on other counts"
        findings.append(
            Finding("residuals", "clear", title if not findings else "Other noise has its law", text, figures=figures)
        )  # fmt: skip
    return findings


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
    return zero, float(np.exp(group.noised.law.log_pmf(np.zeros(1, dtype=np.int64)))[0])


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
        else f"{name}: the noise on {group.what} is not of its declared law"
    )
    attack = (
        "Any published count above zero then proves that somebody was there: no ε protects against that."
        if nothing
        else "Whoever knows the noise that was really added undoes it better than the claim allows."
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
            "declared scale": round(group.noised.law.scale, 6),
            "log10 of the odds": round(group.evidence / math.log(10), 1),
        },
    )
