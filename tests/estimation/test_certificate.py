"""The certificate of an answer: what is wrong shows in it, and a bad answer is not passed on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from engine_cases import CERTIFIED, INF, SMALL, cost, enumerated, thorough
from hypothesis import assume, given
from hypothesis import strategies as st
from paper_program import size_of
from strategies import Case, cases

import cbdp
from cbdp.estimation import compiler
from cbdp.features import Feature, FeatureDag, Universe
from cbdp_solvers import newton
from cbdp_solvers.solution import certify


@given(cases(), st.data())
@thorough(100)
def test_certificate_notices_a_wrong_leaf(case, data):
    """Moving one leaf by δ in either direction raises the residual to δ of the largest count, at the least."""
    dag, estimate = case.solve()
    problem = compiler.compile(dag, case.measurements(dag), case.weights(dag))
    u = data.draw(st.integers(0, dag.universe.size - 1))
    largest = 1 + size_of(case) + estimate.counts("singleton").max()
    delta = data.draw(st.sampled_from([1e-6, 1e-3, 1.0, -1e-6, -1e-3, -1.0])) * largest
    wrong = estimate.counts("singleton").copy()
    wrong[u] += delta
    found, _ = certify(problem, wrong, estimate.solution.prices)
    assert found.residual >= 0.99 * abs(delta) / largest - estimate.solution.kkt_residual


@given(cases(), st.data())
@thorough(100)
def test_certificate_notices_a_wrong_price(case, data):
    """Moving the price of an element by δ moves what its count should be by δ/w: the residual shows that much."""
    names = [n for n in case.noisy if n != "singleton"]
    assume(names)
    dag, estimate = case.solve()
    problem = compiler.compile(dag, case.measurements(dag), case.weights(dag))
    term = data.draw(st.sampled_from(problem.terms))
    j = data.draw(st.integers(0, len(term.target) - 1))
    largest = 1 + size_of(case) * len(case.model.types)
    trips = data.draw(st.sampled_from([1e-6, 1e-2, -1e-6, -1e-2])) * largest
    w = term.weight[j] if term.weight[j] > 0 else np.max(problem.weight)
    prices = {n: p.copy() for n, p in estimate.solution.prices.items()}
    prices[term.name][j] += trips * w
    found, _ = certify(problem, estimate.counts("singleton"), prices)
    assert found.residual >= 0.99 * abs(trips) / largest - estimate.solution.kkt_residual


def case_prices(case: Case, dag: FeatureDag, prices) -> dict:
    """Prices of the measured elements in the order of the case's own rows."""
    found = {}
    for name in case.noisy:
        if name != "singleton":
            by_key = dict(zip(case.keys(dag, name), prices[name], strict=True))
            found[name] = np.array([by_key[key] for key in case.noisy[name]])
    return found


def dual(case: Case, prices: dict) -> float:
    """The least of Σ w (x − c)² + Σ w (y − c)² + 2 Σ λ (A x − y) over x ≥ 0 and y: no consistent x costs less."""
    order = {trip: u for u, trip in enumerate(case.model.types)}
    _, c, w = case.rows("singleton")
    place = [order[key] for key in case.noisy["singleton"]]
    shift, value = np.zeros(len(order)), 0.0
    for name, price in prices.items():
        a, noisy, weight = case.rows(name)
        shift += a.T @ price
        y = noisy + price / weight
        value += float(np.sum(weight * (y - noisy) ** 2 - 2 * price * y))
    s = shift[place]
    x = np.maximum(0, c - s / w)
    return value + float(np.sum(w * (x - c) ** 2 + 2 * s * x))


@given(cases(types=8, spread=1.0), st.integers(0, 10**6), st.sampled_from([0.0, 1e-3, 0.3, 10.0]))
@thorough(100)
def test_gap_bounds_the_distance(case, seed, far):
    """The gap is the cost less a lower bound on all costs, so never below Σ w (x − x*)² over all features; 0 at the optimum."""
    dag, estimate = case.solve()
    problem = compiler.compile(dag, case.measurements(dag), case.weights(dag))
    rng = np.random.default_rng(seed)
    unit = far * size_of(case)
    wrong = np.maximum(0, estimate.counts("singleton") + unit * rng.normal(size=dag.universe.size))
    prices = {
        t.name: estimate.solution.prices[t.name]
        + (t.weight > 0) * t.weight * unit * rng.normal(size=len(t.weight))
        for t in problem.terms
    }
    found, objective = certify(problem, wrong, prices)
    a, c, w = case.stacked()
    best = enumerated(case)
    x = case.leaves(dag, replace(estimate, solution=replace(estimate.solution, leaves=wrong)))
    assert objective == pytest.approx(cost(case, x), rel=1e-9)
    gap, bound = found.gap * max(1.0, objective), dual(case, case_prices(case, dag, prices))
    rounding = 1e-12 * (np.sum(w * c**2) + objective + abs(bound))
    assert gap == pytest.approx(max(0.0, cost(case, x) - bound), rel=1e-9, abs=rounding)
    assert bound <= cost(case, best) + rounding
    assert far or gap <= 1e-9 * (1 + objective)
    assert gap >= np.sum(w * (a @ (x - best)) ** 2) - rounding


@pytest.mark.parametrize("precise", [False, True])
def test_prices_that_cancel_excuse_nothing(precise):
    """Exact counts missed by far stay missed, however large the prices that a backend returns and that add up to nothing."""
    dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])
    leaves = np.array([50.0, 30.0, 20.0, 70.0])
    noisy = {"total": [10], "time": [4, 6], "singleton": leaves}
    problem = compiler.compile(dag, noisy, {"total": INF, "time": INF, "singleton": 1})
    prices = {"total": np.array([1e20]), "time": np.array([-1e20, -1e20])}
    shift = np.zeros(problem.cells) if precise else None
    assert certify(problem, leaves, prices, shift)[0].consistency > 1


def test_shifts_of_its_own_excuse_nothing():
    """Shifts that differ from the sums of huge prices by trips are not taken for their rounding: the total holds, the leaves are not the nearest."""
    dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])
    problem = compiler.compile(
        dag,
        {"total": [10], "time": [4, 6], "singleton": [5, 5, 5, 5]},
        {"total": INF, "time": INF, "singleton": 1},
    )
    shift = np.array([3.0, 2.0])
    leaves = 5.0 - shift[problem.cell]
    prices = {"total": np.array([1e20]), "time": np.array([-1e20, -1e20])}
    assert certify(problem, leaves, prices)[0].residual > 0.1
    assert certify(problem, leaves, prices, shift)[0].residual > 0.1


def test_a_cost_below_the_bound_bounds_nothing():
    """Leaves that miss an exact count may cost less than any that meet it: the gap is infinite, not zero."""
    noisy = {"total": [100], "singleton": [5.0, 2, 3, 1]}
    weights = {"total": INF, "singleton": 1}
    solution = cbdp.post_process(SMALL, noisy, weights=weights).solution
    problem = compiler.compile(SMALL, noisy, weights)
    assert certify(problem, solution.leaves, solution.prices)[0].gap < 1e-12
    missed, cost = certify(problem, np.array([5.0, 2, 3, 1]), solution.prices)
    assert cost == 0
    assert missed.gap == INF


@pytest.mark.parametrize("where", ["leaves", "prices"])
def test_certificate_refuses_what_is_not_a_number(where):
    """A single NaN among the leaves or the prices makes the residual infinite, never small."""
    dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])
    noisy = {"total": [10], "time": [7, 2], "singleton": [5, -2, 3, 1]}
    solution = cbdp.post_process(dag, noisy).solution
    problem = compiler.compile(dag, noisy)
    for place in range(4 if where == "leaves" else 2):
        leaves, prices = solution.leaves.copy(), {n: p.copy() for n, p in solution.prices.items()}
        (leaves if where == "leaves" else prices["time"])[place] = np.nan
        assert certify(problem, leaves, prices)[0].residual == INF


@pytest.mark.parametrize("dtype", [np.int64, float])
def test_gap_of_large_counts(dtype):
    """Counts whose squares exceed 2⁶³ still have a gap of rounding size."""
    dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])
    leaves = np.array([4, 5, 6, 7], dtype=dtype) * 10**9
    noisy = {"total": [23 * 10**9], "time": [11 * 10**9, 10**9], "singleton": leaves}
    certificate = cbdp.post_process(dag, noisy).solution.certificate
    assert certificate.gap < 1e-12
    assert certificate.residual < CERTIFIED


def test_a_bad_answer_is_not_passed_on():
    """A backend that claims success with wrong leaves is stopped by the certificate, which names its fault."""

    class Liar(newton.Newton):
        name = "liar"

        def answer(self, problem, warm_start):
            found = super().answer(problem, warm_start)
            return replace(found, leaves=found.leaves + 1e-3)

    noisy = {"total": [10], "time": [7, 2], "singleton": [5, -2, 3, 1]}
    with pytest.raises(cbdp.errors.CertificateError, match="liar"):
        cbdp.post_process(SMALL, noisy, solver=Liar)
    assert cbdp.post_process(SMALL, noisy, solver=Liar(), tolerance=0.1).solution.kkt_residual > 1e-5


def test_a_backend_that_returns_nan_is_stopped():
    """Leaves that are not numbers never reach the user, whatever the tolerance."""

    class Lost(newton.Newton):
        name = "lost"

        def answer(self, problem, warm_start):
            found = super().answer(problem, warm_start)
            return replace(found, leaves=np.full_like(found.leaves, np.nan))

    with pytest.raises(cbdp.errors.SolverError, match="lost"):
        cbdp.post_process(SMALL, {"total": [10], "singleton": [5, -2, 3, 1]}, solver=Lost, tolerance=1.0)
