"""The model of errors that budgets go by: public facts only, and right where the truth is known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from budget_cases import DAG, LEVELS, STATED, UNIVERSE, dense_variance

import cbdp
from cbdp.privacy.budget import allocate
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.expected_error import DemandFacts, error_model, expected_errors
from cbdp.privacy.noise import DiscreteLaplace


def test_errors_without_trips_are_those_of_least_squares() -> None:
    """With nothing known of the trips the error is that of all answers reconciled by inverse variance, with matrices."""
    split = allocate(DAG, Fraction(1), "balanced")
    found = expected_errors(DAG, split, DemandFacts(3))
    precision = np.array([1 / DiscreteLaplace(3 / split[n]).variance() for n in DAG.features])
    np.testing.assert_allclose([*found.values()], np.sqrt(dense_variance(DAG, precision)))
    assert list(found) == list(DAG.features)


def test_public_counts_are_known_and_help_the_others() -> None:
    """A public table has no error, and what refines it has less; nothing changes for what it does not tell."""
    measured = ["zone", "singleton"]
    split = dict.fromkeys(measured, Fraction(1, 2))
    plain, known = (expected_errors(DAG, split, DemandFacts(public=p)) for p in ((), ("from",)))
    precision = np.array(
        [1e9 * (n == "from") + 2 * np.sinh(0.25) ** 2 * (n in measured) for n in DAG.features]
    )
    wanted = dict(zip(DAG.features, np.sqrt(dense_variance(DAG, precision)), strict=True))
    for name in ("zone", "to", "singleton"):
        assert known[name] == pytest.approx(wanted[name], rel=1e-6)
        assert known[name] < plain[name]
    assert max(known["from"], known["time"], known["total"]) < 1e-9


def test_what_nothing_measured_tells_is_unknown() -> None:
    """A table alone does not tell its trip types apart: their error has no bound, and what it adds up to is known."""
    found = expected_errors(DAG, {"zone": Fraction(1)})
    assert found["singleton"] > 1e40
    assert found["time"] == pytest.approx(3 * found["zone"])  # 9 pairs of zones


def test_known_trips_bound_the_error() -> None:
    """An error is never more than with unknown trips, falls with ε, and publishing zeros is about the worst there is."""
    coarse, fine = (
        expected_errors(DAG, allocate(DAG, Fraction(e), "balanced"), STATED) for e in ("1/1000", "1")
    )
    unknown = expected_errors(DAG, allocate(DAG, Fraction(1), "balanced"))
    few_types = expected_errors(DAG, allocate(DAG, Fraction(1, 1000), "balanced"), DemandFacts(1, 5000, 0.02))
    assert all(fine[n] <= unknown[n] and fine[n] < coarse[n] for n in ("time", "zone"))
    assert coarse["singleton"] < 30 < unknown["singleton"] * 1000
    assert few_types["singleton"] > coarse["singleton"]  # the same trips on fewer types: larger counts


def test_a_specialist_spends_all_on_one_feature() -> None:
    """Its error is that of the noise which all of ε buys, shrunk as any other; ratios are to it."""
    for facts in (DemandFacts(2), STATED):
        of = error_model(DAG, LEVELS, Fraction(1), facts)
        for place, name in enumerate(DAG.features):
            own = error_model(DAG, [name], Fraction(1), facts)
            finest = own.errors(own.precision(np.ones(1)))[place]
            assert of.alone()[place] == pytest.approx(finest)
        part = np.array([0.1, 0.2, 0.1, 0.15, 0.15, 0.3])
        wanted = np.sqrt(of.errors(of.precision(part)) / of.alone())
        np.testing.assert_allclose(of.ratios(part), wanted)
        assert (of.ratios(part) >= 1).all()


def test_nothing_is_bought_for_nothing() -> None:
    """A part of 0 has precision 0, whatever the law; and precision grows with the part."""
    for law in ("geometric", "gaussian", "rounded", "laplace"):
        part = np.repeat(np.arange(11)[:, None] / 10, len(LEVELS), axis=1)
        found = error_model(DAG, LEVELS, Fraction(1, 3), DemandFacts(law=law)).precision(part)
        assert (found[0] == 0).all()
        assert (np.diff(found, axis=0) > 0).all()


@pytest.mark.parametrize("budget", ["tables", "balanced"])
def test_simulated_errors_are_as_predicted(budget: str) -> None:
    """Where no count is near 0 the estimates are least squares: over 40 simulated releases the errors are the model's."""
    truth = np.random.default_rng(2).poisson(500.0, UNIVERSE.size)
    made = cbdp.ConstraintBased(DAG, 1, budget=budget, estimator="projection", weights="inverse-variance")
    stated = expected_errors(DAG, {a.feature: a.share for a in made.answers()})
    counts = cbdp.count(truth, UNIVERSE)
    off: dict[str, list[float]] = {name: [] for name in DAG.features}
    for seed in range(40):
        answers = made.measure(counts, InsecureSeededEntropy(seed))
        found = cbdp.post_process(DAG, answers, estimator="projection", weights="inverse-variance")
        for name, errors in off.items():
            errors.extend((found.counts(name) - counts.of(DAG, name)).tolist())
    for name, errors in off.items():
        near = 0.4 if name == "total" else 0.15 if name == "time" else 0.08  # 40, 240 and at least 720 counts
        assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(stated[name], rel=near)


def test_sums_of_trip_types_that_were_shrunk_have_less_noise() -> None:
    """With most types empty a table that only they tell is known better than their noise adds up to; with dense demand it is not."""
    for trips, filled, at_most in ((300, 0.02, 0.7), (10**7, 1.0, 1.001)):
        given = {"singleton": Fraction(1)}
        plain = expected_errors(DAG, given)["zone"]
        assert expected_errors(DAG, given, DemandFacts(1, trips, filled))["zone"] < at_most * plain
    dense = expected_errors(DAG, given, DemandFacts(1, 10**7, 1.0))["zone"]
    assert dense == pytest.approx(plain, rel=0.01)


def test_a_total_is_not_shrunk_and_coarse_tables_hardly() -> None:
    """With little ε the total is as noisy as its noise until that nears all trips; finer tables are bounded by what they hold."""
    given = allocate(DAG, Fraction(1, 100), "tables")
    plain, known = expected_errors(DAG, given), expected_errors(DAG, given, DemandFacts(1, 50_000))
    kept = [known[n] / plain[n] for n in ("total", "time", "zone", "singleton")]
    assert kept[0] > 0.99
    assert kept == sorted(kept, reverse=True)
