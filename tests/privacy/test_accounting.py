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
from cbdp.privacy.accounting import delta_of, epsilon_delta_curve, epsilon_of, pure_to_rho, rho_for
from cbdp.privacy.noise import DiscreteGaussian
from cbdp.privacy.unit import Sensitivity

RHOS = [1e-6, 0.001, 0.015, 0.1, 0.5, 2.0, 17.5]
DELTAS = [1e-3, 1e-6, 1e-9, 1e-12]
ONE = Sensitivity(1, 1, 1, 1)


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


# Computed once with dp-accounting 0.6.0, which caps the version of attrs and so is no part of the extra. ε by ρ at each of DELTAS:
# `rdp.RdpAccountant(orders=list(1 + np.geomspace(1e-3, 1e3, 20_000)))` after `GaussianDpEvent(1 / math.sqrt(2 * rho))`, and
# `pld.privacy_loss_distribution.from_gaussian_mechanism(…, value_discretization_interval=1e-4, log_mass_truncation_bound=-60,
# pessimistic_estimate=False)`, which is what one count with that noise loses, from below.
BY_RENYI = {
    0.015: (0.44883977417833854, 0.771734240589848, 1.000938954118788, 1.1882418714773157),
    0.1: (1.356193172982733, 2.141938931127603, 2.715481927292568, 3.1888468412850655),
    0.5: (3.5365619258078924, 5.2215344586176995, 6.474070044211166, 7.51514286803917),
    2.0: (8.416064615433678, 11.688596692300294, 14.150147843403797, 16.20616678675448),
    17.5: (37.74755104113113, 47.120159908596975, 54.25267776950791, 60.24128273863672),
}
BY_LOSS = {
    0.015: (0.382305816088342, 0.714643992498823, 0.9495504501164898, 1.1407729223977616),
    0.1: (1.1832155865422351, 1.9944769054241445, 2.5828228407598197, 3.06631164131365),
    0.5: (3.138620549733251, 4.8865041158399, 6.173885047760449, 7.238444426201854),
    2.0: (7.581229925764041, 10.997101212646717, 13.534722220536946, 15.641075781299472),
    17.5: (34.98042392630115, 44.88948713518344, 52.29432019336937, 58.458680794822534),
}
# ε of n Laplace mechanisms of ε each, composed by privacy losses (`from_laplace_mechanism`, as above, `.self_compose(n)`), by δ
COMPOSED = {
    ("0.05", 30): {1e-3: 0.6449079244173244, 1e-6: 1.0926651721291607, 1e-9: 1.3756365915923294},
    ("0.2", 30): {1e-3: 3.2713594792796825, 1e-6: 4.81414428162054, 1e-9: 5.737918897811942},
    ("0.2", 365): {1e-3: 17.439096630201878, 1e-6: 23.51515674747956, 1e-9: 27.983558344231238},
    ("1", 14): {1e-3: 12.552774943450807, 1e-6: 13.984353266029961, 1e-9: 13.999983615882165},
}


@pytest.mark.parametrize("rho", BY_RENYI)
def test_epsilon_is_that_of_the_accountant_of_google(rho):
    """dp-accounting tries a fixed list of orders: it is never tighter, and equal to seven digits; exact losses are less, by a sixth at most."""
    for delta, theirs, loss in zip(DELTAS, BY_RENYI[rho], BY_LOSS[rho], strict=True):
        ours = float(epsilon_of(rho, delta))
        assert ours <= theirs * (1 + 1e-8)
        assert ours == pytest.approx(theirs, rel=1e-7)
        assert loss < ours < 1.2 * loss


@pytest.mark.parametrize(("epsilon", "times"), COMPOSED)
def test_many_pure_releases_lose_no_more_than_is_stated(epsilon, times):
    """The better of n·ε and of n·ε²/2 stated at δ is above the exact loss of n releases, by less than a quarter."""
    for delta, loss in COMPOSED[epsilon, times].items():
        stated = min(times * Fraction(epsilon), epsilon_of(times * pure_to_rho(epsilon), delta))
        assert loss <= float(stated) < 1.25 * loss


def exact_delta(law: DiscreteGaussian, epsilon: float) -> float:
    """The δ of one noisy count that one trip changes by one: Σ max(0, P(z) − e^ε P(z − 1))."""
    z = np.arange(-60 * math.ceil(law.size), 60 * math.ceil(law.size) + 1)
    return float(np.maximum(0, law.pmf(z) - np.exp(epsilon + law.log_pmf(z - 1))).sum())


@pytest.mark.parametrize("scale", [Fraction(1, 2), 1, 3, 20])
def test_statement_is_true_of_the_noise(scale):
    """The δ of the noise itself, added up over all values, is below what its ρ states, and within a factor of forty."""
    law = DiscreteGaussian(scale)
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
    assert pure_to_rho("1/3") == Fraction(1, 18)
    pairs = epsilon_delta_curve(Fraction(1, 2))
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
        (lambda: pure_to_rho("x"), "epsilon is 'x', give a finite number"),
        (lambda: pure_to_rho("1,0"), "epsilon is '1,0', give a finite number; write decimals with a point"),
    ],
)
def test_bad_input_is_named(call, says):
    """Numbers that make no statement are refused by value."""
    with pytest.raises(InputError, match=says):
        call()
