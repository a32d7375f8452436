"""Tables that are noised one by one and suppressed below a threshold: what both of Opal's mechanisms publish.

`StabilityHistogram` is the release of Asghar, Tyler and Kaafar 2018 (a stability-based histogram: Korolova, Kenthapadi, Mishra and Ntoulas 2009).
Use it to compare with that release, or where a cell that is empty must never show and a δ may be paid for that; its tables disagree with each other.
`ThresholdLaplace` is the one that Culnane, Rubinstein and Teague 2017 took apart. Use it to study that attack; with `zeros="perturbed"`
it is private, and suppression is post-processing.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from cbdp.counting import Counts
from cbdp.errors import InputError
from cbdp.features import SINGLETON, TOTAL
from cbdp.measuring.samplers import sampler_of
from cbdp.mechanisms.base import Mechanism
from cbdp.numbers import Number, probability
from cbdp.parts import setting
from cbdp.privacy.accounting import DPCost, PrivacyGuarantee, Sequential
from cbdp.privacy.budget import BudgetLike, allocate
from cbdp.privacy.entropy import Entropy
from cbdp.privacy.measurement import Measurement, NoisyAnswer, PlannedAnswer
from cbdp.privacy.noise import DiscreteLaplace
from cbdp.privacy.unit import Trip, UnitLike
from cbdp.release import Release
from cbdp.release.serialization import TableNoise


@dataclass(frozen=True)
class ThresholdedTables(Mechanism):
    """Each table's counts with noise of its own; what stays below its threshold is not shown. Proof: docs/proofs/stability.md."""

    tables: Sequence[str] | None = setting("the features that are published; all but the total", "names")
    budget: BudgetLike = "uniform"

    @abstractmethod
    def threshold_of(self, table: str) -> float:
        """The least noisy count that is published."""

    @property
    @abstractmethod
    def skips_zeros(self) -> bool:
        """Whether counts of zero get no noise, and never show."""

    def delta_of(self, table: str) -> Fraction:  # noqa: ARG002
        return Fraction(0)

    @property
    def published_tables(self) -> list[str]:
        return [n for n in self.features.features if n != TOTAL] if self.tables is None else list(self.tables)

    def shares(self) -> dict[str, Fraction]:
        return allocate(self.features, self.amount, self.budget, self.published_tables)

    def noise_of(self, table: str) -> DiscreteLaplace:
        return DiscreteLaplace.calibrate(self.shares()[table], self.change(table))

    def scale(self, table: str) -> Fraction:
        """The scale of a table's noise."""
        return Fraction(self.noise_of(table).scale)

    def answers(self) -> tuple[PlannedAnswer, ...]:
        return tuple(
            PlannedAnswer(name, share, self.noise_of(name), self.delta_of(name), self.threshold_of(name))
            for name, share in self.shares().items()
        )

    def own_tables(self) -> Mapping[str, TableNoise]:
        return {
            name: TableNoise(self.noise_of(name), self.threshold_of(name), self.skips_zeros)
            for name in self.published_tables
        }

    def measure(self, counts: Counts, entropy: Entropy) -> list[NoisyAnswer]:
        """Only what is shown: a count below its threshold never leaves this function."""
        answers: list[NoisyAnswer] = []
        shares = self.shares()
        for name in self.published_tables:
            share = shares[name]
            truth, law = counts.of(self.features, name), self.noise_of(name)
            where = np.flatnonzero(truth) if self.skips_zeros else np.arange(len(truth))
            noisy = truth[where] + sampler_of(law).sample(len(where), entropy)
            shown = noisy >= self.threshold_of(name)
            answers.append(
                Measurement(name, noisy[shown], law.scale, elements=where[shown], epsilon=share, law=law.name)
            )
        return answers

    def finish(self, answers: Sequence[NoisyAnswer]) -> Release:
        published = {}
        for m in answers:
            assert isinstance(m, Measurement)
            table = np.zeros(self.features.size(m.feature), dtype=np.int64)
            table[m.elements] = np.maximum(m.values, 0)
            published[m.feature] = table
        leaves = published.get(SINGLETON, np.zeros(0, dtype=np.int64))
        index = np.flatnonzero(leaves).astype(np.int64)
        return self.publication(index, leaves[index], tables=published)


# Zeros never appear, so it pays with δ


MIN_TABLE_DELTA = Fraction(1, 10**300)  # δ of a table: a threshold is worked out with floating-point numbers


@dataclass(frozen=True)
class StabilityHistogram(ThresholdedTables):
    """Noise on the non-zero counts of each table on its own; what stays below a threshold is suppressed.

    A stability-based histogram, as of Korolova, Kenthapadi, Mishra and Ntoulas 2009.
    With the published unit (one trip replaced) the noise has scale 2/ε_j and the threshold is 2 ln(2/δ_j)/ε_j + 1.
    Tables are independent, so they disagree with each other; the output order is the features' own.

    Proof: docs/proofs/stability.md.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.StabilityHistogram(features, epsilon=4).release(trips)
    >>> float(release.claim.cost.delta)
    2.5e-07
    """

    name: ClassVar[str] = "stability-histogram"
    about: ClassVar[str] = "Opal's: noise on non-zero counts, small ones suppressed; costs δ, tables disagree"
    skips_zeros: ClassVar[bool] = True

    unit: UnitLike = field(default_factory=lambda: Trip("replace"))
    delta: Number | Mapping[str, Number] = Fraction(1, 8_000_000)  # of each table, or by table

    def check(self) -> None:
        self.shares()
        for name in self.published_tables:
            if self.delta_of(name) == 0:
                raise InputError("delta is 0, but skipping zeros has a price: give a delta above 0")
            if self.delta_of(name) < MIN_TABLE_DELTA:
                raise InputError(
                    f"delta is below {float(MIN_TABLE_DELTA):g}, too small to compute with: give a larger one"
                )

    def delta_of(self, table: str) -> Fraction:
        return probability(self.delta[table] if isinstance(self.delta, Mapping) else self.delta)

    def threshold_of(self, table: str) -> float:
        """The least noisy count that is published.

        A unit that is alone in the counts it touches adds at most `linf` to one of them; each then shows with
        probability at most exp(−(threshold − linf)/scale), and there are at most `l0`.
        """
        reach = math.log(self.protected.l0 / self.delta_of(table))
        return self.protected.linf + float(self.scale(table)) * reach

    def claim(self) -> PrivacyGuarantee:
        spends = (DPCost(name, share, self.delta_of(name)) for name, share in self.shares().items())
        return PrivacyGuarantee(self.protected, Sequential(tuple(spends), "tables"))


# The “Second Algorithm”, and its corrected form


ZERO_COUNT_MODES = ("skipped", "perturbed")


@dataclass(frozen=True)
class ThresholdLaplace(ThresholdedTables):
    """Noise of scale p = Δ/ε on every table; counts below `threshold` are suppressed.

    As published it skips zeros (`zeros="skipped"`), and is not ε-differentially private: a published count proves
    that somebody was there. With `zeros="perturbed"` suppression is mere post-processing, and it is.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> cbdp.ThresholdLaplace(features, epsilon=1).claim().holds
    False
    >>> cbdp.ThresholdLaplace(features, epsilon=1, zeros="perturbed").claim().holds
    True
    """

    name: ClassVar[str] = "threshold-laplace"
    about: ClassVar[str] = "noise and a fixed threshold; not private unless zeros are perturbed"

    threshold: int = setting("the least count that is published", "whole", default=18)
    zeros: str = setting("what zeros get", choices=ZERO_COUNT_MODES, default="skipped")

    def check(self) -> None:
        if self.zeros not in ZERO_COUNT_MODES:
            raise InputError(f"zeros is {self.zeros!r}: use 'skipped' or 'perturbed'")
        if self.threshold < 1:
            raise InputError(f"threshold is {self.threshold}: give at least 1")
        self.shares()

    @property
    def skips_zeros(self) -> bool:
        return self.zeros == "skipped"

    def threshold_of(self, table: str) -> float:  # noqa: ARG002
        return self.threshold

    def detection(self, table: str, group: int = 1) -> float:
        """The probability that a group alone at a count is published, and so detected for certain.

        For one person it is a lower bound on δ: no ε helps where the other data set cannot give that answer.
        """
        return float(self.noise_of(table).survival(self.threshold - group - 1))

    def claim(self) -> PrivacyGuarantee:
        cost = Sequential(tuple(DPCost(name, share) for name, share in self.shares().items()), "tables")
        if self.zeros == "perturbed":
            return PrivacyGuarantee(self.protected, cost)
        least = max(self.detection(name) for name in self.published_tables)
        return PrivacyGuarantee(
            self.protected,
            cost,
            False,
            f"counts of zero get no noise, so a count that shows tells that somebody was there; any (ε, δ) would need δ ≥ {least:.2g}",
        )
