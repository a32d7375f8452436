"""The ρ lower-bound auditor: honest where the truth is known, near the most it can show on honest mechanisms, deadly to broken ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from zoo_rho import FORGOTTEN, HONEST_RHO, RHO, ZOO_RHO

from cbdp.app.audit.lower_bound import rho_lower_bound
from cbdp.audit.lower_bound import RhoBound, rho_bound
from cbdp.errors import InputError


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST_RHO)
def test_rho_is_not_exceeded(name: str) -> None:
    """The lower bound through the whole mechanism stays below the claim, and reaches half of it: no single event shows more than 2/π."""
    bound = HONEST_RHO[name].attack(seed=21)
    assert bound.claim == float(RHO)
    assert HONEST_RHO[name].reach <= bound.rho <= 2 / math.pi * float(RHO), bound


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "constraint-based, sparse", "constraint-based, person"])
def test_the_stated_epsilon_is_not_exceeded(name: str) -> None:
    """What is stated as (ε, δ) for the same ρ holds as well, with the δ that is stated."""
    bound = HONEST_RHO[name].attack_stated(seed=22)
    assert bound.delta == 1e-6
    assert bound.claim == pytest.approx(5.2215, rel=1e-4)
    assert 1.5 < bound.epsilon <= bound.claim, bound


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO_RHO)
def test_broken_mechanism_is_caught(name: str) -> None:
    """Each proves more than the ρ it claims."""
    bound = ZOO_RHO[name].attack(seed=23)
    assert bound.exceeds, bound
    assert bound.rho > ZOO_RHO[name].reach, bound


@pytest.mark.slow
def test_gaussian_noise_has_no_pure_epsilon() -> None:
    """A δ that is forgotten: the ε that would hold with it is exceeded without."""
    bound = FORGOTTEN.attack_stated(seed=24)
    assert bound.delta == 0
    assert bound.exceeds, bound
    assert bound.epsilon > FORGOTTEN.reach


# --- the bound itself -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.02, 0.125, 0.5])
def test_bound_raises_no_false_alarm(rho: float) -> None:
    """Summed over all outcomes of two binomials of Gaussian noise, at several thresholds, it exceeds ρ as rarely as it says."""
    level, n = 1e-2, 100
    k = np.arange(n + 1)
    shift = math.sqrt(2 * rho)
    for threshold in (0.0, shift / 2, 1.0, 2.0):
        p, q = stats.norm.sf(threshold - shift), stats.norm.sf(threshold)
        proven = rho_bound(k[:, None], k[None, :], n, n, level=level)
        chance = np.outer(stats.binom(n, p).pmf(k), stats.binom(n, q).pmf(k))
        assert chance[proven > rho].sum() <= level


@pytest.mark.parametrize(("p", "q"), [(0.9, 0.2), (0.5, 0.01), (0.31, 0.3)])
def test_bound_is_the_divergence_where_trials_abound(p: float, q: float) -> None:
    """With 10¹² trials it is the largest D_α/α of the two coins, found here on a fine grid."""
    orders = 1 + np.geomspace(1e-6, 100, 20_000)
    told = (
        np.log(p**orders * q ** (1 - orders) + (1 - p) ** orders * (1 - q) ** (1 - orders))
        / (orders - 1)
        / orders
    )
    n = 10**12
    assert float(rho_bound(p * n, q * n, n, n, level=1e-6)) == pytest.approx(told.max(), rel=5e-3)


def test_a_sure_event_proves_much_and_none_nothing() -> None:
    """Events that always happen in one and never in the other; the other way round; and events that say nothing."""
    assert float(rho_bound(1000, 0, 1000, 1000, level=1e-6)) > 3
    assert float(rho_bound(0, 1000, 1000, 1000, level=1e-6)) == 0
    assert float(rho_bound(500, 500, 1000, 1000, level=1e-6)) == 0
    assert float(rho_bound(0, 0, 1000, 1000, level=1e-6)) == 0


def test_bound_speaks() -> None:
    """In a line, and as a finding for the reviewer's page; bad input is named."""
    refuted = RhoBound(0.8, "A ≥ 1", (90, 10), (100, 100), claim=0.5)
    assert str(refuted) == "ρ ≥ 0.800 (claim 0.5, refuted): A ≥ 1, in 90 of 100 trials against 10 of 100"
    assert refuted.finding().verdict == "contradicts"
    assert RhoBound(0.3, "A ≥ 1", (90, 10), (100, 100), claim=0.5).finding().verdict == "clear"
    assert not RhoBound(9.0, "A ≥ 1", (90, 0), (100, 100)).exceeds
    with pytest.raises(InputError, match="trials is 3"):
        rho_lower_bound(lambda d: d, 1, 0, trials=3)
