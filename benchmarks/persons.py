"""What protects a person costs: errors by max_trips, law, and with trips kept apart, of riders who commute.

python -m benchmarks persons [--runs 3] [--epsilon 1] [--delta 1e-6] [--budget balanced] [--per day release] [--by-day]

Trips of a generated population (benchmarks/riders.py: most riders make the same two trips on most days) are bounded, measured and published by three
mechanisms: Laplace, the paper's O5, and ours. Errors are root mean squares against all trips, the dropped ones too, over runs from fixed seeds: a small max_trips
drops trips, a large one needs more noise. All rows keep the same promise, (ε, δ) for the same unit; geometric noise keeps it with δ = 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cbdp
from benchmarks.riders import Population, population
from benchmarks.tables import figure, markdown
from cbdp.features import SINGLETON
from cbdp.mechanisms import ConstraintBased, Laplace, Mechanism
from cbdp.privacy.entropy import InsecureSeededEntropy

Floats = NDArray[np.float64]

TABLES = ("total", "time", "zones", "zone", SINGLETON)
MOST = {"day": (1, 2, 4, 8), "release": (4, 10, 20, 40)}
LAWS = ("geometric", "gaussian")
WAYS = ("laplace", "O5", "ours")


@dataclass(frozen=True)
class Row:
    """One way to protect one unit, with its errors by table."""

    per: str
    most: int
    apart: str | None
    law: str
    way: str
    kept: float  # share of the trips
    errors: dict[str, float]

    @property
    def key(self) -> tuple[Any, ...]:
        return self.way, self.law, self.apart


def mechanism_of(
    way: str, law: str, unit: cbdp.Person, people: Population, epsilon: str, delta: str, budget: str
) -> Mechanism:
    """A mechanism that keeps the promise with either law."""
    price: dict[str, Any] = {"epsilon": epsilon} | ({"delta": delta} if law == "gaussian" else {})
    if way == "laplace":
        return Laplace(people.features, unit=unit, law=law, **price)
    if way == "O5":
        return ConstraintBased(people.features, unit=unit, law=law, preset="paper", **price)
    return ConstraintBased(people.features, unit=unit, law=law, budget=budget, **price)


def rows(people: Population, per: str, given: argparse.Namespace) -> Iterator[Row]:
    """All ways, by max_trips, apart and law."""
    truth = people.truth
    tables = {name: _sums(people, name, truth) for name in TABLES}
    for most in MOST[per]:
        for apart in (None, "time"):
            unit = cbdp.Person("card", most, per, apart)
            counts = cbdp.count(
                people.trips,
                people.features.universe,
                columns=people.columns,
                unit=unit,
                entropy=InsecureSeededEntropy(7),
            )
            kept = float(counts.value.sum() / truth.sum())
            for law in LAWS:
                for way in WAYS:
                    chosen = mechanism_of(way, law, unit, people, given.epsilon, given.delta, given.budget)
                    errors = _errors(chosen, counts, tables, given.runs)
                    yield Row(per, most, apart, law, way, kept, errors)


def _sums(people: Population, name: str, truth: Any) -> Floats:
    if name == SINGLETON:
        return np.asarray(truth, dtype=float)
    element = people.features.partition(name).of_every_type()
    return np.asarray(np.bincount(element, truth, people.features.size(name)), dtype=float)


def _errors(chosen: Mechanism, counts: Any, tables: dict[str, Floats], runs: int) -> dict[str, float]:
    squares: dict[str, list[float]] = {name: [] for name in tables}
    for seed in range(runs):
        release = chosen.simulate(counts, seed)
        dag = release.features
        for name, true in tables.items():
            found = np.zeros(len(true))
            element = (
                release.index
                if name == SINGLETON
                else dag.partition(name).element_of(dag.universe.unrank_codes(release.index))
            )
            np.add.at(found, element, release.value)
            squares[name].append(float(np.mean((found - true) ** 2)))
    return {name: float(np.sqrt(np.mean(each))) for name, each in squares.items()}


def best(found: Sequence[Row], table: str) -> dict[tuple[Any, ...], Row]:
    """By way, law and apart: the max_trips with the least error of a table."""
    made: dict[tuple[Any, ...], Row] = {}
    for row in found:
        if row.key not in made or row.errors[table] < made[row.key].errors[table]:
            made[row.key] = row
    return made


def said(found: Sequence[Row]) -> str:
    head = ["way", "law", "apart", "max_trips", "trips kept", *TABLES]
    body = [
        [
            r.way,
            r.law,
            r.apart or "–",
            f"{r.most}",
            f"{100 * r.kept:.0f} %",
            *(figure(r.errors[t]) for t in TABLES),
        ]
        for r in found
    ]
    return markdown(head, body)


def winners(found: Sequence[Row]) -> str:
    """For each table, the way with the least error."""
    body = []
    for table in TABLES:
        row = min(found, key=lambda r: r.errors[table])
        plain = min(
            (r for r in found if r.apart is None and r.law == "geometric"), key=lambda r: r.errors[table]
        )
        words = [row.way, row.law, row.apart or "–", f"{row.most}", figure(row.errors[table])]
        body.append([table, *words, figure(plain.errors[table])])
    return markdown(["table", "way", "law", "apart", "max_trips", "error", "geometric, not apart"], body)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks persons")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--delta", default="1e-6")
    parser.add_argument("--budget", default="balanced")
    parser.add_argument("--per", nargs="+", choices=tuple(MOST), default=list(MOST))
    parser.add_argument("--stops", type=int, default=24)
    parser.add_argument("--riders", type=int, default=2000)
    parser.add_argument("--by-day", action="store_true", help="count each of the 20 days for itself")
    given = parser.parse_args(argv)
    people = population(stops=given.stops, riders=given.riders, by_day=given.by_day)
    size = people.features.universe.size
    print(
        f"{given.riders:,} riders, 20 days {'told apart' if given.by_day else 'pooled'}, {people.trips.num_rows:,} trips, {size:,} trip types, ε = {given.epsilon}\n"
    )
    for per in given.per:
        found = list(rows(people, per, given))
        whose = "all of a person's trips" if per == "release" else f"one {per} of a person"
        print(f"Protected: {whose}\n\n{said(found)}\n\n{winners(found)}\n")
    return 0
