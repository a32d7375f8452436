"""From ρ to (ε, δ) and back: against OpenDP, against exact privacy losses of the noise itself, and always on the safe side."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbdp.errors import InputError
from cbdp.privacy.accounting import curve, delta_of, epsilon_of, rho_for, to_rho
from cbdp.privacy.laws.gaussian import Gaussian
from cbdp.privacy.sensitivity import Change

RHOS = [1e-6, 0.001, 0.015, 0.1, 0.5, 2.0, 17.5]
DELTAS = [1e-3, 1e-6, 1e-9, 1e-12]
ONE = Change(1, 1, 1, 1)


@pytest.mark.parametrize("rho", RHOS)
def test_epsilon_is_that_of_opendp(rho):
    """OpenDP's own conversion of the same ρ gives the same ε to seven digits."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T=float)
    made = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=1.0))
    profile = made.map(math.sqrt(2 * rho))
    for delta in (
        d for d in DELTAS if d**2 > rho / 2
    ):  # there Pinsker's inequality gives ε = 0, which we do not state
        assert profile.epsilon(delta) == 0
    for delta in (d for d in DELTAS if d**2 <= rho / 2):
        assert float(epsilon_of(rho, delta)) == pytest.approx(profile.epsilon(delta), rel=1e-7)
        ours = delta_of(rho, profile.epsilon(delta))
        assert ours == pytest.approx(delta, rel=1e-4)


@pytest.mark.parametrize("rho", [0.015, 0.1, 0.5, 2.0])
def test_epsilon_is_near_that_of_the_accountant_of_google(rho):
    """dp-accounting tries a fixed list of orders: it is never tighter, and looser by at most a hundredth."""
    accounting = pytest.importorskip(
        "dp_accounting", reason="caps the version of attrs, so that it is no part of the extra"
    )
    from dp_accounting import rdp

    accountant = rdp.RdpAccountant(orders=list(1 + np.geomspace(1e-3, 1e3, 20_000)))
    accountant.compose(accounting.GaussianDpEvent(1 / math.sqrt(2 * rho)))
    for delta in DELTAS:
        theirs = accountant.get_epsilon(delta)
        assert float(epsilon_of(rho, delta)) <= theirs * (1 + 1e-8)
        assert float(epsilon_of(rho, delta)) == pytest.approx(theirs, rel=1e-2)


def exact_delta(law: Gaussian, epsilon: float) -> float:
    """The δ of one noisy count that one trip changes by one: Σ max(0, P(z) − e^ε P(z − 1))."""
    z = np.arange(-60 * math.ceil(law.size), 60 * math.ceil(law.size) + 1)
    return float(np.maximum(0, law.pmf(z) - np.exp(epsilon + law.log_pmf(z - 1))).sum())


@pytest.mark.parametrize("scale", [Fraction(1, 2), 1, 3, 20])
def test_statement_is_true_of_the_noise(scale):
    """The δ of the noise itself, added up over all values, is below what its ρ states, and within a factor of forty."""
    law = Gaussian(scale)
    rho = law.cost(ONE)
    for epsilon in (float(rho) + k * math.sqrt(2 * float(rho)) for k in (0.5, 2.0, 4.0)):
        true, stated = exact_delta(law, epsilon), delta_of(rho, epsilon)
        assert true <= stated
        assert stated <= 40 * true or true < 1e-12 or scale < 1


@given(st.floats(1e-9, 1e3), st.floats(1e-15, 0.4))
@settings(max_examples=60, deadline=None)
def test_conversions_are_safe_and_tight(rho, delta):
    """δ at the stated ε is at most the one asked for, and at a slightly smaller ε it is more; there and back loses ρ, a little."""
    epsilon = epsilon_of(rho, delta)
    if Fraction(1, 10**6) < epsilon < 10**6:  # less: that δ is free
        assert delta_of(rho, epsilon) <= delta
        assert delta_of(rho, epsilon * (1 - Fraction(1, 10**5))) > delta * (1 - 1e-9)
        back = rho_for(epsilon, delta)
        assert float(back) == pytest.approx(rho, rel=1e-3)
        assert delta_of(back, epsilon) <= delta


@given(st.floats(1e-3, 100), st.sampled_from(DELTAS))
@settings(max_examples=40, deadline=None)
def test_largest_rho_keeps_the_promise(epsilon, delta):
    """ρ from (ε, δ) gives at most that ε back, and any more would not."""
    rho = rho_for(epsilon, delta)
    assert epsilon_of(rho, delta) <= Fraction(epsilon) * (1 + Fraction(1, 10**8))
    assert delta_of(rho, epsilon) <= delta
    assert delta_of(rho * (1 + Fraction(1, 10**5)), epsilon) > delta


@pytest.mark.parametrize(
    ("rho", "epsilon"), [(0.5, 5.0), (0.015, 0.7), (3.0, 9.0), (1e-4, 0.05), (40.0, 80.0)]
)
def test_delta_is_the_formula_with_fifty_digits(rho, epsilon):
    """At a fine grid of α around the best one, by decimals: the stated δ is at most 10⁻⁸ above the least, and never below."""
    every = np.geomspace(1e-3, 1e5, 40_001)
    about = every[
        np.argmin(every * ((1 + every) * rho - epsilon) - np.log(every) - (1 + every) * np.log1p(1 / every))
    ]
    with localcontext() as context:
        context.prec = 50
        r, e, best = Decimal(rho), Decimal(epsilon), None
        for u in np.geomspace(0.99 * about, 1.01 * about, 401):
            a = 1 + Decimal(float(u))
            log = (a - 1) * (a * r - e) - (a - 1).ln() + a * (1 - 1 / a).ln()
            best = log if best is None else min(best, log)
    assert delta_of(rho, epsilon) == pytest.approx(math.exp(float(best)), rel=1e-4)
    assert delta_of(rho, epsilon) >= math.exp(float(best)) * (1 - 1e-5)


def test_the_loose_formula_is_looser():
    """ε = ρ + 2√(ρ ln 1/δ) is true too, and states more: here by a seventh."""
    loose = 0.5 + 2 * math.sqrt(0.5 * math.log(1e6))
    assert float(epsilon_of(0.5, 1e-6)) == pytest.approx(5.2215, rel=1e-4)
    assert 1.1 < loose / float(epsilon_of(0.5, 1e-6)) < 1.2


def test_pure_epsilon_enters_as_half_its_square():
    """And a curve is one promise at many δ: a smaller δ has a larger ε."""
    assert to_rho("1/3") == Fraction(1, 18)
    pairs = curve(Fraction(1, 2))
    assert Fraction(1, 10**6) in [d for _, d in pairs]
    assert len(pairs) == 9
    assert [e for e, _ in pairs] == sorted(e for e, _ in pairs)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: epsilon_of(0, 1e-6), "rho is 0, it must be above 0"),
        (lambda: epsilon_of(1, 0), "delta is 0: ρ is stated with a delta above 0"),
        (lambda: epsilon_of(1, 1), "delta is 1, it must be at least 0 and below 1"),
        (lambda: delta_of(1, -2), "epsilon is -2, it must be above 0"),
        (lambda: rho_for(0, 1e-6), "epsilon is 0, it must be above 0"),
        (lambda: epsilon_of(10**9, 1e-6), "which promises nothing: give at most"),
        (lambda: to_rho("x"), "epsilon is 'x', give a finite number"),
    ],
)
def test_bad_input_is_named(call, says):
    """Numbers that make no statement are refused by value."""
    with pytest.raises(InputError, match=says):
        call()
