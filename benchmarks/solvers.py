"""Our solver against every generic backend, on the case study's instances: time, certificate, memory.

Claim: `newton` is exact, and at least 50 times as fast as the fastest other solver that certifies (docs/results/engine-benchmarks.md).

python -m benchmarks solvers [--limit 300] [--backends newton,piqp] [--small]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.harness.instances import City
from benchmarks.harness.measure import Measured, measure
from cbdp import solvers

CERTIFIED, OURS_AT_MOST, LEAST_RATIO = 1e-6, 1e-9, 50
REPEATS = (
    20  # the best of so many runs, or of as many as fit in a few seconds: the same rule for every backend
)
CASES = ((4, 1.0), (4, 0.1), (4, 0.01), (48, 1.0))  # half hours, ε: 67,600 leaves three times, then 811,200
HEAD = "instance", "backend", "seconds", "× newton", "certificate", "objective gap", "extra MB", "remark"


@dataclass(frozen=True)
class Found:
    """What a solver reached, small enough to send between processes."""

    residual: float
    objective: float
    iterations: int


@dataclass(frozen=True)
class Row:
    case: str
    backend: str
    run: Measured

    @property
    def found(self) -> Found | None:
        return self.run.value if isinstance(self.run.value, Found) else None

    @property
    def certified(self) -> bool:
        return self.found is not None and self.found.residual <= CERTIFIED


def solving(backend: str, half_hours: int, epsilon: float) -> Callable[[], Found]:
    """The work to measure: `solve` of a compiled problem, with compiled code already loaded."""
    solver = solvers.get(backend)
    # a city with fewer stops and as many elements: the same compiled code, and no large memory left to be reused
    solvers.get("newton").solve(City(stops=12, periods=half_hours).insecure_problem(1.0))
    problem = City(periods=half_hours).insecure_problem(epsilon)

    def work() -> Found:
        solution = solver.solve(problem)
        return Found(solution.kkt_residual, solution.objective, solution.iterations)

    return work


def table(rows: Sequence[Row], lowest: float, ours: float) -> list[str]:
    """The Markdown lines of one instance."""
    lines = []
    for row in rows:
        cells = [row.case, row.backend, "", "", "", "", "", row.run.failure or ""]
        if row.found is not None:
            gap = row.found.objective / lowest - 1.0
            missed = "" if row.certified else f"misses {CERTIFIED:.0e}"
            cells[2:] = [
                f"{row.run.seconds:.3f}",
                f"{row.run.seconds / ours:.0f}",
                f"{row.found.residual:.1e}",
                f"{gap:.1e}",
                f"{row.run.extra_bytes / 1e6:.0f}",
                missed or f"{row.found.iterations} iterations",
            ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def verdict(rows: Sequence[Row]) -> tuple[str, bool]:
    """Whether ours keeps its three promises on one instance."""
    ours = next(row for row in rows if row.backend == "newton")
    others = [row for row in rows if row.backend != "newton" and row.certified]
    if ours.found is None:
        return f"{ours.case}: newton failed", False
    lowest = min(row.found.objective for row in rows if row.certified and row.found is not None)
    exact = ours.found.residual <= OURS_AT_MOST
    best = ours.found.objective <= lowest * (1 + 1e-12)
    said = [
        f"certificate ≤ {OURS_AT_MOST:.0e}: {_yes(exact)}",
        f"objective lowest (to rounding): {_yes(best)}",
    ]
    fast = True
    if others:
        rival = min(others, key=lambda row: row.run.seconds)
        ratio = rival.run.seconds / ours.run.seconds
        fast = ratio >= LEAST_RATIO
        said.append(
            f"≥ {LEAST_RATIO}× faster than the fastest other that certifies ({rival.backend}): {_yes(fast)}, {ratio:.0f}×"
        )
    return f"{ours.case}: " + "; ".join(said), exact and best and fast


def _yes(true: bool) -> str:
    return "yes" if true else "NO"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks solvers", description=__doc__)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that each run may take")
    parser.add_argument(
        "--backends",
        default=",".join(solvers.SOLVERS.table),
        help="which, by name; newton is always among them",
    )
    parser.add_argument("--small", action="store_true", help="leave the instance with 811,200 leaves out")
    options = parser.parse_args(argv)
    backends = ["newton", *(name for name in options.backends.split(",") if name != "newton")]
    print("| " + " | ".join(HEAD) + " |\n|---|---|---:|---:|---:|---:|---:|---|")
    said, kept = [], True
    for half_hours, epsilon in CASES[:-1] if options.small else CASES:
        case = f"{City(periods=half_hours)}, ε = {epsilon:g}"
        rows = []
        for name in backends:
            print(f"{case}: {name} …", file=sys.stderr, flush=True)
            # best of three for all alike; `measure` runs slow ones once
            run = measure(solving, name, half_hours, epsilon, limit=options.limit, repeats=REPEATS)
            rows.append(Row(case, name, run))
        lowest = min((r.found.objective for r in rows if r.certified and r.found), default=float("nan"))
        print("\n".join(table(rows, lowest, rows[0].run.seconds)), flush=True)
        line, good = verdict(rows)
        said.append(line)
        kept &= good
    print("\n" + "\n".join(f"- {line}" for line in said))
    return 0 if kept else 1
