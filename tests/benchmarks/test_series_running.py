"""Running totals through a whole series, with few days: `python -m benchmarks series_running`."""

from __future__ import annotations

import pytest

from benchmarks.series_running import main


@pytest.mark.slow
def test_both_ways_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """Two tables each way; only running totals state a deviation; the statement for one person stands below."""
    assert main(["--days", "3"]) == 0
    out = capsys.readouterr().out
    rows = [
        line.split("|")[1:-1] for line in out.splitlines() if line.startswith("| ") and "table" not in line
    ]
    assert [(row[0].strip(), row[1].strip()) for row in rows] == [
        (way, table) for way in ("days added up", "running totals") for table in ("total", "zone")
    ]
    assert [bool(row[-1].strip()) for row in rows] == [False, False, True, True]
    assert "running totals of 2026-01-01 to 2026-01-03 are paid for: ρ 0.013333334" in out
