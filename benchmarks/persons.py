"""What protects a person costs: errors by max_trips, law, budget, and with trips kept apart, of riders who commute.

Claim: protecting a person's day costs little where `max_trips` keeps nearly all trips; a month costs three to seven times the error (docs/results/persons.md).

python -m benchmarks persons [--runs 3] [--epsilon 1] [--delta 1e-6] [--budget tables balanced leaves] [--per day release] [--by-day]

Trips of generated populations (benchmarks/harness/riders.py: most riders make the same two trips on most days) are bounded, measured and published by three
mechanisms: Laplace, the paper's O5, and ours with each budget. Errors are root mean squares against all trips, the dropped ones too, over runs from fixed seeds,
each with a population of its own: a small max_trips drops trips, a large one needs more noise. All rows keep the same promise, (ε, δ) for the same unit;
geometric noise keeps it with δ = 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cbdp
from benchmarks.harness.markdown import figure, markdown
from benchmarks.harness.riders import Population, population
from cbdp.features import SINGLETON
from cbdp.mechanisms import ConstraintBased, Laplace, Mechanism
from cbdp.privacy.entropy import InsecureSeededEntropy

Floats = NDArray[np.float64]

TABLES = ("total", "time", "zones", "zone", SINGLETON)
MOST = {"day": (2, 4, 8), "release": (4, 20, 40)}
LAWS = ("geometric", "gaussian")
BUDGETS = ("tables", "balanced", "leaves")
OURS = "ours"
OTHERS = {"laplace": "–", "O5": "uniform"}  # and the budget of each: one table, and what the paper does


@dataclass(frozen=True)
class Row:
    """One way to protect one unit, with its errors by table."""

    way: str
    budget: str
    law: str
    apart: str | None
    most: int
    kept: float  # share of the trips
    errors: Mapping[str, float]

    @property
    def words(self) -> list[str]:
        return [self.way, self.budget, self.law, self.apart or "–", f"{self.most}"]


@dataclass(frozen=True)
class Bounded:
    """One population, bounded to a unit, and the true tables of all of its trips."""

    people: Population
    counts: Any
    tables: Mapping[str, Floats]


def ways(budgets: Sequence[str]) -> list[tuple[str, str]]:
    """All mechanisms, ours with each of these budgets."""
    return [*OTHERS.items(), *((OURS, budget) for budget in budgets)]


def mechanism_of(
    way: str, budget: str, law: str, unit: cbdp.Person, people: Population, price: Mapping[str, str]
) -> Mechanism:
    """A mechanism that keeps the promise, `price`: ε and δ, with either law."""
    paid: dict[str, Any] = {name: price[name] for name in (("epsilon",) if law == "geometric" else price)}
    if way == "laplace":
        return Laplace(people.features, unit=unit, law=law, **paid)
    if way == "O5":
        return ConstraintBased(people.features, unit=unit, law=law, preset="paper", **paid)
    return ConstraintBased(people.features, unit=unit, law=law, budget=budget, **paid)


def rows(
    populations: Sequence[Population], per: str, price: Mapping[str, str], budgets: Sequence[str] = BUDGETS
) -> Iterator[Row]:
    """All ways, by max_trips, apart and law; each population is one run."""
    true = [_tables(people) for people in populations]
    for most in MOST[per]:
        for apart in (None, "time"):
            unit = cbdp.Person("card", most, per, apart)
            held = [
                Bounded(people, _counted(people, unit), tables)
                for people, tables in zip(populations, true, strict=True)
            ]
            kept = float(np.mean([h.counts.value.sum() / h.tables["total"][0] for h in held]))
            for law in LAWS:
                for way, budget in ways(budgets):
                    made = [mechanism_of(way, budget, law, unit, h.people, price) for h in held]
                    yield Row(way, budget, law, apart, most, kept, _errors(made, held))


def _counted(people: Population, unit: cbdp.Person) -> Any:
    seed = InsecureSeededEntropy(7)
    return cbdp.count(people.trips, people.features.universe, columns=people.columns, unit=unit, entropy=seed)


def _tables(people: Population) -> dict[str, Floats]:
    truth, dag = people.truth, people.features
    summed = {
        name: np.bincount(dag.partition(name).of_every_type(), truth, dag.size(name)).astype(float)
        for name in TABLES
        if name != SINGLETON
    }
    return {**summed, SINGLETON: truth.astype(float)}


def _errors(made: Sequence[Mechanism], held: Sequence[Bounded]) -> dict[str, float]:
    """The root of the mean square over runs and over the rows of each table."""
    squares: dict[str, list[float]] = {name: [] for name in TABLES}
    for seed, (mechanism, bounded) in enumerate(zip(made, held, strict=True)):
        release = mechanism.simulate(bounded.counts, seed)
        dag = release.features
        codes = dag.universe.unrank_codes(release.index)
        for name, true in bounded.tables.items():
            element = release.index if name == SINGLETON else dag.partition(name).element_of(codes)
            found = np.bincount(element, release.value, len(true))
            squares[name].append(float(np.mean((found - true) ** 2)))
    return {name: float(np.sqrt(np.mean(each))) for name, each in squares.items()}


def said(found: Sequence[Row]) -> str:
    """Every row."""
    head = ["way", "budget", "law", "apart", "max_trips", "trips kept", *TABLES]
    return markdown(
        head, [[*r.words, f"{100 * r.kept:.0f} %", *(figure(r.errors[t]) for t in TABLES)] for r in found]
    )


def winners(found: Sequence[Row]) -> str:
    """For each table the row with the least error, and the least error of each way and of the plain unit and law."""
    body = []
    names = [*OTHERS, OURS]
    for table in TABLES:
        first = min(found, key=lambda r: r.errors[table])
        least = [min(r.errors[table] for r in found if r.way == way) for way in names]
        plain = min(r.errors[table] for r in found if r.apart is None and r.law == LAWS[0] and r.way == OURS)
        body.append([table, *first.words, *(figure(e) for e in (*least, plain))])
    head = ["table", "least error", "budget", "law", "apart", "max_trips", *(f"best {way}" for way in names)]
    return markdown([*head, "ours, geometric, not apart"], body)


def by_budget(found: Sequence[Row], table: str) -> str:
    """Of ours: the least error of each budget for single types, and for a table, by law and apart."""
    ours = [r for r in found if r.way == OURS]
    budgets = list(dict.fromkeys(r.budget for r in ours))
    body = []
    for law in LAWS:
        for apart in (None, "time"):
            own = [r for r in ours if (r.law, r.apart) == (law, apart)]
            least = [
                min(r.errors[name] for r in own if r.budget == budget)
                for name in (table, SINGLETON)
                for budget in budgets
            ]
            body.append([law, apart or "–", *map(figure, least)])
    head = [f"{name}: {budget}" for name in (table, SINGLETON) for budget in budgets]
    return markdown(["law", "apart", *head], body)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks persons")
    parser.add_argument("--runs", type=int, default=3, help="each with a population of its own")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--delta", default="1e-6")
    parser.add_argument("--budget", nargs="+", default=list(BUDGETS), help="of ours")
    parser.add_argument("--per", nargs="+", choices=tuple(MOST), default=list(MOST))
    parser.add_argument("--stops", type=int, default=24)
    parser.add_argument("--riders", type=int, default=2000)
    parser.add_argument("--by-day", action="store_true", help="count each of the 20 days for itself")
    given = parser.parse_args(argv)
    peopled = [
        population(stops=given.stops, riders=given.riders, by_day=given.by_day, seed=seed)
        for seed in range(given.runs)
    ]
    trips = sum(people.trips.num_rows for people in peopled) // given.runs
    days = "told apart" if given.by_day else "pooled"
    print(
        f"{given.riders:,} riders, 20 days {days}, {trips:,} trips, {peopled[0].features.universe.size:,} trip types, "
        f"ε = {given.epsilon}, δ = {given.delta} with Gaussian noise, {given.runs} populations\n"
    )
    price = {"epsilon": given.epsilon, "delta": given.delta}
    for per in given.per:
        found = list(rows(peopled, per, price, given.budget))
        whose = "all of a person's trips" if per == "release" else f"one {per} of a person"
        print(f"Protected: {whose}. Where each is best:\n\n{winners(found)}\n")
        print(f"By budget (max_trips as it is best):\n\n{by_budget(found, 'zone')}\n\n{said(found)}\n")
    return 0
