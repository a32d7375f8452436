"""Cities and millions of leaves: samples, floors and ways to solve change nothing but the time."""

from __future__ import annotations

import numpy as np
import pytest
from engine_cases import CERTIFIED, INF, city, noisy_counts

import cbdp
from cbdp.features import Dimension, Feature, FeatureDag, Universe
from cbdp_solvers import linear, newton


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
    "small": lambda member, room, blocks: linear.CompiledSchur(member, room, blocks[0]),
    "sparse": lambda member, room, blocks: linear.SparseLDL(member, room),
    "schur": lambda member, room, blocks: linear.DenseSchur(
        member, room, max(blocks, key=lambda b: b.stop - b.start)
    ),
    "iterated": lambda member, room, blocks: linear.ConjugateGradients(member, room),
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
    original = newton.LeafSet.sample
    monkeypatch.setattr(
        newton.LeafSet, "sample", lambda self, stride: sampled.append(stride) or original(self, stride)
    )
    fast = cbdp.post_process(PLAIN, noisy)
    assert sampled
    assert fast.solution.kkt_residual <= CERTIFIED
    assert fast.solution.certificate.gap <= 1e-9
    monkeypatch.setattr(newton, "MIN_LEAVES_FOR_SAMPLE", 1 << 60)
    monkeypatch.setattr(newton, "MIN_LEAVES_WORTH_DROPPING", 1 << 60)
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
    monkeypatch.setattr(newton, "MIN_LEAVES_FOR_SAMPLE", 1)
    monkeypatch.setattr(newton, "MIN_LEAVES_WORTH_DROPPING", few)
    monkeypatch.setattr(newton, "SAMPLE_LEAVES_PER_CELL", 1)
    found = cbdp.post_process(dag, noisy)
    warm = cbdp.post_process(dag, noisy, warm_start=expected)
    for other in (found, warm):
        assert other.solution.kkt_residual <= CERTIFIED
        np.testing.assert_allclose(other.counts("singleton"), expected.counts("singleton"), atol=1e-8)


class Spied:
    """Floors as newton sets them, but the first ones perhaps too high; remembers the margins that were asked for."""

    def __init__(self, first: float) -> None:
        self.real, self.first, self.margins = newton._screening_thresholds, first, []

    def __call__(self, leaves, shift, tops, margin):
        self.margins.append(margin)
        made = self.real(leaves, shift, tops, margin)
        return np.minimum(made + self.first, tops) if len(self.margins) == 1 else made


def small_city(seed, more=0):
    """Noisy counts of a small city; with `more` trips in one period, so many that its shifts fall."""
    dag, rng = city(30, 6, seed, zones=2, modes=2), np.random.default_rng(seed)
    noisy = noisy_counts(dag, rng.poisson(30 * rng.random(dag.universe.size) ** 20).astype(float), 4.0, rng)
    return dag, {**noisy, "time": noisy["time"] + more * (np.arange(6) == 2)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("high", [20.0, 200.0])
def test_floors_that_are_too_high_are_lowered(monkeypatch, seed, high):
    """First floors far above the shifts leave out leaves that matter: they are lowered until none does, to the same answer."""
    dag, noisy = small_city(seed)
    expected = cbdp.post_process(dag, noisy)
    spy = Spied(high)
    monkeypatch.setattr(newton, "MIN_LEAVES_WORTH_DROPPING", 1)
    monkeypatch.setattr(newton, "_screening_thresholds", spy)
    found = cbdp.post_process(dag, noisy, warm_start=expected)
    assert max(spy.margins) > newton.THRESHOLD_MARGIN, "no floor was lowered"
    assert found.solution.kkt_residual <= CERTIFIED
    np.testing.assert_allclose(found.counts("singleton"), expected.counts("singleton"), atol=1e-8)


@pytest.mark.parametrize("more", [3000, 10_000])
@pytest.mark.parametrize("seed", range(2))
def test_floors_of_a_misleading_warm_start_are_lowered(monkeypatch, seed, more):
    """A warm start from a day on which one period was quieter puts that period's floors above its shifts."""
    dag, before = small_city(seed)
    _, noisy = small_city(seed, more)
    expected, start = cbdp.post_process(dag, noisy), cbdp.post_process(dag, before)
    spy = Spied(0.0)
    monkeypatch.setattr(newton, "MIN_LEAVES_WORTH_DROPPING", 1)
    monkeypatch.setattr(newton, "_screening_thresholds", spy)
    found = cbdp.post_process(dag, noisy, warm_start=start)
    assert max(spy.margins) > newton.THRESHOLD_MARGIN, "no floor was lowered"
    assert found.solution.kkt_residual <= CERTIFIED
    np.testing.assert_allclose(found.counts("singleton"), expected.counts("singleton"), atol=1e-8)
