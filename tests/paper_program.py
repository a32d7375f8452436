"""Figure 3 of the CBDP paper as it stands, for cvxpy: the oracle of the engine's tests."""

from __future__ import annotations

import itertools
import warnings
from contextlib import suppress

import cvxpy as cp
import numpy as np
from strategies import Case


def size_of(case: Case) -> float:
    """The largest count involved: what errors are measured against."""
    return max(abs(v) for noisy in case.noisy.values() for v in noisy.values()) or 1.0


def paper(case: Case):
    """Figure 3 as it stands: a variable per element of every measured feature, (O2) for every refinement pair, x ≥ 0."""
    unit = size_of(case)
    groups = {name: case.model.groups(case.features[name]) for name in case.noisy}
    x = {name: cp.Variable(len(group)) for name, group in groups.items()}
    rules = [v >= 0 for v in x.values()]
    for fine, coarse in itertools.permutations(groups, 2):
        small, large = list(groups[fine].values()), list(groups[coarse].values())
        inside = np.array([[a <= b for a in small] for b in large], dtype=float)
        if inside.sum() == len(small):  # every element of the finer lies in one of the coarser
            rules.append(x[coarse] == inside @ x[fine])
    finite = [w for weight in case.weight.values() for w in weight.values() if np.isfinite(w)]
    pieces = []
    for name, noisy in case.noisy.items():
        place = {key: j for j, key in enumerate(groups[name])}
        w = np.array([case.weight[name][key] for key in noisy]) / np.median(finite)
        apart = x[name][[place[key] for key in noisy]] - np.array(list(noisy.values())) / unit
        if np.isinf(w).any():
            rules.append(apart[np.isinf(w)] == 0)
        if np.isfinite(w).any():
            pieces.append(cp.multiply(np.sqrt(w[np.isfinite(w)]), apart[np.isfinite(w)]))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(cp.hstack(pieces))), rules)
    for tolerance in (1e-13, 1e-11, 1e-9):  # redundant rows of (O2) keep an interior point from the tightest
        tight = dict.fromkeys(["tol_gap_abs", "tol_gap_rel", "tol_feas", "tol_ktratio"], tolerance)
        with suppress(cp.error.SolverError), warnings.catch_warnings(action="ignore"):
            problem.solve(solver=cp.CLARABEL, max_iter=500, **tight)
        if problem.status == "optimal":
            break
    assert problem.status in ("optimal", "optimal_inaccurate")
    order = list(groups["singleton"])
    found = dict(zip(order, x["singleton"].value * unit, strict=True))
    return np.array([found[t] for t in case.model.types])
