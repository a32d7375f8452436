"""Table 2: the error of every row, the published figure beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmarks.ablation.case import EPSILONS, PUBLISHED, Case, Day, Floats, per_type, root_mean_square, say
from benchmarks.harness.markdown import figure, markdown

HEADING = """\
# Table 2 of the case study

Error: root mean square per trip type of the published integers, 8–10 am, synthetic city (seed 0);
mean over {runs} runs ± standard error, the published number beside it.
"""
ROWS = ("O5", "H5", "O5(a)", "O5(b)", "O5(c)")
UNKNOWN = (math.nan,) * len(EPSILONS)


def table(day: Day, runs: int) -> str:
    case, published = Case(day), PUBLISHED[day]
    errors = {row: errors_of(case, row, runs) for row in ROWS}
    rows = [paired(row, map(with_error, found), published.get(row, UNKNOWN)) for row, found in errors.items()]
    rows.append(ratio_row(errors, published))
    rows.append(paired("all zeros", [figure(root_mean_square(case.truth))] * len(EPSILONS), UNKNOWN))
    header = [day, *(h for epsilon in EPSILONS for h in (f"ε = {epsilon}", "published"))]
    return markdown(header, rows)


def errors_of(case: Case, row: str, runs: int) -> list[Floats]:
    say(f"{case.day} {row}")
    return [per_type(case, row, epsilon, runs) for epsilon in EPSILONS]


def ratio_row(errors: Mapping[str, Sequence[Floats]], published: Mapping[str, Sequence[float]]) -> list[str]:
    """How many times worse the tree is."""
    means = {row: np.array([e.mean() for e in errors[row]]) for row in ("H5", "O5")}
    theirs = np.divide(published["H5"], published["O5"]) if "H5" in published else UNKNOWN
    return paired("H5 / O5", map(figure, means["H5"] / means["O5"]), theirs)


def paired(name: str, ours: Iterable[str], theirs: Iterable[float]) -> list[str]:
    return [name, *(cell for o, t in zip(ours, theirs, strict=True) for cell in (o, figure(t)))]


def with_error(values: Floats) -> str:
    """Mean ± standard error."""
    spread = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{figure(float(values.mean()))} ± {figure(float(spread))}"
