"""How often the intervals of a release hold the true count, and how wide they are.

Claim: 90 % intervals of published tables hold about nine of ten true counts (docs/results/engine-benchmarks.md).

python -m benchmarks coverage [--runs 200] [--epsilon 1 0.1] [--city weekday weekend rush dense] [--preset paper]

The rush hour's city is the weekday's from 8 to 10: a seventh of its types, for runs of minutes and not of hours.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.markdown import figure, markdown
from cbdp.counting.counts import count
from cbdp.datasets import ann_arbor
from cbdp.features import SINGLETON, FeatureDag
from cbdp.mechanisms import ConstraintBased, Mechanism

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CONFIDENCE = 0.9
BAND = (0.88, 0.95)
CITIES = ("weekday", "weekend", "rush", "dense")
FULL = 0.6  # of the dense city's types have trips
SIZES = ((0, 0), (1, 20), (21, None))  # true counts, told apart because zeros are the hard ones


def city(name: str) -> tuple[FeatureDag, Ints]:
    """The features and the true counts; the dense city is the rush hour's universe with trips almost everywhere."""
    if name in ("rush", "dense"):
        made = ann_arbor(seed=0, hours=("08:00", "10:00"))
        if name == "rush":
            return made.features(), made.counts()
        rng = np.random.Generator(np.random.PCG64(1))
        uniform = rng.random((2, made.universe.size))
        sizes = np.floor(np.log1p(-uniform[1]) / np.log(0.7)).astype(np.int64) + 1
        return made.features(), np.where(uniform[0] < FULL, sizes, 0)
    made = ann_arbor(seed=0, day="weekend" if name == "weekend" else "weekday")
    return made.features(), made.counts()


def covered(
    mechanism: Mechanism, trips: Ints, runs: int, note: str = ""
) -> tuple[dict[str, NDArray[np.bool_]], dict[str, Floats], dict[str, Ints]]:
    """Whether each interval of each simulated release holds the truth (release × element), widths, and the truth."""
    counts = count(trips, mechanism.features.universe)
    truth = {n: counts.of(mechanism.features, n) for n in mechanism.features.features if n != SINGLETON}
    held: dict[str, list[NDArray[np.bool_]]] = {n: [] for n in truth}
    width: dict[str, list[Ints]] = {n: [] for n in truth}
    for seed in range(runs):
        if note:
            print(f"\rcoverage: {note}, release {seed + 1} of {runs}", end="", file=sys.stderr)
        made = mechanism.intervals(mechanism.simulate(counts, seed), CONFIDENCE)
        for name, t in truth.items():
            held[name].append((made[name].low <= t) & (t <= made[name].high))
            width[name].append(made[name].high - made[name].low)
    if note:
        print(file=sys.stderr)
    stacked = {n: np.array(h) for n, h in held.items()}
    return stacked, {n: np.array(w, dtype=float) for n, w in width.items()}, truth


def row(name: str, held: NDArray[np.bool_], width: Floats, truth: Ints) -> tuple[list[str], bool]:
    """A row of the table, and whether the coverage is in the band but for two standard errors."""
    by_release = held.mean(axis=1)
    share = float(by_release.mean())
    least = np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / held.size)  # a few releases may all happen to agree
    error = max(float(least), float(np.std(by_release) / np.sqrt(len(by_release))))
    cells = [name, str(len(truth)), f"{100 * share:.1f} %", f"{100 * error:.1f} %"]
    for low, high in SIZES:
        those = (truth >= low) & (truth <= (truth.max() if high is None else high))
        cells.append(f"{100 * held[:, those].mean():.1f} %" if those.any() else "–")
    cells.append(figure(float(width.mean())))
    return cells, BAND[0] - 2 * error <= share <= BAND[1] + 2 * error


HEADER = ("level", "elements", "coverage", "± error", "true 0", "true 1–20", "true above 20", "mean width")


def table(
    held: Mapping[str, NDArray[np.bool_]], width: Mapping[str, Floats], truth: Mapping[str, Ints]
) -> tuple[str, bool]:
    rows = [row(name, held[name], width[name], truth[name]) for name in truth]
    return markdown(HEADER, [cells for cells, _ in rows]), all(fits for _, fits in rows)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="simulated releases per table")
    parser.add_argument("--epsilon", nargs="+", default=["1", "0.1"], help="a table for each")
    parser.add_argument("--city", nargs="+", choices=CITIES, default=["weekday"], help="a table for each")
    parser.add_argument(
        "--preset", default="best", choices=("best", "paper"), help="the mechanism's configuration"
    )
    options = parser.parse_args(argv)
    print(f"# Coverage of {CONFIDENCE:.0%} intervals\n")
    print(
        f"{options.runs} simulated releases each; widths in trips; errors are standard errors over releases."
    )
    good = True
    for name in options.city:
        features, trips = city(name)
        for epsilon in options.epsilon:
            mechanism = ConstraintBased(features, epsilon, preset=options.preset)
            note = f"{name} city, ε = {epsilon}, preset {options.preset!r}"
            text, fits = table(*covered(mechanism, trips, options.runs, note))
            good = good and fits
            print(f"\n{note}\n\n{text}", flush=True)
    print(
        f"\nEvery level is covered in {BAND[0]:.0%} to {BAND[1]:.0%} of its elements, give or take two standard "
        f"errors: {'yes' if good else 'NO'}"
    )
    return 0 if good else 1
