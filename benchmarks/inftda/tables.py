"""From rows to tables: means over runs, and ours beside the rival's at every level."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from benchmarks.harness.markdown import figure
from benchmarks.harness.tables import Table
from benchmarks.inftda.demand import Level
from benchmarks.inftda.trials import RIVAL, Row

METRICS: Mapping[str, str] = {
    "mean": "mean absolute error per pair",
    "most": "maximum absolute error",
    "false_discoveries": "false discoveries, %",
    "false_negatives": "false negatives, %",
}


Key = tuple[str, str, str, Level]


@dataclass(frozen=True)
class Found:
    """All rows, and what they say on average."""

    rows: Sequence[Row]

    @property
    def data(self) -> list[str]:
        return list(dict.fromkeys(r.data for r in self.rows))

    @property
    def epsilons(self) -> list[str]:
        return sorted({r.epsilon for r in self.rows}, key=float)

    @property
    def mechanisms(self) -> list[str]:
        return list(dict.fromkeys(r.mechanism for r in self.rows))

    def levels(self, data: str) -> list[Level]:
        """Those below all trips, which every mechanism here meets exactly."""
        return sorted({(r.origin, r.destination) for r in self.rows if r.data == data})[1:]

    def means(self, metric: str) -> dict[Key, float]:
        return {key: fmean(values) for key, values in self.values(metric).items()}

    def values(self, metric: str) -> dict[Key, list[float]]:
        """Of every run, by data, ε, mechanism and level."""
        held: dict[Key, list[float]] = defaultdict(list)
        for r in self.rows:
            held[r.data, r.epsilon, r.mechanism, (r.origin, r.destination)].append(getattr(r, metric))
        return held

    def seconds(self, data: str, mechanism: str) -> float:
        """Of the median release."""
        own = {
            (r.epsilon, r.seed): r.seconds for r in self.rows if (r.data, r.mechanism) == (data, mechanism)
        }
        return median(own.values()) if own else float("nan")

    def runs(self, mechanism: str) -> str:
        """How many releases the means are over."""
        own = Counter(
            (r.data, r.epsilon) for r in self.rows if r.mechanism == mechanism and not r.destination
        )
        least, most = min(own.values(), default=0), max(own.values(), default=0)
        return str(most) if least == most else f"{least} to {most}"


def called(level: Level) -> str:
    return f"{level[0]}–{level[1]}"


def by_level(found: Found, data: str, metric: str) -> Table:
    """A row for each ε and mechanism, a column for each level."""
    means, levels = found.means(metric), found.levels(data)
    rows = [
        [f"ε = {e}, {m}", *(figure(means[data, e, m, at]) for at in levels)]
        for e in found.epsilons
        for m in found.mechanisms
        if (data, e, m, levels[0]) in means
    ]
    return Table([METRICS[metric], *map(called, levels)], rows)


def pairs(found: Found) -> Table:
    """Single pairs of places: every measure, and the time."""
    means = {metric: found.means(metric) for metric in METRICS}
    rows = []
    for data in found.data:
        at = found.levels(data)[-1]
        for e in found.epsilons:
            for m in found.mechanisms:
                if (data, e, m, at) in means["mean"]:
                    numbers = [figure(means[metric][data, e, m, at]) for metric in METRICS]
                    rows.append([f"{data}, ε = {e}, {m}", *numbers])
    return Table(["pairs of places", *METRICS.values()], rows)


def times(found: Found) -> Table:
    rows = [[data, *(figure(found.seconds(data, m)) for m in found.mechanisms)] for data in found.data]
    return Table(["seconds of a release", *found.mechanisms], rows)


@dataclass(frozen=True)
class Comparison:
    """Ours over the rival's at one place, and the standard error of that."""

    data: str
    epsilon: str
    level: Level
    ratio: float
    error: float

    def __str__(self) -> str:
        return f"{self.data}, ε = {self.epsilon}, level {called(self.level)}: {self.ratio:.2f} ± {figure(self.error)}"


def compared(found: Found, mechanism: str, metric: str = "mean") -> list[Comparison]:
    """The ratio at every data set, ε and level where both were run; 0/0 is left out."""
    values = found.values(metric)
    made = []
    for data in found.data:
        for e in found.epsilons:
            for at in found.levels(data):
                own, theirs = values.get((data, e, mechanism, at)), values.get((data, e, RIVAL, at))
                if own and theirs and fmean(theirs):
                    ratio = fmean(own) / fmean(theirs)
                    spread = math.hypot(uncertain(own), uncertain(theirs))
                    made.append(Comparison(data, e, at, ratio, ratio * spread))
    return made


def uncertain(values: Sequence[float]) -> float:
    """The standard error of the mean, relative to it; unknown from one run."""
    if len(values) < 2:
        return math.nan
    return stdev(values) / math.sqrt(len(values)) / max(fmean(values), 1e-300)


def ratios(found: Found, mechanism: str) -> Table:
    """The least and the largest ratio over levels, and that of single pairs."""
    rows = []
    made = compared(found, mechanism)
    for data in found.data:
        last = found.levels(data)[-1]
        for e in found.epsilons:
            own = [c for c in made if (c.data, c.epsilon) == (data, e)]
            if not own:
                continue
            least, most = min(own, key=lambda c: c.ratio), max(own, key=lambda c: c.ratio)
            pair = next(c.ratio for c in own if c.level == last)
            rows.append([
                f"{data}, ε = {e}", f"{least.ratio:.2f} ({called(least.level)})",
                f"{most.ratio:.2f} ({called(most.level)})", f"{pair:.2f}", f"{sum(c.ratio < 1 for c in own)} of {len(own)}",
            ])  # fmt: skip
    return Table([f"{mechanism} / {RIVAL}", "least", "largest", "single pairs", "levels below 1"], rows)
