"""How many trips the Laplace mechanism invents on a sparse city, beside the published numbers and the exact expectation.

Claim: plain Laplace noise invents as many trips as its expectation says, far more than a sparse city has (docs/results/benchmarks.md).

python -m benchmarks inflation [--runs 20]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.markdown import figure, markdown, percent
from cbdp.datasets import Dataset, ann_arbor
from cbdp.mechanisms import Laplace

Floats = NDArray[np.float64]

WITHIN = 0.08


@dataclass(frozen=True)
class Case:
    """A published number of trips after Laplace noise, clipping and rounding."""

    hours: tuple[str, str]
    epsilon: str
    published: float


RUSH, DAY = ("08:00", "10:00"), ("06:00", "20:00")
CASES = (
    Case(RUSH, "0.1", 320_940.4),
    Case(RUSH, "0.05", 656_577.4),
    Case(RUSH, "0.01", 3_312_350.0),
    Case(DAY, "1", 261_032.0),
)


# E max(0, c + Z) = c + E max(0, Z − c) for a symmetric law, and E max(0, Z − c) = Σ_{t ≥ c} P(Z > t): geometric series.


def rounded(c: Floats, b: float) -> Floats:
    """Continuous Laplace noise rounded to the nearest integer: P(Z > t) = ½ exp(−(t + ½)/b) for t ≥ 0."""
    return np.asarray(c + 0.5 * np.exp(-(c + 0.5) / b) / -np.expm1(-1 / b))


def geometric(c: Floats, b: float) -> Floats:
    """Two-sided geometric noise: P(Z > t) = r^(t + 1)/(1 + r) for t ≥ 0, with r = exp(−1/b)."""
    return np.asarray(c + np.exp(-(c + 1) / b) / -np.expm1(-2 / b))


def cut_off(c: Floats, b: float) -> Floats:
    """Continuous Laplace noise with the decimals cut off instead of rounded: Σ_{k ≥ 1} P(c + Z ≥ k)."""
    gap = -np.expm1(-1 / b)
    return np.asarray(c + 0.5 * np.expm1(-c / b) / gap + 0.5 * np.exp(-1 / b) / gap)


def expected(law: Callable[[Floats, float], Floats], counts: NDArray[np.int64], b: float) -> float:
    """The exact expectation of the published total: zeros and non-zero types alike."""
    value, times = np.unique(counts, return_counts=True)
    return float(times @ law(value.astype(float), b))


def simulated(city: Dataset, epsilon: str, law: str, runs: int) -> Floats:
    mechanism, counts = Laplace(city.features(), epsilon, law=law), city.counts()
    return np.array([mechanism.simulate(counts, seed).total for seed in range(runs)], dtype=float)


def measure(case: Case, city: Dataset, runs: int) -> tuple[list[str], float]:
    """A row of the table, and how far the simulated mean of the paper's law is from the published number."""
    counts, b = city.counts(), 1 / float(case.epsilon)
    cells, off = [], 0.0
    for law, form in (("rounded", rounded), ("geometric", geometric)):
        totals, exact = simulated(city, case.epsilon, law, runs), expected(form, counts, b)
        mean = float(totals.mean())
        cells += [figure(mean), figure(exact), percent(mean / exact - 1), percent(mean / case.published - 1)]
        off = mean / case.published - 1 if law == "rounded" else off
    cut = expected(cut_off, counts, b)
    name = f"{case.hours[0]}–{case.hours[1]}, ε = {case.epsilon}"
    row = [
        name,
        f"{len(city):,}",
        figure(case.published),
        *cells,
        figure(cut),
        percent(cut / case.published - 1),
    ]
    return row, off


HEADER = (
    "universe", "true trips", "published",
    "rounded: mean", "exact", "mean − exact", "mean − published",
    "geometric: mean", "exact", "mean − exact", "mean − published",
    "cut off: exact", "− published",
)  # fmt: skip


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks inflation", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="simulated releases per figure")
    options = parser.parse_args(argv)
    cities = {hours: ann_arbor(seed=0, hours=hours) for hours in (RUSH, DAY)}
    rows, offs = [], []
    for case in CASES:
        print(f"inflation: {case.hours}, ε = {case.epsilon}", file=sys.stderr)
        row, off = measure(case, cities[case.hours], options.runs)
        rows.append(row)
        offs.append(off)
    print("# Trips invented by the Laplace mechanism\n")
    for city in cities.values():
        busy = int((city.counts() > 0).sum())
        print(f"- {city.name}: {city.universe.size:,} trip types, {busy:,} with trips, {len(city):,} trips")
    print(
        f"\nMeans over {options.runs} runs (seeds 0 to {options.runs - 1}); `exact` is Σ E max(0, c + Z).\n"
    )
    print(markdown(HEADER, rows))
    within = max(map(abs, offs)) <= WITHIN
    print(
        f"\nEvery published number is met within {WITHIN:.0%} by the rounded law: {'yes' if within else 'NO'} "
        f"(furthest {percent(max(offs, key=abs))})"
    )
    return 0 if within else 1
