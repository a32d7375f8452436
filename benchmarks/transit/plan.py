"""Which experiments there are, and the jobs that each needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from benchmarks.transit.city import AS_IS, POWER, SHORT
from benchmarks.transit.contestants import ANYWHERE, CELL, FLOOR, HALF_HOUR, THROWN, VOLUME
from benchmarks.transit.jobs import OPERATIONS, PERIOD, RULES, Job, heavy
from benchmarks.transit.published import MECHANISMS
from benchmarks.transit.trees import HEIGHTS, READ_OTHERWISE

EPSILONS = ("1", "0.1", "0.05", "0.01")
SHAPES = (*(f"{POWER}{p}" for p in ("0.5", "0.75")), AS_IS, *(f"{POWER}{p}" for p in ("1.5", "2", "3", "4")))
PROGRAMS = ("O5", "O4", "O3")
OURS = ("P leaves", "P balanced", "P tables")  # the posterior estimator, by what its budget serves
FLAT = (CELL, HALF_HOUR, ANYWHERE)
TAIL_LINES = (("O5", "1"), ("O3", "1"), ("O5", "0.1"), (CELL, "1"), (HALF_HOUR, "1"))


@dataclass(frozen=True)
class Plan:
    """How much is run: `runs` data sets of a heavy mechanism, `many` of a light one in Table 1, `few` that only explain."""

    days: Sequence[str]
    mechanisms: Sequence[str] = MECHANISMS
    runs: int = 10
    many: int = 50
    few: int = 1
    epsilons: Sequence[str] = EPSILONS

    @property
    def first(self) -> str:
        return self.days[0]

    def seeds(self, mechanism: str) -> range:
        """The data sets of a mechanism in Table 1."""
        return range(self.runs if heavy(mechanism) else max(self.runs, self.many))

    def table(self) -> list[Job]:
        """Every mechanism at ε = 1, and the real demand with other seconds: what sizing alone is off by."""
        made = [Job(day, None) for day in self.days]
        for day, name in product(self.days, (*self.mechanisms, FLOOR)):
            made += [Job(day, name, seed=s) for s in self.seeds(name)]
        return made

    def epsilon(self) -> list[Job]:
        """Every mechanism over ε on the first day; the light ones under both readings of the limit."""
        made = [Job(self.first, None, period=p) for p in RULES.values()]
        for name, e in product(self.mechanisms, self.epsilons):
            readings = (PERIOD,) if heavy(name) else RULES.values()
            made += [Job(self.first, name, e, s, period=p) for p in readings for s in range(self.runs)]
        small = self.epsilons[-1]
        return made + [
            Job(self.first, THROWN, small, s, period=p) for p in RULES.values() for s in range(self.runs)
        ]

    def ours(self) -> list[Job]:
        """O5 and the posterior's budgets over ε, every day."""
        made = [Job(day, None) for day in self.days]
        for day, name, e in product(self.days, ("O5", *OURS), self.epsilons):
            made += [Job(day, name, e, s) for s in range(self.runs)]
        return made

    def tail(self) -> list[Job]:
        """O5, O3 and flattened demand, as the tail of demand gets heavier."""
        made = [Job(self.first, None, shape=t) for t in SHAPES]
        return made + [j for shape in SHAPES for n, e in TAIL_LINES for j in self.light(n, e, shape)]

    def mix(self) -> list[Job]:
        """Flattened demand, and demand whose busiest types need the least driving."""
        shapes = (AS_IS, SHORT)
        made = [Job(self.first, None, shape=s) for s in shapes]
        return made + [j for s in shapes for n in (*PROGRAMS, *FLAT) for j in self.light(n, "1", s)]

    def light(self, mechanism: str, epsilon: str, shape: str) -> Iterable[Job]:
        return (Job(self.first, mechanism, epsilon, s, shape) for s in range(self.runs))

    def rule(self) -> list[Job]:
        """The limit for each half hour, or for the two hours."""
        made = [Job(day, None, period=p) for day in self.days for p in RULES.values()]
        for day, period, name in product(self.days, RULES.values(), PROGRAMS):
            made += [Job(day, name, seed=s, period=period) for s in range(self.runs)]
        trees = [n for n in MECHANISMS if heavy(n)]
        return made + [
            Job(self.first, n, seed=s, period=p)
            for n, p in product(trees, RULES.values())
            for s in range(self.few)
        ]

    def volume(self) -> list[Job]:
        """What of Laplace's fleet is more trips, and what their spread; and the fleet under other operations."""
        made = [Job(self.first, m) for m in (None, VOLUME, ANYWHERE, "Lap")]
        return made + [Job(self.first, m, operations=o) for o in OPERATIONS for m in (None, "Lap")]

    def tree(self) -> list[Job]:
        """The trees as the text describes them, and read otherwise."""
        names = [*HEIGHTS, *READ_OTHERWISE, "Lap"]
        return [Job(self.first, None), *(Job(self.first, n, seed=s) for n in names for s in range(self.few))]

    def service(self) -> list[Job]:
        """Nothing to size: the real fleet, enlarged."""
        return [Job(self.first, None)]
