"""What a release costs as the universe grows from 10⁶ to 10¹² trip types, stage by stage.

Claim: the cost of a release follows its trips and not its universe, up to 10¹² trip types (docs/results/engine-benchmarks.md).

python -m benchmarks universe [--trips 1000000] [--weights size] [--limit 900]

With `--weights posterior` counts are those to be expected, as the default has them; else they are projected with these weights.
Stops lie in ten zones and are of three kinds; features are the total, periods, zone pairs × period and kind pairs × period.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import cbdp
from benchmarks.harness.markdown import markdown
from benchmarks.harness.measure import Measured, measure
from cbdp.counting.counts import Counts
from cbdp.estimation import post_process
from cbdp.measuring import measure as noisy_answers
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.rounding.controlled import round_trips

PERIODS, ZONES, KINDS = 20, 10, 3
SIZES = (10**6, 10**8, 10**10, 10**12)
STAGES = ("universe", "measure", "reveal", "solve", "round", "write")
AGAINST = 10**8  # trip types: the size that the largest is compared with
POSTERIOR = "posterior"
HEAD = (
    "|U|",
    "trips",
    "weights",
    *(f"{s} s" for s in STAGES),
    "release s",
    "peak MB",
    "revealed",
    "published",
    "certificate",
)


@dataclass
class Stages:
    """Seconds by stage."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start


@dataclass(frozen=True)
class Row:
    size: int
    stages: dict[str, float]
    peak: float
    revealed: int
    published: int
    residual: float

    @property
    def seconds(self) -> float:
        """Of the release; the public universe is made once for many."""
        return sum(seconds for stage, seconds in self.stages.items() if stage != "universe")


class Timed:
    """An answer that notes how long revealing takes."""

    def __init__(self, answer: Any, stages: Stages) -> None:
        self._answer, self._stages = answer, stages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._answer, name)

    def lower(self, floor: Any) -> None:
        with self._stages("reveal"):
            self._answer.lower(floor)


def features(size: int) -> cbdp.FeatureDag:
    """A city of so many trip types, whose number of elements does not depend on that."""
    stops = round(math.sqrt(size / PERIODS))
    every = np.arange(stops)
    place = cbdp.features.Dimension(
        range(stops), zone=(every * ZONES // stops).tolist(), kind=(every * 7919 % KINDS).tolist()
    )
    universe = cbdp.Universe(origin=place, destination=place, time=range(PERIODS))
    pairs = {name: [f"origin.{name}", f"destination.{name}", "time"] for name in ("zone", "kind")}
    return cbdp.FeatureDag(
        universe, [cbdp.Feature("time", by="time"), *(cbdp.Feature(n, by=by) for n, by in pairs.items())]
    )


def counts(universe: cbdp.Universe, trips: int) -> Counts:
    """Trips between stops of very unequal size."""
    rng = np.random.default_rng(0)
    stops = len(universe.dimensions["origin"])
    ends = [np.minimum((stops * rng.random(trips) ** 2.5).astype(np.int64), stops - 1) for _ in range(2)]
    index, value = np.unique(
        universe.rank_codes([*ends, rng.integers(0, PERIODS, trips)]), return_counts=True
    )
    return Counts(universe, index.astype(np.int64), value.astype(np.int64))


def releasing(size: int, trips: int, weights: str) -> Callable[[], Row]:
    """The work to measure: a release from counts to files, with compiled code already loaded."""
    warm = features(20_000)
    _release(warm, counts(warm.universe, 1000), weights, Stages())
    stages = Stages()
    with stages("universe"):
        dag = features(size)
        dag.cells  # noqa: B018 - found once and kept
    truth = counts(dag.universe, trips)
    building = stages.seconds["universe"]

    def work() -> Row:
        stages.seconds.clear()
        stages.seconds["universe"] = building
        revealed, published, residual = _release(dag, truth, weights, stages)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return Row(dag.universe.size, dict(stages.seconds), peak, revealed, published, residual)

    return work


def _release(dag: cbdp.FeatureDag, truth: Counts, weights: str, stages: Stages) -> tuple[int, int, float]:
    with stages("measure"):
        *measured, answer = noisy_answers(
            truth, dag, 1, "uniform", entropy=InsecureSeededEntropy(1), sparse=True
        )
    with stages("solve"):
        how: Any = {"estimator": POSTERIOR} if weights == POSTERIOR else {"weights": weights}
        estimate = post_process(dag, [*measured, Timed(answer, stages)], **how)
    stages.seconds["solve"] -= stages.seconds["reveal"]
    with stages("round"):
        whole = round_trips(dag, *estimate.trips())
    known = answer.measurement()
    settings: Any = how if weights == POSTERIOR else how | {"preset": "paper"}
    mechanism = cbdp.ConstraintBased(dag, 1, **settings)
    release = mechanism.publication(whole.index, whole.value, [*measured, known], estimate=estimate)
    with stages("write"), tempfile.TemporaryDirectory() as folder:
        release.save(Path(folder) / "release", simulation=True)
    return len(known.values), release.total, estimate.solution.kkt_residual


def line(size: int, trips: int, weights: str, run: Measured) -> list[str]:
    if run.failure is not None:
        return [f"{size:.0e}", f"{trips:,}", weights, *([""] * (len(HEAD) - 4)), run.failure]
    row: Row = run.value
    times = [f"{row.stages[s]:.2f}" for s in STAGES]
    rest = (
        f"{row.seconds:.1f}",
        f"{row.peak:,.0f}",
        f"{row.revealed:,}",
        f"{row.published:,}",
        f"{row.residual:.0e}",
    )
    return [f"{row.size:.1e}", f"{trips:,}", weights, *times, *rest]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks universe", description=__doc__)
    parser.add_argument("--trips", type=int, default=10**6)
    parser.add_argument(
        "--weights", default="size", choices=["size", "uniform", "inverse-variance", POSTERIOR]
    )
    parser.add_argument("--limit", type=float, default=900.0, help="seconds that each run may take")
    options = parser.parse_args(argv)
    cases = [(size, options.trips) for size in SIZES] + [(SIZES[-1], 10 * options.trips)]
    lines, rows = [], {}
    for size, trips in cases:
        print(f"{size:.0e} types, {trips:,} trips …", file=sys.stderr, flush=True)
        run = measure(releasing, size, trips, options.weights, limit=options.limit, repeats=3)
        rows[size, trips] = run.value
        lines.append(line(size, trips, options.weights, run))
    print(markdown(HEAD, lines) + "\n")
    return _verdicts(rows, options.trips)


def _verdicts(rows: dict[Any, Row | None], trips: int) -> int:
    largest, smaller, many = rows[SIZES[-1], trips], rows[AGAINST, trips], rows[SIZES[-1], 10 * trips]
    if largest is None or smaller is None or many is None:
        return 1
    verdicts = [
        (
            f"10¹² takes at most twice as long as 10⁸ ({largest.seconds / smaller.seconds:.2f})",
            largest.seconds <= 2 * smaller.seconds,
        ),
        (f"under 1 GB ({largest.peak:,.0f} MB)", largest.peak < 1000),
        (f"well under a minute ({largest.seconds:.1f} s)", largest.seconds < 30),
        (f"{10 * trips:,} trips within 8 GB ({many.peak:,.0f} MB)", many.peak < 8000),
    ]
    print("\n".join(f"- {text}: {'yes' if kept else 'NO'}" for text, kept in verdicts))
    return 0 if all(kept for _, kept in verdicts) else 1
