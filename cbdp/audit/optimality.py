"""Whether the published numbers are what post-processing makes of the published noisy answers; if not, which one was changed.

Nothing private is needed: post-processing is deterministic, so making the release again gives the published numbers, or some were changed.
Which one, the optimality conditions (Karush, Kuhn and Tucker) tell. At the optimum of the projection every leaf above zero is its noisy
count less the shift of its cell, and the shift is the sum of the dual variables w (x − c) of the elements above it. A noisy count that was
changed breaks this for one leaf, or by the same amount for all leaves of one element, and for no other.

What no arithmetic can notice: a noisy count of a leaf that lies below its shift before and after the change. It has no influence on any
published count. With the posterior estimator every noisy count has some influence, on all estimates: a change is noticed, but which of
the two was changed cannot be told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.audit.findings import Finding, clear_finding, tampering_finding, worst
from cbdp.errors import CbdpError, InputError
from cbdp.estimation import ESTIMATORS, Estimate, compiler
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.release.files import MANIFEST
from cbdp.release.manifest import software
from cbdp.release.release import Release
from cbdp.rounding import ROUNDINGS
from cbdp_features.universe import sorted_union
from cbdp_solvers.problem import Problem, Term, bincount

SAME_CHANGE_TOLERANCE = 0.2  # trips: by how much the changes that leaves of one element point at may differ
WHOLE_CHANGE_TOLERANCE = 0.02  # trips: noisy counts are whole, so a change of one is


def find_changed_number(release: Release) -> tuple[str, str] | None:
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
    duals = {t.name: t.weight * (t.sums(sums) - t.target) for t in problem.terms}
    shift = problem.shifts(duals) / weight
    active = np.flatnonzero(x > 0)
    implied = problem.target[active] - x[active]  # the shift that each leaf points at, in trips
    middle = _medians(problem.cell[active], implied, problem.cells)
    odd = np.flatnonzero(np.abs(implied - middle[problem.cell[active]]) > SAME_CHANGE_TOLERANCE)
    if len(odd) == 1:
        leaf = int(active[odd[0]])
        return _odd_leaf(release, problem, leaf, float(implied[odd[0]] - shift[problem.cell[leaf]]))
    return _odd_element(release, problem, shift - middle, weight)


def _problem(release: Release) -> Problem | None:
    """The program whose optimum the estimate is, where it is the optimum of one."""
    if release.recipe.estimator is None or release.recipe.public:
        return None
    estimator = ESTIMATORS.installed(release.recipe.estimator)
    if estimator.expects:
        return None
    try:
        weights = estimator.check_weights(release.recipe.rule("weights"))
        return compiler.compile(release.features, release.measurements, weights)
    except InputError:
        return None


def _leaves(release: Release, problem: Problem) -> Floats:
    """The published estimates of the problem's leaves."""
    assert release.estimate is not None
    index, value = release.estimate.trips()
    every = np.arange(len(problem.target)) if problem.index is None else problem.index
    listed = np.isin(index, every)
    return scatter_counts(every, index[listed], value[listed])


def _medians(cell: NDArray[np.integer], values: Floats, cells: int) -> Floats:
    """By cell, the median; NaN where there is none."""
    order = np.lexsort((values, cell))
    cell, values = cell[order], values[order]
    start, end = (np.searchsorted(cell, np.arange(cells), side=s) for s in ("left", "right"))
    medians = np.full(cells, np.nan)
    some = end > start
    medians[some] = values[(start + (end - start) // 2)[some]]
    return medians


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
    candidates: list[tuple[float, Term, int, float]] = []
    for term in problem.terms:
        ratio = weight / np.where(term.weight > 0, term.weight, np.nan)[term.element_of_cell]
        change = off * ratio  # of the element's noisy count, in trips, that would explain the cell
        bad = seen & (np.abs(change) > SAME_CHANGE_TOLERANCE)
        inside = np.unique(term.element_of_cell[bad])
        if len(inside) != 1:
            continue
        all_of = seen & (term.element_of_cell == inside[0])
        if bad[all_of].all() and np.ptp(change[all_of]) < SAME_CHANGE_TOLERANCE:
            by = float(np.median(change[all_of]))
            if abs(by - round(by)) < WHOLE_CHANGE_TOLERANCE:
                candidates.append((abs(by - round(by)), term, int(inside[0]), by))
    if not candidates:
        return None
    _, term, element, by = min(candidates, key=lambda entry: entry[0])
    words, noisy = element_words(release.features, term.name, element), int(term.target[element])
    return (
        f"{term.name}: the noisy count of {words}",
        f"The noisy count of {words} is {noisy}; the estimates follow from {round(noisy + by)}.",
    )


Count = TypeVar("Count", np.int64, np.float64)


def scatter_counts(every: Ints, index: Ints, value: NDArray[Count]) -> NDArray[Count]:
    """Counts of some trip types as counts of all in an ascending list."""
    counts = np.zeros(len(every), dtype=value.dtype)
    counts[np.searchsorted(every, index)] = value
    return counts


def type_words(dag: FeatureDag, index: int) -> str:
    return " · ".join(map(str, dag.universe.unrank(index)))


def element_words(dag: FeatureDag, feature: str, element: int) -> str:
    if feature == SINGLETON:
        return type_words(dag, element)
    keys = dag.partition(feature).keys()
    return " · ".join(str(v[element]) for v in keys.values()) or "the whole"


def signed(value: float) -> str:
    return f"{value:+.3g}".replace("-", "−")


# The attack


Remake = Callable[[], Release]  # makes the release again from what is published: its mechanism's `finish`

CHECK = "estimate"
PACKAGE, FINGERPRINT = "cbdp", "code"  # in the manifest's list of versions
POWER_OF_REMAKING = "One trip moved, added or taken away would have been found for certain."
ESTIMATE_TOLERANCE = 1e-6  # of the largest count: by how much estimates of one program may differ


def attack(release: Release, remake: Remake) -> list[Finding]:
    """The published numbers against those made again; the item that was changed is named where it can be told."""
    try:
        again = remake()
    except CbdpError as wrong:
        return [tampering_finding(CHECK, "No release follows from the noisy answers", str(wrong))]
    if release.estimate is None:
        finding = _compare_trips(
            release, again.index, again.value, "what the mechanism makes of the noisy answers"
        )
        return [*_check_table_noise(release, again), finding]
    if again.estimate is None:
        text = (
            f"The recipe is that of {release.mechanism!r}, which estimates nothing; the files hold estimates."
        )
        return [tampering_finding(CHECK, f"{MANIFEST}: recipe is not the one that made the estimates", text)]
    findings = [*_compare_estimates(release, release.estimate, again.estimate)]
    return (
        findings
        if worst(findings) == "contradicts"
        else [*findings, *_compare_rounding(release, release.estimate)]
    )


def attack_rounding(release: Release) -> list[Finding]:
    """The published trips against the published estimates, where an estimator of another version made those."""
    return [] if release.estimate is None else [*_compare_rounding(release, release.estimate)]


def foreign_estimator_version(release: Release) -> str | None:
    """The version whose posterior means are not this one's; None where the estimates are the solution of one program for every version.

    Posterior means follow from the code of their version. Up to 0.2 the manifest had no fingerprint of the code: that tells a folder
    of 0.2 from one that was written since, before the number changed.
    """
    if release.stored is None or release.recipe.estimator != "posterior":
        return None
    written_by = release.stored.software
    version = written_by.get(PACKAGE, "of an unknown version")
    return version if FINGERPRINT not in written_by or version != software()[PACKAGE] else None


def _check_table_noise(release: Release, again: Release) -> Iterator[Finding]:
    """What is said of the noise of tables that are published as they were measured, against the recipe."""
    for name, stated in release.recipe.tables.items():
        expected = again.recipe.tables.get(name)
        if stated != expected:
            text = f"The manifest says {stated}; the settings of {release.mechanism!r} give {expected}."
            yield tampering_finding(
                CHECK, f"{MANIFEST}: features/{name}/noise is not what the recipe gives", text
            )


def _compare_trips(release: Release, index: Ints, value: Ints, what: str) -> Finding:
    """Published trips against those made again."""
    every = sorted_union(index, release.index)
    expected, here = scatter_counts(every, index, value), scatter_counts(every, release.index, release.value)
    off = np.flatnonzero(expected != here)
    if not len(off):
        return clear_finding(
            CHECK, "The trips follow from the noisy answers", f"They are {what}.", POWER_OF_REMAKING
        )
    words = type_words(release.features, int(every[off[0]]))
    text = f"{words}: {here[off[0]]} published, {expected[off[0]]} expected; {len(off):,} types differ."
    return tampering_finding(CHECK, f"singleton: the count of {words} is not {what}", text, types=len(off))


def _compare_estimates(release: Release, published: Estimate, again: Estimate) -> Iterator[Finding]:
    (index, expected), (at, here) = again.trips(), published.trips()
    every = sorted_union(index, at)
    off = scatter_counts(every, at, here) - scatter_counts(every, index, expected)
    largest = max((float(np.abs(m.values).max(initial=0)) for m in release.measurements), default=0.0)
    bound = max(ESTIMATE_TOLERANCE, 10 * published.solution.kkt_residual) * (1 + largest)
    bad = np.flatnonzero(np.abs(off) > bound)
    if len(bad):
        furthest = int(bad[np.argmax(np.abs(off[bad]))])
        yield _changed_finding(release, int(every[furthest]), float(off[furthest]), len(bad))
        return
    stated, objective = published.solution.objective, again.solution.objective
    if not math.isclose(stated, objective, rel_tol=1e-6, abs_tol=1e-6):
        text = f"estimate/objective says {stated:.6g}; solved again it is {objective:.6g}."
        yield tampering_finding(CHECK, f"{MANIFEST}: estimate/objective is not that of the program", text)
        return
    text = f"The program was solved again: {len(every):,} trip types above zero agree {_agreement_text(off)}."
    yield clear_finding(CHECK, "The estimates follow from the noisy answers", text, _power(bound))


def _changed_finding(release: Release, furthest: int, off: float, types: int) -> Finding:
    """The finding that estimates do not follow, with what was changed where it can be told."""
    words = type_words(release.features, furthest)
    text = f"Solved again, {types:,} trip types differ; the largest difference is {signed(off)} trips, of {words}."
    named = find_changed_number(release)
    if named is None:
        return tampering_finding(
            CHECK, f"singleton: the estimate of {words} does not follow from the noisy answers", text
        )
    return tampering_finding(CHECK, f"{named[0]} was changed", f"{named[1]} {text}", types=types)


def _compare_rounding(release: Release, estimate: Estimate) -> Iterator[Finding]:
    """The published trips made again from the published estimates: within each cell nothing is left to choose."""
    if release.recipe.rounding is None or any((release.violations or {}).values()):
        return
    rounding, budget = ROUNDINGS.installed(release.recipe.rounding), release.recipe.rule("budget")
    trips = (release.index, release.value)
    expected = rounding.again(release.features, *estimate.trips(), trips, budget)
    if expected is None:
        text = "Trip types that no table tells apart have, together, neither the floor nor the ceiling of their estimates' sum."
        yield tampering_finding(CHECK, "singleton: the trips of a cell are not its estimates rounded", text)
    else:
        yield _compare_trips(release, *expected, "the estimates, rounded to whole trips")


def _power(bound: float) -> str:
    return (
        f"An estimate changed by more than {bound:.1g} trips would have been found for certain, and a noisy count wherever an estimate "
        "depends on it."
    )


def _agreement_text(off: Floats) -> str:
    largest = float(np.abs(off).max(initial=0))
    return f"within {largest:.1e} trips" if largest else "to the last digit"


def published_answers(release: Release) -> list[Measurement]:
    """The published noisy answers: measurements, or tables that are published as they were measured."""
    if release.measurements:
        return list(release.measurements)
    tables = []
    for name, table in release.tables.items():
        shown = np.flatnonzero(table).astype(np.int64)
        noise = release.recipe.tables.get(name)
        if noise is None:
            tables.append(Measurement(name, table[shown], elements=shown))
        else:
            law = noise.law
            tables.append(Measurement(name, table[shown], law.scale, elements=shown, law=law.name))
    return tables
