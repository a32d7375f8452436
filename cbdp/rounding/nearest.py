"""The whole trips nearest to the estimate of each trip type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cbdp.arrays import Floats, Ints
from cbdp.features import FeatureDag
from cbdp.rounding.base import BudgetName, Rounding


@dataclass(frozen=True)
class Nearest(Rounding):
    """Estimates rounded as they are."""

    name: ClassVar[str] = "nearest"
    about: ClassVar[str] = "whole trips nearest to the estimate of each trip type"

    def prepared(
        self,
        features: FeatureDag,  # noqa: ARG002
        index: Ints,
        value: Floats,
        budget: BudgetName,  # noqa: ARG002
    ) -> tuple[Ints, Floats]:
        return index, value
