"""From features and measurements to the quadratic program: which counts are tied together, and how much each weighs.

Fioretto, Lee and Van Hentenryck (2018), Figure 3, constraints (O1)–(O3), with weights of choice. Several measurements of one element are first
averaged by inverse variance (Aitken 1936).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from cbdp.arrays import Floats, Indices, Ints, Numbers
from cbdp.errors import InfeasibleError, InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.noise import noise_distribution
from cbdp_solvers.problem import Problem, Term

Weights = str | Mapping[str, object]
Measurements = Mapping[str, object] | Iterable[Measurement]

WEIGHTS = ("size", "uniform", "inverse-variance")
VALUE_COLUMNS = ("noisy", "value", "count")
# variance of noise, in trips squared: integer noise of a smaller variance is 0 but once in a billion draws (Markov's inequality), and weights
# beyond it only make the program worse conditioned than double precision can solve
MIN_VARIANCE = 1e-9


def compile(  # noqa: A001 - the pipeline's own word; always called as compiler.compile
    features: FeatureDag, measurements: Measurements, weights: Weights = "size"
) -> Problem:
    """The quadratic program (O1)–(O3) of Fioretto and others (2018) for these measurements."""
    merged = merge_measurements(
        features,
        [m for m in read_measurements(features, measurements) if len(m.values) or m.floor is not None],
    )
    if SINGLETON not in merged:
        raise InputError("'singleton' is not measured: every trip type needs a noisy count, however noisy")
    leaves = merged.pop(SINGLETON)
    if leaves.elements is not None and leaves.floor is None:
        raise InputError(
            f"'singleton' is measured in {len(leaves.values):,} of {features.universe.size:,} trip types: "
            "measure all, or give the others a public guess with a large variance"
        )
    leaf_weight = _weight(features, leaves, weights)
    if np.isinf(leaf_weight).any():
        raise InputError("'singleton' cannot have infinite weight: there would be nothing left to solve")
    order = [name for name in features.features if name in merged]
    terms = tuple(_term(features, merged[name], weights, order) for name in order)
    cell = features.cell_of_leaf if leaves.elements is None else _cells_of(features, leaves.elements)
    floor = None if leaves.floor is None else leaves.floor.astype(float)
    problem = Problem(leaves.values, leaf_weight, cell, features.cells.size, terms, leaves.elements, floor)
    check_exact(problem)
    return problem


def _cells_of(features: FeatureDag, index: Ints) -> Indices:
    """The cells of some leaves, as numbers of the kind that those of all would have."""
    cell = features.cells.partition.element_of(features.universe.unrank_codes(index))
    return cell.astype(np.int32) if features.cells.size < 2**31 else cell


def read_measurements(features: FeatureDag, measurements: Measurements) -> list[Measurement]:
    """Measurements from a mapping of arrays or tables, or as they are, checked against the features."""
    if isinstance(measurements, Measurement):
        measurements = [measurements]
    source: object = measurements
    if isinstance(source, str) or not isinstance(source, Mapping | Iterable):
        raise InputError(
            f"measurements are {source!r}: give a mapping from features to counts, or Measurements"
        )
    if isinstance(measurements, Mapping):
        listed = [
            _read_one(features, name, m) for name, answers in measurements.items() for m in _as_list(answers)
        ]
    else:
        listed = list(measurements)
    for m in listed:
        if not isinstance(m, Measurement):
            raise InputError(
                f"{m!r} is not a measurement: give Measurement(…), or a mapping from features to counts"
            )
        _check_size(features, m)
    return listed


def _as_list(answers: object) -> Sequence[object]:
    if isinstance(answers, list | tuple) and answers and not np.isscalar(answers[0]):
        return answers
    return [answers]


def _read_one(features: FeatureDag, name: str, answer: object) -> Measurement:
    if isinstance(answer, Measurement):
        if answer.feature != name:
            raise InputError(f"the measurement of {answer.feature!r} is given under the name {name!r}")
        return answer
    if isinstance(answer, dict) or hasattr(answer, "columns") or hasattr(answer, "column_names"):
        return _read_table(features, name, answer)
    return Measurement(name, cast("Numbers", answer))  # which checks it


def _read_table(features: FeatureDag, name: str, answer: object) -> Measurement:
    """A table keyed by the feature's attributes, with a column of noisy counts and perhaps of their scale or variance."""
    import pyarrow as pa

    partition = features.partition(name)
    try:
        table = pa.table(answer)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as wrong:
        raise InputError(f"the table of {name!r} cannot be read: {wrong}") from None
    by = features.features[name].by
    missing = [a for a in by if a not in table.column_names]
    if missing:
        raise InputError(f"the table of {name!r} has no column {missing[0]!r}: it needs {', '.join(by)}")
    value = next((c for c in VALUE_COLUMNS if c in table.column_names), None)
    if value is None:
        raise InputError(
            f"the table of {name!r} has no counts: name their column {' or '.join(VALUE_COLUMNS)}"
        )
    keys = {a: table.column(a).to_pylist() for a in by}
    elements = partition.find(keys) if by else np.zeros(table.num_rows, dtype=np.int64)
    if (elements < 0).any():
        row = int(np.flatnonzero(elements < 0)[0])
        shown = ", ".join(f"{a}={keys[a][row]!r}" for a in by)
        raise InputError(f"the table of {name!r} has a row for {shown}, which is not in the universe")
    noise = {c: table.column(c).to_numpy() for c in ("scale", "variance") if c in table.column_names}
    if "scale" in noise and "variance" not in noise:
        scales = np.asarray(noise["scale"], dtype=float)
        if not (scales > 0).all():
            raise InputError(
                f"the table of {name!r} has a scale of {scales.min()}: noise has a scale above 0"
            )
        noise["variance"] = np.array([noise_distribution("geometric", s).variance() for s in scales])
    return Measurement(
        name, table.column(value).to_numpy(), variance=noise.get("variance"), elements=elements
    )


def _check_size(features: FeatureDag, m: Measurement) -> None:
    if m.feature not in features:
        raise InputError(f"unknown feature {m.feature!r}: there are {', '.join(features.features)}")
    size = features.size(m.feature)
    if m.elements is None and len(m.values) != size:
        raise InputError(
            f"measurement of {m.feature!r} has {len(m.values):,} values, the feature {size:,} elements"
        )
    if m.elements is not None and len(m.elements) and not (m.elements.min() >= 0 and m.elements.max() < size):
        raise InputError(f"measurement of {m.feature!r} names an element outside 0…{size - 1}")


def merge_measurements(features: FeatureDag, measurements: Iterable[Measurement]) -> dict[str, Measurement]:
    """One measurement per feature: several of one are averaged by inverse variance, element by element (the BLUE: Aitken 1936)."""
    by_feature: dict[str, list[Measurement]] = {}
    for m in measurements:
        by_feature.setdefault(m.feature, []).append(m)
    return {name: _average(features.size(name), several) for name, several in by_feature.items()}


def _average(size: int, several: list[Measurement]) -> Measurement:
    first = several[0]
    if len(several) == 1:
        return _as_complete(first, size)
    if any(m.exact for m in several):
        raise InputError(
            f"{first.feature!r} is given {len(several)} times, and once as exact: leave the noisy answers out"
        )
    if any(m.floor is not None for m in several):
        raise InputError(
            f"{first.feature!r} is measured {len(several)} times, and once only above a floor: give one measurement"
        )
    precision, total = np.zeros(size), np.zeros(size)
    for m in several:
        if m.variance is None:
            raise InputError(
                f"{m.feature!r} is measured {len(several)} times: give each a scale or a variance to weigh them by"
            )
        where = slice(None) if m.elements is None else m.elements
        precision[where] += 1.0 / m.variance
        total[where] += m.values / m.variance
    measured = np.flatnonzero(precision > 0)
    mean, variance = total[measured] / precision[measured], 1.0 / precision[measured]
    elements = None if len(measured) == size else measured
    return Measurement(first.feature, mean, variance=variance, elements=elements)


def _as_complete(m: Measurement, size: int) -> Measurement:
    """A partial measurement that names all elements is a whole one, in their order."""
    if m.elements is None or len(m.elements) < size or m.floor is not None:
        return m
    order = np.argsort(m.elements)
    variance = None if m.variance is None else m.variance[order]
    return Measurement(
        m.feature, m.values[order], variance=variance, epsilon=m.epsilon, rho=m.rho, exact=m.exact
    )


def _weight(features: FeatureDag, m: Measurement, weights: Weights) -> float | Floats:
    """w of each measured element: one number where all weigh the same."""
    if m.exact:
        return np.inf
    rule: object = weights
    if isinstance(weights, Mapping):
        for name in weights:
            if name not in features:
                raise InputError(
                    f"a weight for the unknown feature {name!r}: there are {', '.join(features.features)}"
                )
        rule = weights.get(m.feature, "size")
    if m.floor is not None and not isinstance(rule, str) and np.ndim(cast("ArrayLike", rule)) > 0:
        raise InputError(
            f"weights by element for {m.feature!r}, which is known only above a floor: give one weight for all"
        )
    if isinstance(rule, str):
        if rule == "size":
            return 1.0 / features.size(m.feature)
        if rule == "uniform":
            return 1.0
        if rule == "inverse-variance":
            if m.variance is None:
                raise InputError(
                    f"weights by inverse variance need the noise of {m.feature!r}: give its scale or variance"
                )
            if m.floor is not None and m.noise is not None:  # perhaps nothing exceeds it
                return 1.0 / max(m.noise.variance(), MIN_VARIANCE)
            variance = np.maximum(m.variance, MIN_VARIANCE)
            same = variance[0] == variance[-1] and (variance == variance[0]).all()
            return 1.0 / float(variance[0]) if same else 1.0 / variance
        raise InputError(
            f"unknown weights {rule!r}: use {', '.join(map(repr, WEIGHTS))}, numbers, or a mapping by feature"
        )
    return _requested_weight(features, m, rule)


def _requested_weight(features: FeatureDag, m: Measurement, rule: object) -> float | Floats:
    try:
        weight = np.asarray(cast("ArrayLike", rule), dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            f"the weight of {m.feature!r} is {rule!r}: give a number, or one per element"
        ) from None
    if np.isnan(weight).any() or (weight <= 0).any():
        raise InputError(f"the weight of {m.feature!r} must be above 0: leave out what should not count")
    if weight.ndim == 0:
        return float(weight)
    if weight.shape != (features.size(m.feature),):
        raise InputError(
            f"{m.feature!r} has {features.size(m.feature):,} elements, its weights have shape {weight.shape}"
        )
    return weight if m.elements is None else weight[m.elements]


def _term(features: FeatureDag, m: Measurement, weights: Weights, measured: Sequence[str]) -> Term:
    size = features.size(m.feature)
    weight, target = np.zeros(size), np.zeros(size)
    where = slice(None) if m.elements is None else m.elements
    weight[where] = _weight(features, m, weights)
    target[where] = m.values
    finer = _smallest_refinement(features, m.feature, measured)
    inside = None if finer is None else features.map_elements(finer, m.feature)
    return Term(m.feature, features.cells.element_of_cell[m.feature], target, weight, finer, inside)


def _smallest_refinement(features: FeatureDag, name: str, measured: Sequence[str]) -> str | None:
    """The smallest measured feature that refines this one: one row ties each element to it, and no row is redundant."""
    below = [n for n in measured if features.graph.has_edge(n, name)]
    return min(below, key=lambda n: (features.size(n), measured.index(n)), default=None)


def check_exact(problem: Problem) -> None:
    """Refuse exact counts (infinite weights) that no non-negative leaves can meet, and say which."""
    exact = [(t, np.flatnonzero(np.isinf(t.weight))) for t in problem.terms]
    exact = [(t, where) for t, where in exact if len(where)]
    if not exact:
        return
    for term, where in exact:
        worst = where[np.argmin(term.target[where])]
        if term.target[worst] < 0:
            raise InfeasibleError(
                f"the exact count of {term.name!r} number {worst} is {term.target[worst]:g}: it cannot be negative"
            )
    if len(exact) == 1:
        return  # the elements of one feature are disjoint and not empty: any counts can be met
    _check_together(problem, exact)


def _check_together(problem: Problem, exact: Sequence[tuple[Term, Ints]]) -> None:
    """Phase I of the simplex method: the least total violation of the exact counts over non-negative cells is zero if they agree."""
    import scipy.sparse as sp
    from scipy.optimize import linprog

    rows, targets, names = [], [], []
    every = np.arange(problem.cells)
    for term, where in exact:
        membership = sp.csr_array(
            (np.ones(problem.cells), (term.element_of_cell, every)), shape=(len(term.target), problem.cells)
        )
        rows.append(membership[where])
        targets.append(term.target[where])
        names += [(term.name, int(j)) for j in where]
    a, b = sp.vstack(rows), np.concatenate(targets)
    slack = sp.eye_array(len(b))
    cost = np.concatenate([np.zeros(problem.cells), np.ones(2 * len(b))])
    # counts are compared in trips: HiGHS works to 1e-7, which is far below one
    result = linprog(cost, A_eq=sp.hstack([a, slack, -slack]).tocsc(), b_eq=b, method="highs")
    if result.x is None:
        raise InfeasibleError(f"whether the exact counts agree could not be decided: {result.message}")
    violation = np.abs(result.x[problem.cells : problem.cells + len(b)] - result.x[problem.cells + len(b) :])
    if violation.max() > max(1e-6, 1e-9 * float(np.abs(b).max())):
        name, element = names[int(np.argmax(violation))]
        raise InfeasibleError(
            f"the exact counts contradict each other: {name!r} number {element} is off by {violation.max():g} "
            "however the trips are spread. Check them, or give one a finite weight"
        )
