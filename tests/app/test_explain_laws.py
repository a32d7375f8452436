"""`cbdp check` with noise that is paid for in ρ, and which law it says is the better one."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest
from small_city import plan_of

from cbdp import forecast
from cbdp.forecast.errors import compare_noise
from cbdp.privacy.accounting import epsilon_of, rho_for

GAUSSIAN = ("epsilon = 1.0", 'rho = 0.5\nlaw = "gaussian"')


def person(most: int, apart: bool) -> tuple[str, str]:
    kept = ', apart = "time"' if apart else ""
    return ("cap = 2.0", f'cap = 2.0\nunit = {{ person = "card", max_trips = {most}{kept} }}')


def test_what_rho_means_is_said(city: Path) -> None:
    """ρ, the ε at the stated δ, other levels of the same promise, and shares of ρ in the noise table."""
    told = forecast.explain(plan_of(city, GAUSSIAN))
    text = " ".join(told.text.split())
    assert "ρ-zCDP for one trip" in text
    assert "same data: ρ 1/2; so ε = 5.222 at δ = 1e-06." in text
    assert "by at most a factor e^5.222 = 185, plus δ = 1e-06" in text
    assert "The same promise at other δ: e^3.537 at δ = 1e-03" in text
    assert "table counts ρ scale margin" in text
    assert told.epsilon == epsilon_of("1/2", 1e-6)
    assert sum(n.epsilon for n in told.noise) == Fraction(1, 2)


def test_rho_for_a_wanted_precision(city: Path) -> None:
    """The question --within is answered in ρ where the noise is paid for in it."""
    said = forecast.answer(plan_of(city, GAUSSIAN), "zone", "1")
    assert "ρ of the whole release must be at least" in said
    found = forecast.epsilon_for(plan_of(city, GAUSSIAN), "zone", "1/100")
    plan = plan_of(city, ("epsilon = 1.0", f'rho = {float(found)}\nlaw = "gaussian"'))
    (zone,) = [n for n in forecast.noise_by_table(plan) if n.feature == "zone"]
    assert zone.half_width <= 60000 / zone.elements / 100


def test_laws_are_compared_for_the_same_promise(city: Path) -> None:
    """Either way round: (ε, δ) of a ρ against pure ε, and pure ε against the ρ that gives it at 10⁻⁶; and the better one is named."""
    trip = compare_noise(plan_of(city))
    assert trip is not None
    assert (trip.epsilon, trip.delta, list(trip.errors)) == (1, Fraction(1, 10**6), ["geometric", "gaussian"])
    assert trip.better == "geometric"
    back = compare_noise(
        plan_of(city, ("epsilon = 1.0", f'rho = {float(rho_for(1, 1e-6))}\nlaw = "gaussian"'))
    )
    assert back is not None
    assert list(back.errors) == ["gaussian", "geometric"]
    assert back.better == "geometric"
    for law, errors in trip.errors.items():
        assert errors == pytest.approx(back.errors[law], rel=1e-6)
    text = forecast.explain(plan_of(city)).text
    assert "Geometric noise is better here" in text


# four periods keep at most four trips of a person apart
@pytest.mark.parametrize(("most", "apart", "better"), [(4, False, "geometric"), (4, True, "gaussian")])
def test_the_better_law_follows_from_the_unit(city: Path, most: int, apart: bool, better: str) -> None:
    """Where trips may pile up geometric noise wins; where they are kept apart Gaussian noise does."""
    told = forecast.explain(
        plan_of(city, person(most, apart), ('"constraint-based"', '"constraint-based"\npreset = "paper"'))
    )
    assert told.laws is not None
    assert told.laws.better == better
    ratio = {
        n: told.laws.errors["geometric"][n] / told.laws.errors["gaussian"][n] for n in ("zone", "singleton")
    }
    # noise alone: √2 · 5 Δ/ε against l2 √(5/2ρ)
    gain = (
        math.sqrt(2)
        * 5
        * most
        / (math.sqrt(5 / 2 / float(rho_for(1, 1e-6))) * (math.sqrt(most) if apart else most))
    )
    assert ratio["singleton"] == pytest.approx(gain, rel=0.35)
    if better == "gaussian":
        assert 'write law = "gaussian" and delta = 1e-06' in " ".join(told.text.split())


def test_mechanisms_without_a_choice_say_nothing(city: Path) -> None:
    """Those whose noise is always geometric compare nothing; those without a model compare the noise."""
    plan = plan_of(city, ('"constraint-based"', '"threshold-laplace"\nzeros = "perturbed"'))
    assert compare_noise(plan) is None
    laplace = compare_noise(plan_of(city, ('"constraint-based"', '"laplace"\nlaw = "geometric"')))
    assert laplace is not None
    assert laplace.errors["geometric"]["singleton"] == pytest.approx(math.sqrt(1.8413), rel=1e-3)
