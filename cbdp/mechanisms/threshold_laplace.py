"""The "Second Algorithm" that the Opal assessment took apart, and its corrected form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cbdp.errors import InputError
from cbdp.measuring.dense import shares
from cbdp.measuring.noise import DiscreteLaplace, Entropy
from cbdp.mechanisms.base import Mechanism
from cbdp.mechanisms.suppressed import publish
from cbdp.privacy.budget import Budget, Sequential, Spend
from cbdp.release.release import Claim, Release
from cbdp.trips.count import Counts


@dataclass(frozen=True)
class ThresholdLaplace(Mechanism):
    """Noise of scale p = Δ/ε on every table; counts below `threshold` are suppressed.

    As published it skips zeros (`zeros="skipped"`), and is not ε-differentially private: a published count proves
    that somebody was there. With `zeros="perturbed"` suppression is mere post-processing, and it is.
    """

    name: ClassVar[str] = "threshold-laplace"

    threshold: int = 18
    tables: Sequence[str] | None = None  # all features but `total`
    budget: Budget = "uniform"
    zeros: str = "skipped"

    def check(self) -> None:
        if self.zeros not in ("skipped", "perturbed"):
            raise InputError(f"zeros {self.zeros!r}: they are 'skipped' or 'perturbed'")
        if self.threshold < 1:
            raise InputError(f"threshold {self.threshold}: a suppression threshold is at least 1")
        self._shares()

    @property
    def _tables(self) -> list[str]:
        return (
            [n for n in self.features.features if n != "total"] if self.tables is None else list(self.tables)
        )

    def _shares(self) -> dict[str, Fraction]:
        return shares(self.features, self.spent, self.budget, self._tables)

    def scale(self, table: str) -> Fraction:
        return Fraction(self.protects.sensitivity) / self._shares()[table]

    def detection(self, table: str, group: int = 1) -> float:
        """The probability that a group alone at a count is published, and so detected for certain.

        For one person it is a lower bound on δ: no ε helps where the other data set cannot give that answer.
        """
        return float(DiscreteLaplace(self.scale(table)).survival(self.threshold - group - 1))

    def claim(self) -> Claim:
        cost = Sequential(tuple(Spend(name, share) for name, share in self._shares().items()), "tables")
        if self.zeros == "perturbed":
            return Claim(self.protects, cost)
        least = max(self.detection(name) for name in self._tables)
        return Claim(self.protects, cost, False, f"zeros are not perturbed; any (ε, δ) needs δ ≥ {least:.2g}")

    def run(self, counts: Counts, entropy: Entropy) -> Release:
        return publish(
            self,
            counts,
            entropy,
            self._tables,
            self.scale,
            lambda _: self.threshold,
            skip_zeros=self.zeros == "skipped",
        )
