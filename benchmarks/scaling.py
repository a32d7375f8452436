"""How our solver grows with the leaves, from 10⁵ to 3·10⁷, next to the time it takes numpy to draw as much noise.

Claim: the solver's time grows no faster than the number of leaves, in memory of a few arrays (docs/results/engine-benchmarks.md).

python -m benchmarks scaling [--most 30000000] [--epsilon 1]
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.harness.instances import City
from benchmarks.harness.measure import measure
from cbdp import solvers
from cbdp.estimation import compiler

PERIODS = 28
DRAWS = 4  # of the noise: how many passes a single one needs is luck, and the mean is told
STOPS = tuple(
    round(60 * (1035 / 60) ** (i / 8)) for i in range(9)
)  # 100,800 to 29,994,300 leaves, about doubling
MOST_PER_DOUBLING, MOST_TO_DRAWING, MOST_ARRAYS = 2.2, 2.0, 3.0
HEAD = (
    "leaves",
    "compile s",
    "solve s",
    "laplace s",
    "solve ÷ laplace",
    "extra arrays",
    "× per doubling",
    "certificate",
)


@dataclass(frozen=True)
class Size:
    leaves: int
    compiling: float
    drawing: float
    residual: float
    solving: float = float("nan")
    arrays: float = float("nan")  # peak memory above what was there, in float64 arrays as long as the leaves


def solving(stops: int, epsilon: float) -> Callable[[], Size]:
    """The work to measure: `solve`, with the compile and the drawing of as many numbers timed beforehand."""
    solver = solvers.get("newton")
    solver.solve(City(12, PERIODS).insecure_problem(1.0))  # loads compiled code
    city = City(stops, PERIODS)
    measured = [city.insecure_measurements(epsilon, draw=draw) for draw in range(DRAWS)]
    start = time.perf_counter()
    problems = [compiler.compile(city.features, noisy) for noisy in measured]
    compiling = (time.perf_counter() - start) / DRAWS
    drawing = min(_seconds_to_draw(city.leaves) for _ in range(3))

    def work() -> Size:
        worst = max(solver.solve(problem).kkt_residual for problem in problems)
        return Size(city.leaves, compiling, drawing, worst)

    return work


def _seconds_to_draw(n: int) -> float:
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    rng.laplace(scale=5.0, size=n)
    return time.perf_counter() - start


def per_doubling(before: Size | None, now: Size) -> float:
    """By what a doubling of the leaves multiplies the time, from two sizes whose ratio is about two."""
    if before is None:
        return float("nan")
    return float((now.solving / before.solving) ** (1.0 / math.log2(now.leaves / before.leaves)))


def line(before: Size | None, now: Size) -> str:
    ratio = f"{per_doubling(before, now):.2f}" if before else ""
    cells = f"{now.leaves:,}", f"{now.compiling:.3f}", f"{now.solving:.4f}", f"{now.drawing:.4f}"
    rest = f"{now.solving / now.drawing:.2f}", f"{now.arrays:.2f}", ratio, f"{now.residual:.1e}"
    return "| " + " | ".join((*cells, *rest)) + " |"


def verdicts(sizes: Sequence[Size]) -> list[tuple[str, bool]]:
    """Whether the promises about growth are kept."""
    growth = max((per_doubling(a, b) for a, b in itertools.pairwise(sizes)), default=float("nan"))
    large = [s for s in sizes if s.leaves >= 10**7] or list(sizes[-1:])
    drawing = max(s.solving / s.drawing for s in large)
    arrays = max(s.arrays for s in large)
    there = f"{large[0].leaves:,} leaves and beyond"
    return [
        (
            f"time per doubling at most × {MOST_PER_DOUBLING} (worst {growth:.2f})",
            growth <= MOST_PER_DOUBLING,
        ),
        (
            f"at {there} at most {MOST_TO_DRAWING} × numpy's drawing (worst {drawing:.2f})",
            drawing <= MOST_TO_DRAWING,
        ),
        (
            f"there at most {MOST_ARRAYS} extra arrays, answer included (worst {arrays:.2f})",
            arrays <= MOST_ARRAYS,
        ),
    ]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks scaling", description=__doc__)
    parser.add_argument("--most", type=int, default=30_000_000, help="leaves to stop at")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds that each size may take")
    options = parser.parse_args(argv)
    print(
        "Extra memory is the resident set's high-water mark during `solve` less what was resident before.\n"
    )
    print("| " + " | ".join(HEAD) + " |\n|" + "---:|" * len(HEAD))
    sizes: list[Size] = []
    for stops in STOPS:
        if stops**2 * PERIODS > options.most:
            break
        print(f"{stops**2 * PERIODS:,} leaves …", file=sys.stderr, flush=True)
        run = measure(solving, stops, options.epsilon, limit=options.limit, repeats=5, enough=60)
        if run.failure is not None:
            print(f"\n{stops**2 * PERIODS:,} leaves: {run.failure}")
            return 1
        found: Size = run.value
        arrays = run.extra_bytes / (8 * found.leaves)
        seconds = run.seconds / DRAWS
        now = Size(found.leaves, found.compiling, found.drawing, found.residual, seconds, arrays)
        print(line(sizes[-1] if sizes else None, now), flush=True)
        sizes.append(now)
    said = verdicts(sizes)
    print("\n" + "\n".join(f"- {text}: {'yes' if kept else 'NO'}" for text, kept in said))
    return 0 if all(kept for _, kept in said) else 1
