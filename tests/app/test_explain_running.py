"""What `cbdp check` says of running totals before anything is charged."""

from __future__ import annotations

from pathlib import Path

from daily_city import CONFIG, write_daily_city

from cbdp.app.plan import plan
from cbdp.config import read
from cbdp.forecast import explain

GAUSSIAN = CONFIG.replace("epsilon = 1", 'rho = 0.5\nlaw = "gaussian"')
RUNNING = GAUSSIAN.replace("start = 2026-03-01", 'start = 2026-03-01\nrunning = { tables = ["zone"] }')


def test_price_and_precision_are_said_beforehand(tmp_path: Path) -> None:
    """What a span costs for a day, a week and a year of a person; how noisy a day and the year's total are, beside days added up."""
    text = explain(plan(read(write_daily_city(tmp_path, days=2, config=RUNNING) / "cbdp.toml"))).text
    said = " ".join(text.split())
    assert "ρ = 0.166667 is charged for a span of 365 releases, by the square root" in said
    assert "for 7 days in a row 36.3 times as much, for 30 days in a row 518 times as much" in said
    assert "for 365 days in a row 28,687 times as much" in said
    [row] = [line.split() for line in text.splitlines() if line.strip().startswith("zone ") and "9.2" in line]
    assert row == ["zone", "3.5", "9.2", "66.2"]  # 3.46 is the noise of a day alone


def test_nothing_is_said_where_there_are_none(tmp_path: Path) -> None:
    """A series without them."""
    folder = write_daily_city(tmp_path, days=2, config=GAUSSIAN)
    assert "running totals" not in explain(plan(read(folder / "cbdp.toml"))).text
