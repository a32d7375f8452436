"""Budgets by position alone: the same for every feature, or growing from level to level."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cbdp.privacy.budget.base import Asked, Budget

GEOMETRIC_RATIO = Fraction(1259921, 1000000)  # 2^(1/3) per level, after Cormode and others


@dataclass(frozen=True)
class UniformBudget(Budget):
    """The CBDP paper's: every feature gets the same."""

    name: ClassVar[str] = "uniform"
    about: ClassVar[str] = "the same for every feature, as in the CBDP paper"

    def split(self, asked: Asked) -> dict[str, Fraction]:
        return dict.fromkeys(asked.levels, asked.epsilon / len(asked.levels))


@dataclass(frozen=True)
class GeometricBudget(Budget):
    """More for finer levels, by a constant ratio."""

    name: ClassVar[str] = "geometric"
    about: ClassVar[str] = "a constant ratio more from each level to the next finer one"

    def split(self, asked: Asked) -> dict[str, Fraction]:
        parts = [GEOMETRIC_RATIO**depth for depth in range(len(asked.levels))]
        return {
            name: asked.epsilon * part / sum(parts) for name, part in zip(asked.levels, parts, strict=True)
        }
