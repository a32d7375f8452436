"""The city the mechanisms are run on, and the rows of Table 2 as mechanisms."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cbdp
from benchmarks.ablation.errors import Floats, root_mean_square
from benchmarks.ablation.published import Day
from cbdp.counting.counts import Counts
from cbdp.datasets import Dataset, ann_arbor
from cbdp.features import SINGLETON, FeatureDag
from cbdp.mechanisms import ConstraintBased, Hierarchical, Mechanism, nested

RUSH, WHOLE_DAY = ("08:00", "10:00"), ("06:00", "20:00")
TREE_ROWS = ("O5(a)", "O5(b)")  # the rows whose QP is given a tree
UNIFORM_ROWS = ("O5(a)", "O5(c)")  # the rows whose QP weighs every feature alike


@dataclass(frozen=True, eq=False)
class Case:
    """A synthetic universe with its counts, its features, and trees of them."""

    day: Day = "weekday"
    hours: tuple[str, str] = RUSH
    seed: int = 0

    @cached_property
    def _city(self) -> Dataset:
        return ann_arbor(seed=self.seed, day=self.day, hours=self.hours)

    @cached_property
    def features(self) -> FeatureDag:
        return self._city.features()

    @cached_property
    def truth(self) -> NDArray[np.int64]:
        return self._city.counts()

    @cached_property
    def counts(self) -> Counts:
        return cbdp.count(self.truth, self._city.universe)

    @cached_property
    def trees(self) -> Mapping[str, FeatureDag]:
        orders = {"zones first": ("time", "zone", "mode"), "modes first": ("time", "mode", "zone")}
        return {name: nested(self.features, levels) for name, levels in orders.items()}

    def mechanism(self, row: str, epsilon: str, **more: Any) -> Mechanism:
        if row == "H5":
            return Hierarchical(self.features, epsilon, **more)
        chosen = self.trees["zones first"] if row in TREE_ROWS else self.features
        return ConstraintBased(chosen, epsilon, weights=weights(row), preset="paper", **more)


def weights(row: str) -> str:
    return "uniform" if row in UNIFORM_ROWS else "size"


def per_type(case: Case, row: str, epsilon: str, runs: int) -> Floats:
    """The error of each run: root mean square over trip types of the published integers."""
    mechanism = case.mechanism(row, epsilon)
    made = (mechanism.simulate(case.truth, seed) for seed in range(runs))
    return np.array([root_mean_square(r.counts(SINGLETON) - case.truth) for r in made])


def say(text: str) -> None:
    """What the benchmark is at, on standard error: standard output holds the report alone."""
    print(f"ablation: {text}", file=sys.stderr)
