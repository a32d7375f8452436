"""`cbdp inspect` on persons: how many trips they have in a period, and what each bound would drop."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_city import plan_of

from cbdp.app.cli import main


def _said(city: Path, unit: str, capsys: pytest.CaptureFixture[str]) -> str:
    plan_of(city, ("[mechanism]", f"unit = {{ {unit} }}\n[mechanism]"))
    assert main(["inspect", str(city / "cbdp.toml")]) == 0
    return capsys.readouterr().out


def test_persons_are_counted_by_period(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All trips are of one day here: nine persons are nine person-days. Kept apart, some trips are gone whatever the bound is."""
    whole = _said(city, 'person = "card", max_trips = 4', capsys)
    assert "9 persons with" in whole
    by_day = _said(city, 'person = "card", max_trips = 4, per = "day"', capsys)
    assert "9 person-days with" in by_day
    assert "keep trips apart" not in by_day
    apart = _said(city, 'person = "card", max_trips = 4, per = "day", apart = "time"', capsys)
    assert "would be dropped to keep trips apart, whatever max_trips is" in apart
