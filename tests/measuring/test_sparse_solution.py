"""Noise drawn only where it can matter leads to the answer of noise on every trip type, in law and in every case."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_program import paper, size_of
from sparse_mutants import Added, FreshNoise, HitAgain, NoTwoInARow, Overwritten, Peeking, Unconditional
from sparse_twin import (
    ALPHA,
    CELLS,
    FEWER,
    LAW,
    RUNS,
    SCALE,
    TYPES,
    Dense,
    answer_of,
    city,
    columns,
    counts_of,
    dense,
    least_p,
    sparse,
)
from strategies import Case, cases

import cbdp
from cbdp import FeatureDag, Measurement, Universe, post_process
from cbdp.errors import SolverError
from cbdp.estimation import projection
from cbdp.measuring.answers import SparseThresholdedAnswer
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import DiscreteLaplace
from cbdp_solvers.newton import Newton
from cbdp_solvers.problem import Problem
from cbdp_solvers.solution import Solution


def thorough(examples: int) -> Any:
    return settings(deadline=None, max_examples=examples, derandomize=True)


def solved(leaves: SparseThresholdedAnswer | Dense, runs: int, seed: int, *, above: bool) -> list[np.ndarray]:
    """Statistics of each run: the answer's leaves, features and shifts, and the integers that would be released."""
    features, counts = city(runs), counts_of(runs)
    entropy = InsecureSeededEntropy(seed)
    answers = []
    for name in ("run", "time", "mode"):
        exact = counts.of(features, name)
        answers.append(Measurement(name, exact + LAW.sample(len(exact), entropy), scale=SCALE))
    if not above:
        assert isinstance(leaves, Dense)
        leaves = Measurement("singleton", leaves.values, scale=SCALE)
    estimate = post_process(features, [*answers, leaves], estimator="projection")
    assert estimate.solution.kkt_residual < 1e-9
    table = estimate.counts("singleton").reshape(runs, TYPES)
    prices = estimate.solution.prices
    held = features.cells.element_of_cell
    shift = sum(prices[name][held[name]] for name in ("run", "time", "mode")) * features.universe.size
    found = columns(np.clip(np.rint(table), 0, 127).astype(np.int8))
    found += columns(np.rint(shift.reshape(runs, CELLS) * 1e6))  # rounding must not order what is equal
    found += columns(np.rint(table[:, :: TYPES // 24] * 1e6))
    found += [np.rint(table).sum(axis=1), np.rint(table.sum(axis=1) * 1e6), (table > 1e-6).sum(axis=1)]
    found += columns(np.rint(estimate.counts("time").reshape(runs, -1) * 1e6))
    found += columns(np.rint(estimate.counts("mode").reshape(runs, -1) * 1e6))
    return found


@cache
def solved_twin() -> list[np.ndarray]:
    return solved(dense(RUNS, 11), RUNS, 12, above=False)


@pytest.fixture
def high_floors(monkeypatch: pytest.MonkeyPatch) -> None:
    """First floors that are too high, and lowered little by little: much of what matters comes from bands."""
    monkeypatch.setattr(projection, "THRESHOLD_MARGIN", -1.9)
    monkeypatch.setattr(projection, "LOWERING_MARGIN", 0.1)


@pytest.mark.slow
def test_solved_as_if_all_had_been_noised(high_floors: None) -> None:
    """Shifts, leaves, features and released counts of 20,000 runs cannot be told from those of the dense path."""
    answer = sparse(RUNS, 13)
    assert least_p(solved(answer, RUNS, 14, above=True), solved_twin()) > ALPHA
    assert len(answer.index) < 0.5 * RUNS * TYPES


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [Unconditional, Overwritten, Added, HitAgain, FreshNoise, NoTwoInARow])
def test_mutant_is_caught_after_the_solver(high_floors: None, mutant: type[SparseThresholdedAnswer]) -> None:
    """The same comparison finds each out, with a fifth of the runs."""
    assert least_p(solved(sparse(FEWER, 15, mutant), FEWER, 16, above=True), solved_twin()) < ALPHA


# Floors follow what is revealed, and nothing else


def embedded(answer: SparseThresholdedAnswer | Dense, how: str, seed: int = 0) -> np.ndarray:
    """A count for every type: those revealed, and for the others whatever does not exceed their floor."""
    features = answer.features
    top = answer.floor[features.cell_of_leaf].astype(float)
    rng = np.random.default_rng(seed)
    below = {"at the floor": 0.0, "far below": 1e9, "anywhere": rng.exponential(20.0, len(top)).round()}[how]
    values = np.minimum(top, 1e6) - below
    values[answer.index] = answer.value
    return values


HOW = ["at the floor", "far below", "anywhere"]


class Watched(SparseThresholdedAnswer):
    """Remembers the floors."""

    def lower(self, floor: np.ndarray) -> None:
        super().lower(floor)
        self.floors = [*getattr(self, "floors", []), self.floor]


class WatchedPeeking(Watched, Peeking):
    pass


def replayed(kind: type[Watched], how: str, seed: int) -> bool:
    """Whether the floors are the same when all is done again from what was revealed in the end."""
    features = city(3)
    counts = counts_of(3)
    entropy = InsecureSeededEntropy(seed)
    *answers, first = cbdp.measure(counts, features, 1, "uniform", entropy=entropy, sparse=True)
    scale = Fraction(first.noise.scale)
    answer = answer_of(kind, counts, features, scale, InsecureSeededEntropy(seed))
    estimate = post_process(features, [*answers, answer], estimator="projection")
    again = Dense(features, embedded(answer, how, seed), DiscreteLaplace(scale))
    other = post_process(features, [*answers, again], estimator="projection")
    assert len(answer.floors) > 1, "floors were never lowered"
    same = len(answer.floors) == len(again.floors)
    if same and all(map(np.array_equal, answer.floors, again.floors)):
        assert np.array_equal(estimate.counts("singleton"), other.counts("singleton"))
        return True
    return False


@pytest.mark.parametrize("how", HOW)
def test_floors_are_a_function_of_what_is_revealed(high_floors: None, how: str) -> None:
    """Done again without the private counts, from the revealed ones alone, every floor is the same."""
    assert all(replayed(Watched, how, seed) for seed in range(5))


def test_mutant_that_looks_at_trips_for_its_floors_is_caught(high_floors: None) -> None:
    """Floors that are lower where there are trips cannot be found again without the trips."""
    assert not any(replayed(WatchedPeeking, how, 0) for how in HOW)


def lowering(rounds: int, failures: int) -> type[Newton]:
    """A solver that asks for lower floors so many times, then fails so many times, then answers."""

    class Lowering(Newton):
        name = "lowering"
        calls: ClassVar[list[int]] = []

        def solve(self, problem: Problem, warm_start: Solution | None = None) -> Solution:
            self.calls.append(1)
            if rounds < len(self.calls) <= rounds + failures:
                raise SolverError("it failed")
            solution = super().solve(problem)
            if len(self.calls) <= rounds:
                assert problem.floor is not None
                return replace(solution, shift=(problem.floor - 1e-3) * problem.weight)
            return solution

    return Lowering


def answers_of_three_runs() -> list[Any]:
    return cbdp.measure(counts_of(3), city(3), 1, "uniform", entropy=InsecureSeededEntropy(1), sparse=True)


def test_a_failure_after_many_rounds_is_the_first_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds in which floors were lowered do not count as failures; more failures than allowed are passed on, whenever they come."""
    monkeypatch.setattr(projection, "LOWERING_MARGIN", 0.01)
    for rounds in (0, projection.MAX_FAILURES):
        solver = lowering(rounds, 1)()
        found = post_process(city(3), answers_of_three_runs(), estimator="projection", solver=solver)
        assert found.solution.kkt_residual < 1e-9
        solver = lowering(rounds, projection.MAX_FAILURES + 1)()
        with pytest.raises(SolverError, match="it failed"):
            post_process(city(3), answers_of_three_runs(), estimator="projection", solver=solver)


def test_floors_that_are_never_low_enough_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """No estimate is made of the last solution, which is one of other counts than those that were revealed after it."""
    monkeypatch.setattr(projection, "LOWERING_MARGIN", 0.01)
    monkeypatch.setattr(projection, "MAX_ROUNDS", 4)
    with pytest.raises(SolverError, match="lowered 4 times"):
        post_process(city(3), answers_of_three_runs(), estimator="projection", solver=lowering(9, 0)())


# Equal solution


def one_leaf_weight(case: Case, rule: str, scale: Fraction) -> tuple[Case, Any, dict[str, Any]]:
    """The case with one weight for all leaves, the weights as they are handed over, and variances that agree."""
    weight = {name: dict(each) for name, each in case.weight.items()}
    flat = next(iter(weight["singleton"].values()))
    if rule == "inverse-variance":  # all in proportion to the leaves'
        flat = 1 / DiscreteLaplace(scale).variance()
        weight = {name: {key: w * flat for key, w in each.items()} for name, each in weight.items()}
    weight["singleton"] = dict.fromkeys(weight["singleton"], flat)
    case = replace(case, weight=weight)
    if rule == "inverse-variance":
        return replace(case, rule=None), rule, weight
    if case.rule is None:
        case_weights = case.weights(case.dag())
        return case, {**case_weights, "singleton": flat}, {}
    return case, case.rule, {}


def measured(case: Case, dag: FeatureDag, weight: dict[str, Any]) -> list[Measurement]:
    """The case's measurements but those of the leaves, with variances where weights are to follow from them."""
    found = [m for m in case.measurements(dag) if m.feature != "singleton"]
    if not weight:
        return found
    keys = {m.feature: case.keys(dag, m.feature) for m in found}
    return [
        replace(
            m,
            variance=np.array([1 / weight[m.feature][k] for k in keys[m.feature] if k in weight[m.feature]]),
        )
        for m in found
    ]


def leaf_values(case: Case, dag: FeatureDag) -> np.ndarray:
    return np.array([case.noisy["singleton"][k] for k in case.keys(dag, "singleton")])


SCALES = st.sampled_from([Fraction(1, 3), Fraction(2), Fraction(50), Fraction(10**6)])


@pytest.mark.slow
@given(cases(spread=1.5), SCALES, st.booleans(), st.sampled_from(HOW), st.integers(0, 100))
@thorough(150)
def test_same_answer_whatever_lies_below_the_floors(
    case: Case, scale: Fraction, by_variance: bool, how: str, seed: int
) -> None:
    """Sparse newton is dense newton on any counts that agree above the floors, and an interior point agrees with both."""
    case, weights, variances = one_leaf_weight(case, "inverse-variance" if by_variance else "", scale)
    dag = case.dag()
    others = measured(case, dag, variances)
    leaves = Dense(dag, leaf_values(case, dag), DiscreteLaplace(scale))
    found = post_process(dag, [*others, leaves], weights=weights)
    assert found.solution.kkt_residual <= 1e-9
    whole = embedded(leaves, how, seed)
    every = Measurement("singleton", whole, scale=scale)
    dense_found = post_process(dag, [*others, every], weights=weights)
    near = 1e-9 * (size_of(case) + np.abs(leaves.value).max(initial=0.0) + 1)
    x = found.counts("singleton")
    np.testing.assert_allclose(x, dense_found.counts("singleton"), atol=near, rtol=0)
    for name in dag.features:
        np.testing.assert_allclose(found.counts(name), dense_found.counts(name), atol=len(x) * near, rtol=0)
    if seed % 3 == 0:
        noisy = {
            **case.noisy,
            "singleton": dict(zip(case.keys(dag, "singleton"), whole.tolist(), strict=True)),
        }
        if how == "far below":  # an interior point needs one scale
            noisy["singleton"] = {k: max(v, -10 * size_of(case) - 10) for k, v in noisy["singleton"].items()}
        other = paper(replace(case, noisy=noisy))
        np.testing.assert_allclose(case.leaves(dag, found), other, atol=5e-4 * (size_of(case) + 1), rtol=0)


def test_exact_count_of_which_no_leaf_exceeds_the_first_floor() -> None:
    """An exact count lowers the floors until it can be met."""
    dag = FeatureDag(Universe(stop=["A", "B"]), [])
    leaves = Dense(dag, np.array([-3, -5]), DiscreteLaplace(Fraction(1000)))
    exact = Measurement("total", np.array([4.0]))
    found = post_process(dag, [exact, leaves], weights={"total": np.inf})
    np.testing.assert_allclose(found.counts("singleton"), [3, 1], atol=1e-9)
