"""H5, H4 and H3 under any reading of the hierarchical mechanism: which of them has the published order of fleets?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from benchmarks.ablation.case import Case
from benchmarks.ablation.hierarchy import EVERY, Reading, fit, noisy_tree
from cbdp.features import FeatureDag
from cbdp.mechanisms import nested

Ints = NDArray[np.int64]

HEIGHTS = {"H5": 5, "H4": 4, "H3": 3}
AVERAGE = Reading(fan_out="average")
ROOT_MOST = Reading(fan_out="average", budget="most for the root")
# readings that fleets are sized on; those of the harness ("H5 unpruned") are sized by their names
READ_OTHERWISE: Mapping[str, tuple[int, Reading]] = {
    f"{tree}; {reading}": (height, reading)
    for reading in (AVERAGE, ROOT_MOST)
    for tree, height in HEIGHTS.items()
}


@dataclass(frozen=True, eq=False)
class Tall(Case):
    """The weekday from 8 to 10 am with a tree of so many levels, the total and the trip types among them."""

    height: int = 5

    @cached_property
    def trees(self) -> Mapping[str, FeatureDag]:
        orders = {"zones first": ("time", "zone", "mode"), "modes first": ("time", "mode", "zone")}
        return {name: nested(self.features, levels[: self.height - 2]) for name, levels in orders.items()}


@cache
def _tall(height: int) -> Tall:
    return Tall(height=height)


def tree_counts(height: int, reading: Reading, epsilon: str, seed: int) -> Ints:
    """The weekday's counts as a tree of this height publishes them: rounded, not negative."""
    tree, noisy, variance = noisy_tree(_tall(height), reading, epsilon, seed)
    made: Ints = np.maximum(np.rint(fit(tree, noisy, variance, reading)[-1]), 0).astype(np.int64)
    return made


def trips(reading: Reading, seeds: int = 1) -> dict[str, float]:
    """The trips of H5, H4 and H3 at ε = 1 under a reading."""
    return {
        tree: float(np.mean([tree_counts(height, reading, "1", s).sum() for s in range(seeds)]))
        for tree, height in HEIGHTS.items()
    }


def published_order() -> list[tuple[Reading, dict[str, float]]]:
    """Of all readings, those with fewer trips the taller the tree, as the published fleets have it."""
    found = [(reading, trips(reading)) for reading in EVERY]
    return [(reading, made) for reading, made in found if made["H5"] < made["H4"] < made["H3"]]
