"""Tails of sums of noise: against closed forms, sums of probabilities and draws; never noticeably too low."""

from __future__ import annotations

import numpy as np
import pytest

from cbdp.estimation.intervals import ErrorDistribution, sum_of_errors
from cbdp.privacy.noise import noise_distribution


def _one(name: str, scale: float, many: int = 1, weight: float = 1.0) -> ErrorDistribution:
    law = noise_distribution(name, scale)
    return ErrorDistribution([law], np.array([[weight]]), np.array([[many * law.variance()]]))


@pytest.mark.parametrize("x", [1.0, 2.0, 5.0, 10.0, 25.0])
def test_one_and_two_laplace_noises(x: float) -> None:
    """The formula is at most 6 % too high and never too low, one deviation away as thirty."""
    alone = _one("laplace", 1.0).beyond(np.array([x]))[0]
    both = sum_of_errors([_one("laplace", 1.0), _one("laplace", 1.0)]).beyond(np.array([x]))[0]
    assert 1.0 <= alone / np.exp(-x) <= 1.06
    assert 1.0 <= both / (np.exp(-x) * (1 + x / 2)) <= 1.06


@pytest.mark.parametrize(
    ("scales", "weights"), [((3.0, 3.0), (1.0, 1.0)), ((8.0, 1.0), (1.0, 1.0)), ((2.0, 9.0), (1.0, 1.0))]
)
def test_differences_of_whole_noise_by_adding_up_probabilities(
    scales: tuple[float, float], weights: tuple[float, float]
) -> None:
    """With half a trip for the gaps, as verdicts use it: near the exact chance, far into the tail too."""
    z = np.arange(-600, 601)
    mass = np.convolve(*(noise_distribution("geometric", s).pmf(z) for s in scales))
    at = np.arange(-1200, 1201)
    error = sum_of_errors([_one("geometric", s, weight=w) for s, w in zip(scales, weights, strict=True)])
    for k in (2, 10, 30, 60, 120):
        exact = mass[np.abs(at) >= k].sum()
        found = error.beyond(np.array([k - 0.5]))[0]
        assert 0.97 <= found / exact <= 1.12, (k, found / exact)


def test_the_largest_noise_rules_the_tail() -> None:
    """One large noise among many small ones: draws are as often beyond as it says."""
    rng = np.random.default_rng(5)
    error = sum_of_errors([_one("laplace", 5.0), _one("laplace", 1.0, many=40, weight=0.5)])
    draws = rng.laplace(0, 5.0, 400_000) + 0.5 * sum(rng.laplace(0, 1.0, 400_000) for _ in range(40))
    for x in (10.0, 20.0, 30.0):
        seen = np.mean(np.abs(draws) > x)
        assert error.beyond(np.array([x]))[0] == pytest.approx(seen, rel=0.06)
    far = np.exp(-60 / 5) * (1 - 0.1**2) ** -40  # e^(−x/b) times the moment of the small ones at 1/b
    assert error.beyond(np.array([60.0]))[0] == pytest.approx(far, rel=0.05)


@pytest.mark.parametrize("risk", [0.3, 0.1, 0.01, 1e-6])
def test_reach_and_chance_are_each_others_inverse(risk: float) -> None:
    """What lies beyond the reach has the risk as its chance."""
    error = sum_of_errors([_one("geometric", 4.0, many=7, weight=0.3), _one("rounded", 2.0)])
    assert error.beyond(error.reach(risk))[0] == pytest.approx(risk, rel=0.02)


def test_unknown_laws_are_normal_and_no_noise_reaches_nowhere() -> None:
    """A variance alone gives the normal law; public counts have no error."""
    normal = ErrorDistribution([None], np.array([[1.0, 2.0]]), np.array([[4.0, 1.0]]))
    assert normal.reach(0.1) == pytest.approx([2 * 1.6449] * 2, rel=1e-3)
    none = ErrorDistribution([None], np.array([[1.0]]), np.array([[0.0]]))
    assert none.reach(0.1).tolist() == [0.0]
    assert none.beyond(np.array([0.0])).tolist() == [1.0]
    assert none.beyond(np.array([1.0])).tolist() == [0.0]


def test_many_answers_of_one_law_are_looked_up() -> None:
    """A table gives what working out each answer gives."""
    one = sum_of_errors([_one("geometric", 3.0), _one("geometric", 5.0, many=4)])
    many = 5000
    wide = ErrorDistribution(
        one.laws, np.repeat(one.weight, many, axis=1), np.repeat(one.noise, many, axis=1)
    )
    size = np.linspace(0, 300, many)
    each = [float(one.beyond(np.array([x]))[0]) for x in size[::250]]
    assert wide.beyond(size)[::250] == pytest.approx(each, rel=2e-3)
