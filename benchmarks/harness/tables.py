"""Results put together: means over seeds with their standard errors, as Markdown, as CSV, and as cells of any table."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.harness.markdown import figure, markdown
from benchmarks.harness.store import NOT_POSSIBLE, OK, Row

Group = tuple[str, str, str, str]  # task, data, mechanism, ε
NONE = "–"


@dataclass(frozen=True)
class Number:
    """A metric over the seeds of a group."""

    mean: float
    error: float  # standard error of the mean
    median: float
    runs: int


@dataclass(frozen=True)
class Summary:
    """What became of a group of runs: its metrics, and what went wrong if anything did."""

    group: Group
    runs: int
    status: str = OK
    detail: str = ""
    numbers: Mapping[str, Number] = field(default_factory=dict)


def summarise(rows: Iterable[Row]) -> dict[Group, Summary]:
    """Groups in the order in which they were asked for."""
    groups: dict[Group, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.spec.group, []).append(row)
    return {group: _summary(group, own) for group, own in groups.items()}


def _summary(group: Group, rows: Sequence[Row]) -> Summary:
    good = [r for r in rows if r.status == OK]
    bad = next((r for r in rows if r.status != OK), None)
    names = dict.fromkeys(name for r in good for name in r.metrics)
    numbers = {n: _number([r.metrics[n] for r in good if n in r.metrics]) for n in names}
    return Summary(group, len(good), bad.status if bad else OK, bad.detail if bad else "", numbers)


def _number(values: Sequence[float]) -> Number:
    known = np.array([v for v in values if not math.isnan(v)])
    if not len(known):
        return Number(math.nan, math.nan, math.nan, 0)
    spread = float(known.std(ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else math.nan
    return Number(float(known.mean()), spread, float(np.median(known)), len(known))


def value(found: Summary | None, metric: str, *, median: bool = False) -> float:
    """A metric of a group; NaN where there is none."""
    number = found.numbers.get(metric) if found else None
    return math.nan if number is None else number.median if median else number.mean


def cell(found: Summary | None, metric: str, *, median: bool = False, error: bool = False) -> str:
    """A metric as text, or what went wrong."""
    if found is None:
        return NONE
    if found.status != OK:
        return NONE if found.status == NOT_POSSIBLE else found.status
    shown = figure(value(found, metric, median=median))
    spread = found.numbers[metric].error if metric in found.numbers else math.nan
    return f"{shown} ± {figure(spread)}" if error and math.isfinite(spread) else shown


@dataclass(frozen=True)
class Table:
    """A header and rows of text."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: bool = False  # every column is text, not the first alone

    def markdown(self) -> str:
        text = markdown(self.header, self.rows)
        return text.replace("---:", ":---") if self.words else text


def by_epsilon(
    found: Mapping[Group, Summary],
    task: str,
    data: str,
    mechanisms: Sequence[str],
    epsilons: Sequence[str],
    metric: str,
) -> Table:
    """A row per mechanism, a column per ε."""
    rows = [
        [name, *(cell(found.get((task, data, name, e)), metric, error=True) for e in epsilons)]
        for name in mechanisms
        if any((task, data, name, e) in found for e in epsilons)
    ]
    return Table([data, *(f"ε = {e}" for e in epsilons)], rows)


def by_metric(
    found: Mapping[Group, Summary],
    task: str,
    data: str,
    mechanisms: Sequence[str],
    epsilon: str,
    metrics: Mapping[str, str],
) -> Table:
    """A row per mechanism, a column per metric (name → heading)."""
    kept = [
        (name, found[task, data, name, epsilon])
        for name in mechanisms
        if (task, data, name, epsilon) in found
    ]
    rows = [[name, *(cell(s, m, median=m in MEDIANS) for m in metrics), str(s.runs)] for name, s in kept]
    return Table([f"{data}, ε = {epsilon}", *metrics.values(), "runs"], rows)


# of which one slow run shall not decide
MEDIANS = ("cpu", "wall", "memory", "save", "list", "loop", "solve", "round")


def failures(found: Mapping[Group, Summary]) -> Table:
    """The groups in which something went wrong."""
    rows = [
        [f"{s.group[1]} · {s.group[2]} · ε = {s.group[3]}", s.status, s.detail, str(s.runs)]
        for s in found.values()
        if s.status not in (OK, NOT_POSSIBLE)
    ]
    return Table(["group", "what", "why", "runs before it"], rows, words=True)


def csv_text(found: Mapping[Group, Summary]) -> str:
    """Every number there is, in long form."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            "task",
            "data",
            "mechanism",
            "epsilon",
            "status",
            "metric",
            "runs",
            "mean",
            "standard_error",
            "median",
        ]
    )
    for s in found.values():
        if not s.numbers:
            writer.writerow([*s.group, s.status, "", 0, "", "", ""])
        for name, n in s.numbers.items():
            numbers = ["" if math.isnan(v) else f"{v:.6g}" for v in (n.mean, n.error, n.median)]
            writer.writerow([*s.group, s.status, name, n.runs, *numbers])
    return text.getvalue()
