"""The sections of the page: which runs each needs, and what it says of their results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.ablation.case import EPSILONS as TABLE_2
from benchmarks.ablation.case import H5_TRIPS, PUBLISHED, Day
from benchmarks.harness import figures
from benchmarks.harness.data import DENSE, dense_name
from benchmarks.harness.figures import Series
from benchmarks.harness.markdown import figure, percent
from benchmarks.harness.page import Block, Heading, Picture, Text
from benchmarks.harness.registry import DATA, GROUPS, MECHANISMS, METRICS, Case
from benchmarks.harness.specs import ERRORS, TIMES, Experiment, experiment
from benchmarks.harness.tables import Group, Summary, Table, by_epsilon, by_metric, cell, value
from benchmarks.inflation import CASES, expected, rounded

DAYS: tuple[Day, ...] = ("weekday", "weekend")
WHOLE = "weekday, whole day"
PAPER = ("Lap", "H3", "H4", "H5", "O3", "O4", "O5")
RIVALS = ("Lap", "H3", "H4", "H5")
TABLE_2_ROWS = ("O5", "H5", "O5(a)", "O5(b)", "O5(c)")
EPSILONS = ("1", "0.1", "0.05", "0.01")  # the case study's
DENSE_EPSILONS = ("5", "2", "1", "0.5", "0.2", "0.1", "0.05", "0.02", "0.01", "0.005")
LEAF = "rmse/singleton"
LEAF_SAYS = "root mean square error per type (trips)"
PUBLISHED_SECONDS = {"Lap": "9.9–52.8", "H": "30.1–543", "O": "7.8–15.4"}
PARTS = {"cpu": "make the release", "save": "write its folder", "list": "write its trips, a row each"}
FOLDER, LIST, LOOP = ("cpu", "save"), ("cpu", "save", "list"), ("cpu", "save", "loop")
ENDS = {
    FOLDER: "release folder",
    LIST: "release folder and trip list",
    LOOP: "release folder and trip list by a loop",
}
ASIDE = ("simple", "ours")  # they are on the page on accuracy
TITLES = {
    "paper": "the paper's mechanisms",
    "trees": "trees with other budgets, not pruned",
    "ablation": "O5 with parts changed",
    "others": "others",
    "peers": "peers",
    "simple": "simple answers",
    "ours": "ours",
}
OVERVIEW = {
    LEAF: "RMSE, types", "mae/singleton": "MAE, types", "l1": "L1 / trips", "inflation": "trips / true", "negative": "below 0",
    "false": "false types", "missed": "missed types", "sparsity": "zeros", "emd": "EMD", "cpu": "CPU s", "memory": "peak MiB",
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """How much is run."""

    runs: int = 50
    few: int = 10  # where a mean of fewer runs is sharp enough, or the runs are large
    epsilons: tuple[str, ...] = EPSILONS
    dense: tuple[str, ...] = DENSE_EPSILONS
    fills: tuple[float, ...] = DENSE
    real: tuple[str, ...] = ("1", "0.1")
    slow: bool = True  # also mechanisms that state a limit on their runs


SMOKE = Size(2, 1, ("1", "0.1", "0.01"), ("2", "1", "0.1", "0.01"), (0.5, 5, 60), ("1",), slow=False)


@dataclass(frozen=True)
class Results:
    """What the sections read."""

    found: Mapping[Group, Summary]
    size: Size
    out: Path
    chosen: tuple[str, ...]  # mechanisms
    checks: list[tuple[str, bool, str]] = field(default_factory=list)  # claim, whether it holds, in figures

    def check(self, claim: str, holds: bool | None, told: str) -> None:
        """Note whether a claim holds; None: nothing was measured that could say."""
        if holds is not None:
            self.checks.append((claim, holds, told))

    def at(self, data: str, mechanism: str, epsilon: str, task: str = ERRORS) -> Summary | None:
        return self.found.get((task, data, mechanism, epsilon))

    def picture(self, name: str) -> Path:
        return self.out / "figures" / f"{name}.png"

    @cached_property
    def cases(self) -> dict[str, Case]:
        """The data sets of which there are results: loaded again, for what is said about them."""
        used = dict.fromkeys(s.group[1] for s in self.found.values() if s.runs)
        return {name: DATA[name].load() for name in used}


Names = tuple[str, ...]
Section = Callable[[Results], Iterator[Block]]


def mechanisms_of(size: Size) -> tuple[str, ...]:
    return tuple(n for n, m in MECHANISMS.items() if m.group not in ASIDE and (size.slow or not m.slow))


def most_runs(size: Size) -> dict[str, int]:
    """How many runs of a group each mechanism gets at most."""
    return {n: m.most_runs if size.slow or m.group != "peers" else 1 for n, m in MECHANISMS.items()}


def plan(
    size: Size, chosen: Sequence[str], sections: Iterable[str], extra: Sequence[str] = ()
) -> list[Experiment]:
    """The experiments that the sections need. `extra` data sets are those of plug-ins and of the command line."""
    paper = tuple(m for m in PAPER if m in chosen)
    few = tuple(m for m in ("Lap", "H5", "O5") if m in chosen)
    # other trees and peers on the weekday only: on other demand the page on accuracy has peers
    tried = tuple(m for m in chosen if MECHANISMS[m].group not in ("trees", "peers"))
    real = ("bikes, busiest day", "bikes, all weekdays", "Opal taps", *extra)
    fills = tuple(dense_name(f) for f in size.fills)
    every: dict[str, list[tuple[str, Names, Names, Names, int, str]]] = {
        "pathology": [("whole day", (WHOLE,), few, ("1",), size.few, ERRORS)],
        "errors": [
            ("weekday", DAYS[:1], tuple(chosen), size.epsilons, size.runs, ERRORS),
            ("weekend", DAYS[1:], tried, size.epsilons, size.runs, ERRORS),
        ],
        "times": [
            ("times", DAYS[:1], paper, size.epsilons, max(size.few, 3), TIMES),
            (
                "times, whole day",
                (WHOLE,),
                tuple(m for m in ("Lap", "O5") if m in chosen),
                ("1", "0.1"),
                3,
                TIMES,
            ),
        ],
        "dense": [
            ("dense city", (dense_name(max(size.fills)),), paper, size.dense, size.few, ERRORS),
            ("density", fills, few, ("1",), size.few, ERRORS),
        ],
        "real": [("real demand", real, tried, size.real, size.few, ERRORS)],
    }
    return [experiment(*given) for name in sections for given in every.get(name, ())]


# §6


def pathology(results: Results) -> Iterator[Block]:
    yield Heading("Trips that noise invents (§6)")
    yield Text(
        "Laplace noise on every trip type, clipped at 0 and rounded, invents trips, because nearly all types are empty: about half "
        "a trip for each type and 1/ε. Means over the runs; `expected` is the exact mean, Σ E max(0, c + Z) over the types; "
        "published numbers are the case study's. Other laws of the noise: `python -m benchmarks inflation`."
    )
    rows = []
    for case in CASES:
        data = DAYS[0] if case.hours[0] == "08:00" else WHOLE
        lap = results.at(data, "Lap", case.epsilon)
        if lap is None or data not in results.cases:
            continue
        true = results.cases[data].trips
        theirs = H5_TRIPS.get(case.epsilon, math.nan) if data == DAYS[0] else math.nan
        rows.append(
            [
                f"{case.hours[0]}–{case.hours[1]}, ε = {case.epsilon}", f"{true:,}", cell(lap, "trips"),
                figure(expected(rounded, results.cases[data].truth, 1 / float(case.epsilon))), figure(case.published),
                percent(value(lap, "trips") / case.published - 1), cell(results.at(data, "H5", case.epsilon), "trips"),
                figure(theirs), cell(results.at(data, "O5", case.epsilon), "trips"),
            ]
        )  # fmt: skip
    header = [
        "weekday",
        "true trips",
        "Lap",
        "expected",
        "published",
        "Lap − published",
        "H5",
        "published",
        "O5",
    ]
    yield Table(header, rows)
    if DAYS[0] in results.cases:
        yield _pathology_picture(results)


def _pathology_picture(results: Results) -> Picture:
    made = [_line(results, DAYS[0], m, results.size.epsilons, "trips") for m in ("Lap", "H5", "O5")]
    lines = [line for line in made if line]
    rush = {c.epsilon: c.published for c in CASES if c.hours[0] == "08:00"}
    theirs = [
        Series(name, [float(e) for e in known], list(known.values()))
        for name, known in (("Lap", rush), ("H5", H5_TRIPS))
    ]
    true = results.cases[DAYS[0]].trips
    path = figures.dots(
        lines,
        theirs,
        results.picture("pathology"),
        x="privacy budget ε (log scale)",
        y="published trips (log scale)",
        level=(f"true trips: {true:,}", true),
    )
    return Picture(path, "Published trips, weekday 8–10 am. Rings: the case study's numbers.")


def _line(
    results: Results, data: str, mechanism: str, epsilons: Sequence[str], metric: str = LEAF
) -> Series | None:
    return figures.series(results.found, ERRORS, data, mechanism, epsilons, metric)


# Figure 5(a)(b)


def errors(results: Results) -> Iterator[Block]:
    yield Heading("Errors by ε (Figure 5(a), (b))")
    yield Text(
        "Root mean square error per trip type of the published whole numbers, mean over the runs ± standard error. "
        "`all zeros` is the error of an answer that is zero everywhere: what lies above it says less of single types "
        "than nothing does."
    )
    rows: dict[str, dict[str, list[Series]]] = {}
    zeros: dict[str, tuple[str, float]] = {}
    for group in GROUPS:
        names = [m for m in results.chosen if MECHANISMS[m].group == group]
        made: dict[str, list[Series]] = {}
        for day in DAYS:
            lines = [_line(results, day, m, results.size.epsilons) for m in names]
            ours = [] if "O5" in names else [_line(results, day, "O5", results.size.epsilons)]
            made[day] = [line for line in (*lines, *ours) if line] if any(lines) else []
        if any(made.values()):
            rows[TITLES[group]] = made
    for day in (d for d in DAYS if d in results.cases):
        level = float(np.sqrt(np.mean(results.cases[day].truth.astype(float) ** 2)))
        zeros[day] = "all zeros", level
    first = {TITLES["paper"]: rows[TITLES["paper"]]} if TITLES["paper"] in rows else {}
    others = {title: made for title, made in rows.items() if title not in first}
    how = {"x": "privacy budget ε (log scale)", "y": "RMSE per type (trips)"}
    for shown, name, said in (
        (first, "errors", "Error by privacy budget, both axes logarithmic, 8–10 am: the paper's mechanisms."),
        (others, "errors-others", "The same for all other mechanisms, O5 beside them."),
    ):
        if shown:
            yield Picture(figures.grid(shown, results.picture(name), reference=zeros, **how), said)
    for day in DAYS:
        table = by_epsilon(results.found, ERRORS, day, results.chosen, results.size.epsilons, LEAF)
        if day in zeros:
            zero = ["all zeros", *([figure(zeros[day][1])] * len(results.size.epsilons))]
            yield Table(table.header, [*table.rows, zero])
    _check_errors(results)
    if DAYS[0] in zeros:
        yield from _order_of_magnitude(results, zeros[DAYS[0]][1])


def _order_of_magnitude(results: Results, zero: float) -> Iterator[Block]:
    """Why O5 is not ten times better than Lap at every ε below 1."""
    case, day = results.cases[DAYS[0]], DAYS[0]
    busy = case.truth[case.truth > 0]
    theirs = dict(zip(TABLE_2, PUBLISHED[day]["O5"], strict=True))
    rows, ratios = [], {}
    for e in results.size.epsilons:
        lap, ours = (value(results.at(day, m, e), LEAF) for m in ("Lap", "O5"))
        ratios[float(e)] = lap / ours
        told = [lap, lap * float(e), lap / 10, zero, ours, lap / ours, 5 / float(e)]
        published = theirs.get(e, math.nan)
        rows.append([f"ε = {e}", *map(figure, told), figure(published), figure(lap / published)])
    known = {e: r for e, r in ratios.items() if not math.isnan(r)}
    if min((r for e, r in known.items() if e < 1), default=math.inf) >= 10:
        return  # nothing to explain
    yield Heading("Where an order of magnitude is possible", 3)
    yield Table(
        [
            day, "Lap", "Lap × ε", "a tenth of it", "all zeros", "O5", "Lap ÷ O5", "noise on O5's types", "O5, published",
            "Lap ÷ that",
        ],
        rows,
    )  # fmt: skip
    met = crossings(
        Series("", list(known), list(known.values())), Series("", list(known), [10.0] * len(known))
    )
    place = f"; the line between the measured points crosses ten at ε = {met[0]:.2g}" if met else ""
    yield Text(
        "The case study is read as: O5 beats Lap by an order of magnitude for ε < 1. It does so only where ε is small"
        f"{place}. Lap's error does not depend on the demand: nearly all types are empty, and noise of scale 1/ε clipped at 0 has "
        "the root mean square 1/ε, which the third column shows. A tenth of that at ε = 0.1 is "
        f"{figure(1.0)}, {100 / zero:.0f} % of the {figure(zero)} that all zeros are off by, so an answer would have to find most of the "
        f"{len(busy):,} busy types, whose mean is {busy.mean():.1f} trips, under noise of scale 50 on each. O5 does not, and nor did it "
        "when it was published: its error there against the same Lap is in the last column. At ε = 0.01 the order of magnitude is "
        "there because Lap has left all zeros far behind, while O5's total is right and so its error stays near theirs."
    )


def _check_errors(results: Results) -> None:
    for day in DAYS:
        best = {e: _advantage(results, day, e) for e in results.size.epsilons}
        known = {e: r for e, r in best.items() if not math.isnan(r)}
        told = ", ".join(f"× {figure(r)} at ε = {e}" for e, r in known.items())
        small = [r for e, r in known.items() if float(e) < 1]
        claim = f"{day}: at every ε O5's error per type is below that of Lap, H3, H4 and H5"
        results.check(claim, min(known.values()) > 1 if known else None, f"against the best of them: {told}")
        ten = f"{day}: by an order of magnitude for ε < 1"
        results.check(
            ten, min(small) >= 10 if small else None, f"least: × {figure(min(small, default=math.nan))}"
        )


def _advantage(results: Results, data: str, epsilon: str) -> float:
    """How many times larger the best rival's error is than O5's."""
    rivals = [value(results.at(data, m, epsilon), LEAF) for m in RIVALS]
    known = [r for r in rivals if not math.isnan(r)]
    return min(known) / value(results.at(data, "O5", epsilon), LEAF) if known else math.nan


# Table 2


def table_2(results: Results) -> Iterator[Block]:
    yield Heading("What matters in O5 (Table 2)")
    yield Text(
        "Error as above, the published number beside it. Of the published weekend columns one row survived in the text, "
        "taken for O5(c)'s. What explains the differences, and what does not, is on the page on the "
        "[ablation](ablation.md)."
    )
    epsilons = [e for e in TABLE_2 if e in results.size.epsilons]
    for day in DAYS:
        rows = []
        for name in TABLE_2_ROWS:
            theirs = dict(zip(TABLE_2, PUBLISHED[day].get(name, (math.nan,) * 3), strict=True))
            cells = [(cell(results.at(day, name, e), LEAF, error=True), figure(theirs[e])) for e in epsilons]
            rows.append([name, *(c for pair in cells for c in pair)])
        yield Table([day, *(h for e in epsilons for h in (f"ε = {e}", "published"))], rows)


# Execution times


def times(results: Results) -> Iterator[Block]:
    yield Heading("Execution times")
    yield Text(
        "CPU seconds from exact counts to files, median over the runs, in three parts (on a machine that does other work they "
        "vary by a tenth or more): making the release; writing its folder "
        "(Parquet, a row per type); and writing its trips to CSV with a row for each trip. The case study puts the Laplace "
        "mechanism's time down to the volume of trips that it introduces; its times (Python and Gurobi on a Xeon E3-1240): "
        f"Lap {PUBLISHED_SECONDS['Lap']} s, O {PUBLISHED_SECONDS['O']} s, H {PUBLISHED_SECONDS['H']} s."
    )
    used = [m for m in PAPER if any(results.at(DAYS[0], m, e, TIMES) for e in results.size.epsilons)]
    rows, parts = [], {said: {} for said in PARTS.values()}  # type: ignore[var-annotated]
    for e in results.size.epsilons:
        for m in used:
            found = results.at(DAYS[0], m, e, TIMES)
            for part, said in PARTS.items():
                parts[said][m, e] = value(found, part, median=True)
            whole = [_seconds(found, how) for how in (FOLDER, LIST)]
            cells = [cell(found, part, median=True) for part in PARTS]
            rows.append([f"{m}, ε = {e}", cell(found, "trips"), *cells, *map(figure, whole)])
    yield Table(["weekday", "trips", *PARTS.values(), "first two", "all three"], rows)
    drawn = [m for m in ("Lap", "H5", "O5") if m in used]
    if {"Lap", "O5"} <= set(used):
        yield from _stages(results)
    if drawn:
        path = figures.stacks(parts, results.picture("times"), y="CPU seconds", mechanisms=drawn)
        yield Picture(path, "CPU seconds from exact counts to files, weekday 8–10 am.")
    for how, said in ENDS.items():
        ratios = {e: _speed(results, e, how) for e in results.size.epsilons}
        known = {e: r for e, r in ratios.items() if not math.isnan(r)}
        figures_said = ", ".join(f"{figure(r)} at ε = {e}" for e, r in known.items())
        holds = min(known.values()) > 1 if known else None
        results.check(
            f"O5 is faster than Lap end to end, to the {said}, at every ε",
            holds,
            f"Lap ÷ O5 = {figures_said}",
        )


def _stages(results: Results) -> Iterator[Block]:
    """Where the seconds of Lap and of O5 go, and what a trip has to cost for O5 to be the faster one."""
    rows = []
    for data, e in ((d, e) for d in (DAYS[0], WHOLE) for e in results.size.epsilons):
        for m in ("Lap", "O5"):
            found = results.at(data, m, e, TIMES)
            if found is None or not found.runs:
                continue
            stages = [
                value(found, part, median=True) for part in ("cpu", "solve", "round", "save", "list", "loop")
            ]
            noise = max(0.0, stages[0] - sum(s for s in stages[1:3] if not math.isnan(s)))
            ends = [_seconds(found, how) for how in ENDS]
            cells = map(figure, [noise, *stages[1:], *ends])
            rows.append([f"{data}, ε = {e}, {m}", cell(found, "trips"), *cells])
    yield Text(
        "The same by stage for Lap and O5, and for the whole service day, which has 12 times as many types. The last way to write "
        "the list is a loop of Python's `csv` module, a call for each trip. Three ends: to the folder; and from there to either "
        "list."
    )
    stage = ["noise", "program", "rounding", "folder", "list", "list by a loop"]
    yield Table(["CPU s", "trips", *stage, "to the folder", "to the list", "to the list by a loop"], rows)
    yield Text(_worth(results))


def _worth(results: Results) -> str:
    """In words, when O5 is the faster one."""
    most, least = (extreme(results.size.epsilons, key=float) for extreme in (max, min))
    lap, ours = (results.at(DAYS[0], m, most, TIMES) for m in ("Lap", "O5"))
    many = results.at(DAYS[0], "Lap", least, TIMES)
    each, looped = (1e6 * value(many, part, median=True) / value(many, "trips") for part in ("list", "loop"))
    more = _seconds(ours, FOLDER) - _seconds(lap, FOLDER)
    fewer = value(lap, "trips") - value(ours, "trips")
    faster = [[e for e in results.size.epsilons if _speed(results, e, how) > 1] for how in ENDS]
    said = "; ".join(
        f"to the {end} at {'ε = ' + ', '.join(known) if known else 'no ε'}"
        for end, known in zip(ENDS.values(), faster, strict=True)
    )
    start = (
        f"O5 is faster than Lap {said}. What Lap invents costs time only where trips are handled one by one: in a folder both have "
        f"at most a row for each type. A trip costs {each:.2g} µs in the list and {looped:.2g} µs in the loop. "
    )
    if more <= 0:
        return start + f"To the folder O5 takes no longer than Lap at ε = {most}."
    return start + (
        f"Against that, O5's program and rounding make the way to the folder {1e3 * more:.1f} ms longer at ε = {most}, where Lap has "
        f"{fewer:,.0f} trips more: O5 is the faster one as soon as a trip costs more than {1e6 * more / fewer:.2g} µs. The published times "
        "are tens of seconds; here both mechanisms are done in a fraction of one."
    )


def _seconds(found: Summary | None, parts: Sequence[str]) -> float:
    return sum(value(found, part, median=True) for part in parts)


def _speed(results: Results, epsilon: str, parts: Sequence[str]) -> float:
    lap, ours = (results.at(DAYS[0], m, epsilon, TIMES) for m in ("Lap", "O5"))
    return _seconds(lap, parts) / _seconds(ours, parts)


# The dense city


def dense(results: Results) -> Iterator[Block]:
    full = dense_name(max(results.size.fills))
    if full not in results.cases:
        return
    yield Heading("The other side: dense demand")
    case = results.cases[full]
    yield Text(
        f"A generated metro: {len(case.truth):,} types, {percent_of(case)} of them with trips, {case.trips:,} trips. O5 splits ε "
        "among five features, so its types get a fifth of what Lap gives them; where most types are full, there are few zeros to "
        "win it back."
    )
    lines = [line for m in PAPER if (line := _line(results, full, m, results.size.dense))]
    mine, theirs = (_line(results, full, m, results.size.dense) for m in ("O5", "Lap"))
    found = crossings(mine, theirs) if mine and theirs else []
    ratios = {f: _ratio(results, dense_name(f), "1") for f in results.size.fills}
    known = {f: r for f, r in ratios.items() if not math.isnan(r)}
    if lines and known:
        path = figures.crossover(
            lines,
            Series("O5 ÷ Lap", list(map(float, known)), list(known.values())),
            results.picture("dense"),
            labels={
                "x": "privacy budget ε (log scale)",
                "y": "RMSE per type (trips)",
                "left": full,
                "x right": "types with trips (%, log scale)",
                "y right": "error of O5 ÷ error of Lap",
                "right": "ε = 1, by density",
            },
            crossing=found,
        )
        yield Picture(
            path, "Left: errors on the dense city. Right: O5's error relative to Lap's as the city fills."
        )
    yield by_epsilon(results.found, ERRORS, full, PAPER, results.size.dense, LEAF)
    rows = [
        [
            dense_name(f),
            *(cell(results.at(dense_name(f), m, "1"), LEAF, error=True) for m in ("Lap", "H5", "O5")),
            figure(r),
        ]
        for f, r in ratios.items()
    ]
    yield Table(["ε = 1", "Lap", "H5", "O5", "O5 ÷ Lap"], rows)
    told = "never equal on this grid" if not found else "equal at ε = " + ", ".join(f"{e:.2g}" for e in found)
    densities = crossings(
        Series("", list(known), list(known.values())), Series("", list(known), [1.0] * len(known))
    )
    if densities:
        told += (
            "; at ε = 1 equal where "
            + ", ".join(f"{d:.2g} %" for d in densities)
            + " of the types have trips"
        )
    worse = _ratio(results, full, "1")
    results.check(
        f"{full}: O5's error per type is larger than Lap's at ε = 1", None if math.isnan(worse) else worse > 1,
         f"O5 ÷ Lap = {figure(worse)}; {told}"
    )  # fmt: skip


def percent_of(case: Case) -> str:
    return f"{100 * float((case.truth > 0).mean()):.2g} %"


def _ratio(results: Results, data: str, epsilon: str) -> float:
    return value(results.at(data, "O5", epsilon), LEAF) / value(results.at(data, "Lap", epsilon), LEAF)


def crossings(one: Series, other: Series) -> list[float]:
    """Where two lines over ε meet, on straight lines between their points in logarithms.

    >>> [round(e, 6) for e in crossings(Series("", [1, 0.01], [10, 10]), Series("", [1, 0.01], [1, 100]))]
    [0.1]
    """
    beside = dict(zip(other.x, other.y, strict=True))
    points = sorted(
        (math.log(e), math.log(y / beside[e])) for e, y in zip(one.x, one.y, strict=True) if e in beside
    )
    found = []
    for (a, low), (b, high) in itertools.pairwise(points):
        if low * high < 0:
            found.append(math.exp(a + (b - a) * low / (low - high)))
    return found


# Other demand, and everything at a glance


def real(results: Results) -> Iterator[Block]:
    used = [d for d in results.cases if d not in (*DAYS, WHOLE) and not d.startswith("metro")]
    if not used:
        return
    yield Heading("Other demand")
    for data in used:
        yield Heading(data, 3)
        yield Text(_described(results, data))
        for epsilon in results.size.real:
            yield by_metric(results.found, ERRORS, data, results.chosen, epsilon, OVERVIEW)
    said = {d: _advantage(results, d, "1") for d in used}
    known = {d: r for d, r in said.items() if not math.isnan(r)}
    if known:
        told = ", ".join(f"{d} × {figure(r)}" for d, r in known.items())
        claim = "on other demand at ε = 1 O5's error per type is below that of Lap, H3, H4 and H5"
        results.check(claim, min(known.values()) > 1, f"best of them ÷ O5: {told}")


def _described(results: Results, data: str) -> str:
    case = results.cases[data]
    text = (
        f"{DATA[data].what[:1].upper()}{DATA[data].what[1:]}: {len(case.truth):,} types, {percent_of(case)} of them with trips, "
        f"{case.trips:,} trips."
    )
    ground = f" Ground distance of the EMD: {case.flows.ground} ({case.flows.unit})." if case.flows else ""
    private = (
        " **These figures are as private as the trips: do not publish them.**" if DATA[data].private else ""
    )
    return text + ground + private


def overview(results: Results) -> Iterator[Block]:
    shown = [d for d in (*DAYS, dense_name(max(results.size.fills))) if d in results.cases]
    if not shown:
        return
    yield Heading("Every metric at ε = 1")
    rows = [[f"`{m.name}`", m.unit, m.what] for m in METRICS.values()]
    own = [["`cpu`", "s", "CPU seconds from exact counts to a release, median"]]
    own += [["`memory`", "MiB", "peak resident memory above what was there before, median"]]
    yield Table(["metric", "unit", "what it is"], [*rows, *own], words=True)
    yield Text(
        "All but `before` are of the published whole numbers. Every metric at every ε is in `benchmarks.csv`."
    )
    for data in shown:
        yield Text(_described(results, data))
        yield by_metric(results.found, ERRORS, data, results.chosen, "1", OVERVIEW)
        features = list(results.cases[data].features.features)
        heading = {f"rmse/{f}": f for f in features} | {f"mae/{f}": f"{f} (MAE)" for f in features}
        yield Text("Root mean square error, then mean absolute error, by feature (trips):")
        yield by_metric(results.found, ERRORS, data, results.chosen, "1", heading)


SECTIONS: dict[str, Section] = {
    "pathology": pathology,
    "errors": errors,
    "table2": table_2,
    "times": times,
    "dense": dense,
    "real": real,
    "overview": overview,
}
NEEDS = {"pathology": ("errors",), "table2": ("errors",), "overview": ("errors",)}
