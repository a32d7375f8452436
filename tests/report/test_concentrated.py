"""What a report says of protection that is paid for in ρ: every number is true, and what δ means is said in words."""

from __future__ import annotations

import html
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import cbdp
from cbdp.privacy.accounting import delta_of, epsilon_of
from cbdp.report import build

STOPS = cbdp.Dimension([f"s{i}" for i in range(5)], zone=[f"z{i % 2}" for i in range(5)])
UNIVERSE = cbdp.Universe(origin=STOPS, destination=STOPS, time=["am", "pm"])
DAG = cbdp.FeatureDag(UNIVERSE, [cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"])])
TRUTH = np.random.default_rng(0).poisson(20.0, UNIVERSE.size)


def text_of(rho: str, delta: str = "1e-6") -> str:
    release = cbdp.ConstraintBased(DAG, rho=rho, law="gaussian", delta=delta).simulate(TRUTH, 1)
    page = build(replace(release, secure=True))
    plain = re.sub(r"<(style|script).*?</\1>", " ", page, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", plain)).split())


@pytest.fixture(scope="module")
def text() -> str:
    return text_of("1/2")


def test_factor_delta_and_their_meaning_are_said(text: str) -> None:
    """The factor at the stated δ, δ in words, the same promise at other δ, and ρ itself, in the head and in the section."""
    assert "Protection ε = 5.222 for each trip, δ = 1e-06 (ρ = 0.5)" in text
    assert (
        "changes the chance of any conclusion by at most a factor of e 5.222 , which is less than 186" in text
    )
    assert "and δ = 1e-06 (one in 1,000,000) on top." in text
    assert "It is not a chance that somebody’s trips become visible" in text
    assert "They follow from ρ = 0.5 (zero-concentrated differential privacy)" in text
    assert "discrete Gaussian on whole numbers" in text
    assert "The whole budget is ρ = 0.5." in text
    assert re.search(r"singleton ρ 0\.2 \(40 %\)", text)


def test_every_level_that_is_stated_holds(text: str) -> None:
    """ε is rounded up: the δ beside it is never exceeded."""
    stated = re.findall(r"e\^([\d.]+) with δ = ([\de-]+)", text)
    assert len(stated) == 3
    for epsilon, delta in stated:
        assert delta_of("1/2", epsilon) <= float(delta)


def test_what_a_sceptic_may_learn_is_a_bound_on_the_loss(text: str) -> None:
    """The chance that the odds rise by more than e^ε: of the noise itself it is smaller than what is said."""
    (said,) = re.findall(r"except with a probability of at most ([\de.-]+) \(one in", text)
    epsilon, rho = float(epsilon_of("1/2", 1e-6)), 0.5
    # the loss of Gaussian noise is normal with mean ρ and variance 2ρ
    true = 0.5 * math.erfc((epsilon - rho) / math.sqrt(2 * rho) / math.sqrt(2))
    assert true <= math.exp(-((epsilon - rho) ** 2) / (4 * rho)) <= float(said)


def test_several_trips_cost_the_square(text: str) -> None:
    """Two trips of one person cost four times ρ."""
    assert f"the factor is larger: {math.exp(float(epsilon_of(2, 1e-6))):,.0f} for 2 trips" in text
