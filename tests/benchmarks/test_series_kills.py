"""A series that is killed again and again: as `python -m benchmarks series_kills`, with fewer kills."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.series_kills import killed


@pytest.mark.slow
@pytest.mark.forks
@pytest.mark.timeout(300)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_every_day_is_released_once_whatever_is_killed(tmp_path: Path) -> None:
    """Ten kills over four days: charges are at least the releases, draws at most the charges, files as noted."""
    found = killed(tmp_path, 10, 4, seed=3)
    assert (found.kills, found.released) == (10, 4)
    assert found.draws <= found.reserved
    assert found.reserved >= 4


@pytest.mark.slow
@pytest.mark.forks
@pytest.mark.timeout(300)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_running_totals_survive_kills(tmp_path: Path) -> None:
    """Five kills over three days, in spans of two: each span charged once, no sums without a charge, totals that add up."""
    found = killed(tmp_path, 5, 3, seed=1, running=2)
    assert (found.kills, found.released, found.spans) == (5, 3, 2)
    assert found.draws <= found.reserved
    assert 3 <= found.sums <= 3 + found.again
