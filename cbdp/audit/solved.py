"""Whether the published numbers are what post-processing makes of the published noisy answers.

Nothing private is needed: the program has one solution, so solving it again gives the published estimates, or one of the two was
changed. Which one, the optimality conditions tell. At the optimum every leaf above zero is its noisy count less the shift of
its cell, and the shift is the sum of prices w (x − c) of the elements above it. A noisy count that was changed breaks this
for one leaf, or by the same amount for all leaves of one element, and for no other.

What no arithmetic can notice: a noisy count of a leaf that lies below its shift before and after the change. It has no
influence on any published count. With the posterior estimator every noisy count has some influence, on all estimates: a change
is noticed, but which of the two was changed cannot be told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.audit.finding import Finding, worst
from cbdp.audit.ours import CHANGED, RESTORE
from cbdp.errors import CbdpError
from cbdp.estimate import compiler
from cbdp.estimate.engine import ESTIMATORS, Estimate, post_process, post_process_above
from cbdp.features import SINGLETON, FeatureDag
from cbdp.features.index import merged
from cbdp.privacy.measurement import Measurement
from cbdp.release.manifest import prior_of, rounding_of
from cbdp.release.release import FEW, Release, from_leaves, rounded
from cbdp.rounding.few import gathered, price_of
from cbdp.rounding.whole import rounded_again
from cbdp.solvers.problem import Problem, Term, bincount

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CLOSE = 1e-6  # of the largest count: by how much estimates of one program may differ
SAME = 0.2  # trips: by how much the changes that leaves of one element point at may differ
WHOLE = 0.02  # trips: noisy counts are whole, so a change of one is


def attack(release: Release, manifest: Mapping[str, Any]) -> list[Finding]:
    """The published numbers made again from the noisy answers; the item that was changed is named where it can be told."""
    if release.estimate is not None:
        found = [*_estimates(release, manifest["estimate"])]
        return found if worst(found) == "contradicts" else [*found, *_trips(release, manifest["mechanism"])]
    if release.mechanism == "hierarchical" and release.levels is not None:
        return [*_tree(release, manifest["mechanism"]["settings"])]
    if release.mechanism == "laplace" and release.measurements:
        m = release.measurements[0]
        made = from_leaves(m.values) if m.elements is None else rounded(m.elements, m.values)
        return [_compared(release, *made, "the noisy counts, rounded and clipped at zero")]
    return []


def _wrong(title: str, evidence: str, **figures: float | str) -> Finding:
    return Finding("estimate", "contradicts", title, evidence, CHANGED, RESTORE, figures)


def _compared(release: Release, index: Ints, value: Ints, what: str) -> Finding:
    """Published trips against those made again."""
    every = merged(index, release.index)
    pairs = ((index, value), (release.index, release.value))
    made, here = (_dense(every, at, of) for at, of in pairs)
    off = np.flatnonzero(made != here)
    if not len(off):
        return Finding("estimate", "clear", "The trips follow from the noisy answers", f"They are {what}.")
    words = type_words(release.features, int(every[off[0]]))
    text = f"{words}: {here[off[0]]} published, {made[off[0]]} follow; {len(off):,} types differ."
    return _wrong(f"singleton: the count of {words} is not {what}", text, types=len(off))


def _dense(every: Ints, index: Ints, value: NDArray[Any]) -> NDArray[Any]:
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


# The hierarchical mechanism: a closed form


def _tree(release: Release, settings: Mapping[str, Any]) -> Iterator[Finding]:
    from cbdp.estimate.tree import least_squares, tree_of

    dag = release.levels
    assert dag is not None
    answers = {m.feature: m for m in release.measurements}
    noisy = [answers[n].values if n in answers else np.zeros(dag.size(n)) for n in dag.features]
    variance = [float(answers[n].variance[0]) if n in answers else np.inf for n in dag.features]
    leaves = least_squares(tree_of(dag), noisy, variance, prune=bool(settings.get("prune", True)))[-1]
    yield _compared(release, *from_leaves(leaves), "the least-squares answer of the tree, rounded")


# The program


def _estimates(release: Release, stated: Mapping[str, Any]) -> Iterator[Finding]:
    weights = _weights(stated["weights"])
    expected = stated["estimator"] == "posterior"
    if weights is None or stated["estimator"] not in ESTIMATORS or _prior_is_lost(release):
        return
    dag = release.features
    try:
        again = _expected(release) if expected else post_process(dag, release.measurements, weights=weights)
    except CbdpError as wrong:
        yield _wrong("The noisy answers have no estimate", str(wrong))
        return
    assert release.estimate is not None
    (index, made), (at, here) = again.trips(), release.estimate.trips()
    every = merged(index, at)
    off = _dense(every, at, here) - _dense(every, index, made)
    largest = max((float(np.abs(m.values).max(initial=0)) for m in release.measurements), default=0.0)
    bound = max(CLOSE, 10 * float(stated["kkt_residual"])) * (1 + largest)
    bad = np.flatnonzero(np.abs(off) > bound)
    objective = again.solution.objective
    if not len(bad) and not math.isclose(stated["objective"], objective, rel_tol=1e-6, abs_tol=1e-6):
        text = f"estimate/objective says {stated['objective']:.6g}; solved again it is {objective:.6g}."
        yield _wrong("manifest.json: estimate/objective is not that of the program", text)
    elif not len(bad):
        yield Finding(
            "estimate",
            "clear",
            "The estimates follow from the noisy answers",
            f"The program was solved again: {len(every):,} trip types above zero agree {_within(off)}.",
        )
    if not len(bad):
        return
    named = None if expected else _culprit(release, compiler.compile(dag, release.measurements, weights))
    worst = int(bad[np.argmax(np.abs(off[bad]))])
    words = type_words(dag, int(every[worst]))
    text = f"Solved again, {len(bad):,} trip types differ; most does {words}, by {_signed(off[worst])} trips."
    if named is None:
        yield _wrong(f"singleton: the estimate of {words} does not follow from the noisy answers", text)
    else:
        yield _wrong(f"{named[0]} was changed", f"{named[1]} {text}", types=len(bad))


def _trips(release: Release, mechanism: Mapping[str, Any]) -> Iterator[Finding]:
    """The published trips made again from the published estimates: within each cell nothing is left to choose."""
    if mechanism["name"] != "constraint-based" or (release.rounding and any(release.rounding.values())):
        return
    assert release.estimate is not None
    real, settings = release.estimate.trips(), mechanism["settings"]
    if rounding_of(release) == FEW:
        real = gathered(release.features, *real, price_of(settings.get("budget")))
    made = rounded_again(release.features, *real, (release.index, release.value))
    if made is None:
        text = "Trip types that no table tells apart have, together, neither the floor nor the ceiling of their estimates' sum."
        yield _wrong("singleton: the trips of a cell are not its estimates rounded", text)
    else:
        yield _compared(release, *made, "the estimates, rounded to whole trips")


def _prior_is_lost(release: Release) -> bool:
    """Whether weights entered the estimate that the release does not hold."""
    return release.settings.get("prior") is not None and prior_of(release) is None


def _expected(release: Release) -> Estimate:
    """The posterior estimate, made again from the published answers."""
    dag = release.features
    tables = [m for m in release.measurements if m.feature != SINGLETON]
    for m in release.measurements:
        if m.feature == SINGLETON and m.floor is not None:
            return post_process_above(dag, tables, _Revealed(m), estimator="posterior")
    return post_process(
        dag, release.measurements, weights="inverse-variance", estimator="posterior", prior=prior_of(release)
    )


class _Revealed:
    """Noisy counts above their floors as they were published: no more is to be had."""

    def __init__(self, published: Measurement) -> None:
        assert published.floor is not None
        self._published = published
        self.floor: Ints = published.floor
        self.scale = Fraction(published.scale or 0)

    def expected(self, floor: Ints) -> Floats:
        return np.zeros(len(floor))

    def lower(self, floor: Ints) -> None:
        """What was not published cannot be asked for."""

    def measurement(self) -> Measurement:
        return self._published


def _within(off: Floats) -> str:
    worst = float(np.abs(off).max(initial=0))
    return f"within {worst:.1e} trips" if worst else "to the last digit"


def _signed(value: float) -> str:
    return f"{value:+.3g}".replace("-", "−")


def _weights(stated: Any) -> Any:
    """Weights as they were given, if the manifest holds them: arrays are stated by their hash only."""
    if isinstance(stated, str):
        return float(stated) if stated == "inf" else stated
    if isinstance(stated, Mapping):
        if "sha256" in stated:
            return None
        made = {name: _weights(rule) for name, rule in stated.items()}
        return None if any(rule is None for rule in made.values()) else made
    return stated


def _culprit(release: Release, problem: Problem) -> tuple[str, str] | None:
    """The one noisy count, or the one estimate, whose change explains how the optimality conditions are broken."""
    if any(np.isinf(term.weight).any() for term in problem.terms) or np.ndim(problem.weight) > 0:
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
        return _odd_leaf(
            release, problem, int(active[odd[0]]), float(own[odd[0]] - shift[problem.cell[active[odd[0]]]])
        )
    return _odd_element(release, problem, shift - middle, weight)  # fmt: skip


def _leaves(release: Release, problem: Problem) -> Floats:
    """The published estimates of the problem's leaves."""
    assert release.estimate is not None
    index, value = release.estimate.trips()
    every = np.arange(len(problem.target)) if problem.index is None else problem.index
    known = np.isin(index, every)
    return _dense(every, index[known], value[known])


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
        f"The noisy count {noisy} of {words} is off by {_signed(off)} against its estimate; that of all other types fits.",
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
