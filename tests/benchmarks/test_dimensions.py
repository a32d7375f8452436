"""`python -m benchmarks dimensions`: the preset is marked, and errors are those of the estimates."""

from __future__ import annotations

import pytest

from benchmarks import dimensions


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dimensions.CITIES, "corridor", (8, 4, 2000))


def test_the_preset_has_the_star() -> None:
    """Without days the case study's features, with them days and their times."""
    one, _ = dimensions.city("corridor", ["weekday"])
    three, truth = dimensions.city("corridor", list(dimensions.DAYS))
    assert [n for n in dimensions.choices(one) if "*" in n] == ["time, zone *"]
    assert [n for n in dimensions.choices(three) if "*" in n] == ["and day, day-time *"]
    busy = truth.reshape(8, 8, 3, 4).sum(axis=(0, 1, 3))
    assert busy[0] > busy[1] > busy[2]


def test_tables_by_day_tell_days_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each choice; at an ε that leaves little noise in tables, errors by day fall by half at least."""
    assert dimensions.main(["--city", "corridor", "--runs", "1", "--epsilon", "0.2"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("| 0.2 |") == 2 + 6
    universe, truth = dimensions.city("corridor", list(dimensions.DAYS))
    choices, by_day = dimensions.choices(universe), list(dimensions.ASKED).index("day")
    without, told = (
        dimensions.errors(choices[n], truth, "0.2", 1)[by_day] for n in ("time, zone", "and day, day-time *")
    )
    assert told < without / 2
