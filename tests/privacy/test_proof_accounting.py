"""The checks that docs/proofs names for costs: composition, ρ stated as (ε, δ), running totals and the private quantile, by all small cases."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.stats import norm

import cbdp
from cbdp.ledger.windows import relative_cost_of_days, relative_cost_of_steps
from cbdp.measuring.answers import measure_sums
from cbdp.privacy.accounting import (
    DPCost,
    Parallel,
    Sequential,
    ZCDPCost,
    delta_of,
    epsilon_delta_curve,
    epsilon_of,
    pure_to_rho,
    rho_for,
)
from cbdp.privacy.continual import STRATEGIES
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import DiscreteGaussian, DiscreteLaplace, noise_distribution
from cbdp.privacy.unit import (
    MAX_TRIPS_CANDIDATES,
    Person,
    PrivateQuantile,
    Sensitivity,
    Trip,
    Unit,
    feature_sensitivity,
    rank_errors,
    selection_exponents,
)

# Composition


def log_ratio(laws: list[DiscreteLaplace], shifts: list[int]) -> float:
    """The greatest log likelihood ratio of answers with independent noise whose true counts differ by these shifts."""
    z = np.arange(-40, 41)
    return sum(
        float((law.log_pmf(z) - law.log_pmf(z - s)).max()) for law, s in zip(laws, shifts, strict=True)
    )


def test_costs_of_answers_add_up() -> None:
    """Answers about the same trips: the likelihood ratio of all of them reaches exp(Σ ε). About disjoint parts: that of the dearest."""
    shares = [Fraction(1, 3), Fraction(1, 2), Fraction(1)]
    laws = [DiscreteLaplace(1 / s) for s in shares]
    spends = tuple(DPCost(f"{s}", s) for s in shares)
    assert math.isclose(log_ratio(laws, [1, 1, 1]), float(Sequential(spends).epsilon))
    moves = [log_ratio(laws, [int(i == j) for i in range(3)]) for j in range(3)]  # one trip is in one part
    assert math.isclose(max(moves), float(Parallel(spends).epsilon))
    with_delta = tuple(DPCost("table", Fraction(1), Fraction(1, 10**k)) for k in (3, 4))
    assert Sequential(with_delta).delta == Fraction(11, 10**4)
    both = (ZCDPCost("a", Fraction(1, 4)), DPCost("b", Fraction(1)))
    assert Sequential(both).rho == Fraction(3, 4)


def renyi_of_response(epsilon: float, alpha: float) -> float:
    """The Rényi divergence of randomised response, the most revealing of all ε-private answers."""
    p, q = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    return math.log(p**alpha * q ** (1 - alpha) + q**alpha * p ** (1 - alpha)) / (alpha - 1)


def test_pure_epsilon_in_rho() -> None:
    """Randomised response at many ε and orders: its divergence stays below α·ε²/2, and comes near it."""
    nearest = 0.0
    for epsilon, alpha in itertools.product((0.01, 0.1, 0.5, 1.0, 2.0, 5.0), (1.01, 1.5, 2.0, 5.0, 30.0)):
        allowed = alpha * float(pure_to_rho(epsilon))
        assert renyi_of_response(epsilon, alpha) <= allowed
        nearest = max(nearest, renyi_of_response(epsilon, alpha) / allowed)
    assert nearest > 0.99


UNITS: tuple[Unit, ...] = (
    Trip(),
    Trip("replace"),
    Person("card", 3),
    Person("card", 3, "day"),
    Person("card", 3, "release", "time"),
)


def test_the_noise_of_a_release_costs_what_is_claimed() -> None:
    """For every unit and both kinds of noise: what the drawn answers cost adds up to the claim."""
    universe = cbdp.Universe(
        stop=["A", "B"], day=cbdp.days("2026-03-02", "2026-03-03"), time=["08:00", "09:00"]
    )
    features = cbdp.FeatureDag(
        universe, [cbdp.Feature("time", by=["time"]), cbdp.Feature("stop", by=["stop"])]
    )
    rows = {"stop": ["A"], "day": ["2026-03-02"], "time": ["08:00"], "card": ["x"]}
    for unit in UNITS:
        counts = cbdp.count(rows, universe, unit=unit, entropy=InsecureSeededEntropy(0))
        for law, paid in (("geometric", {"epsilon": 1}), ("gaussian", {"rho": Fraction(1, 4)})):
            answers = cbdp.measure(
                counts, features, budget="uniform", law=law, entropy=InsecureSeededEntropy(0), **paid
            )
            costs = [
                noise_distribution(a.law, a.scale).cost(feature_sensitivity(features, a.feature, unit))
                for a in answers
            ]
            (amount,) = paid.values()
            assert amount * (1 - Fraction(1, 10**9)) <= sum(costs) <= amount


# ρ stated as (ε, δ)


def delta_of_gaussian(rho: float, epsilon: float) -> float:
    """The δ of Gaussian noise of this ρ, exactly: what every statement about ρ must allow for."""
    mu = math.sqrt(2 * rho)
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def test_a_statement_allows_for_gaussian_noise() -> None:
    """Many ρ and ε: the stated δ is never below that of Gaussian noise, nor more than ten times it; ε and ρ agree with it."""
    for rho, epsilon in itertools.product(("0.005", "0.05", "0.5", "3"), ("0.1", "0.5", "1", "3", "6")):
        true = delta_of_gaussian(float(rho), float(epsilon))
        if true < 1e-200:
            continue
        stated = delta_of(rho, epsilon)
        assert true <= stated
        assert stated <= 10 * true or stated < 1e-12 or true > 0.01
    for rho, delta in itertools.product(("0.01", "1/2", "2"), (Fraction(1, 10**3), Fraction(1, 10**9))):
        epsilon = epsilon_of(rho, delta)
        assert delta_of(rho, epsilon) <= delta * (1 + Fraction(1, 10**9))
        assert delta_of_gaussian(float(Fraction(rho)), float(epsilon)) <= delta
        assert delta_of(rho, epsilon * Fraction(999, 1000)) > delta
        assert rho_for(epsilon, delta) <= Fraction(rho) * (1 + Fraction(1, 10**8))
        assert delta_of(rho_for(epsilon, delta), epsilon) <= delta * (1 + Fraction(1, 10**9))
    assert all(delta_of_gaussian(0.5, float(e)) <= d for e, d in epsilon_delta_curve("1/2"))


def formula(rho: float, epsilon: float, alpha: float) -> float:
    return math.exp((alpha - 1) * (alpha * rho - epsilon)) / (alpha - 1) * (1 - 1 / alpha) ** alpha


def test_the_stated_delta_is_the_least_over_all_orders() -> None:
    """The published formula on a fine grid of orders: its least value is what is stated."""
    for rho, epsilon in itertools.product((0.01, 0.3, 2.0), (0.3, 2.0, 4.0)):
        orders = 1 + np.exp(np.linspace(-12, 9, 4000))
        with np.errstate(over="ignore"):
            grid = np.exp(
                (orders - 1) * (orders * rho - epsilon) - np.log(orders - 1) + orders * np.log1p(-1 / orders)
            )
        least = min(1.0, float(grid.min()))
        assert 0.99 * least <= delta_of(rho, epsilon) <= least * (1 + 1e-9)
    assert math.isclose(formula(0.5, 2.0, 3.0), math.exp(-1) / 2 * (2 / 3) ** 3)


# Running totals


def test_one_unit_changes_all_sums_by_what_is_stated() -> None:
    """Every strategy of up to five periods, every period and window: answers of neighbours, with the same noise, differ by the stated lengths at most."""
    one = Sensitivity(2, 4, 2, 2)
    for (name, build), periods in itertools.product(STRATEGIES.items(), range(1, 6)):
        strategy = build(periods)
        law = DiscreteGaussian(Fraction(3))

        def answers(tables: list[Any], strategy: Any = strategy, law: Any = law) -> Any:
            drawn = [
                measure_sums(strategy, tables[: t + 1], law, InsecureSeededEntropy(t))
                for t in range(len(tables))
            ]
            return np.concatenate(drawn)

        base = [np.array([5, 1]) for _ in range(periods)]
        before = answers(base)
        for window in range(1, periods + 1):
            stated, l1, l2 = strategy.change(one, window=window), 0, 0
            for first in range(periods - window + 1):
                moved = [
                    t + (2 if first <= d < first + window else 0) * np.array([1, 0])
                    for d, t in enumerate(base)
                ]
                off_by = answers(moved) - before
                l1, l2 = max(l1, int(np.abs(off_by).sum())), max(l2, int((off_by**2).sum()))
            assert (l1, l2) == (stated.l1, stated.l2_squared), (name, periods, window)


def test_prices_of_several_periods_are_the_dearest_sums() -> None:
    """Every strategy, every run of periods with up to three of the unit's in each: its price is Σ_i (Σ_t C_it m_t)^p over that of one period."""
    for name, periods in itertools.product(STRATEGIES, (1, 3, 4)):
        rows = STRATEGIES[name](periods).rows
        for currency, power in (("epsilon", 1), ("rho", 2)):
            single = int((rows**power).sum(axis=0).max())
            for length in range(1, periods + 1):
                for steps in itertools.product((1, 2, 3), repeat=length):
                    worst = max(
                        int(((rows[:, j : j + length] @ np.array(steps)) ** power).sum())
                        for j in range(periods - length + 1)
                    )
                    assert relative_cost_of_steps(name, periods, steps, currency) == Fraction(worst, single)  # type: ignore[arg-type]
                assert relative_cost_of_days(name, periods, length, currency) == relative_cost_of_steps(  # type: ignore[arg-type]
                    name,
                    periods,
                    (1,) * length,
                    currency,  # type: ignore[arg-type]
                )


# The private quantile


def test_one_person_changes_a_choice_by_epsilon() -> None:
    """All populations of up to four persons with up to four trips, and all neighbours: no candidate gets more than exp(ε) times as likely."""
    for quantile, epsilon in itertools.product(("1/2", "9/10"), ("1/2", "4")):
        bought = PrivateQuantile(quantile, epsilon)
        log: dict[tuple[int, ...], Any] = {}
        for size in range(5):
            for persons in itertools.combinations_with_replacement((1, 2, 3, 99), size):
                kinds = sorted(set(persons))
                loads = kinds, [persons.count(k) for k in kinds]
                x = np.array([-float(e) for e in selection_exponents(bought, *loads)])
                log[persons] = x - np.logaddexp.reduce(x)
                target = bought.quantile * size
                fewer = [sum(p < k for p in persons) for k in MAX_TRIPS_CANDIDATES[:4]]
                upto = [sum(p <= k for p in persons) for k in MAX_TRIPS_CANDIDATES[:4]]
                wanted = [max(0, f - target, target - u) for f, u in zip(fewer, upto, strict=True)]
                assert rank_errors(bought, *loads)[:4] == wanted
        worst = 0.0
        for persons, chances in log.items():
            for more in (1, 2, 3, 99):
                other = log.get(tuple(sorted((*persons, more))))
                if other is not None:
                    worst = max(worst, float(np.abs(chances - other).max()))
        assert worst <= float(bought.epsilon) * (1 + 1e-9)
        assert worst > 0.4 * float(bought.epsilon)
