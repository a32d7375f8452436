"""Outcomes against the real service: errors, their means and standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.harness.markdown import figure
from benchmarks.transit.city import AS_IS
from benchmarks.transit.jobs import PERIOD, Job, Outcome
from benchmarks.transit.plan import Plan


@dataclass(frozen=True, eq=False)
class Results:
    """What was found, by job."""

    found: Mapping[Job, Outcome]
    plan: Plan

    def truth(
        self, day: str, *, shape: str = AS_IS, period: int | None = PERIOD, operations: str = AS_IS
    ) -> Outcome:
        return self.found[Job(day, None, shape=shape, period=period, operations=operations)]

    def made(
        self,
        day: str,
        name: str,
        epsilon: str = "1",
        *,
        shape: str = AS_IS,
        period: int | None = PERIOD,
        seeds: Iterable[int] | None = None,
    ) -> list[Outcome]:
        """The outcomes of a contestant, as far as they were found: of its data sets in Table 1, or of these seeds."""
        chosen = self.plan.seeds(name) if seeds is None else seeds
        jobs = (Job(day, name, epsilon, s, shape, period) for s in chosen)
        return [self.found[j] for j in jobs if j in self.found]


def error(outcome: Outcome, truth: Outcome, metric: str) -> float:
    """The relative error, signed."""
    return float(getattr(outcome, metric) / getattr(truth, metric) - 1)


def errors(made: Sequence[Outcome], truth: Outcome, metric: str) -> list[float]:
    """The signed relative errors of the fleets that were found."""
    return [error(o, truth, metric) for o in made if o.fleet]


def zone_errors(outcome: Outcome, truth: Outcome) -> list[float]:
    """The relative errors of the zones' shuttles, signed."""
    return [n / m - 1 for n, m in zip(outcome.fleet, truth.fleet, strict=True)] if outcome.fleet else []


def zone_error(outcome: Outcome, truth: Outcome) -> float:
    """The mean over zones of the relative error of their shuttles: totals cancel, this does not."""
    return mean(abs(e) for e in zone_errors(outcome, truth))


def mean(values: Iterable[float]) -> float:
    kept = list(values)
    return float(np.mean(kept)) if kept else math.nan


def standard_error(values: Sequence[float]) -> float:
    """Of the mean; unknown for fewer than two."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def within(values: Sequence[float]) -> str:
    """A mean and its standard error.

    >>> within([0.1, 0.2, 0.3]), within([0.5]), within([])
    ('0.200 ± 0.058', '0.500', '–')
    """
    around = standard_error(values)
    return figure(mean(values)) + (f" ± {figure(around)}" if math.isfinite(around) else "")


def percents(values: Sequence[float]) -> str:
    """A mean as a signed percentage, with its standard error.

    >>> percents([0.1, 0.2, 0.3]), percents([])
    ('+20 ± 6 %', '–')
    """
    if not values:
        return "–"
    around = standard_error(values)
    said = f" ± {100 * around:.0f}" if math.isfinite(around) else ""
    return f"{100 * mean(values):+.0f}{said} %"
