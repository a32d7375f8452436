"""The whole job on a built-in synthetic city, in a few seconds."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from cbdp.budget import positive
from cbdp.counts import count
from cbdp.datasets import ann_arbor
from cbdp.mechanisms import ConstraintBased, Hierarchical, Laplace


def demo(epsilon: str) -> int:
    """Release a morning of synthetic trips with each mechanism and compare with the truth, which is public here."""
    budget = positive(epsilon)
    city = ann_arbor(seed=0, hours=("08:00", "10:00"))
    features = city.features()
    truth = count(city.trips, features.universe)
    print(f"{city.name}\n{len(city):,} trips over {features.universe!r}\n")
    print("What is counted (each feature made of those below it):\n")
    print(features.mermaid(), "\n")
    mechanism = ConstraintBased(features, epsilon=budget)
    print(f"Spending ε = {budget}: {mechanism.claim()}\n")
    print(
        f"{'mechanism':<20}{'trips':>10}{'types':>9}{'error per type':>16}{'by zone':>9}{'by mode':>9}{'seconds':>9}"
    )
    print(f"{'(the truth)':<20}{truth.value.sum():>10,}{len(truth.index):>9,}")
    for one in (Laplace(features, budget), Hierarchical(features, budget), mechanism):
        start = time.perf_counter()
        release = one.release(city.trips)
        seconds = time.perf_counter() - start
        errors = [_error(release.counts(f), truth.of(features, f)) for f in ("singleton", "zone", "mode")]
        print(
            f"{one.name:<20}{release.total:>10,}{len(release.index):>9,}"
            f"{errors[0]:>16.2f}{errors[1]:>9.1f}{errors[2]:>9.1f}{seconds:>9.2f}"
        )
    if release.estimate is not None:
        print(
            f"\nThe constraint-based counts are the optimum: certificate {release.estimate.solution.kkt_residual:.1e}."
        )
    return 0


def _error(published: NDArray[np.int64], exact: NDArray[np.int64]) -> float:
    return float(np.sqrt(np.mean((published - exact) ** 2)))
