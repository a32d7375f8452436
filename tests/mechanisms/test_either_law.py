"""Mechanisms with discrete Gaussian noise: what is given, what is promised, what is published, and where it pays."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import cbdp
from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.mechanisms import ConstraintBased, Hierarchical, Laplace, Mechanism, of
from cbdp.privacy.accounting import delta_of, epsilon_of, rho_for
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import DiscreteGaussian
from cbdp.privacy.unit import Person

STOPS = cbdp.Dimension([f"s{i}" for i in range(8)], zone=[f"z{i % 2}" for i in range(8)])
UNIVERSE = cbdp.Universe(origin=STOPS, destination=STOPS, time=[f"{h}:00" for h in range(6, 14)])
DAG = cbdp.FeatureDag(
    UNIVERSE,
    [cbdp.Feature("time", by="time"), cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"])],
)
TRUTH = np.random.default_rng(1).poisson(3.0, UNIVERSE.size)
BOTH = [ConstraintBased, Hierarchical, Laplace]


def riders() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    return {
        "origin": np.array([f"s{i}" for i in rng.integers(0, 8, 3000)]),
        "destination": np.array([f"s{i}" for i in rng.integers(0, 8, 3000)]),
        "time": np.array([f"{h}:00" for h in rng.integers(6, 14, 3000)]),
        "card": rng.integers(0, 500, 3000),
    }


@pytest.mark.parametrize("kind", BOTH)
def test_what_is_given_is_what_is_promised(kind: type[Mechanism]) -> None:
    """ρ as it is given; from (ε, δ) the largest ρ that keeps them; stated at the δ that was asked for."""
    mechanism = kind(DAG, rho="1/8", law="gaussian", delta="1e-9")
    cost = mechanism.claim().cost
    assert (mechanism.amount, cost.rho, cost.currency, cost.delta) == (
        Fraction(1, 8),
        Fraction(1, 8),
        "rho",
        Fraction(1, 10**9),
    )
    assert cost.epsilon == mechanism.epsilon == epsilon_of(Fraction(1, 8), "1e-9")
    bought = kind(DAG, 1, law="gaussian", delta=1e-6)
    assert bought.amount == rho_for(1, 1e-6)
    assert bought.claim().cost.epsilon <= 1
    assert delta_of(bought.amount, 1) <= 1e-6
    assert kind(DAG, rho=1, law="gaussian").claim().cost.delta == Fraction(1, 10**6)
    assert replace(mechanism, features=DAG) == mechanism


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"law": "gaussian"}, "is paid for in ρ: give rho, or epsilon and delta"),
        ({"law": "gaussian", "epsilon": 1}, "is paid for in ρ: give rho, or epsilon and delta"),
        ({"law": "gaussian", "epsilon": 1, "rho": 1}, "rho 1 and epsilon 1 are both given"),
        ({"law": "gaussian", "rho": 0}, "rho is 0, it must be above 0"),
        ({"law": "gaussian", "rho": 1, "delta": 0}, "delta is 0: ρ is stated with a delta above 0"),
        ({"law": "gaussian", "epsilon": -1, "delta": 1e-6}, "epsilon is -1, it must be above 0"),
        ({"law": "geometric", "rho": 1}, "rho is given with law 'geometric', which spends pure ε"),
        ({"law": "geometric", "epsilon": 1, "delta": 1e-6}, "delta is given with law 'geometric'"),
        ({"law": "laplace", "epsilon": 1}, "is never drawn here"),
        ({"law": "normal", "epsilon": 1}, "unknown noise law 'normal'"),
        ({}, "needs an epsilon"),
    ],
)
def test_what_makes_no_promise_is_refused(kind: type[Mechanism], given: dict, says: str) -> None:
    """Before any data is seen, with the cure."""
    with pytest.raises(InputError, match=says):
        kind(DAG, **given)


@pytest.mark.parametrize("kind", BOTH)
def test_published_folder_states_it_all(kind: type[Mechanism], tmp_path: Path) -> None:
    """ρ, (ε, δ) and the curve are in the manifest; laws and scales come back to the last digit."""
    mechanism = kind(DAG, rho="1/3", law="gaussian", delta="1e-7")
    release = mechanism.release(cbdp.count(TRUTH, UNIVERSE))
    release.save(tmp_path / "release")
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    privacy = manifest["privacy"]
    assert privacy["rho"]["exact"] == "1/3"
    assert Fraction(privacy["epsilon"]["exact"]) == epsilon_of("1/3", "1e-7")
    assert privacy["delta"]["exact"] == "1/10000000"
    for pair in privacy["curve"]:
        assert delta_of("1/3", pair["epsilon"]) <= pair["delta"] * (1 + 1e-9)
    assert "ρ-zCDP for one trip" in privacy["statement"]
    assert manifest["deployment"]["dp_variant"]["variant_name"] == "zCDP"
    assert manifest["deployment"]["privacy_loss"]["privacy_parameters"]["rho"] == pytest.approx(1 / 3)
    loaded = cbdp.load(tmp_path / "release")
    assert loaded.claim == release.claim == mechanism.claim()
    assert [(m.noise, m.rho, m.epsilon) for m in loaded.measurements] == [
        (m.noise, m.rho, None) for m in release.measurements
    ]
    assert sum(m.rho for m in loaded.measurements) == Fraction(1, 3)
    assert of(loaded).claim() == mechanism.claim()
    assert loaded.interval("time", 0.9)


def test_noise_is_drawn_by_the_law_that_is_stated() -> None:
    """Over many runs, noisy counts are off by the stated scale: chi-square of the whole table."""
    mechanism = Laplace(DAG, rho="1/50", law="gaussian")
    (planned,) = mechanism.answers()
    assert planned.law == DiscreteGaussian(5)
    counts = cbdp.count(TRUTH, UNIVERSE)
    off = np.concatenate(
        [mechanism.measure(counts, InsecureSeededEntropy(s))[0].values - TRUTH for s in range(40)]
    )
    assert off.var() == pytest.approx(25, rel=5 * math.sqrt(2 / off.size))
    assert abs((off**4).mean() / off.var() ** 2 - 3) < 0.2


def test_apart_makes_noise_shrink_by_the_root() -> None:
    """Trips of a person that cannot pile up cost k, not k²: per table as it tells the periods apart."""
    piled, apart = (Person("card", 4, apart=a) for a in (None, "time"))
    scale = {
        unit: {
            a.feature: float(a.law.scale)
            for a in ConstraintBased(DAG, rho=1, unit=unit, law="gaussian", budget="uniform").answers()
        }
        for unit in (piled, apart)
    }
    for feature in ("time", "zone", SINGLETON):
        assert scale[piled][feature] / scale[apart][feature] == pytest.approx(2.0)
    assert scale[piled]["total"] == scale[apart]["total"]
    release = ConstraintBased(DAG, rho=1, unit=apart, law="gaussian").simulate(riders(), 1)
    assert release.total == pytest.approx(2000, abs=700)


def test_balanced_shares_know_that_rho_buys_precision() -> None:
    """Shares of ρ are as even as the squares of shares of ε, and are not the same for units that tell tables apart."""
    plain = ConstraintBased(DAG, 1, budget="tables")
    rho = ConstraintBased(DAG, rho="1/2", law="gaussian", budget="tables")
    by = {m.law: {a.feature: float(a.share / m.amount) for a in m.answers()} for m in (plain, rho)}
    squared = {n: s**2 for n, s in by["geometric"].items() if n != SINGLETON}
    for name, square in squared.items():
        assert by["gaussian"][name] == pytest.approx(square / sum(squared.values()), abs=0.06)
    apart = ConstraintBased(
        DAG, rho="1/2", law="gaussian", budget="tables", unit=Person("card", 8, apart="time")
    )
    given = {a.feature: a.share for a in apart.answers()}
    # a total of 8 counts that change by 1 each is told as well as one that changes by 8: it needs no share of its own
    assert given["total"] < Fraction(1, 100) < given["time"]
    assert sum(given.values()) == Fraction(1, 2)


def test_errors_of_simulated_releases_are_as_predicted() -> None:
    """Where no count is near 0, with noise paid for in ρ: over 40 simulated releases the errors are the model's."""
    truth = np.random.default_rng(2).poisson(500.0, UNIVERSE.size)
    made = ConstraintBased(
        DAG, rho="1/10", law="gaussian", budget="balanced", estimator="projection", weights="inverse-variance"
    )
    (stated,) = [
        v for k, v in made.expected_errors(replace(made.facts(), trips=None)).items() if k == "balanced"
    ]
    counts = cbdp.count(truth, UNIVERSE)
    off: dict[str, list[float]] = {name: [] for name in DAG.features}
    for seed in range(40):
        found = cbdp.post_process(
            DAG,
            made.measure(counts, InsecureSeededEntropy(seed)),
            estimator="projection",
            weights="inverse-variance",
        )
        for name, errors in off.items():
            errors.extend((found.counts(name) - counts.of(DAG, name)).tolist())
    for name, errors in off.items():
        spread = math.sqrt(np.mean(np.square(errors)))
        assert spread == pytest.approx(stated[name], rel=0.25 if name == "total" else 0.12), name


def test_measuring_alone_takes_either_currency() -> None:
    """`cbdp.measure` with ρ gives answers whose shares add up to it; the wrong currency is refused by name."""
    counts = cbdp.count(TRUTH, UNIVERSE)
    answers = cbdp.measure(counts, DAG, rho="1/2", law="gaussian", budget="uniform")
    assert [(m.rho, m.epsilon, m.law) for m in answers] == [(Fraction(1, 8), None, "gaussian")] * 4
    assert {m.scale for m in answers} == {Fraction(2)}
    assert cbdp.post_process(DAG, answers).counts("time").sum() == pytest.approx(TRUTH.sum(), abs=60)
    drawn = cbdp.measure(counts, DAG, rho="1/2", law="gaussian", budget="uniform", backend="opendp")
    assert {m.noise for m in drawn} == {DiscreteGaussian(Fraction(2))}
    for given in ({"epsilon": 1, "law": "gaussian"}, {"rho": 1, "epsilon": 1, "law": "gaussian"}):
        with pytest.raises(InputError, match="'gaussian' is paid for in rho: give rho and nothing else"):
            cbdp.measure(counts, DAG, **given)
    for given in ({"rho": 1}, {}):
        with pytest.raises(
            InputError, match="'geometric' is paid for in epsilon: give epsilon and nothing else"
        ):
            cbdp.measure(counts, DAG, **given)
