"""The models of all folds while they are made: a rate for each leaf in each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Singles
from cbdp.estimate.posterior import passes
from cbdp.estimate.posterior.settings import TUNING
from cbdp.estimate.posterior.threads import each
from cbdp.features import Universe

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Models:
    """One for each fold, which has not seen it; and by how much the first of them would be off with moved tables."""

    fold: NDArray[np.int8]  # of each leaf
    rate: Singles  # folds × leaves
    off: Singles  # the logarithm of the first model's rates from moved tables, less that of the rates

    @property
    def own(self) -> Singles:
        """Of each leaf, what the model says that has not seen it."""
        found: Singles = passes.own_rates(self.rate, self.fold)
        return found

    def each(self, work: Callable[[int], Made]) -> list[Made]:
        """The work on each fold's model, in their order."""
        return each(work, range(TUNING.folds), len(self.fold))

    def ranges(self, size: int) -> list[tuple[int, int]]:
        """Elements of a margin that are looked at together, so that what is held of them is not more than what is held of the leaves."""
        at_once = max(TUNING.weighed_least, len(self.fold) // TUNING.weighed_leaves)
        return [(low, min(low + at_once, size)) for low in range(0, size, at_once)]

    def multiply(self, element: NDArray[np.int32], factor: Sequence[Floats], moved: Floats) -> None:
        """Multiply each model's rates by its factors, and the first model's from moved tables by those."""
        off = np.log(moved / factor[0]).astype(np.float32)

        def multiplied(k: int) -> None:
            passes.multiply(element, factor[k].astype(np.float32), self.rate[k])
            if k == 0:
                passes.add(element, off, self.off)

        self.each(multiplied)


def folds_of(universe: Universe) -> NDArray[np.int8]:
    """The fold of each trip type: by the sum of its codes, so that each value of each dimension is in all of them."""
    made = np.zeros([block.size for block in universe.blocks], dtype=np.int8)
    for axis, block in enumerate(universe.blocks):
        own = np.sum(block.unrank(np.arange(block.size)), axis=0) % TUNING.folds
        made += own.astype(np.int8).reshape([-1 if axis == other else 1 for other in range(made.ndim)])
        made %= TUNING.folds
    return made.reshape(-1)
