"""The benchmark of earlier releases: days of a kind, and an error that falls."""

from __future__ import annotations

import pytest

from benchmarks import prior


def test_days_learn_from_days_before_them_alone() -> None:
    """Weekdays and weekends, from a Monday on."""
    held = prior.city("metro", 9)
    assert held.alike(8) == ([0, 1, 2, 3, 4, 7], [5, 6])
    assert held.alike(5) == ([], [0, 1, 2, 3, 4])
    assert held.trips[5].sum() < 0.7 * held.trips[4].sum()


def test_the_error_falls(capsys: pytest.CaptureFixture[str]) -> None:
    """After nine days trip types are clearly nearer to the truth, and so are pairs."""
    assert prior.main(["--city", "metro", "--days", "10"]) == 0
    row = capsys.readouterr().out.strip().splitlines()[-1]
    cells = [cell.split("→") for cell in row.split("|") if "→" in cell]
    falls = [float(after) / float(before) for before, after in cells]
    assert all(fall < 0.9 for fall in falls)
