"""What is measured of an answer: errors by feature, invented and lost trips, and how far flows were moved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.registry import Answer, Case, Floats, metric
from cbdp import Measurement, post_process
from cbdp.estimation import ESTIMATORS


def given(case: Case, answer: Answer, name: str) -> NDArray[np.int64]:
    """The published counts of a feature: its own table where there is one, or else the published trips added up."""
    return answer.tables[name] if name in answer.tables else case.summed(name, answer.leaves)


def errors(case: Case, answer: Answer) -> dict[str, Floats]:
    return {n: (given(case, answer, n) - truth).astype(float) for n, truth in case.by_feature.items()}


@metric("rmse", unit="trips", what="root mean square error over a feature's elements")
def root_mean_square(case: Case, answer: Answer) -> dict[str, float]:
    return {n: float(np.sqrt(np.mean(e**2))) for n, e in errors(case, answer).items()}


@metric("before", unit="trips", what="root mean square error before clipping and rounding, types added up")
def before_rounding(case: Case, answer: Answer) -> dict[str, float]:
    return {
        n: float(np.sqrt(np.mean((case.added(n, answer.raw) - truth) ** 2)))
        for n, truth in case.by_feature.items()
    }


# Every table beside its own measurement, in releases that hold their measurements


def _measured(case: Case, answer: Answer) -> list[Measurement]:
    """The tables that were measured as a whole, of a release that expects counts."""
    release = answer.release
    if (
        release is None
        or release.recipe.estimator is None
        or not ESTIMATORS.get(release.recipe.estimator).expects
    ):
        return []
    return [m for m in release.measurements if m.feature in case.features and m.elements is None]


def _off(case: Case, name: str, found: Floats) -> float:
    """Root mean square distance from what was to be measured: where trips of persons are bounded, from those that were left."""
    truth = case.added(name, case.counts.dense().astype(float))
    return float(np.sqrt(np.mean((found - truth) ** 2)))


@metric("table", unit="trips", what="root mean square error of a measured table before rounding")
def estimated(case: Case, answer: Answer) -> dict[str, float]:
    return {
        m.feature: _off(case, m.feature, case.added(m.feature, answer.raw)) for m in _measured(case, answer)
    }


@metric("noise", unit="trips", what="root mean square error of the noisy table itself")
def noisy(case: Case, answer: Answer) -> dict[str, float]:
    return {m.feature: _off(case, m.feature, m.values.astype(float)) for m in _measured(case, answer)}


@metric(
    "projected",
    unit="trips",
    what="root mean square error of the table by a projection of the same measurements",
)
def projected(case: Case, answer: Answer) -> dict[str, float]:
    told = _measured(case, answer)
    if not told or answer.release is None:
        return {}
    made = post_process(case.features, answer.release.measurements, estimator="projection")
    return {m.feature: _off(case, m.feature, made.counts(m.feature)) for m in told}


@metric("mae", unit="trips", what="mean absolute error over a feature's elements")
def mean_absolute(case: Case, answer: Answer) -> dict[str, float]:
    return {n: float(np.mean(np.abs(e))) for n, e in errors(case, answer).items()}


@metric("l1", unit="× trips", what="total absolute error over trip types, relative to the trips")
def relative_l1(case: Case, answer: Answer) -> float:
    return float(np.abs(answer.leaves - case.truth).sum() / max(case.trips, 1))


@metric("trips", unit="trips", what="published trips")
def published(case: Case, answer: Answer) -> float:  # noqa: ARG001 - every metric takes both
    return float(answer.leaves.sum())


@metric("inflation", unit="× trips", what="published trips, relative to the trips")
def inflation(case: Case, answer: Answer) -> float:
    return float(answer.leaves.sum() / max(case.trips, 1))


@metric("negative", unit="types", what="types below 0 before clipping and rounding")
def negative(case: Case, answer: Answer) -> float:  # noqa: ARG001
    return float((answer.raw < 0).sum())


@metric("false", unit="types", what="types that are published and have no trip")
def false_types(case: Case, answer: Answer) -> float:
    return float(((answer.leaves > 0) & (case.truth == 0)).sum())


@metric("covered", unit="share", what="share of the true trips that are published at their own type")
def covered(case: Case, answer: Answer) -> float:
    return float(np.minimum(answer.leaves, case.truth).sum() / max(case.trips, 1))


@metric("missed", unit="types", what="types that have trips and are not published")
def missed_types(case: Case, answer: Answer) -> float:
    return float(((answer.leaves == 0) & (case.truth > 0)).sum())


@metric("sparsity", unit="share", what="share of the types that are published as 0")
def sparsity(case: Case, answer: Answer) -> float:  # noqa: ARG001
    return float((answer.leaves == 0).mean())


@metric("emd", unit="by data", what="earth mover's distance between zone flows, each scaled to a total of 1")
def earth_movers(case: Case, answer: Answer) -> float:
    if case.flows is None:
        return float("nan")
    here, there = case.flow(case.truth), case.flow(answer.leaves)
    if not here.any() or not there.any():
        return float("nan")
    return emd(here / here.sum(), there / there.sum(), case.flows.distance)


def emd(here: Floats, there: Floats, distance: Floats) -> float:
    """The least cost of making one distribution the other.

    The ground distance is a metric, so by the triangle inequality what both have in common can stay where it is: only
    the surplus is moved, a transport problem of the places that have more to those that have less.
    """
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    more, less = np.maximum(here - there, 0.0), np.maximum(there - here, 0.0)
    rows, columns = np.flatnonzero(more), np.flatnonzero(less)
    if not len(rows) or not len(columns):
        return 0.0
    supply, wanted = more[rows] / more.sum(), less[columns] / less.sum()
    a, b = len(rows), len(columns)
    leaves = kron(eye_array(a), np.ones((1, b)), format="csr")
    enters = kron(np.ones((1, a)), eye_array(b), format="csr")[: b - 1]  # the last follows from the others
    found = linprog(
        distance[np.ix_(rows, columns)].reshape(-1),
        A_eq=vstack([leaves, enters]),
        b_eq=np.concatenate([supply, wanted[: b - 1]]),
        method="highs",
    )
    if found.status != 0:
        raise RuntimeError(f"the transport problem was not solved: {found.message}")
    return float(found.fun * more.sum())
