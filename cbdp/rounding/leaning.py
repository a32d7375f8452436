"""Prices for sets that the network cannot hold: what a trip more or less in each of them is worth.

More than two families are no network, so the sets beyond two have no arcs. They can still be heard by price: to the cost of each cell's
going up its sets' prices are added, and these are chosen so that a choice of cells by cost alone comes close to all bounds.
They are found by smoothing the choice (a cell of cost c goes up by 1/(1 + e^(c/T))) and setting one set's price at a time so
that the sum keeps the set's bounds: coordinate ascent on a smooth concave dual.

Most cells cost nearly the same, and the cheapest flow takes its pick among equals without a thought for soft sets. So each
cell's cost is moved a little, up or down as by chance, but always the same for the same cell: now the flow spreads over
cells of nearly equal cost much as the smoothed choice did, and soft sets come out near what their prices were made for.
Whatever costs come out, the network keeps its own sets exactly; they decide only how much is left to `repair`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cbdp.arrays import Bools, Floats, Ints
from cbdp.progress import tell
from cbdp.rounding.problem import CellProblem

TEMPERATURES = (0.1, 0.03)  # prices of cells are within −1 … 1
SWEEPS = 4  # at each temperature
FINE = 2**20  # prices are whole multiples of 1/FINE: the last bits of an exponential decide nothing
MOVED = 0.027  # standard deviation of what is added to a cell's own cost


def leaning_costs(problem: CellProblem, soft: Bools) -> Ints:
    """The cost of each cell's going up, with the prices of its soft sets."""
    own = problem.cost / problem.unit
    order, start = _members(problem)
    price = np.zeros(len(problem.low))
    for step, temperature in enumerate(TEMPERATURES):
        for sweep in range(SWEEPS):
            tell("rounding", 0.4 * (step * SWEEPS + sweep) / (len(TEMPERATURES) * SWEEPS))
            # from scratch each time: no drift
            cost = own + price[problem.member].sum(axis=0)
            _sweep(cost, price, order, start, problem.low, problem.high, temperature)
    whole = np.rint(np.where(soft, price, 0.0) * FINE).astype(np.int64)
    moved = _as_by_chance(problem.cell, int(MOVED * FINE))
    told: Ints = problem.cost + (whole[problem.member].sum(axis=0) + moved) * (problem.unit // FINE)
    return told


def _as_by_chance(cell: Ints, deviation: int) -> Ints:
    """A whole number for each cell, about normal with mean 0: the sum of four parts of its number's hash (splitmix64)."""
    mixed = cell.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    total = mixed.view(np.uint16).reshape(-1, 4).sum(axis=1, dtype=np.int64)
    about_zero = 2 * total - 4 * 0xFFFF  # four numbers of 16 bits: twice their sum deviates by 2 · 2^16 / √3
    made: Ints = about_zero * deviation * 7 // (8 * 2**16)  # 7/8 is √3/2, but for one per cent
    return made


def _members(problem: CellProblem) -> tuple[Ints, Ints]:
    """The cells of every set, set after set, and where each set's begin."""
    order = np.argsort(problem.member.ravel(), kind="stable") % max(1, len(problem.cost))
    return order, np.concatenate([[0], np.cumsum(problem.size)])


@njit(cache=True)  # type: ignore[untyped-decorator]
def _sweep(
    cost: Floats, price: Floats, order: Ints, start: Ints, low: Ints, high: Ints, temperature: float
) -> None:
    """Each set's price once: 0 if the sum is within bounds without one, else such that it reaches the nearer bound."""
    for s in range(len(low)):
        begin, end = start[s], start[s + 1]
        if low[s] <= 0 and high[s] >= end - begin:
            continue
        shift = -price[s]  # first as if the set had no price
        asked = 0.0
        for newton in range(8):
            total, slope = 0.0, 0.0
            for k in range(begin, end):
                z = 1 / (1 + np.exp(min((cost[order[k]] + shift) / temperature, 40.0)))
                total += z
                slope += z * (1 - z)
            if newton == 0:
                if low[s] <= total <= high[s]:
                    break
                asked = min(max(high[s] if total > high[s] else low[s], 0.05), end - begin - 0.05)
            if abs(total - asked) < 0.02:
                break
            step = temperature * (total - asked) / max(slope, 1e-3)
            most = 2 * temperature if newton else 0.5
            shift += min(max(step, -most), most)
        for k in range(begin, end):
            cost[order[k]] += shift
        price[s] += shift
