"""Features that refine each other: the choice of cells level by level."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import FAMILIES, Twin, filled, grids, tiny


@settings(deadline=None, max_examples=60)
@given(grids(["none", "one"], size=2), st.integers(0, 2**32 - 1))
def test_nearest_without_asking_for_cells(case: tuple[str, Twin], seed: int) -> None:
    """When one feature refines the others, cells ask for nothing more: no rounding that keeps the features is nearer."""
    twin = tiny(filled(case[1].model, FAMILIES[case[0]], seed))
    distance, broken = twin.enumerated([g for n in twin.features for g in twin.groups(n)])
    assert float(twin.distance(twin.round()[1])) == pytest.approx(distance[broken == 0].min(), abs=1e-9)
