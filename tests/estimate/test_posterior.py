"""Expected counts given every noisy answer: exact where exactness can be had, honest and accurate where it cannot."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Case, cases

import cbdp
from cbdp import Feature, FeatureDag, Measurement, Universe, post_process
from cbdp.datasets import ann_arbor
from cbdp.errors import InputError
from cbdp.estimate.posterior import expected_leaves, lattice, leaves, rates, threads
from cbdp.estimate.posterior.margins import margins
from cbdp.features import SINGLETON
from cbdp.mechanisms import ConstraintBased, Laplace
from cbdp.privacy.entropy import InsecureSeededEntropy

EPSILONS = ("1", "0.1", "0.01")
NOISY = np.array([-3, 0, 1, 2, 5, 9, -1, 0])


def _noised(scale: float, law: np.ndarray, y: int) -> np.ndarray:
    """P(n) × P(y | n) for each count n, without any table."""
    q = math.exp(-1 / scale)
    return law * (1 - q) / (1 + q) * q ** np.abs(y - np.arange(len(law)))


def _poisson(mean: float, most: int) -> np.ndarray:
    return np.array([math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(most)])


# The lattice


@pytest.mark.parametrize("scale", [0.4, 1.0, 2.5, 12.0])
def test_likelihoods_and_moments_are_sums_over_all_counts(scale: float) -> None:
    """Two recursions give what summing Poisson times two-sided geometric probabilities over all counts gives."""
    table = lattice.lattice(NOISY.astype(float), scale)
    first, second = table.moments
    assert table.step == 1
    for row in np.flatnonzero((table.means > 0) & (table.means < 6)):
        law = _poisson(table.means[row], 400)[: len(table.trips) - table.zero]
        law /= law.sum()
        for u, y in enumerate(NOISY):
            joint, column = _noised(scale, law, int(y)), table.column[u]
            n = np.arange(len(law))
            assert table.likelihood[row, column] == pytest.approx(joint.sum(), rel=1e-9)
            assert first[row, column] == pytest.approx(joint @ n, rel=1e-9)
            assert second[row, column] == pytest.approx(joint @ n**2, rel=1e-9)


def test_what_the_tables_leave_out_does_not_matter() -> None:
    """Counts beyond the tables' end change the mean expected of the largest noisy count by less than a thousandth."""
    scale = 2.5
    table = lattice.lattice(NOISY.astype(float), scale)
    for row in np.flatnonzero((table.means > 0) & (table.means < 12)):
        joint = _noised(scale, _poisson(table.means[row], 400), 9)
        column = table.column[5]
        told = table.moments[0][row, column] / table.likelihood[row, column]
        assert told == pytest.approx(joint @ np.arange(400) / joint.sum(), rel=1e-3)


def test_posterior_of_leaves_is_bayes_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean and variance of a leaf are those of its count under the mixture of a shape, summed by brute force."""
    scale, rate, shape = 1.5, 0.8, np.array([[0.6, 0.9]])
    noisy = np.tile(NOISY, 8).astype(float)
    monkeypatch.setattr(leaves, "SHAPES", shape, raising=False)
    table = lattice.lattice(noisy, scale)
    mixed = table.mixtures(np.array([rate]), shape)[0, 0]
    monkeypatch.setattr(
        leaves,
        "evidence",
        lambda t, mean, found: (np.zeros((len(found), 1)), np.tile(mixed, (len(found), 1, 1))),
    )
    monkeypatch.setattr(leaves, "cost", lambda: np.zeros(1))
    made = leaves.posterior(noisy, np.full(len(noisy), rate), table)
    law = mixed @ table.counts[:, table.zero :]
    n = np.arange(len(law))
    for u, y in enumerate(noisy):
        joint = _noised(scale, law, int(y))
        mean = joint @ n / joint.sum()
        assert made.mean[u] == pytest.approx(mean, rel=1e-9)
        assert made.variance[u] == pytest.approx(joint @ n**2 / joint.sum() - mean**2, rel=1e-9)


@pytest.mark.parametrize("step", [2, 7, 40])
def test_steps_keep_means(step: int) -> None:
    """A count dealt to the two steps next to it keeps its mean, and a law its sum of 1."""
    means = np.array([0.0, 0.02, 0.5, 3.0, 40.0, 333.0])
    law = lattice._poisson(means, np.arange(60 + 2000 // step), step)
    np.testing.assert_allclose(law.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(law @ (step * np.arange(law.shape[1])), means, rtol=1e-9, atol=1e-9)


def test_a_coarse_lattice_is_near_the_fine_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise far wider than a step, expected counts in steps are those in single trips to a five-thousandth of it."""
    scale = 200.0
    noisy = np.arange(-900.0, 901.0, 60.0)
    coarse = lattice.lattice(noisy, scale)
    monkeypatch.setattr(lattice, "FINE", 1000)
    fine = lattice.lattice(noisy, scale)
    assert (coarse.step, fine.step) == (6, 1)
    rows = (coarse.means > 0.5) & (coarse.means < 900)
    many = min(len(coarse.means), len(fine.means))
    rows = rows[:many] & (fine.means[:many] < 900)
    told = [(t.moments[0] / t.likelihood)[:many][rows][:, t.column] for t in (coarse, fine)]
    np.testing.assert_allclose(told[0], told[1], atol=2e-4 * scale)


def test_mixtures_have_the_mean_that_is_expected() -> None:
    """Every shape's mixture adds up to 1 and has the expected count as its mean, while that is well inside the table."""
    table = lattice.lattice(np.arange(-20.0, 3000.0), 3.0)
    wanted = np.array([1e-6, 0.01, 0.3, 2.0])
    mild = lattice.SHAPES[(lattice.SHAPES[:, 0] <= 0.9) & (lattice.SHAPES[:, 1] <= 0.9)]
    mixed = table.mixtures(wanted, mild)
    np.testing.assert_allclose(mixed.sum(axis=2), 1, rtol=1e-12)
    np.testing.assert_allclose(mixed @ table.means, np.tile(wanted[:, None], len(mild)), rtol=1e-7)


def test_noisy_counts_below_zero_say_the_same() -> None:
    """No trips or few: how far a noisy count is below zero tells nothing more, so far ones may share a column."""
    table = lattice.lattice(np.array([-40.0, -7.0, -1.0, 0.0, 30.0]), 1.0)
    told = (table.moments[0][1:] / table.likelihood[1:])[:, table.column[:4]]
    np.testing.assert_allclose(told, np.tile(told[:, -1:], 4), rtol=1e-9)
    deep = lattice.lattice(np.array([-(10.0**15), 4.0]), 1.0)
    assert deep.counts.shape[1] < 100


# A leaf's own noise


UNIVERSE = Universe(
    origin=cbdp.Dimension(list("ABCDEFGH"), zone=list("nnnsssee")),
    destination=cbdp.Dimension(list("ABCDEFGH"), zone=list("nnnsssee")),
    time=["6", "7", "8", "9"],
)
DAG = FeatureDag(
    UNIVERSE,
    [Feature("time", by="time"), Feature("zone", by=["origin.zone", "destination.zone", "time"])],
)


def _demand(seed: int, mean: float, universe: Universe = UNIVERSE) -> np.ndarray:
    """Counts with origins, destinations and times of unequal weight; some types have far more than that."""
    rng = np.random.default_rng(seed)
    codes = universe.unrank_codes(np.arange(universe.size))
    weight = np.prod([rng.lognormal(0, 0.8, int(c.max()) + 1)[c] for c in codes], axis=0)
    drawn = rng.poisson(mean * weight / weight.mean() * rng.lognormal(-0.5, 1.0, universe.size))
    return drawn.astype(np.int64)


def _measured(
    dag: FeatureDag, truth: np.ndarray, epsilon: Any, seed: int = 0, budget: Any = "leaves"
) -> list[Measurement]:
    counts = cbdp.count(truth, dag.universe)
    return cbdp.measure(counts, dag, epsilon, budget=budget, entropy=InsecureSeededEntropy(seed))


def _error(values: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((values - truth) ** 2)))


class Played:
    """Decisions made for all leaves together, kept the first time and given again the second."""

    def __init__(self, make: Any) -> None:
        self.make, self.kept, self.again = make, [], None

    def __call__(self, *given: Any) -> Any:
        if self.again is not None:
            return next(self.again)
        self.kept.append(self.make(*given))
        return self.kept[-1]

    def play(self) -> None:
        self.again = iter(self.kept)


@pytest.mark.parametrize("wild", [-500, 40, 900])
def test_a_leaf_never_enters_its_own_rate(wild: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given what is decided for all leaves together, the rate of a leaf is the same to the bit whatever its noisy count.

    Those decisions are the total, the shape of counts, the belief in spreads, and which sums help: scalars for all leaves.
    """
    measured = _measured(DAG, _demand(1, 6.0), 1)
    noisy = next(m for m in measured if m.feature == SINGLETON).values.astype(float)
    changed, u = noisy.copy(), 37
    changed[u] = wild
    table = lattice.lattice(np.concatenate([noisy, changed]), 2.0)
    tables = [
        replace(table, column=c, capped=k)
        for c, k in zip(*(np.split(a, 2) for a in (table.column, table.capped)), strict=True)
    ]
    codes, found = UNIVERSE.unrank_codes(np.arange(UNIVERSE.size)), margins(DAG, measured)
    played = {
        name: Played(getattr(rates, name)) for name in ("best_shape", "_believed", "_bunched", "_chosen")
    }
    for name, decision in played.items():
        monkeypatch.setattr(rates, name, decision)
    before = rates.expected(noisy, codes, found, 1500.0, tables[0])
    for decision in played.values():
        decision.play()
    after = rates.expected(changed, codes, found, 1500.0, tables[1])
    assert after[u] == before[u]
    fold = np.sum(codes, axis=0) % rates.FOLDS
    np.testing.assert_array_equal(after[fold == fold[u]], before[fold == fold[u]])
    assert (after[fold != fold[u]] != before[fold != fold[u]]).mean() > 0.9


def test_a_wild_noisy_count_raises_its_neighbours_and_hardly_itself() -> None:
    """A count of hundreds out of the blue moves its own rate far less than others', beyond what moves all alike."""
    measured = _measured(DAG, _demand(1, 6.0), 1)
    codes, u = UNIVERSE.unrank_codes(np.arange(UNIVERSE.size)), 37
    made = []
    for wild in (0, 400):
        given = [
            replace(m, values=np.where(np.arange(len(m.values)) == u, wild, m.values))
            if m.feature == SINGLETON
            else m
            for m in measured
        ]
        noisy = given[-1].values.astype(float)
        table = lattice.lattice(noisy, float(given[-1].scale))  # type: ignore[arg-type]
        made.append(rates.expected(noisy, codes, margins(DAG, given), rates.total_of(given), table))
    fold = np.sum(codes, axis=0) % rates.FOLDS
    change = np.log(made[1] / made[0])
    moved = np.abs(change - np.median(change))  # the total and the shape are decided once, for all leaves
    beside = (codes[0] == codes[0][u]) & (fold != fold[u])
    assert moved[u] < 0.2 * moved[beside].max()


def test_strata_of_few_leaves_keep_their_expected_counts() -> None:
    """A stratum of three leaves does not take their noise for what was to be expected of them."""
    noisy = np.array([900.0, 0, 0, *np.ones(40)])
    rate = np.concatenate([np.full(3, 10.0), np.full(40, 1.0)])
    group = np.concatenate([np.zeros(3, int), np.ones(40, int)])
    np.testing.assert_allclose(leaves._calibrated(noisy, rate, group, 2.0), [10.0, 1.0], rtol=1e-12)
    many = np.concatenate([[0], group])  # with a fourth leaf it is a stratum
    told = leaves._calibrated(np.append(300.0, noisy), np.append(10.0, rate), many, 2.0)
    assert told[0] > 2 * told[1] * 10


# Accuracy

RUSH = ann_arbor(seed=0, hours=("08:00", "10:00"))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_accurate_on_a_sparse_city(epsilon: str) -> None:
    """Leaf errors are a quarter below the paper's O5, and never worse than those of publishing no trips at all."""
    features, truth = RUSH.features(), RUSH.counts()
    ours = ConstraintBased(features, epsilon, budget="leaves")
    paper = ConstraintBased(features, epsilon, preset="paper")
    errors = [
        np.mean([_error(m.simulate(truth, seed).counts(SINGLETON), truth) for seed in range(2)])
        for m in (ours, paper)
    ]
    assert errors[0] <= 0.75 * errors[1]
    assert errors[0] <= 1.02 * _error(np.zeros(len(truth)), truth)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_accurate_on_a_dense_city(epsilon: str) -> None:
    """Where most types have trips, leaf errors are below Laplace's, O5's and those of no trips at all."""
    universe = Universe(
        origin=cbdp.Dimension(range(24), zone=[i // 6 for i in range(24)]),
        destination=cbdp.Dimension(range(24), zone=[i // 6 for i in range(24)]),
        time=[f"t{i}" for i in range(8)],
    )
    dag = FeatureDag(
        universe,
        [Feature("time", by="time"), Feature("zone", by=["origin.zone", "destination.zone", "time"])],
    )
    truth = _demand(3, 3.0, universe)
    assert (truth > 0).mean() > 0.5
    made: list[Any] = [
        ConstraintBased(dag, epsilon, budget="leaves"),
        ConstraintBased(dag, epsilon, preset="paper"),
        Laplace(dag, epsilon),
    ]
    ours, paper, laplace = (
        np.mean([_error(m.simulate(truth, s).counts(SINGLETON), truth) for s in range(2)]) for m in made
    )
    assert ours < min(0.75 * paper, laplace, _error(np.zeros(len(truth)), truth))


def test_expected_values_beat_the_projection_of_the_same_measurements() -> None:
    """On equal measurements with equal weights at low ε, expected counts are nearer to the truth than projected ones."""
    truth = _demand(4, 3.0)
    errors: dict[str, list[float]] = {"posterior": [], "projection": []}
    for seed in range(12):
        measured = _measured(DAG, truth, "0.3", seed, "uniform")
        for estimator, found in errors.items():
            made = post_process(DAG, measured, estimator=estimator, weights="inverse-variance")
            found.append(_error(made.counts(SINGLETON), truth))
    assert np.mean(errors["posterior"]) < 0.9 * np.mean(errors["projection"])


def test_without_noise_the_truth() -> None:
    """At ε = 1,000 the release is the data, trip for trip, whether sparse or dense."""
    for mean in (0.1, 30.0):
        truth = _demand(5, mean)
        release = ConstraintBased(DAG, 1000).simulate(truth, 0)
        np.testing.assert_array_equal(release.counts(SINGLETON), truth)


def test_almost_all_noise() -> None:
    """At tiny ε the estimate is near even within what the features tell, and adds up to the total that was measured."""
    truth = _demand(6, 4.0)
    for seed in range(6):
        measured = _measured(DAG, truth, "1e-4", seed, "balanced")
        made = post_process(DAG, measured, estimator="posterior")
        scale = float(max(m.scale for m in measured if m.feature == "total"))  # type: ignore[type-var, arg-type]
        assert made.counts("total")[0] <= max(0.0, float(measured[0].values[0])) + 12 * scale
        leaf = made.counts(SINGLETON)
        assert leaf.max() <= 60 * max(leaf.mean(), 1.0) + 0.1 * scale


# Hard input


ONE = FeatureDag(Universe(stop=list("ABCDEFGH")), [])
TWO = FeatureDag(Universe(stop=["A", "B"]), [])
LAST = FeatureDag(Universe(stop=["A"]), [])


def _sound(dag: FeatureDag, measured: list[Measurement], **options: Any) -> cbdp.Estimate:
    """Finite means that are not negative, positive variances, and an answer that is certified and adds up."""
    told = expected_leaves(dag, measured, **options)
    assert told.variance is not None
    assert np.isfinite(told.values).all()
    assert (told.values >= 0).all()
    assert np.isfinite(told.variance).all()
    assert (told.variance > 0).all()
    made = post_process(dag, measured, estimator="posterior", **options)
    leaf = made.counts(SINGLETON)
    assert (leaf >= 0).all()
    assert made.solution.kkt_residual <= 1e-6
    for name in dag.features:
        if name != SINGLETON:
            inside = dag.partition(name).of_every_type()
            summed = np.bincount(inside, leaf, dag.size(name))
            np.testing.assert_allclose(made.counts(name), summed, rtol=1e-9, atol=1e-9)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-4, 0.01, 1.0, 50.0, 1e3, 1e6, 1e8])
@pytest.mark.parametrize("kind", ["zeros", "noise", "negative", "huge"])
def test_hard_counts(kind: str, scale: float) -> None:
    """No trips at all, noise alone, all noisy counts negative, one count of 10⁹: at any scale of the noise."""
    rng = np.random.default_rng(7)
    noise = np.rint(rng.laplace(size=UNIVERSE.size) * scale).astype(np.int64)
    if kind == "zeros":
        noise[:] = 0
    elif kind == "negative":
        noise = -np.abs(noise) - 1
    elif kind == "huge":
        noise[3] = 10**9
    total = {"zeros": 0, "noise": round(scale), "negative": -round(scale) - 1, "huge": 10**9}[kind]
    time = np.bincount(DAG.partition("time").of_every_type(), noise, 4)
    made = _sound(
        DAG,
        [
            Measurement(SINGLETON, noise, scale=scale),
            Measurement("total", [total], scale=scale),
            Measurement("time", time.astype(np.int64), scale=scale),
        ],
    )
    if kind == "huge" and scale <= 1e6:
        assert made.counts(SINGLETON)[3] == pytest.approx(10**9, abs=40 * scale)


@pytest.mark.parametrize("dag", [ONE, TWO, LAST], ids=["one dimension", "two types", "one type"])
@pytest.mark.parametrize("scale", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("total", [True, False])
def test_small_universes(dag: FeatureDag, scale: float, total: bool) -> None:
    """One dimension, two types, a single one; a total, or leaves alone."""
    noisy = np.array([5, -2, 0, 1, 3, 0, 0, 9])[: dag.universe.size]
    measured = [Measurement(SINGLETON, noisy, scale=scale)]
    if total:
        measured.append(Measurement("total", [noisy.sum()], scale=scale))
    _sound(dag, measured)


def test_partial_measurements_are_no_totals() -> None:
    """A feature measured in some elements says nothing of the total, and the rest is expected as without it."""
    rng = np.random.default_rng(8)
    leaf = Measurement(SINGLETON, rng.integers(-2, 6, UNIVERSE.size), scale=1)
    total = Measurement("total", [400], scale=1)
    part = Measurement("time", [90, 80], scale=1, elements=np.array([2, 0]))
    assert rates.total_of([leaf, total, part]) == rates.total_of([leaf, total])
    _sound(DAG, [leaf, total, part])


def test_tables_in_any_order() -> None:
    """Measurements that name all elements, in any order, are whole ones; of one feature there may be several."""
    rng = np.random.default_rng(9)
    values = rng.integers(-2, 9, UNIVERSE.size)
    order = rng.permutation(UNIVERSE.size)
    plain = [Measurement(SINGLETON, values, scale=1), Measurement("time", [50, 60, 70, 80], scale=2)]
    mixed = [
        Measurement(SINGLETON, values[order], scale=1, elements=order),
        Measurement("time", [80, 50, 70, 60], scale=2, elements=np.array([3, 0, 2, 1])),
    ]
    np.testing.assert_array_equal(expected_leaves(DAG, mixed).values, expected_leaves(DAG, plain).values)
    _sound(DAG, [*plain, Measurement("time", [55, 65, 65, 85], scale=5)])


def test_features_of_another_law() -> None:
    """Features may come with a variance instead of a scale, one for all or one each."""
    leaf = Measurement(SINGLETON, _demand(10, 2.0), scale=1)
    made = _sound(
        DAG,
        [
            leaf,
            Measurement("total", [520.5], variance=3.0),
            Measurement("time", [130.0, 131, 129, 128], variance=[3.0, 9.0, 1.0, 2.0]),
        ],
    )
    assert made.counts("total")[0] == pytest.approx(520, abs=8)


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ([Measurement("total", [3], scale=1)], "measured 0 times"),
        ([Measurement(SINGLETON, [1, 2], scale=1)] * 2, "measured 2 times"),
        ([Measurement(SINGLETON, [1, 2], variance=2.0)], "has no scale"),
        ([Measurement(SINGLETON, [1], scale=1, elements=np.array([1]))], "1 of 2 trip types"),
        ([Measurement(SINGLETON, [1, 2], scale=1), Measurement("total", [3])], "scale or variance"),
    ],
)
def test_measurements_that_cannot_be_used(measured: list[Measurement], message: str) -> None:
    """Each is refused with what is wrong and what is needed."""
    with pytest.raises(InputError, match=message):
        post_process(TWO, measured, estimator="posterior")


@pytest.mark.parametrize("weights", ["uniform", {"total": math.inf}])
def test_weights_are_not_dropped_silently(weights: Any) -> None:
    """The posterior weighs by inverse variance: whoever asks for other weights, or for exact counts, is told."""
    measured = [Measurement(SINGLETON, [1, 2], scale=1), Measurement("total", [3], scale=1)]
    with pytest.raises(InputError, match="inverse variance"):
        post_process(TWO, measured, estimator="posterior", weights=weights)


@pytest.mark.slow
@settings(deadline=None, max_examples=40, derandomize=True)
@given(case=cases(types=24), scale=st.sampled_from([0.05, 1.0, 7.0, 300.0, 1e6]))
def test_always_sound(case: Case, scale: float) -> None:
    """Whatever universe, features and noisy counts: finite, not negative, consistent, certified."""
    dag = case.dag()
    measured = [replace(m, scale=scale) for m in case.measurements(dag)]
    _sound(dag, measured)


# Symmetry, repetition, priors


def test_relabelling_stops_permutes_the_answer() -> None:
    """Folds go by the order of values, so an answer permutes only up to what folds change: far less than the noise."""
    truth, order = _demand(11, 6.0), np.random.default_rng(11).permutation(8)
    measured = _measured(DAG, truth, 1)
    shape = (8, 8, 4)
    zones = np.array(list("nnnsssee"))[order].tolist()
    stops = cbdp.Dimension(np.array(list("ABCDEFGH"))[order].tolist(), zone=zones)
    other = FeatureDag(
        Universe(origin=stops, destination=stops, time=["6", "7", "8", "9"]),
        [Feature("time", by="time"), Feature("zone", by=["origin.zone", "destination.zone", "time"])],
    )
    moved = []
    for m in measured:
        values = m.values.reshape(shape)[order][:, order].reshape(-1) if m.feature == SINGLETON else m.values
        if m.feature == "zone":
            keys = [list(zip(*d.partition("zone").keys().values(), strict=True)) for d in (DAG, other)]
            values = m.values[[keys[0].index(k) for k in keys[1]]]
        moved.append(replace(m, values=values))
    plain = expected_leaves(DAG, measured).values.reshape(shape)[order][:, order].reshape(-1)
    again = expected_leaves(other, moved).values
    noise = math.sqrt(float(measured[-1].variance[0]))
    assert _error(plain, again) < 0.25 * noise
    assert abs(plain.sum() - again.sum()) < 0.02 * plain.sum()


@pytest.mark.parametrize("cores", [1, 2, 7])
def test_the_same_bytes_whatever_the_threads(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal measurements give equal bytes, on one core or several, and once more."""
    measured = _measured(DAG, _demand(13, 3.0), 1)
    expect = expected_leaves(DAG, measured)
    monkeypatch.setattr(threads.os, "cpu_count", lambda: cores)
    again = expected_leaves(DAG, measured)
    assert again.values.tobytes() == expect.values.tobytes()
    assert again.variance is not None
    assert expect.variance is not None
    assert again.variance.tobytes() == expect.variance.tobytes()


@pytest.mark.slow
def test_a_public_prior_that_knows_something_helps() -> None:
    """At ε = 0.01 weights near the true rates lower the leaf error by a tenth at least; weights of no content do not harm."""
    rng = np.random.default_rng(14)
    rate = rng.lognormal(0.0, 1.2, UNIVERSE.size)
    truth = rng.poisson(25 * rate)
    knowing, even = rate * rng.lognormal(0.0, 0.3, UNIVERSE.size), np.full(UNIVERSE.size, 7.0)
    errors = np.array(
        [
            [
                _error(ConstraintBased(DAG, "0.01", prior=p).simulate(truth, seed).counts(SINGLETON), truth)
                for p in (None, knowing, even)
            ]
            for seed in range(6)
        ]
    ).mean(axis=0)
    assert errors[1] < 0.9 * errors[0]
    assert errors[2] == pytest.approx(errors[0], rel=1e-9)


def test_priors_of_any_size() -> None:
    """Weights may be 0 for some types, all but one, huge or tiny: their ratios alone count."""
    leaf = [Measurement(SINGLETON, _demand(15, 2.0), scale=3), Measurement("total", [500], scale=3)]
    weight = 1.0 + np.arange(UNIVERSE.size) % 5
    base = _sound(DAG, leaf, prior=weight).counts(SINGLETON)
    for factor in (1e300, 1e-300):
        np.testing.assert_allclose(
            _sound(DAG, leaf, prior=weight * factor).counts(SINGLETON), base, rtol=1e-6, atol=1e-6
        )
    _sound(DAG, leaf, prior=np.where(np.arange(UNIVERSE.size) < 100, 0.0, 1.0))
    _sound(DAG, leaf, prior=np.eye(1, UNIVERSE.size, 5)[0])


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("busy", "give a weight for each"),
        ([1.0], "has shape"),
        (np.full(UNIVERSE.size, -1.0), "not negative"),
        (np.zeros(UNIVERSE.size), "above 0 somewhere"),
        (np.full(UNIVERSE.size, np.nan), "finite"),
    ],
)
def test_bad_priors(prior: Any, message: str) -> None:
    """A prior that is no weight per trip type is refused, by the mechanism and by the engine, before anything is spent."""
    with pytest.raises(InputError, match=message):
        ConstraintBased(DAG, 1, prior=prior)
    measured = [Measurement(SINGLETON, np.zeros(UNIVERSE.size, dtype=int), scale=1)]
    with pytest.raises(InputError, match=message):
        post_process(DAG, measured, estimator="posterior", prior=prior)


def test_a_prior_needs_the_posterior() -> None:
    """The projection has no use for a prior, and says so."""
    with pytest.raises(InputError, match="no use for it"):
        ConstraintBased(DAG, 1, preset="paper", prior=np.ones(UNIVERSE.size))


def test_variances_are_about_right() -> None:
    """Over the leaves the squared errors are what the posterior variances say, to a third."""
    truth = _demand(16, 8.0)
    claimed, seen = [], []
    for seed in range(10):
        told = expected_leaves(DAG, _measured(DAG, truth, 1, seed))
        assert told.variance is not None
        claimed.append(told.variance.mean())
        seen.append(np.mean((told.values - truth) ** 2))
    assert np.mean(claimed) == pytest.approx(np.mean(seen), rel=0.35)


def test_progress_rises_to_the_end() -> None:
    """Progress names its stage, never falls, and ends at 1."""
    told: list[tuple[str, float]] = []
    expected_leaves(DAG, _measured(DAG, _demand(17, 2.0), 1), progress=lambda *p: told.append(p))
    assert {stage for stage, _ in told} == {"expected counts"}
    assert all(a[1] <= b[1] for a, b in itertools.pairwise(told))
    assert told[-1][1] == 1.0
