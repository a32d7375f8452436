"""Passes over leaves, compiled. A pass reads each leaf once and keeps only sums by cell; large ones use all cores.

`step` is 0 when one weight serves all leaves and 1 when each has its own, so one kernel does for both; with one weight,
hot kernels get levels already in trips and need not look at it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from cbdp.arrays import Floats, Indices, Numbers
from cbdp.compiling import compiled_ahead, kernel

T = TypeVar("T")

LEAVES_PER_BLOCK = 1024  # leaves after which a pass decides anew whether a branch pays
MIN_LEAVES_FOR_THREADS = 1 << 17  # leaves below which threads cost more than they save


def map_chunks(n: int, work: Callable[[int, int], T], most: int | None = None) -> list[T]:
    """work(from, to) over slices of n leaves, on as many threads as there are cores."""
    threads = 1 if n < MIN_LEAVES_FOR_THREADS else min(most or 64, os.cpu_count() or 1)
    if threads == 1:
        return [work(0, n)]
    edges = np.linspace(0, n, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:  # a pool per call: nothing survives to break a forked process
        return list(pool.map(work, edges[:-1], edges[1:]))


def above_shift(
    target: Numbers, inverse_weight: Floats, cell: Indices, shift: Floats
) -> tuple[Floats, Floats, float]:
    """Over the leaves of cell k above their shift (slack = 1/w): Y_k = Σ v_u and D_k = Σ 1/w_u; and ½ Σ w_u v_u².

    Here v_u = c_u − s_k/w_u is a leaf's excess over its shift.
    """
    step = 0 if len(inverse_weight) == 1 else 1
    cells = len(shift)
    level = shift if step else shift * inverse_weight[0]

    def work(start: int, stop: int) -> tuple[Floats, Floats, float]:
        y, d = np.zeros(cells), np.zeros(cells)
        return y, d, _above_shift(target, inverse_weight, step, cell, level, start, stop, y, d)

    parts = map_chunks(len(target), work, most=None if cells < len(target) // 16 else 1)
    ys, ds, squares = zip(*parts, strict=True)
    y, d = (ys[0], ds[0]) if len(parts) == 1 else (np.sum(ys, axis=0), np.sum(ds, axis=0))
    return (y, d, sum(squares)) if step else (y, d * inverse_weight[0], sum(squares) / inverse_weight[0])


def leaves_above_threshold(
    target: Numbers, inverse_weight: Floats, cell: Indices, threshold: Floats
) -> tuple[Floats, Floats, Indices]:
    """Value, slack and cell of the leaves above their cell's floor (c_u w_u > floor_k); leaf order is kept."""
    step = 0 if len(inverse_weight) == 1 else 1
    threshold = threshold if step else threshold * inverse_weight[0]

    def work(start: int, stop: int) -> tuple[Floats, Floats, Indices]:
        # as long as all leaves: memory that is never written to costs nothing
        kept, kept_cell = np.empty(stop - start), np.empty(stop - start, dtype=cell.dtype)
        kept_inverse = np.empty(stop - start) if step else inverse_weight
        n = _screen(target, inverse_weight, step, cell, threshold, start, stop, kept, kept_inverse, kept_cell)
        return kept[:n], kept_inverse[:n] if step else inverse_weight, kept_cell[:n]

    kept, kept_inverse, kept_cell = zip(*map_chunks(len(target), work), strict=True)
    return (
        np.concatenate(kept),
        np.concatenate(kept_inverse) if step else inverse_weight,
        np.concatenate(kept_cell),
    )


def slope_along(
    target: Numbers, inverse_weight: Floats, cell: Indices, shift: Floats, change: Floats, t: float
) -> tuple[float, float]:
    """The leaves' part of the change of dΦ/dt along shift + t·change since t = 0, and of d²Φ/dt² at t.

    The change is summed and not the slope itself, which would be lost in the rounding of large sums.
    """
    step = 0 if len(inverse_weight) == 1 else 1

    def work(start: int, stop: int) -> tuple[float, float]:
        return _slope_along(target, inverse_weight, step, cell, shift, change, t, start, stop)  # type: ignore[no-any-return]

    parts = map_chunks(len(target), work)
    return sum(p[0] for p in parts), sum(p[1] for p in parts)


def primal(target: Numbers, inverse_weight: Floats, cell: Indices, shift: Floats) -> Floats:
    """x_u = max(0, c_u − s_k/w_u) for every leaf."""
    step = 0 if len(inverse_weight) == 1 else 1
    x = np.empty(len(target))
    map_chunks(len(x), lambda i, j: _primal(target, inverse_weight, step, cell, shift, i, j, x))
    return x


def condition_violations(
    target: Numbers, inverse_weight: Floats, cell: Indices, shift: Floats, x: Floats
) -> tuple[Floats, Floats, Floats]:
    """By cell, the sums of x and of the inverse weights of leaves above zero; over all leaves, the worst of each condition.

    The conditions are [stationarity, feasibility, complementarity]; then the primal and the dual cost are summed up,
    and the largest magnitude of a noisy count.
    """
    step = 0 if len(inverse_weight) == 1 else 1
    cells = len(shift)

    def work(start: int, stop: int) -> tuple[Floats, Floats, Floats]:
        sums, active, worst = np.zeros(cells), np.zeros(cells), np.zeros(6)
        _condition_violations(target, inverse_weight, step, cell, shift, x, start, stop, sums, active, worst)
        return sums, active, worst

    parts = map_chunks(len(target), work, most=None if cells < len(target) // 16 else 1)
    sums, active, worst = (np.array(column) for column in zip(*parts, strict=True))
    ends = np.concatenate([worst[:, :3].max(axis=0), worst[:, 3:5].sum(axis=0), worst[:, 5:].max(axis=0)])
    return sums.sum(axis=0), active.sum(axis=0), ends


@compiled_ahead("f8[::1], f8[::1], i8, i4[::1], f8[::1], i8, i8, f8[::1], f8[::1]")
@kernel
def _above_shift(target, inverse_weight, step, cell, level, start, stop, y, d):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    squares = 0.0
    # whether about as many leaves are above as below: then a branch is mispredicted half the time
    mixed = True
    for begin in range(start, stop, LEAVES_PER_BLOCK):
        end = min(begin + LEAVES_PER_BLOCK, stop)
        above = 0
        if mixed:
            for u in range(begin, end):
                k = cell[u]
                r = inverse_weight[u] if step else 1.0
                v = max(0.0, target[u] - level[k] * r)
                y[k] += v
                d[k] += r if v > 0 else 0.0
                squares += v * v / r
                above += v > 0
        else:
            for u in range(begin, end):
                k = cell[u]
                r = inverse_weight[u] if step else 1.0
                v = target[u] - level[k] * r
                if v > 0:
                    y[k] += v
                    d[k] += r
                    squares += v * v / r
                    above += 1
        mixed = above * 16 > end - begin
    return 0.5 * squares


@kernel
def _screen(target, inverse_weight, step, cell, threshold, start, stop, kept, kept_inverse, kept_cell):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    at = 0
    for u in range(start, stop):
        k = cell[u]  # no branch: what is not kept is overwritten by the next one
        r = inverse_weight[u] if step else 1.0
        kept[at] = target[u]
        kept_cell[at] = k
        if step:
            kept_inverse[at] = r
        at += target[u] > threshold[k] * r
    return at


@kernel
def _slope_along(target, inverse_weight, step, cell, shift, change, t, start, stop):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    slope = steep = 0.0
    for u in range(start, stop):
        k = cell[u]
        r = inverse_weight[u] if step else inverse_weight[0]
        before = max(0.0, target[u] - shift[k] * r)
        now = target[u] - (shift[k] + t * change[k]) * r
        if now > 0:
            slope += (before - now) * change[k]
            steep += r * change[k] ** 2
        else:
            slope += before * change[k]
    return slope, steep


@compiled_ahead("f8[::1], f8[::1], i8, i4[::1], f8[::1], i8, i8, f8[::1]")
@kernel
def _primal(target, inverse_weight, step, cell, shift, start, stop, x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for u in range(start, stop):
        x[u] = max(0.0, target[u] - shift[cell[u]] * inverse_weight[u * step])


@compiled_ahead("f8[::1], f8[::1], i8, i4[::1], f8[::1], f8[::1], i8, i8, f8[::1], f8[::1], f8[::1]")
@kernel
def _condition_violations(target, inverse_weight, step, cell, shift, x, start, stop, sums, active, worst):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    stationarity = feasibility = complementarity = cost = dual = largest = 0.0
    for u in range(start, stop):
        k = cell[u]
        r = inverse_weight[u * step]
        goal = float(target[u])
        largest = max(largest, abs(goal))
        ideal = goal - shift[k] * r
        g = x[u] - ideal  # the reduced gradient in trips: ≥ 0, and 0 where x > 0
        stationarity = max(stationarity, -g)
        feasibility = max(feasibility, -x[u])
        complementarity = max(complementarity, min(x[u], g))
        sums[k] += x[u]
        if x[u] > 0:
            active[k] += r
        w = 1.0 / r if step else 1.0
        cost += (x[u] - goal) ** 2 * w
        best = max(0.0, ideal)
        dual += (best**2 - goal**2) * w
    if not step:
        cost, dual = cost / inverse_weight[0], dual / inverse_weight[0]
    worst[0], worst[1], worst[2] = stationarity, feasibility, complementarity
    worst[3], worst[4], worst[5] = cost, dual, largest
