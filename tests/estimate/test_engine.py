"""The engine against other formulations of the same program: cvxpy on the paper's own, enumeration of active sets."""

from __future__ import annotations

import itertools
import signal
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from paper_program import paper, size_of
from strategies import Case, Labelling, Model, cases

import cbdp
from cbdp.estimate import compiler
from cbdp.features import Dimension, Feature, FeatureDag, Universe, odmts
from cbdp.solvers import linear, newton
from cbdp.solvers.solution import certify

CERTIFIED = 1e-9
INF = float("inf")


def thorough(examples):
    return settings(deadline=None, max_examples=examples, derandomize=True)


@contextmanager
def within(seconds):
    """Fail rather than hang."""

    def late(*_):
        raise TimeoutError(f"no answer within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def cost(case: Case, x) -> float:
    a, c, w = case.stacked()
    soft = np.isfinite(w)
    return float(np.sum(w[soft] * (a @ x - c)[soft] ** 2))


def enumerated(case: Case):
    """The best feasible point over all 2ⁿ supports, each solved as equality-constrained least squares."""
    a, c, w = case.stacked()
    exact = np.isinf(w)
    soft, wanted, n = np.sqrt(w[~exact])[:, None] * a[~exact], np.sqrt(w[~exact]) * c[~exact], a.shape[1]
    unit, best = size_of(case), None
    for support in itertools.product([False, True], repeat=n):
        s = np.array(support)
        x = np.zeros(n)
        if s.any():
            b, m = a[exact][:, s], int(exact.sum())
            k = np.block([[soft[:, s].T @ soft[:, s], b.T], [b, np.zeros((m, m))]])
            rhs = np.concatenate([soft[:, s].T @ wanted, c[exact]])
            x[s] = (np.linalg.lstsq(k, rhs)[0] if m else np.linalg.solve(k, rhs))[: s.sum()]
        if x.min(initial=0) < -1e-9 * unit or (
            exact.any() and np.abs(a[exact] @ x - c[exact]).max() > 1e-8 * unit
        ):
            continue
        value = float(np.sum((soft @ x - wanted) ** 2))
        if best is None or value < best[0]:
            best = value, x
    assert best is not None
    return best[1]


def exactly(case: Case, names, seed) -> Case:
    """The case with counts of these features exact, taken from one true non-negative count of the types."""
    true = case.truth(seed)
    noisy, weight = dict(case.noisy), dict(case.weight)
    for name in names:
        noisy[name] = case.counts(name, true)
        weight[name] = dict.fromkeys(noisy[name], INF)
    return replace(case, noisy=noisy, weight=weight, rule=None)


@pytest.mark.slow
@given(cases(spread=2.0))
@thorough(120)
def test_agrees_with_the_paper_program(case):
    """The answer is the one an interior-point solver finds for the program of Figure 3, and never costs more."""
    dag, estimate = case.solve()
    x, other = case.leaves(dag, estimate), paper(case)
    assert estimate.solution.kkt_residual <= CERTIFIED
    assert x.min() >= 0
    scale = cost(case, np.zeros_like(x)) + cost(case, x)
    assert cost(case, x) <= cost(case, np.maximum(other, 0)) + 1e-9 * scale
    assert estimate.solution.objective == pytest.approx(cost(case, x), rel=1e-9, abs=1e-12 * scale)
    np.testing.assert_allclose(x, other, atol=2e-4 * size_of(case), rtol=0)


@given(cases(types=8))
@thorough(100)
def test_agrees_with_enumeration(case):
    """On up to eight types the answer is the best of all active sets, to nine digits of the largest count."""
    dag, estimate = case.solve()
    assert estimate.solution.kkt_residual <= CERTIFIED
    _, _, w = case.stacked()
    accuracy = 1e-9 * max(1.0, w.max() / w.min() * 1e-4)
    np.testing.assert_allclose(
        case.leaves(dag, estimate), enumerated(case), atol=accuracy * size_of(case), rtol=0
    )


@given(cases())
@thorough(100)
def test_every_feature_is_a_sum_of_leaves(case):
    """Counts of every feature, measured or not, are sums of the leaves over the types of each element."""
    dag, estimate = case.solve()
    x = case.leaves(dag, estimate)
    for name in case.features:
        expected = case.counts(name, x)
        table = estimate.table(name)
        found = dict(zip(case.keys(dag, name), estimate.counts(name), strict=True))
        assert found.keys() == expected.keys()
        np.testing.assert_allclose(
            [found[k] for k in expected], list(expected.values()), rtol=1e-12, atol=1e-12 * size_of(case)
        )
        assert list(table)[-1] == "estimate"
        assert tuple(table)[:-1] == case.features[name]


@given(cases(), st.sampled_from([0.1, 3.0, 1000.0]), st.integers(0, 10**6))
@thorough(100)
def test_at_most_twice_as_far_as_the_noise(case, noise, seed):
    """Theorem 8.3: the answer is at most twice as far from the truth as the noisy counts, in the weighted norm."""
    true = case.truth(seed)
    noisy = case.around(true, noise, seed)
    dag, estimate = noisy.solve()
    a, c, w = noisy.stacked()
    far = np.sqrt(np.sum(w * (a @ (noisy.leaves(dag, estimate) - true)) ** 2))
    assert far <= 2 * np.sqrt(np.sum(w * (c - a @ true) ** 2)) * (1 + 1e-9)


def test_prices_that_cancel_leave_the_leaves_precise():
    """Prices in the thousands that add up to almost nothing, and leaves of little weight: certified all the same."""
    universe = cbdp.Universe(stop=range(4))
    dag = cbdp.FeatureDag(universe, [cbdp.Feature(name, by=[]) for name in ("f0", "f1", "f2")])
    noisy = {
        "total": [29.0],
        "f0": [-7e-4],
        "f1": [5e-5],
        "f2": [4e-4],
        "singleton": [1e-4, -3e-4, 6e-5, -1e-4],
    }
    weight = {
        "total": INF,
        "f0": 299.6,
        "f1": 1.83,
        "f2": 1.04e-3,
        "singleton": [1.77, 0.063, 0.344, 1.48e-3],
    }
    estimate = cbdp.post_process(dag, noisy, weights=weight)
    assert estimate.solution.kkt_residual <= CERTIFIED
    assert estimate.counts("total")[0] == pytest.approx(29.0, rel=1e-14)


@given(cases(), st.data())
@thorough(120)
def test_exact_counts_are_met(case, data):
    """Infinite weights, of one or several features that agree, are met to nine digits and the rest is optimal."""
    names = data.draw(
        st.lists(st.sampled_from([n for n in case.features if n != "singleton"]), min_size=1, unique=True)
    )
    fixed = exactly(case, names, data.draw(st.integers(0, 1000)))
    dag, estimate = fixed.solve()
    assert estimate.solution.kkt_residual <= CERTIFIED
    for name in names:
        for key, count in zip(case.keys(dag, name), estimate.counts(name), strict=True):
            assert count == pytest.approx(
                fixed.noisy[name][key], abs=1e-9 * (1 + max(fixed.noisy[name].values()))
            )


@pytest.mark.slow
@given(cases(types=16, spread=1.5), st.data())
@thorough(60)
def test_exact_counts_agree_with_equality_constraints(case, data):
    """With exact counts the answer is that of Figure 3 with those counts as equations."""
    assume(size_of(case) < 1e4)  # exact counts are of the order of ten: an interior point needs one scale
    names = data.draw(
        st.lists(st.sampled_from([n for n in case.features if n != "singleton"]), min_size=1, unique=True)
    )
    fixed = exactly(case, names, data.draw(st.integers(0, 1000)))
    dag, estimate = fixed.solve()
    np.testing.assert_allclose(fixed.leaves(dag, estimate), paper(fixed), atol=2e-4 * size_of(fixed), rtol=0)


@given(cases(types=7, spread=1.5), st.data())
@thorough(60)
def test_exact_counts_agree_with_enumeration(case, data):
    """On a few types the answer with exact counts is the best of all active sets."""
    assume(1e-2 < size_of(case) < 1e4)
    names = data.draw(
        st.lists(st.sampled_from([n for n in case.features if n != "singleton"]), min_size=1, unique=True)
    )
    fixed = exactly(case, names, data.draw(st.integers(0, 1000)))
    dag, estimate = fixed.solve()
    np.testing.assert_allclose(
        fixed.leaves(dag, estimate), enumerated(fixed), atol=1e-6 * size_of(fixed), rtol=0
    )


@given(cases(), st.data())
@thorough(80)
def test_some_elements_exact(case, data):
    """Single exact elements among soft ones of the same feature are met, the others stay soft."""
    name = data.draw(st.sampled_from([n for n in case.noisy if n != "singleton"] or ["singleton"]))
    assume(name != "singleton")
    true = case.counts(name, case.truth(1))
    chosen = data.draw(st.lists(st.sampled_from(list(case.noisy[name])), min_size=1, unique=True))
    fixed = replace(
        case,
        noisy={**case.noisy, name: {k: true[k] if k in chosen else v for k, v in case.noisy[name].items()}},
        weight={**case.weight, name: {k: INF if k in chosen else w for k, w in case.weight[name].items()}},
        rule=None,
    )
    dag, estimate = fixed.solve()
    assert estimate.solution.kkt_residual <= CERTIFIED
    found = dict(zip(case.keys(dag, name), estimate.counts(name), strict=True))
    largest = max(map(abs, fixed.noisy[name].values()))
    for key in chosen:
        assert found[key] == pytest.approx(true[key], abs=1e-9 * (1 + largest))


@given(cases(), st.data())
@thorough(60)
def test_permuting_values_permutes_the_answer(case, data):
    """Listing the values of a dimension in another order, with the data alike, gives every type the same count."""
    model = case.model
    values = tuple(tuple(data.draw(st.permutations(v))) for v in model.values)
    labels = {n: Labelling(m.of, m.table, m.given) for n, m in model.labels.items()}
    other = replace(case, model=Model(values, labels, model.zeros))
    dag, estimate = case.solve()
    dag2, estimate2 = other.solve()
    one = dict(zip(model.types, case.leaves(dag, estimate), strict=True))
    two = dict(zip(other.model.types, other.leaves(dag2, estimate2), strict=True))
    np.testing.assert_allclose([two[t] for t in one], list(one.values()), atol=1e-8 * size_of(case), rtol=0)


@given(cases(), st.floats(-6, 6))
@thorough(60)
def test_only_ratios_of_weights_matter(case, power):
    """All weights times one constant give the same answer."""
    dag, estimate = case.solve()
    times = {n: {k: v * 10**power for k, v in w.items()} for n, w in case.weight.items()}
    _, other = replace(case, weight=times, rule=None).solve()
    np.testing.assert_allclose(
        other.counts("singleton"), estimate.counts("singleton"), atol=1e-8 * size_of(case), rtol=0
    )
    assert dag.universe.size == len(case.model.types)


@given(cases(), st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 1e4, -1e9, 1e12]))
@thorough(60)
def test_warm_start_changes_nothing(case, seed, factor):
    """Starting from the answer to other data of the same features gives the same answer."""
    rng = np.random.default_rng(seed)
    other = replace(
        case, noisy={n: {k: v * factor + rng.normal() for k, v in m.items()} for n, m in case.noisy.items()}
    )
    dag, cold = case.solve()
    _, elsewhere = other.solve()
    for start in (cold, elsewhere):
        _, warm = case.solve(warm_start=start)
        assert warm.solution.kkt_residual <= CERTIFIED
        np.testing.assert_allclose(
            warm.counts("singleton"), cold.counts("singleton"), atol=1e-8 * size_of(case), rtol=0
        )
    assert case.solve(warm_start=cold)[1].solution.iterations <= 3
    assert dag.universe.size


@given(cases(), st.integers(0, 10**6))
@thorough(80)
def test_consistent_counts_are_left_alone(case, seed):
    """Counts that are consistent and non-negative already are returned, at no cost and with prices of zero."""
    true = case.truth(seed)
    dag, estimate = case.around(true, 0, 0).solve()
    np.testing.assert_allclose(case.leaves(dag, estimate), true, atol=1e-9 * (1 + true.max()), rtol=0)
    assert estimate.solution.objective <= 1e-15 * (1 + cost(case.around(true, 0, 0), 0 * true))
    _, again = case.around(case.leaves(*case.solve()), 0, 0).solve()
    np.testing.assert_allclose(
        again.counts("singleton"),
        case.solve()[1].counts("singleton"),
        atol=1e-9 * (1 + size_of(case)),
        rtol=0,
    )


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


@given(cases(types=8, spread=1.0), st.integers(0, 10**6), st.sampled_from([0.0, 1e-3, 0.3, 10.0]))
@thorough(100)
def test_gap_bounds_the_distance(case, seed, far):
    """The gap times the objective is never below Σ w (x − x*)² over all features, for any x ≥ 0 and any prices."""
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
    assert found.gap >= 0
    rounding = 1e-12 * (np.sum(w * c**2) + objective + max(1.0, objective) * found.gap)
    assert found.gap * max(1.0, objective) >= np.sum(w * (a @ (x - best)) ** 2) - rounding


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


@pytest.mark.parametrize(
    "dtype",
    ["int8", "uint8", "int16", "int32", "uint64", "int64", ">i8", "float16", "float32", ">f8", "longdouble"],
)
def test_any_number_type_of_leaves(dtype):
    """Leaves of any numpy number type give the answer of the same numbers in double precision."""
    dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])
    leaves = np.array([5, 0, 3, 100])
    noisy = {"total": [10], "time": [7, 2]}
    expected = cbdp.post_process(dag, {**noisy, "singleton": leaves.astype(float)})
    found = cbdp.post_process(dag, {**noisy, "singleton": leaves.astype(dtype)})
    np.testing.assert_allclose(found.counts("singleton"), expected.counts("singleton"), rtol=1e-12)
    assert found.solution.certificate.gap == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.int64, float])
def test_gap_of_large_counts(dtype):
    """Counts whose squares exceed 2⁶³ still have a gap of rounding size."""
    dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])
    leaves = np.array([4, 5, 6, 7], dtype=dtype) * 10**9
    noisy = {"total": [23 * 10**9], "time": [11 * 10**9, 10**9], "singleton": leaves}
    certificate = cbdp.post_process(dag, noisy).solution.certificate
    assert certificate.gap < 1e-12
    assert certificate.residual < CERTIFIED


SMALL = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])
MIXED = {
    "no trips over large leaves": (
        {"total": [0], "time": [0, 0], "singleton": [1e12, -1e12, 3e11, 1]},
        "size",
    ),
    "a large total over small leaves": (
        {"total": [1e12], "time": [0, 0], "singleton": [1.0, 2, 3, 1]},
        "size",
    ),
    "large periods over small leaves": (
        {"total": [3], "time": [1e9, -1e9], "singleton": [1.0, 2, 3, 1]},
        "uniform",
    ),
    "tiny leaves": ({"total": [1e-9], "time": [2e-9, 1e-9], "singleton": [1e-9, -1e-9, 3e-9, 0]}, "size"),
    "one large leaf": ({"total": [5], "time": [3, 2], "singleton": [1e10, 2, 3, 1]}, "uniform"),
    "firm total": (
        {"total": [10], "time": [7, 2], "singleton": [5, -2, 3, 1]},
        {"total": 1e12, "time": 1e-12},
    ),
    "firm leaves": ({"total": [10], "time": [7, 2], "singleton": [5, -2, 3, 1]}, {"singleton": 1e9}),
    "loose leaves": ({"total": [10], "time": [7, 2], "singleton": [5, -2, 3, 1]}, {"singleton": 1e-6}),
}


@pytest.mark.parametrize("what", MIXED)
def test_counts_of_very_different_size(what):
    """Counts or weights that lie many orders of magnitude apart are solved and certified all the same."""
    noisy, weights = MIXED[what]
    estimate = cbdp.post_process(SMALL, noisy, weights=weights)
    assert estimate.solution.kkt_residual <= CERTIFIED
    model = Model((("A", "B"), ("am", "pm")), {}, ())
    features = {"total": (), "time": ("d1",), "singleton": ("d0", "d1")}
    keys = {n: list(model.groups(by)) for n, by in features.items()}
    rule = (
        weights
        if isinstance(weights, dict)
        else dict.fromkeys(features, 1.0 if weights == "uniform" else None)
    )
    flat = {n: rule.get(n) or 1 / len(keys[n]) for n in features}
    case = Case(
        model, features,
        {n: dict(zip(keys[n], map(float, noisy[n]), strict=True)) for n in features},
        {n: dict.fromkeys(keys[n], flat[n]) for n in features}, None,
    )  # fmt: skip
    np.testing.assert_allclose(
        estimate.counts("singleton"), enumerated(case), atol=1e-8 * size_of(case), rtol=0
    )


@pytest.mark.parametrize("factor", [1e4, -1e6, 1e8, -1e8, 1e10, -1e10, 1e12, -1e12])
def test_warm_start_from_far_away(factor):
    """Prices of data that are orders of magnitude larger are no worse a start than none: nothing of them stays behind."""
    noisy = {"total": [10], "time": [7, 2], "singleton": [5, -2, 3, 1]}
    cold = cbdp.post_process(SMALL, noisy)
    far = cbdp.post_process(SMALL, {n: factor * np.array(v) for n, v in noisy.items()})
    warm = cbdp.post_process(SMALL, noisy, warm_start=far)
    assert warm.solution.kkt_residual <= CERTIFIED
    np.testing.assert_allclose(warm.counts("singleton"), cold.counts("singleton"), atol=1e-8)


def test_rounding_is_not_taken_for_contradiction():
    """Exact shares that add up only to rounding (0.1 + 0.2 and 0.3) are one consistent set."""
    estimate = cbdp.post_process(
        SMALL,
        {"total": [0.3], "time": [0.1, 0.2], "singleton": [1, 2, 3, 4]},
        weights={"total": INF, "time": INF},
    )
    assert estimate.counts("time").tolist() == pytest.approx([0.1, 0.2], abs=1e-12)


def test_no_feature_but_singleton():
    """With only the leaves measured, each is its own noisy count or zero."""
    estimate = cbdp.post_process(SMALL, {"singleton": [5, -2, 3, 0]})
    assert estimate.counts("singleton").tolist() == [5, 0, 3, 0]
    assert estimate.counts("total").tolist() == [8]


def test_one_type():
    """A universe of one type is the weighted mean of its counts, or zero."""
    dag = FeatureDag(Universe(a=[1]), [Feature("f", by="a")])
    noisy = {"total": [4], "f": [7], "singleton": [1]}
    assert cbdp.post_process(dag, noisy).counts("singleton").tolist() == pytest.approx([4])
    assert cbdp.post_process(dag, noisy, weights={"f": 2}).counts("f").tolist() == pytest.approx([19 / 4])
    assert cbdp.post_process(dag, {**noisy, "f": [-9]}).counts("total").tolist() == [0]


def sum_oracle(c, total, w):
    """min Σ (x − c)² + w (Σ x − total)² over x ≥ 0, by bisection on the shift."""
    low, high = -np.abs(total) - np.abs(c).sum(), np.abs(c).max() + np.abs(total)
    for _ in range(200):
        s = (low + high) / 2
        low, high = (s, high) if w * (np.maximum(0, c - s).sum() - total) > s else (low, s)
    return np.maximum(0, c - s)


@pytest.mark.parametrize("total", [-5.0, 0.0, 20.0, 1e5])
def test_total_alone_is_bisection(total):
    """With total and leaves alone the shift solves one scalar equation."""
    c = np.random.default_rng(0).laplace(0, 4, 500)
    dag = FeatureDag(Universe(a=range(500)), [])
    x = cbdp.post_process(
        dag, {"total": [total], "singleton": c}, weights={"total": 0.3, "singleton": 1}
    ).counts("singleton")
    np.testing.assert_allclose(x, sum_oracle(c, total, 0.3), atol=1e-9 * (1 + abs(total)))


def city(stops, times, seed, zones=4, modes=6):
    rng = np.random.default_rng(seed)
    names = list(range(stops))
    universe = Universe(origin=names, destination=names, time=range(times)).without_equal(
        "origin", "destination"
    )
    return odmts(
        universe, [int(z) for z in rng.integers(0, zones, stops)], rng.integers(0, modes, (stops, stops))
    )


def noisy_counts(dag, leaves, noise, rng):
    noisy = {"singleton": leaves + rng.laplace(0, noise, len(leaves))}
    for name in dag:
        if name != "singleton":
            true = np.bincount(dag.partition(name).of_every_type(), weights=leaves, minlength=dag.size(name))
            noisy[name] = true + rng.laplace(0, noise, len(true))
    return noisy


@pytest.mark.parametrize("noise", [0.5, 5.0, 500.0])
@pytest.mark.parametrize("seed", range(3))
def test_city_is_certified(seed, noise):
    """5,220 trip types with zones and modes are certified to nine digits at any level of noise."""
    dag = city(30, 6, seed)
    rng = np.random.default_rng(seed)
    true = rng.poisson(30 * rng.random(dag.universe.size) ** 20).astype(float)
    noisy = noisy_counts(dag, true, noise, rng)
    for weights in ("size", "uniform"):
        estimate = cbdp.post_process(dag, noisy, weights=weights)
        assert estimate.solution.kkt_residual <= CERTIFIED
        assert estimate.solution.certificate.gap <= 1e-9
        n = dag.sizes
        w = {name: 1 / n[name] if weights == "size" else 1.0 for name in n}
        truth = {
            name: np.bincount(dag.partition(name).of_every_type(), weights=true, minlength=n[name])
            for name in n
        }
        far = sum(w[f] * np.sum((estimate.counts(f) - truth[f]) ** 2) for f in n)
        assert far <= 4 * sum(w[f] * np.sum((noisy[f] - truth[f]) ** 2) for f in n)


WAYS = {
    "small": lambda member, room, blocks: linear.Small(member, room, blocks[0]),
    "sparse": lambda member, room, blocks: linear.Sparse(member, room),
    "schur": lambda member, room, blocks: linear.Schur(
        member, room, max(blocks, key=lambda b: b.stop - b.start)
    ),
    "iterated": lambda member, room, blocks: linear.Iterated(member, room),
}


@pytest.mark.parametrize("exact", [(), ("total",), ("total", "time"), ("zone",), ("time", "mode")], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_linear_solvers_agree(monkeypatch, way, exact):
    """Every way to solve the Newton system leads to one answer, with exact counts too, and partial measurements."""
    dag = city(14, 5, 7)
    rng = np.random.default_rng(1)
    true = rng.poisson(3 * rng.random(dag.universe.size) ** 4).astype(float)
    noisy = noisy_counts(dag, true, 3.0, rng)
    for name in exact:
        noisy[name] = np.bincount(dag.partition(name).of_every_type(), weights=true)
    if "mode" not in exact:
        noisy["mode"] = cbdp.Measurement("mode", noisy["mode"][3:], elements=range(3, dag.size("mode")))
    weights = dict.fromkeys(exact, INF)
    monkeypatch.setattr(newton, "linear_solver", WAYS["small"])
    expected = cbdp.post_process(dag, noisy, weights=weights)
    monkeypatch.setattr(newton, "linear_solver", WAYS[way])
    found = cbdp.post_process(dag, noisy, weights=weights)
    for estimate in (expected, found):
        assert estimate.solution.kkt_residual <= CERTIFIED
    np.testing.assert_allclose(found.counts("singleton"), expected.counts("singleton"), atol=1e-8)
    for name in exact:
        np.testing.assert_allclose(found.counts(name), noisy[name], atol=1e-9 * (1 + true.sum()))


def plain():
    """1,102,500 leaves in nine cells."""
    stops = Dimension(range(1050), zone=[i % 3 for i in range(1050)])
    return FeatureDag(
        Universe(origin=stops, destination=stops), [Feature("zone", by=["origin.zone", "destination.zone"])]
    )


PLAIN = plain()


def sparse_counts(kind, seed=0):
    rng = np.random.default_rng(seed)
    n = PLAIN.universe.size
    trips = (rng.random(n) < 0.002) * rng.poisson(20, n)
    if kind == "dense":
        trips = rng.poisson(200, n)
    if kind == "skewed":  # the trips all stand in one zone pair
        trips = trips * (PLAIN.cell_of_leaf == 4)
    if kind == "negative":
        return {"singleton": -rng.uniform(50, 100, n), "zone": -rng.uniform(1, 9, 9), "total": [-5.0]}
    return noisy_counts(PLAIN, trips.astype(float), 4.0, rng)


@pytest.mark.parametrize("kind", ["sparse", "skewed", "negative", "dense"])
def test_a_million_leaves(monkeypatch, kind):
    """A first guess from a sample, and floors that drop most leaves, lead to the answer found without them."""
    noisy = sparse_counts(kind)
    sampled = []
    original = newton.Leaves.sample
    monkeypatch.setattr(
        newton.Leaves, "sample", lambda self, stride: sampled.append(stride) or original(self, stride)
    )
    with within(10):
        fast = cbdp.post_process(PLAIN, noisy)
    assert sampled
    assert fast.solution.kkt_residual <= CERTIFIED
    assert fast.solution.certificate.gap <= 1e-9
    monkeypatch.setattr(newton, "MANY", 1 << 60)
    monkeypatch.setattr(newton, "FEW", 1 << 60)
    sampled.clear()
    slow = cbdp.post_process(PLAIN, noisy)
    assert not sampled
    np.testing.assert_allclose(fast.counts("singleton"), slow.counts("singleton"), atol=1e-8)
    if kind == "dense":
        assert (fast.counts("singleton") > 0).all()
    if kind == "negative":
        assert not fast.counts("singleton").any()


def test_a_million_leaves_with_weights_of_their_own():
    """Weights by leaf pass through sample and floors alike."""
    noisy = sparse_counts("sparse", seed=3)
    weight = np.random.default_rng(1).uniform(0.2, 5, PLAIN.universe.size) / PLAIN.universe.size
    with within(10):
        estimate = cbdp.post_process(PLAIN, noisy, weights={"singleton": weight})
    assert estimate.solution.kkt_residual <= CERTIFIED
    x = estimate.counts("singleton")
    zone = np.bincount(PLAIN.partition("zone").of_every_type(), weights=x)
    # stationarity by hand: the reduced gradient of the objective vanishes where x > 0 and is ≥ 0 elsewhere
    slope = weight * (x - noisy["singleton"]) + (x.sum() - noisy["total"][0])
    slope += ((zone - noisy["zone"]) / 9)[PLAIN.cell_of_leaf]
    trips = slope / weight
    assert np.abs(trips[x > 0]).max() < 0.05  # the rounding of Σ x, divided by a weight of one in millions
    assert trips[x == 0].min() > -0.05


def test_warm_start_of_a_million_leaves():
    """Starting from another draw's prices, floors included, gives the answer of a cold start."""
    one, two = sparse_counts("sparse", seed=1), sparse_counts("sparse", seed=2)
    with within(10):
        cold = cbdp.post_process(PLAIN, two)
        warm = cbdp.post_process(PLAIN, two, warm_start=cbdp.post_process(PLAIN, one))
        far = cbdp.post_process(PLAIN, two, warm_start=cbdp.post_process(PLAIN, sparse_counts("negative")))
    for other in (warm, far):
        assert other.solution.kkt_residual <= CERTIFIED
        np.testing.assert_allclose(other.counts("singleton"), cold.counts("singleton"), atol=1e-8)


@pytest.mark.parametrize("few", [1, 50])
@pytest.mark.parametrize("seed", range(4))
def test_floors_on_small_data(monkeypatch, few, seed):
    """With the thresholds lowered, sampling and floors work on 5,220 leaves and change nothing."""
    dag = city(30, 6, seed, zones=2, modes=2)
    rng = np.random.default_rng(seed)
    true = rng.poisson(30 * rng.random(dag.universe.size) ** 20).astype(float)
    noisy = noisy_counts(dag, true, 4.0, rng)
    expected = cbdp.post_process(dag, noisy)
    monkeypatch.setattr(newton, "MANY", 1)
    monkeypatch.setattr(newton, "FEW", few)
    monkeypatch.setattr(newton, "SAMPLED", 1)
    with within(10):
        found = cbdp.post_process(dag, noisy)
        warm = cbdp.post_process(dag, noisy, warm_start=expected)
    for other in (found, warm):
        assert other.solution.kkt_residual <= CERTIFIED
        np.testing.assert_allclose(other.counts("singleton"), expected.counts("singleton"), atol=1e-8)


def test_dense_data_keeps_every_leaf():
    """Positive data with little noise is solved by plain linear algebra: no bound is active."""
    dag = city(12, 3, 0)
    rng = np.random.default_rng(0)
    noisy = noisy_counts(dag, rng.uniform(100, 200, dag.universe.size), 1.0, rng)
    x = cbdp.post_process(dag, noisy).counts("singleton")
    rows = [np.eye(len(x))]
    targets = [noisy["singleton"]]
    for name in ("total", "time", "zone", "mode"):
        rows.append(
            np.eye(dag.size(name))[dag.partition(name).of_every_type()].T / np.sqrt(dag.size(name) / len(x))
        )
        targets.append(np.asarray(noisy[name]) / np.sqrt(dag.size(name) / len(x)))
    expected = np.linalg.lstsq(np.vstack(rows), np.concatenate(targets))[0]
    assert x.min() > 0
    np.testing.assert_allclose(x, expected, rtol=1e-9)


def test_negative_data_is_all_zero():
    """Where every noisy count is negative the answer is zero everywhere, and certified."""
    dag = city(12, 3, 0)
    estimate = cbdp.post_process(dag, {n: -np.arange(1.0, dag.size(n) + 1) for n in dag})
    assert not estimate.counts("singleton").any()
    assert estimate.solution.kkt_residual <= CERTIFIED


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
