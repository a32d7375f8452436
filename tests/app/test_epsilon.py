"""The ε lower-bound auditor: honest where the truth is known, near the claim on honest mechanisms, deadly to broken ones."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from zoo import HONEST, MANY_PARTS, MOVED, NARROW, NONE, ONE, ZOO, Case, trips

import cbdp
from cbdp.app.audit.lower_bound import ThroughFiles, TrialParts, epsilon_lower_bound
from cbdp.audit.lower_bound import (
    Condition,
    EpsilonBound,
    lowest_bit,
    numbers,
    odds_bound,
    ratio_bound,
)
from cbdp.errors import InputError
from cbdp.estimation.posterior import Posterior
from cbdp.measuring.samplers.laplace import GeometricSampler
from cbdp.mechanisms import ConstraintBased, Laplace, StabilityHistogram
from cbdp.privacy.entropy import InsecureSeededEntropy

TINY = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"]), [])


# --- the claims, attacked ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_epsilon_is_not_exceeded(name: str) -> None:
    """The lower bound on ε through the whole mechanism stays below the claim, and comes near: the attack has power."""
    bound = HONEST[name].attack(seed=11)
    assert bound.epsilon <= 1, bound
    assert bound.epsilon >= HONEST[name].reach, bound


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_broken_mechanism_is_caught(name: str) -> None:
    """Each failure in the wild proves more than the ε it claims, and by far."""
    bound = ZOO[name].attack(seed=12)
    assert bound.exceeds, bound
    assert bound.epsilon > ZOO[name].reach, bound


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("name", NARROW)
def test_mutant_ten_percent_too_generous_is_caught(name: str) -> None:
    """Noise for 1.1 ε under a claim of ε exceeds the claim."""
    bound = NARROW[name].attack(seed=14)
    assert 1 < bound.epsilon <= 1.1, bound


@pytest.mark.slow
@pytest.mark.parametrize("tables", [["singleton"], ["part", "singleton"]])
def test_stability_histogram_is_private_up_to_delta(tables: list[str]) -> None:
    """With its δ the claim holds; without, a published count proves ε beyond any bound."""
    mechanism = StabilityHistogram(MANY_PARTS.features, 1, delta=0.02, tables=tables)
    assert mechanism.claim().cost.delta == Fraction(len(tables), 50)
    assert Case(mechanism, ONE, NONE).attack(seed=13).epsilon <= 1
    assert Case(mechanism, ONE, MOVED).attack(seed=13).epsilon <= 1
    assert Case(mechanism, ONE, NONE, delta=0).attack(seed=13).epsilon > 2


def test_delta_has_power_too() -> None:
    """Counts shown without noise with chance 0.3 are refuted at δ = 0.1, and are not at δ = 0.3."""
    rng = np.random.default_rng(0)

    def careless(data: int) -> float:
        return float(data) if rng.random() < 0.3 else -1.0

    refuted, fine = (
        epsilon_lower_bound(careless, 1, 0, trials=4000, delta=d, claim=1, seed=1) for d in (0.1, 0.3)
    )
    assert refuted.exceeds
    assert fine.epsilon <= 1


# --- the bound itself -------------------------------------------------------------------------------------------------


def test_bound_is_honest_on_known_coins() -> None:
    """Two coins of known ratio: the bound stays below its logarithm and near it, searched or told."""
    rng = np.random.default_rng(5)

    def flips(data: np.ndarray) -> dict[str, np.ndarray]:
        return {"head": rng.random(len(data)) < np.where(data, 0.5, 0.5 / math.e)}

    class Coins(TrialParts):
        def mix(self, one: object, two: object, first: np.ndarray) -> np.ndarray:  # type: ignore[override]
            return first

    coins = Coins(100_000, {})
    for told in (None, {"head": lambda columns: columns["head"] == 1}):
        bound = epsilon_lower_bound(flips, None, None, parts=coins, trials=400_000, events=told, view=dict)
        assert 0.9 < bound.epsilon <= 1
    assert bound.event == "head"
    assert sum(bound.trials) == 400_000


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_odds_bound_raises_no_false_alarm(epsilon: float) -> None:
    """Summed over all outcomes, coins guessed as well as ε allows exceed it with a chance of at most the level."""
    level = 1e-3
    right = np.arange(201)
    proven = odds_bound(right, 200 - right, level=level)
    chance = stats.binom(200, 1 / (1 + math.exp(-epsilon))).pmf(right)
    alarm = chance[proven > epsilon].sum()
    assert alarm <= level
    assert alarm > level / 10  # it is no looser than whole numbers make it


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_ratio_bound_raises_no_false_alarm(delta: float) -> None:
    """Summed over all outcomes of two binomials that just meet e^ε and δ, the bound exceeds ε as rarely as it says."""
    level, epsilon, n = 1e-2, 1.0, 100
    k = np.arange(n + 1)
    for rare in (0.02, 0.1, 0.3):
        often = math.exp(epsilon) * rare + delta
        proven = ratio_bound(k[:, None], k[None, :], n, n, delta=delta, level=level)
        chance = np.outer(stats.binom(n, often).pmf(k), stats.binom(n, rare).pmf(k))
        assert chance[proven > epsilon].sum() <= level


@pytest.mark.slow
def test_no_false_alarm_when_trials_hang_together() -> None:
    """One noise for all parts of a run, a private use of it: the bound holds, though parts are anything but independent."""
    law = GeometricSampler(Fraction(1))

    def together(data: dict[str, np.ndarray], seed: int) -> np.ndarray:
        """The number of trips with noise, told to every part: ε = 1 for each."""
        noise = law.sample(1, InsecureSeededEntropy(seed))
        return np.repeat(len(data["stop"]) + noise, 5)[:, None]

    class Mechanism:
        simulate = staticmethod(together)

    parts = TrialParts(5, {"stop": ["A"]})
    bounds = [
        epsilon_lower_bound(
            Mechanism(), {"stop": ["A"]}, {"stop": []}, parts=parts, trials=2000, alpha=0.2, seed=s
        )
        for s in range(20)
    ]
    alarms = sum(b.epsilon > 1 for b in bounds)
    assert stats.binom(20, 0.2).sf(alarms - 1) > 1e-4


def test_a_constant_proves_nothing() -> None:
    """A mechanism that always says the same has no event, and its bound is 0."""
    bound = epsilon_lower_bound(lambda _: 7.0, 1, 0, trials=100)
    assert bound.epsilon == 0
    assert bound.event == "no event"


def test_the_same_seed_gives_the_same_bound() -> None:
    """An attack can be repeated: coins, noise and search follow from the seed."""
    case = replace(ZOO["ChargedOnce"], trials=20_000)
    assert case.attack(seed=3) == case.attack(seed=3)


def test_the_real_release_can_be_attacked() -> None:
    """With noise of the operating system: the bound stays below the claim of 3, and is above nothing."""
    mechanism = Laplace(TINY, 3, law="geometric")
    counts = [np.array([1, 0]), np.array([0, 0])]
    bound = epsilon_lower_bound(mechanism.release, *counts, trials=1000, claim=3)
    assert 0.5 < bound.epsilon <= 3


def test_bound_speaks() -> None:
    """In a line, and as a finding for the reviewer's page."""
    refuted = EpsilonBound(1.5, "A ≥ 1", (90, 10), (100, 100), claim=1.0)
    assert str(refuted) == "ε ≥ 1.500 (claim 1, refuted): A ≥ 1, in 90 of 100 trials against 10 of 100"
    assert refuted.finding().verdict == "contradicts"
    fine = EpsilonBound(0.9, "A ≥ 1", (90, 10), (100, 100), delta=0.01, claim=1.0)
    assert "at δ = 0.01" in str(fine)
    assert fine.finding().verdict == "clear"
    assert not EpsilonBound(9.0, "A ≥ 1", (90, 0), (100, 100)).exceeds


# --- what is searched and seen ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leak", "event"),
    [
        (lambda d, r: r.integers(0, 50) * 2 + d, "lowest bit of x"),
        (lambda d, r: [x := r.normal(), x + d * 1e-3], "[x[0] − x[1]]"),
        (lambda d, r: math.nan if d and r.random() < 0.5 else r.normal(), "[x is there]"),
        (lambda d, r: 17 if d and r.random() < 0.5 else r.integers(0, 40), "x = 17"),
        (lambda d, r: np.r_[r.normal(size=20) + 0.8 * d], "score"),
    ],
)
def test_events_of_every_kind_are_found(leak: object, event: str) -> None:
    """Parity, a difference, presence, one value, many small signs: each is found where only it tells."""
    rng = np.random.default_rng(9)
    bound = epsilon_lower_bound(lambda d: leak(d, rng), 1, 0, trials=6000, claim=1)  # type: ignore[operator]
    assert bound.exceeds, bound
    assert event in bound.event


def test_conditions_and_lowest_bits() -> None:
    """A missing number meets no condition; the lowest bit is that of the exact binary fraction."""
    values = np.array([1.0, 2.0, np.nan])
    assert Condition("x", "≥", 2).holds(values).tolist() == [False, True, False]
    assert Condition("x", "≤", 1).holds(values).tolist() == [True, False, False]
    assert Condition("x", "=", 1).holds(values).tolist() == [True, False, False]
    for exponent in range(-60, 60):
        assert lowest_bit(np.array([5 * 2.0**exponent, -(2.0**exponent)])).tolist() == [exponent, exponent]
    assert np.isnan(lowest_bit(np.array([np.nan]))).all()


def test_parts_are_mixed_by_coin() -> None:
    """Each part holds its data set whole, counted or as trips, and persons of different parts are others."""
    parts = TrialParts(6, {"stop": ["A", "B"]}, person="card")
    one, two = trips(("x", "A"), ("x", "B")), trips(("y", "B"))
    coin = np.array([True, False, True, True, False, False])
    mixed = parts.mix(one, two, coin)
    by_part = cbdp.count({n: mixed[n] for n in ("part", "stop")}, parts.features.universe).dense()
    assert by_part.tolist() == parts.counted(one, two)(coin).tolist()
    assert by_part.reshape(6, 2).tolist() == [[1, 1] if c else [0, 1] for c in coin]
    assert len(set(mixed["card"].tolist())) == 6


def test_files_show_what_the_release_holds() -> None:
    """What is read from the files by part is what the release in memory says, hidden counts included."""
    parts = TrialParts(50, {"stop": ["A", "B"]})
    hiding = {"part": "0.6", "singleton": "0.4"}
    mechanism = ConstraintBased(
        parts.features,
        1,
        measured=parts.measured,
        budget=hiding,
        sparse=True,
        estimator=Posterior(revealed=40),
    )
    data = parts.mix({"stop": ["A", "A", "A"]}, {"stop": ["B"]}, np.arange(50) % 3 == 0)
    release = mechanism.simulate(data, seed=1)
    there, stored = (
        numbers(published, parts.number)
        for published in (release, ThroughFiles(mechanism).simulate(data, seed=1))
    )
    for j, stop in enumerate("AB"):
        shown = there[f"noisy singleton[{j}]"]
        assert np.isnan(shown).any()
        np.testing.assert_array_equal(stored[f"features/singleton.parquet noisy {stop}"], shown)
        np.testing.assert_array_equal(stored[f"trips.parquet row {stop}"], there[f"row[{j}]"])
        known = ~np.isnan(stored[f"trips.parquet count {stop}"])
        count = there[f"count of singleton[{j}]"]
        assert (known == (count > 0)).all()
        assert (stored[f"trips.parquet count {stop}"][known] == count[known]).all()
    np.testing.assert_array_equal(stored["features/part.parquet noisy"], there["noisy part"])


def test_a_whole_folder_shows_sizes_and_manifest() -> None:
    """With one release a trial, every file's size and every number of the manifest is a column."""
    seen = numbers(ThroughFiles(ConstraintBased(TINY, 1)).simulate(np.array([3, 4]), seed=0))
    assert {"bytes of manifest.json", "bytes of trips.parquet", "manifest trips.total"} <= set(seen)
    assert all(len(column) == 1 for column in seen.values())


def test_bad_input_is_refused() -> None:
    """Each names the value and what to do."""
    for wrong, match in [
        ({"trials": 3}, "trials is 3"),
        ({"trials": True}, "trials is True"),
        ({"alpha": 0}, "alpha is 0"),
        ({"delta": 1}, "delta is 1"),
    ]:
        with pytest.raises(InputError, match=match):
            epsilon_lower_bound(lambda d: d, 1, 0, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="int is not a mechanism"):
        epsilon_lower_bound(3, 1, 0, trials=100)
    with pytest.raises(InputError, match="must give numbers"):
        epsilon_lower_bound(lambda _: "text", 1, 0, trials=100)
    with pytest.raises(InputError, match="at most 1000"):
        epsilon_lower_bound(lambda _: np.zeros(2000), 1, 0, trials=100)
    parts = TrialParts(3, {"stop": ["A"]})
    with pytest.raises(InputError, match="2 rows of 'x' for 3 trials"):
        epsilon_lower_bound(lambda _: np.zeros((2, 1)), ONE, NONE, parts=parts, trials=100)
    with pytest.raises(InputError, match="whole number of at least 1"):
        TrialParts(0, {"stop": ["A"]})
    with pytest.raises(InputError, match="keeps the copies apart"):
        TrialParts(3, {"part": ["A"]})
