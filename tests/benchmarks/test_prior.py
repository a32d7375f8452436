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
    assert prior.main(["--city", "metro", "--days", "2", "10", "--seeds", "1"]) == 0
    second, tenth = (
        [[float(side) for side in cell.split("→")] for cell in row.split("|") if "→" in cell]
        for row in capsys.readouterr().out.strip().splitlines()[-2:]
    )
    assert all(before == after for before, after in second), "one day tells nothing of what persists"
    assert all(after < 0.9 * before for before, after in tenth)


def test_where_nothing_persists_nothing_is_lost() -> None:
    """Other types are used every day: errors stay as they are, to a fiftieth."""
    [(alone, learning)] = prior.compared(prior.city("moving", 6), [5], "1")
    assert learning == pytest.approx(alone, rel=0.02)
