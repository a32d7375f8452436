"""How long post-processing takes with the posterior estimator: expected counts, the program, whole trips.

Claim: post-processing of a million trip types takes under a second (docs/results/engine-benchmarks.md).

python -m benchmarks posterior [--stops 60,190] [--epsilon 1,0.1,0.01] [--runs 3]

The city of the other benchmarks, 28 half hours; the least of some runs, with the CPU seconds beside: the threads use two cores. Memory is
the most that is in use at a time, for each leaf, beyond what was before: compiled code, the measurements and what is kept of the features.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import cbdp
from benchmarks.harness.instances import City
from benchmarks.harness.markdown import markdown
from benchmarks.harness.measure import peak, reset_peak
from benchmarks.harness.page import machine
from cbdp import solvers
from cbdp.counting.counts import count
from cbdp.estimation import compiler
from cbdp.estimation.posterior import expected_leaves
from cbdp.features import SINGLETON
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.rounding.controlled import round_trips

PERIODS, LIMIT, MILLION = 28, 1.0, 10**6


class Stopwatch:
    """Seconds and CPU seconds of each stage, the least over runs."""

    def __init__(self) -> None:
        self.least: dict[str, tuple[float, float]] = {}

    def time(self, stage: str, work: Callable[[], Any]) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        made = work()
        took = time.perf_counter() - wall, time.process_time() - cpu
        self.least[stage] = min(took, self.least.get(stage, took))
        return made


def post_processed(city: City, measured: list[cbdp.Measurement], watch: Stopwatch) -> None:
    """All that follows the noisy answers, stage by stage."""
    dag = city.features
    leaves = watch.time("expected counts", lambda: expected_leaves(dag, measured))
    tables = [m for m in measured if m.feature != SINGLETON]

    def solved() -> Any:
        return solvers.get("newton").solve(compiler.compile(dag, [*tables, leaves], "inverse-variance"))

    x = watch.time("program", solved).leaves
    here = np.flatnonzero(x > 0)
    watch.time("whole trips", lambda: round_trips(dag, here, x[here]))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks posterior", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stops", default="60,190", help="of the cities, separated by commas")
    parser.add_argument("--epsilon", default="1,0.1,0.01")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(argv)
    stages = ("expected counts", "program", "whole trips")
    rows, kept = [], True
    for stops in map(int, options.stops.split(",")):
        city = City(stops, PERIODS)
        counts = count(city.trips.astype(np.int64), city.features.universe)
        for epsilon in options.epsilon.split(","):
            given: Any = {"entropy": InsecureSeededEntropy(0), "sparse": False}
            measured = cbdp.measure(counts, city.features, Fraction(epsilon), "balanced", **given)
            watch = Stopwatch()
            post_processed(city, measured, Stopwatch())  # what is compiled and listed once
            before = reset_peak()
            for _ in range(options.runs):
                post_processed(city, measured, watch)
            memory = (peak() - before) / city.leaves
            wall, cpu = (sum(watch.least[s][i] for s in stages) for i in (0, 1))
            rows.append([
                f"{city.leaves:,}", epsilon, *(f"{watch.least[s][0]:.2f}" for s in stages), f"{wall:.2f}", f"{cpu:.2f}",
                f"{memory:.0f}",
            ])  # fmt: skip
            kept = kept and (city.leaves < MILLION or wall < LIMIT)
    print(markdown(["leaves", "ε", *(f"{s}, s" for s in stages), "all, s", "CPU s", "bytes a leaf"], rows))
    print(f"\n{machine()}\n\n- a million leaves in under {LIMIT:g} s: {'yes' if kept else 'NO'}")
    return 0 if kept else 1
