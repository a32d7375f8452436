"""The leaves that go up first in each cell, against sorting all of them."""

from __future__ import annotations

import numpy as np
import pytest

from cbdp.rounding.bounds import largest_fractions


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_each_cell(seed: int) -> None:
    """A quota of the largest fractions, the first of equals, and one more where there is one."""
    rng = np.random.default_rng(seed)
    cells, leaves = 7, int(rng.integers(0, 200))
    cell = rng.integers(0, cells, leaves).astype(np.int32)
    part, free = rng.integers(0, 12, leaves), rng.random(leaves) < 0.8
    many = np.bincount(cell[free], minlength=cells)
    quota = np.minimum(rng.integers(0, 30, cells), many)
    more = rng.random(cells) < 0.5
    found = largest_fractions(cell, part, free, quota)
    wanted: list[int] = []
    for k in range(cells):
        here = np.flatnonzero((cell == k) & free)
        order = here[np.lexsort((here, -part[here]))]
        assert found.last[k] == (order[quota[k]] if many[k] > quota[k] else -1)
        wanted += order[: quota[k] + more[k]].tolist()
    assert sorted(found.chosen(more).tolist()) == sorted(wanted)
