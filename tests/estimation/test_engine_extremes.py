"""Counts and weights at the ends of their range: huge, tiny, negative, one type, far warm starts."""

from __future__ import annotations

import numpy as np
import pytest
from engine_cases import CERTIFIED, INF, SMALL, city, enumerated_exactly, noisy_counts
from paper_program import size_of
from strategies import Case, Model

import cbdp
from cbdp.features import Feature, FeatureDag, Universe

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
    """Counts or weights that lie many orders of magnitude apart are solved as in exact arithmetic, and certified."""
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
        estimate.counts("singleton"), enumerated_exactly(case), atol=1e-8 * size_of(case), rtol=0
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
