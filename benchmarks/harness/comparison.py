"""Mechanisms beside each other on the same seeds: tables of errors, ratios to the best other, and whether limits hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.harness.figures import panels, series
from benchmarks.harness.markdown import figure
from benchmarks.harness.page import Block, Heading, Picture, Text
from benchmarks.harness.specs import ERRORS
from benchmarks.harness.store import OK, Row
from benchmarks.harness.tables import NONE, Group, Summary, Table, cell, summarise, value
from cbdp.features import SINGLETON

TABLES = ("zone", "mode", "time", "total")
LEVELS = (SINGLETON, *TABLES)
BEFORE, AFTER = "before", "rmse"  # the metrics of errors: of the estimate, and of the published whole numbers
ESTIMATED = "table"  # the metric of measured tables, and those of what could be published in their place
OTHERWISE = {"noise": "its own noise", "projected": "a projection of the same measurements"}
SAID = {BEFORE: "before rounding", AFTER: "after rounding"}
O5 = "O5"
OWN = 1.05  # times the better of both, at most
ONE_TABLE = ("uniform in zone", "total only")  # all of ε for one question
LEAVES, FITTED, BALANCED = "P leaves", "P tables", "P balanced"
OURS = (LEAVES, FITTED, BALANCED)


@dataclass(frozen=True)
class Ratio:
    """A mean over another's, on the same seeds; the standard error is that of paired differences."""

    to: str
    ratio: float
    error: float

    @property
    def text(self) -> str:
        spread = f" ± {self.error:.2g}" if math.isfinite(self.error) else ""
        return f"{self.ratio:.3g}{spread}"

    def verdict(self, most: float) -> str:
        """Whether it is within the limit; "near" where two standard errors less would be."""
        if self.ratio <= most:
            return "yes"
        return "near" if self.ratio - 2 * self.error <= most else "NO"


@dataclass(frozen=True, eq=False)
class Found:
    """Results of runs, by data, ε and mechanism."""

    rows: Sequence[Row]
    data: Sequence[str]
    epsilons: Sequence[str]
    mechanisms: Sequence[str]

    @cached_property
    def summaries(self) -> dict[Group, Summary]:
        return summarise(self.rows)

    @cached_property
    def _values(self) -> dict[tuple[str, str, str], dict[int, Row]]:
        made: dict[tuple[str, str, str], dict[int, Row]] = {}
        for row in self.rows:
            if row.status == OK:
                made.setdefault(row.spec[1:4], {})[row.spec.seed] = row
        return made

    def at(self, data: str, mechanism: str, epsilon: str) -> Summary | None:
        return self.summaries.get((ERRORS, data, mechanism, epsilon))

    @property
    def cases(self) -> Iterator[tuple[str, str]]:
        return ((d, e) for d in self.data for e in self.epsilons)

    def ratio(self, data: str, epsilon: str, one: str, other: str, metric: str) -> Ratio | None:
        """None where they share no seed for which both have the metric."""
        mine, theirs = (self._values.get((data, m, epsilon), {}) for m in (one, other))
        seeds = [s for s in mine if s in theirs and metric in mine[s].metrics and metric in theirs[s].metrics]
        if not seeds:
            return None
        return _paired(other, *([rows[s].metrics[metric] for s in seeds] for rows in (mine, theirs)))

    def worst(
        self, data: str, epsilon: str, one: str, metric: str, *, aside: Sequence[str] = ()
    ) -> Ratio | None:
        """The ratio to the best other mechanism: the largest there is."""
        others = [m for m in self.mechanisms if m not in OURS and m not in aside]
        ratios = [r for m in others if (r := self.ratio(data, epsilon, one, m, metric))]
        return max(ratios, key=lambda r: r.ratio, default=None)

    def own(self, data: str, epsilon: str, name: str, table: str) -> Ratio | None:
        """The error of a measured table over the better of its own noise and a projection of the same measurements."""
        rows = [r.metrics for r in self._values.get((data, name, epsilon), {}).values()]
        told = [m for m in rows if f"{ESTIMATED}/{table}" in m]
        if not told:
            return None
        ratios = [
            _paired(said, *([m[f"{kind}/{table}"] for m in told] for kind in (ESTIMATED, metric)))
            for metric, said in OTHERWISE.items()
        ]
        return max(ratios, key=lambda r: r.ratio)

    def measured(self, data: str) -> list[str]:
        """The tables that some run on these data measured, single types left aside."""
        start = f"{ESTIMATED}/"
        names = (m for r in self.rows if r.spec.data == data and r.status == OK for m in r.metrics)
        found = dict.fromkeys(m.removeprefix(start) for m in names if m.startswith(start))
        return [name for name in found if name != SINGLETON]


def _paired(other: str, mine: Sequence[float], theirs: Sequence[float]) -> Ratio:
    a, b = np.array(mine), np.array(theirs)
    if not b.mean():
        return Ratio(other, math.inf if a.mean() else 1.0, math.nan)
    ratio = float(a.mean() / b.mean())
    left = (
        a - ratio * b
    )  # its mean is 0; the spread of its mean over b's is that of the ratio, to first order
    spread = left.std(ddof=1) / math.sqrt(len(a)) / b.mean() if len(a) > 1 else math.nan
    return Ratio(other, ratio, float(spread))


# The table of errors


def beside_the_best(found: Found) -> Table:
    """The error per trip type before rounding: ours, and that of the best other mechanism with its name."""
    metric = f"{BEFORE}/{SINGLETON}"
    rows = []
    for data in found.data:
        cells = []
        for epsilon in found.epsilons:
            own = [cell(found.at(data, name, epsilon), metric) for name in (LEAVES, BALANCED)]
            others = {m: value(found.at(data, m, epsilon), metric) for m in found.mechanisms if m not in OURS}
            best = min((m for m in others if not math.isnan(others[m])), key=others.__getitem__, default=None)
            cells.append(" · ".join([*own, f"{figure(others[best])} ({best})" if best else NONE]))
        rows.append([data, *cells])
    return Table(["data", *(f"ε = {e}" for e in found.epsilons)], rows)


DRAWN = ("Lap", "H5", O5, "TopDown 80 % leaves", "mbi 80 % leaves", LEAVES, BALANCED)


def picture(found: Found, folder: Path) -> Iterator[Block]:
    """The error per type by ε of the mechanisms that say most, a panel for each data set."""
    metric = f"{AFTER}/{SINGLETON}"
    shown, level = {}, {}
    for data in found.data:
        lines = [series(found.summaries, ERRORS, data, m, found.epsilons, metric) for m in DRAWN]
        shown[data] = [line for line in lines if line and line.y]
        zero = value(found.at(data, "zeros", found.epsilons[0]), metric)
        if not math.isnan(zero):
            level[data] = zero
    if any(shown.values()):
        path = folder / "figures" / "accuracy.png"
        panels(shown, path, x="privacy budget ε", y="RMSE per type (trips)", reference=level)
        yield Picture(
            path, "Error per trip type of the published whole numbers by ε; both axes are logarithmic."
        )


# What shall hold


@dataclass
class Tally:
    """How many rows keep a limit."""

    claim: str
    held: int = 0
    near: int = 0
    rows: int = 0
    worst: float = 0.0

    def add(self, ratio: Ratio | None, most: float) -> str:
        """Count it, and the cell that tells it."""
        if ratio is None:
            return NONE
        if not math.isfinite(most):
            return ratio.text
        told = ratio.verdict(most)
        self.rows += 1
        self.held += told == "yes"
        self.near += told == "near"
        self.worst = max(self.worst, ratio.ratio)
        return f"{ratio.text} {told}"

    def line(self) -> list[str]:
        """Its row in the table of what holds."""
        return [self.claim, str(self.held), str(self.near), str(self.rows), figure(self.worst)]


def checked(found: Found, sparse: Sequence[str]) -> tuple[list[Tally], list[Block]]:
    """How many rows keep each limit; and the ratios by target, after a list of these."""
    tallies: list[Tally] = []
    blocks: list[Block] = []
    for kind in (BEFORE, AFTER):
        blocks += [Heading(f"Ratios to the best other mechanism, {SAID[kind]}")]
        blocks += [b for made in (leaves(found, kind, tallies), fitted(found, kind, tallies)) for b in made]
    blocks += rounded(found, sparse, tallies)
    blocks += measured(found, tallies)
    lines = [t.line() for t in tallies if t.rows]
    header = ["limit", "rows that keep it", "more within two standard errors", "rows", "worst"]
    head: list[Block] = [
        Heading("What holds"),
        Text(
            "Rows (data × ε) that keep each limit; in the tables `near` is within two standard errors of it."
        ),
        Table(header, lines) if lines else Text("- none of ours was run"),
    ]
    return tallies, [*head, *blocks]


def sentences(tallies: Sequence[Tally]) -> str:
    """What was found, in three sentences: single types, the default, whole trips."""
    told = {
        f"{LEAVES}, {SAID[BEFORE]}: error per type at most 1.02": "With the budget `leaves`, single trip types are at most 2 % further "
        "from the truth than with the best other mechanism in {} of {} cases (data set and ε).",
        f"{BALANCED}, {SAID[BEFORE]}: error per type at most 1.15": "With the default budget, `balanced`, they are within 15 % of the best "
        "other in {} of {}, and every table is answered as well.",
        f"{BALANCED}, {SAID[AFTER]}: error per type at most 1.15": "Whole trips cost accuracy where trips are few: after rounding that holds "
        "in {} of {}.",
    }
    found = [
        said.format(t.held, t.rows)
        for start, said in told.items()
        for t in tallies
        if t.rows and t.claim.startswith(start)
    ]
    return " ".join(found)


def leaves(found: Found, kind: str, tallies: list[Tally]) -> Iterator[Block]:
    """Error per type: ours over the best other's, and over O5's."""
    metric = f"{kind}/{SINGLETON}"
    limits = {LEAVES: (1.02, 0.75), FITTED: (math.inf, 1.0), BALANCED: (1.15, math.inf)}
    for name, (best, papers) in limits.items():
        if not any(found.at(d, name, e) for d, e in found.cases):
            continue
        beside = Tally(f"{name}, {SAID[kind]}: error per type at most {best:g} × the best other's")
        to_o5 = Tally(f"{name}, {SAID[kind]}: error per type at most {papers:g} × O5's")
        rows = []
        for data, epsilon in found.cases:
            worst = found.worst(data, epsilon, name, metric)
            old = found.ratio(data, epsilon, name, O5, metric)
            rows.append(
                [
                    f"{data}, ε = {epsilon}",
                    cell(found.at(data, name, epsilon), metric, error=True),
                    cell(found.at(data, worst.to, epsilon), metric, error=True) if worst else NONE,
                    worst.to if worst else NONE,
                    beside.add(worst, best),
                    to_o5.add(old, papers),
                ]
            )
        yield Table([f"{name}: per type", "ours", "best other", "which", "ratio", "÷ O5"], rows)
        tallies += [t for t, most in ((beside, best), (to_o5, papers)) if math.isfinite(most)]


def fitted(found: Found, kind: str, tallies: list[Tally]) -> Iterator[Block]:
    """Error per table: ours over the best other's that answers more than one question, and over any other's."""
    for name, most in ((FITTED, 1.05), (BALANCED, 1.5)):
        if not any(found.at(d, name, e) for d, e in found.cases):
            continue
        for aside, said in ((ONE_TABLE, "the best other that answers every table"), ((), "the best other")):
            tally = Tally(
                f"{name}, {SAID[kind]}: error of zone, mode, time, total at most {most:g} × that of {said}"
            )
            rows = []
            for data, epsilon in found.cases:
                cells = []
                for level in TABLES:
                    worst = found.worst(data, epsilon, name, f"{kind}/{level}", aside=aside)
                    cells.append(f"{tally.add(worst, most)} ({worst.to})" if worst else NONE)
                rows.append([f"{data}, ε = {epsilon}", *cells])
            yield Table([f"{name} ÷ {said}", *TABLES], rows)
            tallies.append(tally)


def rounded(found: Found, sparse: Sequence[str], tallies: list[Tally]) -> list[Block]:
    """On sparse data: trips covered and false types of the published whole numbers beside O5's."""
    used = [m for m in OURS if any(found.at(d, m, e) for d, e in found.cases)]
    made: list[Block] = [Heading("Published trips on sparse data, beside O5's")] if used else []
    for name in used:
        more = Tally(f"{name}: covers at least as many true trips as O5 (O5's ÷ ours)")
        fewer = Tally(f"{name}: at most as many false types as O5")
        rows = []
        for data, epsilon in (c for c in found.cases if c[0] in sparse):
            pair = [found.at(data, m, epsilon) for m in (name, O5)]
            covers = found.ratio(data, epsilon, O5, name, "covered")
            false = found.ratio(data, epsilon, name, O5, "false")
            cells = [cell(s, metric, error=True) for metric in ("covered", "false") for s in pair]
            rows.append([f"{data}, ε = {epsilon}", *cells, more.add(covers, 1.0), fewer.add(false, 1.0)])
        header = ["covered", "O5's", "false types", "O5's", "covered: O5 ÷ ours", "false: ours ÷ O5"]
        made.append(Table([name, *header], rows))
        tallies += [more, fewer]
    return made


def measured(found: Found, tallies: list[Tally]) -> list[Block]:
    """Every measured table before rounding, over the better of its own noise and a projection of the same measurements."""
    made: list[Block] = []
    for name in OURS:
        tally = Tally(
            f"{name}: error of every measured table at most {OWN:g} × the better of its own noise and a projection"
        )
        rows = []
        for data, epsilon in found.cases:
            ratios = {table: found.own(data, epsilon, name, table) for table in found.measured(data)}
            told = [f"{table} {tally.add(ratio, OWN)}" for table, ratio in ratios.items() if ratio]
            if told:
                rows.append([f"{data}, ε = {epsilon}", ", ".join(told)])
        if rows:
            made.append(Table([name, "error ÷ the better of its own noise and a projection"], rows))
            tallies.append(tally)
    return [Heading("Every table beside its own measurement"), *made] if made else []
