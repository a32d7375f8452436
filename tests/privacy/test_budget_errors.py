"""The model of errors that budgets go by: public facts only, and right where the truth is known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from budget_cases import DAG, LEVELS, STATED, UNIVERSE

import cbdp
from cbdp.features import Feature, FeatureDag
from cbdp.measuring.dense import measure
from cbdp.privacy.budget import DemandFacts, shares
from cbdp.privacy.budget.errors import expected_errors, model
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.laws.geometric import Geometric
from cbdp.trips.count import Counts


def test_errors_without_trips_are_inverse_variance() -> None:
    """With nothing known of the trips the error is that of independent answers combined by inverse variance."""
    split = shares(DAG, Fraction(1), "balanced")
    found = expected_errors(DAG, split, DemandFacts(3))
    variance = {n: Geometric(3 / share).variance() for n, share in split.items()}
    precise = sum(
        DAG.size("time") / (DAG.size(n) * variance[n]) for n in ("time", "from", "to", "zone", "singleton")
    )
    assert found["time"] == pytest.approx(precise**-0.5)
    assert found["singleton"] == pytest.approx(variance["singleton"] ** 0.5)


def test_errors_of_tables_are_those_of_a_least_squares_fit() -> None:
    """On simulated noise the inverse-variance sum of a chain of features has the error the model states."""
    chain = FeatureDag(UNIVERSE, [Feature("time", by="time"), Feature("zone", by=["origin.zone", "time"])])
    none = np.empty(0, dtype=np.int64)
    split = shares(chain, 1, "balanced")
    off = []
    for seed in range(60):
        got = {
            m.feature: m
            for m in measure(
                Counts(UNIVERSE, none, none, cbdp.Trip()),
                chain,
                1,
                split,
                entropy=InsecureSeededEntropy(seed),
            )
        }
        sums = {
            n: np.bincount(chain.map_elements(n, "time"), got[n].values, 6)
            for n in ("time", "zone", "singleton")
        }
        weight = {n: 6 / (chain.size(n) * got[n].variance[0]) for n in sums}
        off.append(sum(weight[n] * sums[n] for n in sums) / sum(weight.values()))
    stated = expected_errors(chain, split)["time"]
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(stated, rel=0.25)  # 360 draws: 6 standard errors


def test_known_trips_bound_the_error() -> None:
    """An error is never more than with unknown trips, falls with ε, and publishing zeros is about the worst there is."""
    coarse, fine = (
        expected_errors(DAG, shares(DAG, Fraction(e), "balanced"), STATED) for e in ("1/1000", "1")
    )
    unknown = expected_errors(DAG, shares(DAG, Fraction(1), "balanced"))
    few_types = expected_errors(DAG, shares(DAG, Fraction(1, 1000), "balanced"), DemandFacts(1, 5000, 0.02))
    assert all(fine[n] <= unknown[n] and fine[n] < coarse[n] for n in ("time", "zone"))
    assert coarse["singleton"] < 30 < unknown["singleton"] * 1000
    assert few_types["singleton"] > coarse["singleton"]  # the same trips on fewer types: larger counts


def test_slopes_are_those_of_the_errors() -> None:
    """The analytic slope agrees with differences, with and without a signal."""
    for facts in (DemandFacts(), STATED, DemandFacts(2, 300, 0.01)):
        of = model(DAG, LEVELS, Fraction(1), facts)
        part = np.array([0.1, 0.2, 0.1, 0.15, 0.15, 0.3])
        _, slope = of.errors(part)
        for row in range(len(LEVELS)):
            step = np.eye(len(LEVELS))[row] * 1e-6
            numeric = (of.errors(part + step)[0] - of.errors(part - step)[0]) / 2e-6
            np.testing.assert_allclose(slope[row], numeric, rtol=1e-4, atol=1e-6)
