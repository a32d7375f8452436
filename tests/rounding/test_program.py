"""Sets that cross: the distance and the violation are the least there are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from strategies import Model
from twins import FAMILIES, check, filled, labelled


@pytest.mark.parametrize("seed", range(4))
def test_nearest_equals_the_linear_relaxation(seed: int) -> None:
    """On two families of some hundred leaves the distance equals the bound of an independent linear program."""
    model = Model((tuple(range(3)), tuple(range(6)), tuple(range(5)), tuple(range(6))), {}, ())
    twin = filled(model, FAMILIES["two"], seed)
    rounded, whole = twin.round()
    check(twin, rounded, whole)
    assert rounded.violation == {}
    place = {t: i for i, t in enumerate(model.types)}
    sets = twin.sets()
    rows = np.zeros((len(sets), len(place)))
    for j, group in enumerate(sets):
        rows[j, [place[t] for t in group]] = 1
    real = [sum(twin.real[t] for t in g) for g in sets]
    low, high = np.array([math.floor(r) for r in real]), np.array([math.ceil(r) for r in real])
    x = np.array([float(twin.real[t]) for t in model.types])
    f = x - np.floor(x)
    bound = milp(
        1 - 2 * f,
        bounds=Bounds(0, np.where(f > 0, 1, 0)),
        constraints=LinearConstraint(rows, low - rows @ np.floor(x), high - rows @ np.floor(x)),
    )
    assert float(twin.distance(whole)) == pytest.approx(bound.fun + (f**2).sum(), abs=1e-6)


@pytest.mark.slow
def test_least_violation_by_enumeration() -> None:
    """With more than two families, no rounding that keeps the exact features breaks the others less."""
    met = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 11))
        labels = {f"l{i}": rng.choice(["x", "y", "z"], n).tolist() for i in range(9)}
        twin = filled(*labelled(labels), seed, unit=2)
        rounded, whole = twin.round()
        check(twin, rounded, whole)
        kept = [g for f in twin.features if f not in rounded.violation for g in twin.groups(f)] + twin.cells()
        others = [g for f in rounded.violation for g in twin.groups(f)]
        total = sum(twin.beyond(g, whole) for g in others)
        (_, hard), (_, broken) = twin.enumerated(kept), twin.enumerated(others)
        assert total == broken[hard == 0].min()
        met += total > 0
    assert met >= 10
