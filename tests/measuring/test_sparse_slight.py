"""Leaves that weigh next to nothing, in vast universes: the optimum as in exact arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from exact_arithmetic import Rational, eliminated
from hypothesis import given, settings
from hypothesis import strategies as st

import cbdp
from cbdp import Feature, FeatureDag, Measurement, Universe, post_process
from cbdp.estimation import compiler
from cbdp.features import Dimension
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.solvers import SOLVERS
from cbdp_solvers.problem import Problem


def thorough(examples: int) -> Any:
    return settings(deadline=None, max_examples=examples, derandomize=True)


def in_fractions(problem: Problem, leaves: np.ndarray) -> tuple[Rational, Rational]:
    """The optimum, proven: leaves and the cells' shifts (in trips), in fractions.

    With the leaves above zero given, the conditions are linear: c_ij + λ_ij/w_ij = Σ_k (C_k − n_k s_k/w), s = B λ. If
    the leaves above their shift are then those given, all conditions hold exactly; else those are tried next.
    """
    weight = Fraction(float(problem.weight))
    unknown = [(t, j) for t in problem.terms for j in np.flatnonzero(t.weight > 0)]
    holds = [[int(t.element_of_cell[k]) == j for t, j in unknown] for k in range(problem.cells)]
    of_cell = [[i for i, here in enumerate(row) if here] for row in holds]
    room = [Fraction(0) if np.isinf(t.weight[j]) else 1 / Fraction(float(t.weight[j])) for t, j in unknown]
    target = [Fraction(float(t.target[j])) for t, j in unknown]
    value = [Fraction(v) for v in problem.target.tolist()]
    cell = problem.cell.tolist()
    above = (leaves > 0).tolist()
    for _ in range(60):
        held, many = [Fraction(0)] * problem.cells, [0] * problem.cells
        for k, v, here in zip(cell, value, above, strict=True):
            held[k] += v if here else 0
            many[k] += here
        matrix = [
            [room[i] if i == j else Fraction(0) for j in range(len(unknown))] for i in range(len(unknown))
        ]
        right = [-c for c in target]
        for k, own in enumerate(of_cell):
            for i in own:
                right[i] += held[k]
                for j in own:
                    matrix[i][j] += many[k] / weight
        prices = eliminated(matrix, right)
        shift = [sum((prices[i] for i in own), Fraction(0)) / weight for own in of_cell]
        now = [v > shift[k] for v, k in zip(value, cell, strict=True)]
        if now == above:
            return [max(Fraction(0), v - shift[k]) for v, k in zip(value, cell, strict=True)], shift
        above = now
    raise AssertionError("no set of leaves above zero was found to be the right one")


def check_against_fractions(problem: Problem) -> None:
    """Newton certifies its answer, and it is the optimum to nine digits of the largest count."""
    found = SOLVERS.get("newton").solve(problem)
    assert found.kkt_residual <= 1e-9
    exact, _ = in_fractions(problem, found.leaves)
    largest = max([1.0, *np.abs(problem.target), *(abs(v) for t in problem.terms for v in t.target)])
    np.testing.assert_allclose(found.leaves, [float(x) for x in exact], atol=1e-9 * largest, rtol=0)


UNTOUCHED = Dimension(range(1000))
FEATURES: dict[str, tuple[str, ...]] = {
    "a": ("a",),
    "b": ("b",),
    "c": ("c",),
    "ab": ("a", "b"),
    "bc": ("b", "c"),
    "again": ("a",),
    "pair": ("pair",),
    "abc": ("a", "b", "c"),
}


@cache
def vast(names: tuple[str, ...], power: int) -> FeatureDag:
    """Three dimensions that features cross over, and `power` of a thousand values each that none touches."""
    untouched = dict.fromkeys([f"x{i}" for i in range(power)], UNTOUCHED)
    universe = Universe(a=range(3), b=range(2), c=range(3), **untouched)
    universe = universe.with_attribute("pair", ["a", "c"], lambda a, c: (a * c) % 3)
    return FeatureDag(universe, [Feature(name, by=FEATURES[name]) for name in names])


def slight(names: tuple[str, ...], power: int, kept: Mapping[str, str], seed: int) -> Problem:
    """Leaves that weigh 1e-10 to 1e-16 of a feature; of each feature all, some or no elements are measured, or exact.

    Every cell has leaves, and the features disagree by a third at most, so that no element is emptied.
    """
    dag = vast(names, power)
    rng = np.random.default_rng(seed)
    cells = np.repeat(np.arange(dag.cells.size), rng.integers(2, 6, dag.cells.size))
    index = np.unique(dag.cells.partition.type_at(cells, rng.integers(0, dag.cells.partition.sizes[cells])))
    cell = dag.cells.partition.element_of(dag.universe.unrank_codes(index))
    values = 100 + np.rint(100 * rng.exponential(1.0, len(index))).astype(np.int64)
    true = np.bincount(cell, weights=values + np.rint(40 * rng.random(len(index))), minlength=dag.cells.size)
    rule: dict[str, Any] = {"singleton": 1 / dag.universe.size}
    answers = []
    for name, how in kept.items():
        size = dag.size(name)
        elements = np.flatnonzero(rng.random(size) < {"some": 0.6, "none": 0.0}.get(how, 1.0))
        if len(elements):
            sums = np.bincount(dag.cells.element_of_cell[name], weights=true, minlength=size)[elements]
            noisy = sums if how == "exact" else np.rint(sums * rng.uniform(0.8, 1.2, len(sums)))
            answers.append(Measurement(name, noisy, elements=elements))
            rule[name] = np.inf if how == "exact" else rng.choice([1 / size, 3.0])
    leaves = Measurement("singleton", values, elements=index, floor=np.full(dag.cells.size, -(2**60)))
    return compiler.compile(dag, [*answers, leaves], rule)


@st.composite
def slights(draw: Any) -> Problem:
    """Crossing, nested and equal features, each measured whole or not at all, and one of them perhaps exact."""
    names = draw(st.lists(st.sampled_from(list(FEATURES)), min_size=1, max_size=4, unique=True).map(tuple))
    kept = {name: draw(st.sampled_from(["all", "all", "all", "none"])) for name in ("total", *names)}
    if draw(st.booleans()):
        kept[draw(st.sampled_from(list(kept)))] = "exact"
    return slight(names, draw(st.sampled_from([3, 4, 4, 5])), kept, draw(st.integers(0, 2**32 - 1)))


@pytest.mark.slow
@given(slights())
@thorough(60)
def test_slight_leaves_against_fractions(problem: Problem) -> None:
    """Leaves of next to no weight do not cost accuracy: the optimum is met as in exact arithmetic."""
    check_against_fractions(problem)


def test_slight_leaves_under_two_exact_features() -> None:
    """Exact counts of two features that agree are met beside a third that does not."""
    for seed in range(10):
        kept = {"total": "exact", "c": "exact", "a": "all", "b": "none"}
        check_against_fractions(slight(("c", "a", "b"), 4, kept, seed))


def test_slight_leaves_under_a_feature_measured_in_part() -> None:
    """A feature of which some elements are measured does not keep the others from being settled."""
    for seed in range(10):
        check_against_fractions(slight(("a", "b"), 4, {"total": "all", "a": "all", "b": "some"}, seed))


class Remembered(type(SOLVERS.get("newton"))):  # type: ignore[misc]
    """Newton that keeps its problems."""

    problems: list[Problem]

    def solve(self, problem: Problem, warm_start: Any = None) -> Any:
        object.__setattr__(self, "problems", [problem])
        return super().solve(problem, warm_start)


def run_vast(names: tuple[str, ...], power: int, seed: int, trips: int, epsilon: Any, weights: str) -> None:
    """The whole way in a vast universe: certified, the optimum to nine digits, every shift at or above its floor."""
    dag = vast(names, power)
    rng = np.random.default_rng(seed)
    rows = {name: rng.integers(0, len(d), trips) for name, d in dag.universe.dimensions.items()}
    counts = cbdp.count(rows, dag.universe)
    answers = cbdp.measure(counts, dag, epsilon, "uniform", entropy=InsecureSeededEntropy(seed))
    newton = Remembered()
    found = post_process(dag, answers, weights=weights, solver=newton)
    assert found.solution.kkt_residual <= 1e-9
    problem = newton.problems[-1]
    exact, shift = in_fractions(problem, found.solution.leaves)
    largest = max([1.0, *np.abs(problem.target)])
    np.testing.assert_allclose(found.solution.leaves, [float(x) for x in exact], atol=1e-9 * largest, rtol=0)
    assert problem.floor is not None
    assert all(s >= f for s, f in zip(shift, problem.floor, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["size", "uniform", "inverse-variance"])
@pytest.mark.parametrize("names", [("a", "b", "c"), ("ab", "bc"), ("a", "again", "pair")])
def test_vast_universe_against_fractions(names: tuple[str, ...], weights: str) -> None:
    """From trips to the answer among 1.8e13 types: the optimum of the problem with all types, to nine digits."""
    for seed in range(3):
        run_vast(names, 4, seed, 2000, 1, weights)


@pytest.mark.slow
def test_vast_universe_with_emptied_elements() -> None:
    """Noisy counts below zero empty their elements; the answer is certified and right all the same."""
    for seed in range(12):
        run_vast(("ab", "c"), 4, seed, 3, 1, "size")
