"""PRIVATE. Where ε is spent: exact counts in, noisy answers out; single answers, by our samplers or OpenDP's, and the sums of a series. Universes too
large to enumerate have noise on demand: only what exceeds a floor is ever drawn.

Noise on demand is as the threshold filter of Cormode, Procopiuc, Srivastava and Tran (2012), whose floor may be lowered here.
Each of the |U| noisy counts is *defined*, independent of the others, and revealed from the top down. A floor per cell says
how far: the types whose noisy count exceeds it are known, with their counts; of the others it is known that they do not.
Lowering a floor reveals the band in between. What is revealed has exactly the law it would have had if all |U| counts
had been noised at the start and then read off: docs/explanation/universes.md has the proof. Left of the wall: what is private here
(which types have trips at all) is held in fields that nothing else reads.
"""

from __future__ import annotations

import importlib.metadata
import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Protocol, TypedDict

import numpy as np

from cbdp.arrays import Ints
from cbdp.counting import Counts, check_universe
from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.measuring.exact_sampling import SAMPLES_PER_PASS
from cbdp.measuring.samplers import sampler_of
from cbdp.numbers import Number
from cbdp.privacy.budget import BudgetLike, allocate
from cbdp.privacy.continual import Strategy
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.measurement import ALL_REVEALED_THRESHOLD, Measurement, NoisyAnswer
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS, NoiseDistribution, PrivacyMeasure
from cbdp.privacy.unit import feature_sensitivity
from cbdp_features.universe import is_member

Backend = Literal["cbdp", "opendp"]

MAX_DENSE_TRIP_TYPES = (
    2**24
)  # trip types up to which all are noised at once; the posterior reveals all of as many (`Tuning.revealed`)


def measure(
    counts: Counts,
    features: FeatureDag,
    epsilon: Number | None = None,
    budget: BudgetLike = "balanced",
    *,
    only: Sequence[str] | None = None,
    entropy: Entropy | None = None,
    backend: Backend = "cbdp",
    law: str = "geometric",
    sparse: bool | None = None,
    rho: Number | None = None,
) -> list[Any]:
    """Noisy answers to every feature (or `only` some): what `cbdp.post_process` takes. They cost `epsilon`, or `rho` with law "gaussian".

    What one unit can change of a feature's counts follows from the unit and from what the feature tells apart. Noise that costs ε_i (or
    ρ_i) for such a change makes them ε_i-differentially private (ρ_i-zCDP), and answers about the same trips compose.

    In a universe of more than `MAX_DENSE_TRIP_TYPES` trip types (or with `sparse=True`) the answer to `singleton` is revealed on demand, from
    the top down, at the cost of the trips and not of the universe: its `measurement()` is what may be published.

    Proof: docs/proofs/composition.md.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> counts = cbdp.count(trips, features.universe)
    >>> answers = cbdp.measure(counts, features, epsilon=1, budget="uniform")
    >>> [(m.feature, str(m.epsilon)) for m in answers]
    [('total', '1/3'), ('time', '1/3'), ('singleton', '1/3')]
    """
    check_universe(counts, features.universe)
    source = entropy or SystemEntropy()
    kind = NOISE_DISTRIBUTIONS.get(law)
    shares = allocate(features, _amount_spent(kind, epsilon, rho), budget, only)
    large = features.universe.size > MAX_DENSE_TRIP_TYPES if sparse is None else sparse
    laws = {
        name: kind.calibrate(e, feature_sensitivity(features, name, counts.unit))
        for name, e in shares.items()
    }
    if backend != "cbdp":
        _check_backend(backend, law, entropy, large and SINGLETON in shares)
    if large and SINGLETON in shares:
        return _thresholded_answer(counts, features, shares, laws, source)
    return [
        noisy_counts(name, counts.of(features, name), laws[name], e, source, backend)
        for name, e in shares.items()
    ]


def _amount_spent(kind: type[NoiseDistribution], epsilon: Number | None, rho: Number | None) -> Number:
    """What is spent, in the currency of the law."""
    amount, other = (epsilon, rho) if kind.currency == "epsilon" else (rho, epsilon)
    if amount is None or other is not None:
        raise InputError(
            f"noise of law {kind.name!r} is paid for in {kind.currency}: give {kind.currency} and nothing else"
        )
    return amount


class HasCurrency(Protocol):
    """What is paid for in ε or in ρ: a noise distribution, or a mechanism."""

    @property
    def currency(self) -> PrivacyMeasure: ...


class CostArgument(TypedDict, total=False):
    """An amount under the name of its currency, as arguments of a call."""

    epsilon: Fraction | None
    rho: Fraction | None


def cost_argument(law: HasCurrency, share: Fraction | None) -> CostArgument:
    """What a measurement cost, under the name of its currency.

    >>> from cbdp.privacy.noise import noise_distribution
    >>> cost_argument(noise_distribution("geometric", 2), Fraction(1, 2)), cost_argument(noise_distribution("gaussian", 2), Fraction(1, 8))
    ({'epsilon': Fraction(1, 2)}, {'rho': Fraction(1, 8)})
    """
    return {"rho": share} if law.currency == "rho" else {"epsilon": share}


def _check_backend(backend: str, law: str, entropy: Entropy | None, large: bool) -> None:
    """Refuse what another source of noise cannot do, rather than do something else."""
    if backend != "opendp":
        raise InputError(f"unknown noise backend {backend!r}: choose 'cbdp' or 'opendp'")
    if law not in ("geometric", "gaussian"):
        raise InputError(
            f"backend 'opendp' draws geometric or gaussian noise, not {law!r}: name one of these"
        )
    if entropy is not None:
        raise InputError("OpenDP draws from its own entropy: leave `entropy` out with backend='opendp'")
    if large:
        raise InputError(
            "OpenDP draws noise for every trip type: say sparse=False if all of them fit in memory, or leave `backend` out"
        )


def noisy_counts(
    name: str,
    truth: Ints,
    law: NoiseDistribution,
    share: Fraction,
    entropy: Entropy,
    backend: Backend = "cbdp",
) -> Measurement:
    """One feature's counts with noise.

    >>> import cbdp
    >>> from cbdp.privacy.noise import noise_distribution
    >>> answer = cbdp.measuring.noisy_counts("time", np.array([3, 3]), noise_distribution("geometric", 2), Fraction(1, 2), cbdp.measuring.SystemEntropy())
    >>> answer.feature, answer.values.shape, answer.scale
    ('time', (2,), 2)
    """
    if backend == "opendp":
        noise = sample_opendp(law, len(truth))
    else:
        noise = sampler_of(law).sample(len(truth), entropy)
    return Measurement(name, truth + noise, scale=law.scale, law=law.name, **cost_argument(law, share))


def _thresholded_answer(
    counts: Counts,
    features: FeatureDag,
    shares: dict[str, Fraction],
    laws: dict[str, NoiseDistribution],
    source: Entropy,
) -> list[Any]:
    cell = features.cells.partition.element_of(counts.universe.unrank_codes(counts.index))
    cell_counts = np.zeros(features.cells.size, dtype=np.int64)
    np.add.at(cell_counts, cell, counts.value)
    answers: list[NoisyAnswer] = []
    for name, share in shares.items():
        if name != SINGLETON:
            truth = np.zeros(features.size(name), dtype=np.int64)
            np.add.at(truth, features.cells.element_of_cell[name], cell_counts)
            answers.append(noisy_counts(name, truth, laws[name], share, source))
    answers.append(
        SparseThresholdedAnswer(counts, cell, features, laws[SINGLETON], source, shares[SINGLETON])
    )
    return answers


# OpenDP's samplers, as an independent source of the same noise


def sample_opendp(law: NoiseDistribution, n: int) -> Ints:
    """Draw from OpenDP's sampler, which takes its scale as a float: the exact one or the next float above it."""
    dp = _import_opendp()
    scale, near = Fraction(law.scale), float(law.scale)
    above = near if Fraction(near) >= scale else math.nextafter(near, math.inf)
    counts = dp.vector_domain(dp.atom_domain(T="i64"))
    if law.name == "gaussian":
        noise = dp.m.make_gaussian(counts, dp.l2_distance(T=float), scale=above)
    elif law.name == "geometric":
        noise = dp.m.make_laplace(counts, dp.l1_distance(T="i64"), scale=above)
    else:
        raise InputError(f"OpenDP draws geometric or gaussian noise, not {law.name!r}: leave the backend out")
    parts = [noise([0] * min(SAMPLES_PER_PASS, n - start)) for start in range(0, n, SAMPLES_PER_PASS)]
    return np.concatenate([np.empty(0, dtype=np.int64), *(np.array(part, dtype=np.int64) for part in parts)])


def _import_opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise InputError("the noise backend 'opendp' is not installed: pip install 'cbdp[opendp]'") from None
    version = importlib.metadata.version("opendp")
    if tuple(map(int, re.findall(r"\d+", version)[:3])) < (0, 14, 2):
        raise InputError(
            f"opendp {version} samples wrongly at some scales; 0.14.2 is the first that does not: pip install 'cbdp[opendp]'"
        )
    dp.enable_features("contrib")
    return dp


# Sums over the periods of a series, each measured when its last period is over


MAX_ABSOLUTE_SUM = 2**62  # trips: sums stay far from the ends of 64 bits


def measure_sums(
    strategy: Strategy, tables: Sequence[Ints], law: NoiseDistribution, entropy: Entropy
) -> Ints:
    """The noisy sums that end in the last of these periods (the matrix mechanism, Li and others 2010): a row for each, a column for each count of the table.

    `tables` are the true counts of every period so far, the oldest first. Sums and noise are whole numbers, so nothing is rounded.

    Proof: docs/proofs/continual.md.
    """
    if not 0 < len(tables) <= strategy.periods:
        raise InputError(f"{len(tables)} periods of a strategy for {strategy.periods}: start a new one")
    counts = np.array([np.asarray(t, dtype=np.int64) for t in tables])
    coefficients = strategy.rows_ending_in(len(tables) - 1)[:, : len(tables)]
    largest = int(coefficients.sum(axis=1).max(initial=0)) * int(np.abs(counts).max(initial=0))
    if largest > MAX_ABSOLUTE_SUM:
        raise InputError(
            "the sums do not fit in 64 bits: count shorter periods"
        )  # how large they are is private
    noise = sampler_of(law).sample(coefficients.shape[0] * counts.shape[1], entropy)
    noisy_sums: Ints = coefficients @ counts + noise.reshape(coefficients.shape[0], counts.shape[1])
    return noisy_sums


# Noise on demand


# the floor of a cell of which nothing is revealed; noisy counts beyond it, or not above ALL_REVEALED_THRESHOLD, are cut
ALL_HIDDEN_THRESHOLD = 2**61
MAX_DRAWN_AT_ONCE = 2**29  # noisy counts above a floor that may be expected of one draw: 4 GiB


class SparseThresholdedAnswer:
    """Noisy counts of all trip types, revealed where they exceed a floor that may be lowered. Proof: docs/proofs/sparse.md."""

    def __init__(
        self,
        counts: Counts,
        cell: Ints,
        features: FeatureDag,
        law: NoiseDistribution,
        entropy: Entropy,
        share: Fraction | None,
    ) -> None:
        self.noise = law
        self.share = share  # what it costs, in the currency of the law
        self.features = features
        self.floor = np.full(features.cells.size, ALL_HIDDEN_THRESHOLD, dtype=np.int64)
        self.index = self.value = np.empty(0, dtype=np.int64)  # revealed, in the universe's order
        self._sampler = sampler_of(law)
        self._entropy = entropy
        self._sizes = features.cells.partition.sizes
        self._index, self._count, self._cell = counts.index, counts.value, cell  # private

    @cached_property
    def _noisy(self) -> Ints:
        """Private: the types with trips draw their noise once and for all, whether it will be revealed or not."""
        return _clipped(self._count + self._sampler.sample(len(self._count), self._entropy))

    def lower(self, floor: Ints) -> None:
        """Reveal the noisy counts above these floors, one per cell; a floor that is not lower changes nothing."""
        floor = np.minimum(np.asarray(floor, dtype=np.int64), self.floor)
        if (floor < ALL_REVEALED_THRESHOLD).any():
            raise InputError(f"a floor of {floor.min()} is lower than any count can be: give at least −2^61")
        if (floor == ALL_REVEALED_THRESHOLD).all() and (self.floor == ALL_HIDDEN_THRESHOLD).all():
            self._reveal_all()
            return
        index, value = zip(self._with_trips(floor), *self._without_trips(floor), strict=True)
        fresh = np.concatenate(index)
        order = np.argsort(
            fresh, kind="stable"
        )  # nothing tells where a type came from, its place among the others neither
        self._insert(fresh[order], np.concatenate(value)[order])
        self.floor = floor

    def measurement(self) -> Measurement:
        """What is revealed so far; where that is all, it is like any other measurement, and has no floor."""
        whole = bool((self.floor == ALL_REVEALED_THRESHOLD).all())
        return Measurement(
            SINGLETON,
            self.value,
            scale=self.noise.scale,
            law=self.noise.name,
            elements=None if whole else self.index,
            floor=None if whole else self.floor,
            epsilon=self.share if self.noise.currency == "epsilon" else None,
            rho=self.share if self.noise.currency == "rho" else None,
        )

    def _reveal_all(self) -> None:
        """Where nothing was asked before: noise on every type, drawn as `cbdp.measure` draws it where types are listed."""
        noisy = self._sampler.sample(self.features.universe.size, self._entropy)
        noisy[self._index] += self._count
        self.index, self.value = np.arange(len(noisy)), _clipped(noisy)
        self.floor = np.full_like(self.floor, ALL_REVEALED_THRESHOLD)

    def _with_trips(self, floor: Ints) -> tuple[Ints, Ints]:
        shown = (self._noisy > floor[self._cell]) & (self._noisy <= self.floor[self._cell])
        return self._index[shown], self._noisy[shown]

    def _without_trips(self, floor: Ints) -> Iterator[tuple[Ints, Ints]]:
        """The types of count zero whose noise lies in the band, for cells with the same band together."""
        moved = np.flatnonzero(floor < self.floor)
        bands, which = np.unique(np.stack([floor[moved], self.floor[moved]]), axis=1, return_inverse=True)
        for b, (low, high) in enumerate(bands.T.tolist()):
            cells = moved[which == b]
            ends = np.cumsum(self._sizes[cells])
            hits = self._hits(int(ends[-1]), low, high)
            place = np.searchsorted(ends, hits, side="right")
            offset = hits - (ends - self._sizes[cells])[place]
            index = self.features.cells.partition.type_at(cells[place], offset)
            # types with trips have noise of their own, and those revealed before have theirs: their hits mean nothing
            index = index[~is_member(index, self._index) & ~is_member(index, self.index)]
            yield index, self._excess(len(index), low, high)

    def _hits(self, types: int, low: int, high: int) -> Ints:
        above = 0.0 if high == ALL_HIDDEN_THRESHOLD else float(self.noise.survival(high))
        expected = types * (float(self.noise.survival(low)) - above)
        if expected > MAX_DRAWN_AT_ONCE:
            raise InputError(
                f"about {expected:.1e} noisy counts would have to be drawn, more than fit in memory: measure coarser features "
                "or spend more"
            )
        if low == ALL_REVEALED_THRESHOLD:
            return np.arange(types)
        if high == ALL_HIDDEN_THRESHOLD:
            return self._sampler.sample_skips(types, low, self._entropy)
        return self._sampler.sample_band_hits(types, low, high, self._entropy)

    def _excess(self, n: int, low: int, high: int) -> Ints:
        if low == ALL_REVEALED_THRESHOLD:
            return self._at_most(n, high)
        if high == ALL_HIDDEN_THRESHOLD:
            return np.minimum(self._sampler.sample_excess(n, low, self._entropy), ALL_HIDDEN_THRESHOLD)
        return self._sampler.sample_band(n, low, high, self._entropy)

    def _at_most(self, n: int, high: int) -> Ints:
        """Noise of which no more is known than that it is not above `high`; laws of noise are symmetric."""
        if high == ALL_HIDDEN_THRESHOLD:
            drawn = self._sampler.sample(n, self._entropy)
        else:
            drawn = -self._sampler.sample_excess(n, -high - 1, self._entropy)
        return _clipped(drawn)

    def _insert(self, index: Ints, value: Ints) -> None:
        place = np.searchsorted(self.index, index)
        self.index = np.insert(self.index, place, index)
        self.value = np.insert(self.value, place, value)


def _clipped(noisy: Ints) -> Ints:
    """Noisy counts as they are revealed; noise gets as far as that next to never."""
    return np.clip(noisy, ALL_REVEALED_THRESHOLD + 1, ALL_HIDDEN_THRESHOLD)
