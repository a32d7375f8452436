"""What tests of the engine share: another way to the optimum, exact counts, a small city, a time limit."""

from __future__ import annotations

import itertools
import signal
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from hypothesis import settings
from paper_program import size_of
from strategies import Case

from cbdp.features import Feature, FeatureDag, Universe, odmts

CERTIFIED = 1e-9
INF = float("inf")
SMALL = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])


def thorough(examples):
    return settings(deadline=None, max_examples=examples, derandomize=True)


@contextmanager
def within(seconds):
    """Fail rather than hang."""

    def late(*_):
        raise TimeoutError(f"no answer within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


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
            x[s] = (np.linalg.lstsq(k, rhs)[0] if m else np.linalg.solve(k, rhs))[: s.sum()]
        if x.min(initial=0) < -1e-9 * unit or (
            exact.any() and np.abs(a[exact] @ x - c[exact]).max() > 1e-8 * unit
        ):
            continue
        value = float(np.sum((soft @ x - wanted) ** 2))
        if best is None or value < best[0]:
            best = value, x
    assert best is not None
    return best[1]


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
