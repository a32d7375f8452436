"""`max_trips` by the exponential mechanism: drawn with exactly the chances that the rule gives."""

from __future__ import annotations

import collections
import math

import numpy as np
import pytest
from scipy import stats

from cbdp.measuring import exact_sampling
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.unit import MAX_TRIPS_CANDIDATES, PrivateQuantile, selection_exponents


@pytest.mark.parametrize("epsilon", ["0.2", "2"])
def test_candidates_come_as_often_as_they_should(epsilon: str) -> None:
    """4,000 draws against the chances worked out (chi-square at 1e-6), the rare candidates together."""
    bought, loads = PrivateQuantile("0.9", epsilon), ([1, 2, 4, 9], [40, 30, 20, 10])
    weights = np.array([math.exp(-float(x)) for x in selection_exponents(bought, *loads)])
    chance = weights / weights.sum()
    entropy = InsecureSeededEntropy(5)
    drawn = collections.Counter(
        exact_sampling.exponential_mechanism(bought, *loads, entropy) for _ in range(4000)
    )
    common = [k for k, p in zip(MAX_TRIPS_CANDIDATES, chance, strict=True) if 4000 * p > 5]
    seen = [drawn[k] for k in common]
    wanted = [4000 * chance[k - 1] for k in common]
    rest = 4000 - sum(wanted)
    assert stats.chisquare([*seen, 4000 - sum(seen)], [*wanted, rest]).pvalue > 1e-6 if rest > 5 else True
    assert stats.chisquare(seen, np.array(wanted) * sum(seen) / sum(wanted)).pvalue > 1e-6


def test_a_certain_answer_is_given() -> None:
    """With many persons and ε = 1 the quantile is found: half of 10,000 persons have 7 trips, half have 2."""
    bought = PrivateQuantile("0.75", 1)
    found = {
        exact_sampling.exponential_mechanism(bought, [2, 7], [5000, 5000], InsecureSeededEntropy(n))
        for n in range(20)
    }
    assert found == {7}


@pytest.mark.parametrize("n", [1, 3, 100])
def test_every_place_is_as_likely(n: int) -> None:
    """Chi-square at 1e-6."""
    entropy = InsecureSeededEntropy(n)
    seen = np.bincount([exact_sampling._uniform_below(n, entropy) for _ in range(5000)], minlength=n)
    assert len(seen) == n
    assert n == 1 or stats.chisquare(seen).pvalue > 1e-6
