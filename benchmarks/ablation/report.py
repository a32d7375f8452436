"""What accounts for the differences, told: a section on H5, one on the QP rows, and a summary of both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks.ablation import search
from benchmarks.ablation.case import (
    MET,
    METRICS,
    PER_TYPE,
    PUBLISHED,
    WHOLE_DAY,
    Case,
    at_published,
    factor,
    root_mean_square,
    say,
)
from benchmarks.ablation.hierarchy import AS_IN_TEXT, EVERY, SINGLE, Reading, check_base
from benchmarks.ablation.programs import qp_tries
from benchmarks.ablation.search import Outcome, error_factor, evidence_row, outcome, published_row
from benchmarks.harness.markdown import figure, figures, markdown

SUMMARY_HEADER = (
    "row", "as in the text", "closest single choice", "off by ×", "closest combination", "off by ×", "explained",
)  # fmt: skip


def explain(runs: int, tries: int, each: int) -> None:
    """Prints each section as soon as it is done: the search takes long."""
    print("## What accounts for the differences\n")
    told, verdict = explain_h5(Case(), runs, each)
    print(told, end="\n\n", flush=True)
    told, verdicts = explain_qp(tries)
    print(told, end="\n\n")
    print("### In short\n")
    print(f"`off by` is the factor at the worst of the three ε; `explained`: at most {MET}.\n")
    print(markdown(SUMMARY_HEADER, [verdict, *verdicts]))


def explain_h5(case: Case, runs: int, each: int) -> tuple[str, list[str]]:
    """Single choices one by one, then all combinations with every reading of the error; and the verdict."""
    check_base(case)
    say("H5, one choice at a time")
    single = {reading: outcome(case, reading, runs) for reading in SINGLE}
    told_single = single_section(single, runs)
    say("H5, all combinations")
    tries = search.every_try(case, each)
    closest = {what: search.closest(case, tries, what, runs) for what in search.RANKS}
    told = f"{told_single}\n\n{combined_section(closest, runs, each)}"
    return told, search.verdict(single, closest[search.ANY_ERROR])


def single_section(single: Mapping[Reading, Outcome], runs: int) -> str:
    say("H5 over the whole service day")
    whole = outcome(Case(hours=WHOLE_DAY), AS_IN_TEXT, min(runs, 3))
    rows = [evidence_row(str(reading), found) for reading, found in single.items()]
    rows = [published_row(), *rows, evidence_row("the whole service day", whole)]
    return "\n\n".join(
        [
            "### H5: one choice at a time",
            f"Means over {runs} runs, error as root mean square per type.",
            markdown(search.EVIDENCE_HEADER, rows),
            "H5 as in the text, with the error read in other ways:",
            other_errors(single[AS_IN_TEXT]),
        ]
    )


def other_errors(found: Outcome) -> str:
    rows = [
        [metric, figures(at_published(values)), f"{error_factor(found, metric):.2f}"]
        for metric, values in found.errors.items()
    ]
    return markdown(["error as", "ε = 1 / 0.1 / 0.01", "off by ×"], rows)


def combined_section(closest: Mapping[str, search.Try], runs: int, each: int) -> str:
    again = f"Searched with {each} runs each, the best {search.FINALISTS} measured again with {runs}."
    preferred = "Of combinations about as close, the one with fewer changes."
    return "\n\n".join(
        [
            f"### H5: all {len(EVERY)} combinations of these choices × {len(METRICS)} readings of the error",
            f"{again} {preferred} So many tries come close by chance too.",
            markdown(search.HEADER, [search.closest_row(what, best) for what, best in closest.items()]),
        ]
    )


def explain_qp(runs: int) -> tuple[str, list[list[str]]]:
    """Every choice for every published row, one by one; and the verdicts."""
    cases = {day: Case(day) for day in PUBLISHED}
    theirs = {(day, row): PUBLISHED[day][row] for day in PUBLISHED for row in PUBLISHED[day] if row != "H5"}
    tries = {(day, row): dict(qp_tries(cases[day], row, runs)) for day, row in theirs}
    names = list(dict.fromkeys(name for found in tries.values() for name in found))
    cells = [[n, *(figures(found[n]) if n in found else "" for found in tries.values())] for n in names]
    rows = [["published", *map(figures, theirs.values())], *cells]
    columns = [row if day == "weekday" else f"{row}, {day}" for day, row in theirs]
    note = "OSQP: one run. Where nothing else is said the error is root mean square per type."
    told = "\n\n".join(
        [
            "### The QP rows: other readings of the error, other solvers, other data",
            f"Means over {runs} runs, at ε = 1 / 0.1 / 0.01. {note}",
            markdown(["choice", *columns], rows),
            ceiling(cases["weekday"]),
        ]
    )
    return told, [qp_verdict(c, tries[k], theirs[k]) for c, k in zip(columns, theirs, strict=True)]


def qp_verdict(row: str, tries: Mapping[str, Sequence[float]], theirs: Sequence[float]) -> list[str]:
    off = {name: factor(errors, theirs) for name, errors in tries.items()}
    best = min(off, key=lambda name: off[name])
    met = "yes" if off[best] <= MET else "no"
    return [row, f"{off[PER_TYPE]:.2f}", best, f"{off[best]:.2f}", "", "", met]


def ceiling(case: Case) -> str:
    """No non-negative counts with the right total can be as wrong as published for O5(a) at ε = 1."""
    trips, size = int(case.truth.sum()), len(case.truth)
    # ‖x − c‖² ≤ ‖x‖² + ‖c‖² ≤ (Σ x)² + ‖c‖² for x, c ≥ 0
    worst = math.sqrt((trips**2 + float((case.truth**2).sum())) / size)
    return (
        f"A bound: non-negative counts that sum to the true {trips:,} trips are off by at most {figure(worst)} (root mean "
        f"square over {size:,} types), with every trip on one wrong type. The published error of O5(a) at ε = 1 is "
        f"{PUBLISHED['weekday']['O5(a)'][0]}; and an answer of all zeros is off by {figure(root_mean_square(case.truth))}."
    )
