"""Changes told by measurements alone: how often intervals hold them and how often no change is called one, over many draws."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
import pytest
from released import city_features, counts_of

import cbdp
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.release.comparison import (
    UnbiasedAnswers,
    benjamini_hochberg,
    combined_side,
    difference_interval,
    p_values,
    ratio_interval,
)

DAG = city_features()
TRIPS = counts_of(DAG)
MORE = TRIPS + 12 * (np.arange(len(TRIPS)) % 3 == 0)
NOBODY = np.zeros(0, dtype=np.int64)
BY: dict[str, tuple[str, ...]] = {
    "all": (),
    "time": ("time",),
    "zones": ("origin.zone", "destination.zone", "time"),
    "stops": ("origin",),
    "types": ("origin", "destination", "time"),
}


@cache
def _mechanism(epsilon: str) -> cbdp.ConstraintBased:
    if epsilon.startswith("ρ"):
        return cbdp.ConstraintBased(DAG, law="gaussian", rho=epsilon[1:], delta="1e-6")
    return cbdp.ConstraintBased(DAG, epsilon)


@lru_cache(maxsize=400)
def _release(which: str, seed: int, epsilon: str) -> cbdp.Release:
    """What is measured alone; nothing is estimated, so that many draws take no time."""
    trips = {"before": TRIPS, "after": MORE, "many": TRIPS + 1000}[which]
    mechanism = _mechanism(epsilon)
    measured: Any = mechanism.measure(cbdp.count(trips, DAG.universe), InsecureSeededEntropy(seed))
    return mechanism.publication(NOBODY, NOBODY, measured)


def _answers(which: str, seed: int, epsilon: str, by: tuple[str, ...]) -> UnbiasedAnswers:
    return combined_side([_release(which, seed, epsilon)], by, None, ()).answers


def _truth(trips: np.ndarray, by: tuple[str, ...]) -> np.ndarray:
    universe = DAG.universe
    element = universe.partition(by).element_of(universe.unrank_codes(np.arange(universe.size)))
    return np.bincount(element, trips)


@pytest.mark.parametrize("epsilons", [("1", "1"), ("3", "1/2"), ("ρ1/2", "1")])
@pytest.mark.parametrize("name", BY)
def test_intervals_hold_the_change_as_often_as_they_say(name: str, epsilons: tuple[str, str]) -> None:
    """Neither less often nor much more often: 30 pairs, at 90 %."""
    by, held = BY[name], []
    change = _truth(MORE, by) - _truth(TRIPS, by)
    for seed in range(30):
        one, two = (_answers(t, 2 * seed + i, epsilons[i], by) for i, t in enumerate(("before", "after")))
        low, high = difference_interval(one, two, 0.1)
        held += ((low <= change) & (change <= high)).tolist()
    spread = 3.5 * np.sqrt(0.09 / len(held))
    assert 0.9 - spread <= np.mean(held) <= 0.93 + spread


@pytest.mark.parametrize("name", ["time", "zones"])
def test_ratios_hold_as_often_as_they_say(name: str) -> None:
    """Where the first count is large and where it is nearly zero."""
    by, held = BY[name], []
    ratio = _truth(MORE, by) / _truth(TRIPS, by)
    for seed in range(60):
        one, two = (_answers(t, 2 * seed + i, "2", by) for i, t in enumerate(("before", "after")))
        low, high = ratio_interval(one, two, 0.1)
        held += ((low <= ratio) & (ratio <= high)).tolist()
    spread = 3.5 * np.sqrt(0.09 / len(held))
    assert 0.9 - spread <= np.mean(held) <= 0.95 + spread


@pytest.mark.parametrize("epsilon", ["8", "1", "1/4", "ρ1/8"])
def test_chance_is_no_smaller_than_it_is(epsilon: str) -> None:
    """The same trips twice: a chance of at most p comes up at most p of the time; and not much more seldom."""
    found = []
    for seed in range(50):
        one, two = (_answers("before", 5000 + 2 * seed + i, epsilon, BY["types"]) for i in range(2))
        found += p_values(one, two).tolist()
    for p in (0.3, 0.1, 0.02):
        share, spread = np.mean(np.asarray(found) <= p), 3.5 * np.sqrt(p / len(found))
        assert share <= p + spread
        assert share >= (0.7 if epsilon != "8" else 0.1) * p - spread  # large ε: few values, so steps


def test_no_change_is_seldom_called_one() -> None:
    """With the correction, any of 24 rows is picked in about 10 % of comparisons; without it, nearly always."""
    corrected, alone = 0, 0
    for seed in range(150):
        one, two = (_answers("before", 9000 + 2 * seed + i, "1", BY["types"]) for i in range(2))
        likely = p_values(one, two)
        corrected += bool((benjamini_hochberg(likely) <= 0.1).any())
        alone += bool((likely <= 0.1).any())
    assert corrected <= 27  # 15 expected; more than 27 has a chance below 1 in 500
    assert alone >= 110


def test_a_first_count_that_may_be_zero_leaves_the_ratio_open() -> None:
    """And one that is surely positive closes it."""
    one, two = (_answers("before", i, "1/4", BY["types"]) for i in range(2))
    _, high = ratio_interval(one, two, 0.1)
    assert np.isinf(high).any()
    sure = ratio_interval(*(_answers("many", i, "1/4", BY["types"]) for i in range(2)), 0.1)
    assert np.isfinite(sure[1]).all()
    assert (sure[0] <= 1.2).all()
    assert (sure[1] >= 0.8).all()
