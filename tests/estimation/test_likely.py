"""Trips as they may be, and intervals about expected values: draws follow the law they are drawn from, intervals are narrow and hold."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.errors import InputError
from cbdp.estimation import ESTIMATORS, bootstrap
from cbdp.estimation.gls import UnbiasedAnswer, best_linear_unbiased
from cbdp.estimation.posterior import Posterior, kernels, rate_model
from cbdp.estimation.posterior.likelihood import count_likelihood, leaf_prior
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS
from cbdp.release import ask
from cbdp_features.queries import Grouping

STOPS = cbdp.Dimension([f"S{i}" for i in range(12)], zone=[f"z{i // 3}" for i in range(12)])
UNIVERSE = cbdp.Universe(
    origin=STOPS, destination=STOPS, time=cbdp.periods("08:00", "10:00", "30min")
).without_equal("origin", "destination")
DAG = cbdp.FeatureDag(
    UNIVERSE,
    [
        cbdp.Feature("time", by="time"),
        cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"]),
    ],
)


@pytest.fixture(autouse=True)
def fewer_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "MAX_REPLICATES", 6)
    monkeypatch.setattr(bootstrap, "DOUBLE_BOOTSTRAP_REPLICATES", 2)


def _truth(seed: int, mean: float = 0.25) -> Any:
    rng = np.random.default_rng(seed)
    busy = rng.lognormal(0, 0.8, (2, 12))
    o, d, _ = UNIVERSE.unrank_codes(np.arange(UNIVERSE.size))
    return rng.poisson(mean * busy[0][o] * busy[1][d] * rng.lognormal(0, 0.5, UNIVERSE.size))


@pytest.mark.parametrize("law", ["geometric", "gaussian"])
@pytest.mark.parametrize("scale", [2, 200])
def test_drawn_counts_have_the_mean_and_the_variance_of_their_law(law: str, scale: int) -> None:
    rng = np.random.default_rng(5)
    rate = np.repeat([0.3, 4.0, 30.0 * scale], 2_000)
    noise = NOISE_DISTRIBUTIONS.get(law)(scale)
    noisy = rng.poisson(rate) + np.rint(rng.normal(0, noise.variance() ** 0.5, len(rate)))
    found = leaf_prior(noisy, rate, count_likelihood(noisy, noise))
    expected, drawn = found.expected(noisy), np.array([found.drawn(noisy, rng) for _ in range(12)])
    assert (drawn >= 0).all()
    off = drawn - expected.mean
    for here in np.split(np.arange(len(rate)), 3):
        chance = np.sqrt(len(off) * expected.variance[here].sum())
        assert abs(off[:, here].sum()) < 5 * chance
        squares = np.mean(
            off[:, here] ** 2, axis=1
        )  # of large counts that are rare: they vary from draw to draw
        error = squares.std() / np.sqrt(len(off) - 1)
        assert abs(squares.mean() - expected.variance[here].mean()) < 5 * error


def test_drawn_factors_have_the_expected_mean() -> None:
    rng = np.random.default_rng(3)
    grid, many = rate_model.SHARP_GRID, 500
    sums = np.tile(-0.5 * ((rate_model.KNOTS - 0.7) / 0.6) ** 2, (many, 1))
    sums = np.concatenate([sums, np.zeros((many, kernels.KNOT_LANES - sums.shape[1]))], axis=1)
    evidence = np.zeros(many, dtype=kernels.MARGIN_EVIDENCE)
    prior = grid.priors[4].astype(np.float32)
    given = sums, grid.spline, grid.factor, prior, evidence, 60.0, 1e-3
    drawn = kernels.sampled_factors(*given, (np.arange(many) + rng.random(many)) / many)
    assert drawn.mean() == pytest.approx(kernels.posterior_mean_factors(*given)[0], rel=0.01)
    assert (np.diff(drawn) >= 0).all()


def test_drawn_trips_are_as_rough_as_true_ones() -> None:
    truth = _truth(1, mean=2.0)
    release = cbdp.ConstraintBased(DAG, 1).simulate(truth, 1)
    assert release.estimate is not None
    smooth = release.estimate.counts("singleton")
    drawn = [ESTIMATORS.get("posterior").drawn(DAG, release.measurements, None, s) for s in range(4)]
    rough = np.mean([np.var(d) for d in drawn])
    assert np.var(smooth) < 0.9 * np.var(truth)
    assert rough == pytest.approx(np.var(truth), rel=0.2)
    assert drawn[0].dtype == np.int64
    assert np.array_equal(drawn[0], ESTIMATORS.get("posterior").drawn(DAG, release.measurements, None, 0))


def test_an_estimator_without_a_law_says_so() -> None:
    with pytest.raises(InputError, match="'projection' has no law"):
        ESTIMATORS.get("projection").drawn(DAG, [], None, 0)


def test_intervals_about_the_estimate_are_narrower_and_hold() -> None:
    held, narrow, wide = [], [], []
    for seed in range(12):
        truth = _truth(10 + seed, mean=1.0)
        release = cbdp.ConstraintBased(DAG, 1, budget="balanced").simulate(truth, seed)
        true = Grouping(UNIVERSE, ("origin",)).added(np.arange(UNIVERSE.size), truth)
        sharp, quick = release.ask("origin", sharp=True), release.ask("origin")
        assert np.array_equal(sharp["count"], quick["count"])
        held.append((sharp["low"] <= true) & (true <= sharp["high"]))
        narrow.append(sharp["high"] - sharp["low"])
        wide.append(quick["high"] - quick["low"])
    # 144 counts, whose errors are shared by twelve of a release: less than 80 % would be no accident
    assert 0.8 < np.mean(held) <= 1.0
    assert np.mean(narrow) < 0.95 * np.mean(wide)


def test_shares_about_the_estimate_are_narrower_and_hold() -> None:
    held, narrow, wide = [], [], []
    for seed in range(3):
        truth = _truth(30 + seed)
        release = cbdp.ConstraintBased(DAG, 1, budget="balanced").simulate(truth, seed)
        true = Grouping(UNIVERSE, ("origin",)).added(np.arange(UNIVERSE.size), truth)
        share = true / true.sum()
        near, far = (release.ask("origin", share_of=(), sharp=sharp) for sharp in (True, False))
        for told in (near, far):
            assert (told["share_low"] <= told["share"]).all()
            assert (told["share"] <= told["share_high"]).all()
        held.append((near["share_low"] <= share) & (share <= near["share_high"]))
        narrow.append(near["share_high"] - near["share_low"])
        wide.append(far["share_high"] - far["share_low"])
    assert np.mean(held) > 0.75
    assert np.mean(narrow) < 0.95 * np.mean(wide)


def test_single_types_and_measured_tables_take_no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    release = cbdp.ConstraintBased(DAG, 1).simulate(_truth(2), 2)

    def no_runs(_: Any) -> Any:
        raise LookupError

    monkeypatch.setattr(sys.modules["cbdp.release.ask"], "_mechanism_runs", no_runs)
    release.ask(["origin", "destination", "time"], sharp=True)
    release.ask("time", sharp=True)
    release.ask("origin")
    with pytest.raises(LookupError):  # a stop's trips take them
        release.ask("origin", sharp=True)


def test_the_same_release_gives_the_same_intervals() -> None:
    truth = _truth(3)
    one, two = (cbdp.ConstraintBased(DAG, 1).simulate(truth, 3).ask("origin", sharp=True) for _ in range(2))
    assert np.array_equal(one["low"], two["low"])
    assert np.array_equal(one["high"], two["high"])


def _told(value: Any, noise: float) -> UnbiasedAnswer:
    ones = np.ones((1, len(value)))
    return UnbiasedAnswer(ones, noise * ones, 0 * ones, np.asarray(value))


def _seen(rng: Any, estimate: Any, error: float, noise: float) -> bootstrap.BootstrapReplicates:
    shape = (12, len(estimate))
    truth = estimate + rng.normal(0, error, shape)
    told = truth + rng.normal(0, noise**0.5, shape)
    return bootstrap.BootstrapReplicates(
        truth, np.broadcast_to(estimate, shape), told, rng.normal(0, error, shape)
    )


def test_doubt_grows_where_the_estimate_misses_what_was_measured() -> None:
    rng = np.random.default_rng(8)
    estimate = np.full(200, 50.0)
    runs = _seen(rng, estimate, 3.0, 16.0)
    as_seen = _told(estimate + rng.normal(0, 5, 200), 16.0)
    far = _told(estimate + rng.normal(0, 10, 200), 16.0)
    assert (
        bootstrap.variance_inflation_of_measurements(bootstrap.GroupReplicates(estimate, runs), as_seen) < 0.3
    )
    # the mean square error is 10² − 4² = 84 instead of 9
    assert bootstrap.variance_inflation_of_measurements(
        bootstrap.GroupReplicates(estimate, runs), far
    ) == pytest.approx((84 - 9) / 9, rel=0.35)


def test_without_evidence_doubt_is_a_tenth() -> None:
    rng = np.random.default_rng(9)
    estimate = np.full(5, 50.0)
    runs = _seen(rng, estimate, 1.0, 1e8)
    assert bootstrap.variance_inflation_of_measurements(
        bootstrap.GroupReplicates(estimate, runs), _told(estimate, 1e8)
    ) == pytest.approx(0.1, abs=0.02)


def test_runs_that_look_better_one_step_further_are_taken_for_optimistic() -> None:
    """But not where groups are seen to differ by much more than their errors: there the runs are believed."""
    rng = np.random.default_rng(11)
    alike = np.full(100, 50.0)
    runs = _seen(rng, alike, 4.0, 1.0)
    half, twice = (replace(runs, further=times * runs.further) for times in (0.5, 2.0))

    def optimism(runs: bootstrap.BootstrapReplicates, spread: float) -> float:
        return bootstrap.optimism(
            bootstrap.GroupReplicates(alike + np.where(np.arange(100) % 2, spread, -spread), runs)
        )

    assumed = np.exp(bootstrap.LOG_VARIANCE_INFLATION)
    assert optimism(runs, 0.0) == pytest.approx(assumed, rel=0.2)
    assert optimism(twice, 0.0) == pytest.approx(assumed)
    assert optimism(half, 0.0) == pytest.approx(assumed * 4.0**bootstrap.OPTIMISM_EXTRAPOLATION, rel=0.2)
    # a spread of as much as the errors: half is believed
    assert optimism(half, 4.0) == pytest.approx(
        np.sqrt(assumed * 4.0**bootstrap.OPTIMISM_EXTRAPOLATION), rel=0.2
    )
    assert optimism(half, 100.0) == pytest.approx(1.0, abs=0.01)


def test_few_groups_are_judged_by_finer_ones() -> None:
    """By the values of the dimension that has most of those that are asked for; many groups by themselves, without further work."""
    release = cbdp.ConstraintBased(DAG, 1).simulate(_truth(5, mean=2.0), 5)

    def runs(by: Any, where: Any) -> Any:
        grouping = ask.grouping_of(release, by, where)
        made = ask._replicates(release, grouping, bootstrap.estimated_counts(release, grouping))
        assert made is not None
        return made

    pairs = [(f"S{a}", f"S{b}") for a in range(5) for b in range(5) if a != b]
    corridor = runs((), {("origin", "destination"): pairs})
    assert [len(seen.estimate) for seen in (corridor.parts, corridor.among)] == [1, 5]
    assert corridor.among.estimate.sum() == pytest.approx(corridor.parts.estimate[0])
    assert len(runs("time", {"origin": ["S3"]}).among.estimate) == 11  # its destinations
    many = runs(("origin", "time"), None)
    assert many.among is many.parts


def test_intervals_that_would_miss_large_counts_are_not_made() -> None:
    rng = np.random.default_rng(10)
    truth = np.where(rng.random((12, 400)) < 0.05, 40.0, 0.0)
    estimate = np.full(400, 2.0)
    assert bootstrap.bootstrap_half_widths(estimate, estimate - truth, truth, 0.0, 0.1) is None
    truth = np.abs(rng.normal(20, 2, (12, 400)))
    half = bootstrap.bootstrap_half_widths(np.full(400, 20.0), 20.0 - truth, truth, 0.0, 0.1)
    assert half is not None
    assert half.mean() == pytest.approx(1.645 * 2, rel=0.05)
    wider = bootstrap.bootstrap_half_widths(np.full(400, 20.0), 20.0 - truth, truth, 3.0, 0.1)
    assert wider is not None
    assert wider == pytest.approx(2 * half)


def test_what_cannot_be_drawn_from_is_answered_from_the_measurements() -> None:
    release = cbdp.ConstraintBased(DAG, 1, sparse=True, estimator=Posterior(revealed=100)).simulate(
        _truth(4), 4
    )
    assert not bootstrap.can_bootstrap(release)
    assert best_linear_unbiased(release, Grouping(UNIVERSE, ("time",))).told.all()
    assert release.ask("time")["count"].sum() == release.total


def test_no_interval_is_much_narrower_than_noise_can_check() -> None:
    """Whatever the runs say, a fifth of the unbiased interval remains."""
    truth = np.full((40, 30), 100.0)
    estimate = truth + np.random.default_rng(1).normal(0, 1.0, truth.shape)
    runs = bootstrap.BootstrapReplicates(truth, estimate, truth, np.zeros((2, 30)))
    noisy = _told(np.full(30, 100.0), 500.0)
    seen = bootstrap.GroupReplicates(truth[0], runs)
    half = bootstrap.half_widths(seen, seen, noisy, 0.1)
    assert half == pytest.approx(0.2 * noisy.half_width(0.1))
