"""The "Second Algorithm" that the Opal assessment took apart, and its corrected form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cbdp.errors import InputError
from cbdp.mechanisms.suppressed import Suppressed
from cbdp.parts import setting
from cbdp.privacy.claim import Claim
from cbdp.privacy.composition import Sequential, Spend

ZEROS = ("skipped", "perturbed")


@dataclass(frozen=True)
class ThresholdLaplace(Suppressed):
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
    zeros: str = setting("what zeros get", choices=ZEROS, default="skipped")

    def check(self) -> None:
        if self.zeros not in ZEROS:
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

    def claim(self) -> Claim:
        cost = Sequential(tuple(Spend(name, share) for name, share in self.shares().items()), "tables")
        if self.zeros == "perturbed":
            return Claim(self.unit, cost)
        least = max(self.detection(name) for name in self.published_tables)
        return Claim(
            self.unit,
            cost,
            False,
            f"counts of zero get no noise, so a count that shows tells that somebody was there; any (ε, δ) would need δ ≥ {least:.2g}",
        )
