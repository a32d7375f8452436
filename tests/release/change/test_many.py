"""The correction for many rows: by hand, and its promise in simulated rows."""

from __future__ import annotations

import numpy as np

from cbdp.release.comparison import benjamini_hochberg


def test_by_hand() -> None:
    """p times the number of rows over its rank, never falling."""
    assert benjamini_hochberg(np.array([0.03, 0.01, 0.5])).round(6).tolist() == [0.045, 0.03, 0.5]
    assert benjamini_hochberg(np.array([0.2])).tolist() == [0.2]
    assert benjamini_hochberg(np.zeros(0)).tolist() == []


def test_few_of_those_picked_are_chance() -> None:
    """200 rows of which 40 changed: the expected share of false ones among those picked is below the risk."""
    rng = np.random.default_rng(3)
    false = []
    for _ in range(300):
        chance = rng.uniform(size=200)
        chance[:40] = rng.uniform(size=40) * 1e-3
        picked = benjamini_hochberg(chance) <= 0.1
        false.append(picked[40:].sum() / max(picked.sum(), 1))
    assert 0.05 < np.mean(false) < 0.1
