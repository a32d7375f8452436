"""Releases of InfTDA and of ours, their errors and times; kept as a CSV file, so that a page can be made of several sittings."""

from __future__ import annotations

import csv
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import partial
from pathlib import Path

from benchmarks.inftda import ours
from benchmarks.inftda.demand import Demand
from benchmarks.inftda.metrics import Published, errors
from benchmarks.inftda.rival import inftda
from cbdp import ConstraintBased
from cbdp.counting import Counts

RIVAL = "InfTDA"
EPSILONS = ("0.1", "1", "10")
BUDGETS = ("levels", "leaves")


@dataclass(frozen=True)
class Row:
    """One release at one level."""

    data: str
    epsilon: str
    mechanism: str
    seed: int
    seconds: float
    origin: int  # how deep origins are told apart at this level
    destination: int
    mean: float
    most: float
    false_discoveries: float
    false_negatives: float


def ours_named(budget: str) -> str:
    return f"cbdp, {budget}"


def trials(
    truth: Demand, epsilons: Sequence[str], budgets: Sequence[str], runs: int, rival_runs: int
) -> Iterator[list[Row]]:
    """All releases of a mechanism at an ε, one such list after the other. Features are made once: they are public."""
    dag = ours.features(truth)
    private = ours.counts(truth, dag.universe)
    for epsilon in epsilons:
        yield _repeated(truth, epsilon, RIVAL, rival_runs, partial(inftda, truth, float(epsilon)))
        for budget in budgets if runs else ():
            publish = partial(_published, ours.mechanism(dag, truth.total, epsilon, budget), private)
            yield _repeated(truth, epsilon, ours_named(budget), runs, publish)


def _published(made: ConstraintBased, private: Counts, seed: int) -> Published:
    return ours.published(made.simulate(private, seed))


def _repeated(
    truth: Demand, epsilon: str, mechanism: str, runs: int, publish: Callable[[int], Published]
) -> list[Row]:
    # seeds of their own for each data set and ε: a lucky draw shall not come again in every column
    first = zlib.crc32(f"{truth.name} {epsilon}".encode()) % 10**6 * 1000
    made = []
    for seed in range(runs):
        print(f"{truth.name}, ε = {epsilon}, {mechanism}, run {seed + 1} …", file=sys.stderr, flush=True)
        start = time.perf_counter()
        published = publish(first + seed)
        seconds = time.perf_counter() - start
        for level, found in errors(truth, published).items():
            made.append(Row(truth.name, epsilon, mechanism, seed, seconds, *level, *found.numbers))
    return made


# On disk


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    kinds = {"str": str, "int": int, "float": float}
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(**{f.name: kinds[str(f.type)](line[f.name]) for f in fields(Row)})
            for line in csv.DictReader(file)
        ]


def write(path: Path, rows: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f.name for f in fields(Row)])
        for row in rows:
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in astuple(row)])


def merged(kept: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """The new rows, and those kept of mechanisms that were not run again on a data set at an ε."""
    again = {(r.data, r.epsilon, r.mechanism) for r in new}
    return [*(r for r in kept if (r.data, r.epsilon, r.mechanism) not in again), *new]
