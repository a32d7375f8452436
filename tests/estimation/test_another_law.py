"""Whoever needs to know about noise asks its law: a stranger's law runs through every step, and is not taken for the geometric."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from another_law import Twice, TwiceSampler
from posterior_cases import DAG, UNIVERSE, demand, error, sound

import cbdp
from cbdp import Measurement, post_process
from cbdp.estimation import projection
from cbdp.estimation.posterior import expected_leaves, rate_model
from cbdp.estimation.posterior.margins import generalized_normal, margins, measured_margin_sums
from cbdp.features import SINGLETON
from cbdp.privacy.budget import allocate
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.expected_error import DemandFacts, expected_errors
from cbdp.privacy.noise import DiscreteLaplace

LAW = "another_law:Twice"


def measured(truth: np.ndarray, scale: Fraction, seed: int, law: str = LAW) -> list[Measurement]:
    """Every feature with noise that is the sum of two, told as such or as another law."""
    entropy, made = InsecureSeededEntropy(seed), []
    counts = cbdp.count(truth, UNIVERSE)
    for name in DAG.features:
        values = counts.of(DAG, name) + TwiceSampler(scale).sample(DAG.size(name), entropy)
        made.append(Measurement(name, values, scale=scale, law=law))
    return made


def test_a_measurement_asks_its_law() -> None:
    """The variance is that of the law by this name; without a scale nothing is known of the law."""
    m = Measurement("time", [1, 2, 3, 4], scale=Fraction(5, 2), law=LAW)
    assert m.noise == Twice(Fraction(5, 2))
    np.testing.assert_allclose(m.variance, 2 * DiscreteLaplace(2.5).variance())
    assert Measurement("time", [1, 2, 3, 4], variance=3.0).noise is None


@pytest.mark.slow
def test_claims_are_right_for_the_right_law_only() -> None:
    """Posterior variances match the squared errors, as they would not if the noise were taken for geometric."""
    truth, told = demand(16, 8.0), {LAW: [], "geometric": []}
    for seed in range(8):
        for law, ratio in told.items():
            made = expected_leaves(DAG, measured(truth, Fraction(5, 2), seed, law))
            ratio.append(made.variance.mean() / np.mean((made.values - truth) ** 2))
    assert np.mean(told[LAW]) == pytest.approx(1, rel=0.35)
    assert np.mean(told["geometric"]) < 0.8 * np.mean(told[LAW])


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(1, 3), 3, 200])
def test_the_whole_way(scale: Any) -> None:
    """Expected values are finite, consistent and certified, and nearer to the truth than the noisy counts."""
    truth = demand(2, 20.0)
    given = measured(truth, Fraction(scale), 1)
    made = sound(DAG, given)
    noisy = next(m.values for m in given if m.feature == SINGLETON)
    assert error(made.counts(SINGLETON), truth) < max(error(noisy, truth), 0.2)


class Revealing:
    """Noisy counts of another law, read off above floors."""

    def __init__(self, values: np.ndarray, scale: Fraction) -> None:
        self.values, self.noise = values, Twice(scale)
        self.floor = np.full(DAG.cells.size, 2**61)

    def lower(self, floor: np.ndarray) -> None:
        self.floor = np.minimum(self.floor, floor)

    def measurement(self) -> Measurement:
        shown = np.flatnonzero(self.values > self.floor[DAG.cell_of_leaf])
        given = {"scale": self.noise.scale, "law": LAW, "elements": shown, "floor": self.floor}
        return Measurement(SINGLETON, self.values[shown], **given)


def test_floors_ask_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """First floors are a margin below where this law's noise adds up to the trips, and below what few types exceed."""
    monkeypatch.setattr(projection, "DRAWS_PER_THRESHOLD_LEVEL", 0)  # heights are not merged
    *tables, leaves = measured(demand(3, 0.5), Fraction(2), 4)
    density = (np.maximum(tables[-1].values, 1.0) / DAG.partition("zone").sizes)[
        DAG.cells.element_of_cell["zone"]
    ]
    found = {}
    for law in (Twice(2), DiscreteLaplace(2)):
        hidden = Revealing(leaves.values, Fraction(2))
        hidden.noise = law
        found[law.name] = projection.initial_thresholds(DAG, tables, hidden)
        few = law.extreme(DAG.cells.partition.sizes, projection.LOG_EXPECTED_SURVIVORS)
        wanted = np.minimum(law.shift(density) - 2 * projection.THRESHOLD_MARGIN, few)
        np.testing.assert_array_equal(found[law.name], np.floor(wanted))
    assert (found["twice"] != found["geometric"]).mean() > 0.5


@pytest.mark.parametrize("estimator", ["projection", "posterior"])
def test_noise_on_demand_of_another_law(estimator: str) -> None:
    """Floors, likelihoods and weights ask the law: certified, and for a projection the answer with all types listed."""
    *tables, leaves = measured(demand(3, 0.5), Fraction(2), 4)
    found = post_process(DAG, [*tables, Revealing(leaves.values, Fraction(2))], estimator=estimator)
    assert found.solution.kkt_residual <= 1e-9
    if estimator == "projection":
        listed = post_process(DAG, [*tables, leaves], estimator=estimator)
        np.testing.assert_allclose(found.counts(SINGLETON), listed.counts(SINGLETON), atol=1e-8)


def test_margins_know_the_tails_of_the_noise() -> None:
    """A single noise has its own law's kurtosis, a sum of n the n-th part; of an unknown law Laplace's is supposed."""
    inside = {"zone": DAG.partition("zone").of_every_type()}
    for law, tails in (("geometric", 1.0), (LAW, 0.5)):
        m = Measurement("zone", np.ones(DAG.size("zone")), scale=2, law=law)
        told = measured_margin_sums(inside["zone"], DAG.size("zone"), [m], inside)
        np.testing.assert_allclose(told.alone, 1.0)
        np.testing.assert_allclose(told.tails, tails)
        whole = measured_margin_sums(np.zeros(UNIVERSE.size, dtype=int), 1, [m], inside)
        assert whole.tails == pytest.approx(tails / DAG.size("zone"))
    unknown = Measurement("zone", np.ones(DAG.size("zone")), variance=4.0)
    assert (
        measured_margin_sums(inside["zone"], DAG.size("zone"), [unknown], inside).tails.tolist() == [1.0] * 36
    )
    power, _ = generalized_normal(np.array([0.0, 0.5, 1.0]))
    assert power[0] == pytest.approx(2.0)
    assert power[2] == pytest.approx(1.0)
    assert 1.0 < power[1] < 2.0
    made = {law: margins(DAG, [replace(m, law=law)]) for law in ("geometric", LAW)}
    asked = {law: [g.power.max() for g in found if g.measured_directly] for law, found in made.items()}
    assert min(asked[LAW]) > max(asked["geometric"])


def test_bunched_counts_are_told_from_the_noise_of_this_law() -> None:
    """Lighter tails vary less in their squares: what they exceed by chance is less."""

    class Light(DiscreteLaplace):
        excess_kurtosis = 0.0

    heavy, light, n = DiscreteLaplace(1.2), Light(1.2), 100
    rate = np.ones(n)
    # squares that exceed the noise's by three standard errors of a law half as heavy-tailed
    extra = 3 * np.sqrt(3.5 * n) * heavy.variance() / n
    noisy = rate + np.sqrt(heavy.variance() + extra)
    assert rate_model.overdispersion(noisy, rate, heavy) == 1.0
    assert rate_model.overdispersion(noisy, rate, light) == pytest.approx(extra)


def test_budgets_ask_the_law() -> None:
    """Where nothing is known of the trips, noise of twice the variance makes errors √2 times as large; a target is met with it."""
    split = allocate(DAG, 1, "balanced")
    plain, twice = (expected_errors(DAG, split, DemandFacts(law=law)) for law in ("geometric", LAW))
    assert {n: e * 2**0.5 for n, e in plain.items()} == pytest.approx(twice, rel=1e-6)
    found = [
        allocate(DAG, 1, "optimal", target={"zone": 1, SINGLETON: 1}, facts=DemandFacts(1, 4000, law=law))
        for law in ("geometric", LAW)
    ]
    assert sum(found[1].values()) == 1
    assert found[0] != found[1]
