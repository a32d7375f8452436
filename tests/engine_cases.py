"""What tests of the engine share: another way to the optimum, exact counts, a small city, a time limit."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
from exact_arithmetic import eliminated
from hypothesis import settings
from paper_program import size_of
from strategies import Case

from cbdp.features import Feature, FeatureDag, Universe, odmts

CERTIFIED = 1e-9
INF = float("inf")
SMALL = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])


def thorough(examples):
    return settings(deadline=None, max_examples=examples, derandomize=True)


def cost(case: Case, x) -> float:
    a, c, w = case.stacked()
    soft = np.isfinite(w)
    return float(np.sum(w[soft] * (a @ x - c)[soft] ** 2))


def enumerated(case: Case):
    """The best feasible point over all 2ⁿ supports, each solved as equality-constrained least squares."""
    a, c, w = case.stacked()
    exact = np.isinf(w)
    soft, wanted, n = np.sqrt(w[~exact])[:, None] * a[~exact], np.sqrt(w[~exact]) * c[~exact], a.shape[1]
    unit, best = size_of(case), None
    for support in itertools.product([False, True], repeat=n):
        s = np.array(support)
        x = np.zeros(n)
        if s.any():
            b, m = a[exact][:, s], int(exact.sum())
            k = np.block([[soft[:, s].T @ soft[:, s], b.T], [b, np.zeros((m, m))]])
            rhs = np.concatenate([soft[:, s].T @ wanted, c[exact]])
            # without exact counts the rows themselves are solved: the condition of normal equations is the square of theirs
            x[s] = np.linalg.lstsq(k, rhs)[0][: s.sum()] if m else np.linalg.lstsq(soft[:, s], wanted)[0]
        if x.min(initial=0) < -1e-9 * unit or (
            exact.any() and np.abs(a[exact] @ x - c[exact]).max() > 1e-8 * unit
        ):
            continue
        value = float(np.sum((soft @ x - wanted) ** 2))
        if best is None or value < best[0]:
            best = value, x
    assert best is not None
    return best[1]


def enumerated_exactly(case: Case):
    """As `enumerated`, in fractions: the least cost over all supports that leave no leaf negative. Without exact counts."""
    a, c, w = case.stacked()
    rows = [[int(v) for v in row] for row in a]
    target, weight = ([Fraction(float(v)) for v in given] for given in (c, w))
    n, best = a.shape[1], None
    for support in itertools.product([False, True], repeat=n):
        free = [u for u in range(n) if support[u]]
        normal = [
            [sum(k * r[u] * r[v] for k, r in zip(weight, rows, strict=True)) for v in free] for u in free
        ]
        right = [sum(k * r[u] * t for k, r, t in zip(weight, rows, target, strict=True)) for u in free]
        x = [Fraction(0)] * n
        for u, value in zip(free, eliminated(normal, right), strict=True):
            x[u] = value
        off = [
            sum(v for v, here in zip(x, r, strict=True) if here) - t
            for r, t in zip(rows, target, strict=True)
        ]
        value = sum(k * o * o for k, o in zip(weight, off, strict=True))
        if min(x) >= 0 and (best is None or value < best[0]):
            best = value, x
    assert best is not None
    return np.array([float(v) for v in best[1]])


def exactly(case: Case, names, seed) -> Case:
    """The case with counts of these features exact, taken from one true non-negative count of the types."""
    true = case.truth(seed)
    noisy, weight = dict(case.noisy), dict(case.weight)
    for name in names:
        noisy[name] = case.counts(name, true)
        weight[name] = dict.fromkeys(noisy[name], INF)
    return replace(case, noisy=noisy, weight=weight, rule=None)


def city(stops, times, seed, zones=4, modes=6):
    rng = np.random.default_rng(seed)
    names = list(range(stops))
    universe = Universe(origin=names, destination=names, time=range(times)).without_equal(
        "origin", "destination"
    )
    return odmts(
        universe, [int(z) for z in rng.integers(0, zones, stops)], rng.integers(0, modes, (stops, stops))
    )


def noisy_counts(dag, leaves, noise, rng):
    noisy = {"singleton": leaves + rng.laplace(0, noise, len(leaves))}
    for name in dag:
        if name != "singleton":
            true = np.bincount(dag.partition(name).of_every_type(), weights=leaves, minlength=dag.size(name))
            noisy[name] = true + rng.laplace(0, noise, len(true))
    return noisy
