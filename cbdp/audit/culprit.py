"""Which published number was changed, where estimates do not follow from the noisy counts: the optimality conditions tell.

At the optimum of the projection every leaf above zero is its noisy count less the shift of its cell, and the shift is the sum
of prices w (x − c) of the elements above it. A noisy count that was changed breaks this for one leaf, or by the same amount
for all leaves of one element, and for no other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.estimate import ESTIMATORS, compiler
from cbdp.features import SINGLETON, FeatureDag
from cbdp.release.recipe import given
from cbdp.release.release import Release
from cbdp.solvers.problem import Problem, Term, bincount

SAME = 0.2  # trips: by how much the changes that leaves of one element point at may differ
WHOLE = 0.02  # trips: noisy counts are whole, so a change of one is


def culprit(release: Release) -> tuple[str, str] | None:
    """The one noisy count, or the one estimate, whose change explains how the optimality conditions are broken.

    None where it cannot be told: of expected counts every one depends on every noisy answer.
    """
    problem = _problem(release)
    if (
        problem is None
        or any(np.isinf(term.weight).any() for term in problem.terms)
        or np.ndim(problem.weight) > 0
    ):
        return None
    x, weight = _leaves(release, problem), float(np.max(problem.weight))
    sums = bincount(problem.cell, x, problem.cells)
    prices = {t.name: t.weight * (t.sums(sums) - t.target) for t in problem.terms}
    shift = problem.shifts(prices) / weight
    active = np.flatnonzero(x > 0)
    own = problem.target[active] - x[active]  # the shift that each leaf points at, in trips
    middle = _medians(problem.cell[active], own, problem.cells)
    odd = np.flatnonzero(np.abs(own - middle[problem.cell[active]]) > SAME)
    if len(odd) == 1:
        leaf = int(active[odd[0]])
        return _odd_leaf(release, problem, leaf, float(own[odd[0]] - shift[problem.cell[leaf]]))
    return _odd_element(release, problem, shift - middle, weight)


def _problem(release: Release) -> Problem | None:
    """The program whose optimum the estimate is, where it is the optimum of one."""
    if release.recipe.estimator is None or release.recipe.public:
        return None
    estimator = ESTIMATORS.installed(release.recipe.estimator)
    if estimator.expects:
        return None
    try:
        weights = estimator.check_weights(given(release.recipe.settings.get("weights")))
        return compiler.compile(release.features, release.measurements, weights)
    except InputError:
        return None


def _leaves(release: Release, problem: Problem) -> Floats:
    """The published estimates of the problem's leaves."""
    assert release.estimate is not None
    index, value = release.estimate.trips()
    every = np.arange(len(problem.target)) if problem.index is None else problem.index
    known = np.isin(index, every)
    return spread(every, index[known], value[known])


def _medians(cell: NDArray[Any], values: Floats, cells: int) -> Floats:
    """By cell, the median; NaN where there is none."""
    order = np.lexsort((values, cell))
    cell, values = cell[order], values[order]
    start, end = (np.searchsorted(cell, np.arange(cells), side=s) for s in ("left", "right"))
    made = np.full(cells, np.nan)
    some = end > start
    made[some] = values[(start + (end - start) // 2)[some]]
    return made


def _odd_leaf(release: Release, problem: Problem, leaf: int, off: float) -> tuple[str, str]:
    index = leaf if problem.index is None else int(problem.index[leaf])
    words, noisy = type_words(release.features, index), int(problem.target[leaf])
    return (
        f"singleton: the noisy count or the estimate of {words}",
        f"The noisy count {noisy} of {words} is off by {signed(off)} from its estimate; those of all other types fit.",
    )


def _odd_element(release: Release, problem: Problem, off: Floats, weight: float) -> tuple[str, str] | None:
    """The element all of whose cells, and no others, are off by the same amount; the likeliest is off by a whole number."""
    seen = ~np.isnan(off)
    found: list[tuple[float, Term, int, float]] = []
    for term in problem.terms:
        ratio = weight / np.where(term.weight > 0, term.weight, np.nan)[term.element_of_cell]
        change = off * ratio  # of the element's noisy count, in trips, that would explain the cell
        bad = seen & (np.abs(change) > SAME)
        inside = np.unique(term.element_of_cell[bad])
        if len(inside) != 1:
            continue
        all_of = seen & (term.element_of_cell == inside[0])
        if bad[all_of].all() and np.ptp(change[all_of]) < SAME:
            by = float(np.median(change[all_of]))
            if abs(by - round(by)) < WHOLE:
                found.append((abs(by - round(by)), term, int(inside[0]), by))
    if not found:
        return None
    _, term, element, by = min(found, key=lambda entry: entry[0])
    words, noisy = element_words(release.features, term.name, element), int(term.target[element])
    return (
        f"{term.name}: the noisy count of {words}",
        f"The noisy count of {words} is {noisy}; the estimates follow from {round(noisy + by)}.",
    )


def spread(every: NDArray[np.int64], index: NDArray[np.int64], value: NDArray[Any]) -> NDArray[Any]:
    """Counts of some trip types as counts of all in an ascending list."""
    held = np.zeros(len(every), dtype=value.dtype)
    held[np.searchsorted(every, index)] = value
    return held


def type_words(dag: FeatureDag, index: int) -> str:
    return " · ".join(map(str, dag.universe.unrank(index)))


def element_words(dag: FeatureDag, feature: str, element: int) -> str:
    if feature == SINGLETON:
        return type_words(dag, element)
    keys = dag.partition(feature).keys()
    return " · ".join(str(v[element]) for v in keys.values()) or "the whole"


def signed(value: float) -> str:
    return f"{value:+.3g}".replace("-", "−")
