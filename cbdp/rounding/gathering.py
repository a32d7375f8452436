"""Fewer trip types that nobody used: the trips of a cell gathered on those of its types that are likely to be used.

An estimate may expect a fiftieth of a trip of each of a thousand types. Whole trips that add up have to be somewhere, and the
rounding that is nearest to the estimate names twenty of the thousand, nearly all of them wrongly. Types of one cell (the
atoms of the features' common refinement) are alike to every table, so what is expected of them can be moved among them and no sum changes.

A type with an estimate m < 1 is used with a probability of at most m (Markov), so naming it is wrong with 1 − m at least.
What is minimised in each cell, over counts y with the cell's sum, is

    Σ (y_u − m_u)² + price · Σ (1 − m_u)⁺ over the types with y_u > 0.

Of two types the one with the larger estimate is better on both counts, so the k types with the largest estimates are named, each
with the same number of trips more than its estimate. Every k is looked at that gives each of them a trip at least.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cbdp.features import FeatureDag

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PRICE = 64.0  # naming a type that nobody used is as bad as a count that is off by eight trips
LEAVES = 16.0  # by four, where the error of single types is what matters
WHOLE = 1.0 - 1e-9


def price_of(budget: Any) -> float:
    """What a wrongly named type costs, by what ε was spent on."""
    return LEAVES if isinstance(budget, str) and budget == "leaves" else PRICE


def gathered(features: FeatureDag, index: Ints, value: Floats, price: float = PRICE) -> tuple[Ints, Floats]:
    """Trip types in ascending order and their counts, with each cell's trips on fewer of its types.

    >>> import cbdp
    >>> dag = cbdp.FeatureDag(cbdp.Universe(stop=range(5), time=["am", "pm"]), [cbdp.Feature("time", by="time")])
    >>> index, value = gathered(dag, np.arange(10), np.array([9.0, 0, 0.5, 0, 0.25, 4, 0.25, 0, 0.5, 0]))
    >>> index.tolist(), value.tolist()
    ([0, 5], [10.5, 4.0])
    """
    cell = features.cells.partition.element_of(features.universe.unrank_codes(index))
    order = np.lexsort((-value, cell))
    ends = np.flatnonzero(np.diff(cell[order], append=-1)) + 1
    made = np.zeros(len(index))
    made[order] = _gather(value[order], ends, float(price))
    kept = np.flatnonzero(made > 0)
    return index[kept], made[kept]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _gather(value: Floats, ends: Ints, price: float) -> Floats:
    """Cells end to end, in each the largest first."""
    made = np.zeros(len(value))
    begin = 0
    for end in ends:
        whole, squares = 0.0, 0.0
        for u in range(begin, end):
            whole += value[u]
            squares += value[u] ** 2
        held, wrong, rest = 0.0, 0.0, squares
        best, least = 1, np.inf
        for u in range(begin, end):
            k = u - begin + 1
            held += value[u]
            rest -= value[u] ** 2
            wrong += max(0.0, 1.0 - value[u])
            more = (whole - held) / k
            if k > 1 and value[u] + more < WHOLE:
                break
            cost = k * more**2 + rest + price * wrong
            if cost < least:
                best, least = k, cost
        held = 0.0
        for u in range(begin, begin + best):
            held += value[u]
        for u in range(begin, begin + best):
            made[u] = value[u] + (whole - held) / best
        begin = end
    return made
