"""The first line of a CSV file: names of columns, or a private row of which nothing may be repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbdp.app import cli
from cbdp.config.guessing import looks_like_a_value

NAMES = [
    "Trip ID", "Start Date", "Bike #", "Zip Code", "o", "d", "t", "PULocationID", "from_stop", "tpep_pickup_datetime", "début",
    "Unnamed: 0", "start_lat", "n", "day_of_week", "Straße", "am_peak", "line2_stop", "出発駅", "",
]  # fmt: skip
VALUES = [
    "289", "289.0", "-83.7", "1,234", "S1", "A17", "ST-04", "x 9", "2026-03-02", "01/03/2020 00:14", "06:00", "8:15 AM", "PM",
    "5f2b9c1e", "550e8400-e29b-41d4-a716-446655440000", "anna@example.org", "true", "NULL", "N/A", "card-00012345", "#", "20260302",
]  # fmt: skip


def test_names_and_values_are_told_apart() -> None:
    """In doubt, a cell is a value."""
    assert [name for name in NAMES if looks_like_a_value(name)] == []
    assert [value for value in VALUES if not looks_like_a_value(value)] == []


@pytest.mark.slow
@pytest.mark.parametrize("value", [*VALUES, "Central"])
def test_any_value_in_the_first_line_refuses_it_and_nothing_is_repeated(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Among names that are beyond doubt, one cell is enough, also if it is only the name of a public stop."""
    (tmp_path / "stops.csv").write_text("id,name\nQ,Central\nR,Harbour\n")
    (tmp_path / "trips.csv").write_text(f'from_stop,to_stop,start_time,"{value}"\n')
    arguments = [
        str(tmp_path / "trips.csv"),
        "--stops",
        str(tmp_path / "stops.csv"),
        "--out",
        str(tmp_path / "c.toml"),
    ]
    for more in ([], ["--preset", "gbfs"]):
        assert cli.main(["init", *arguments, *more]) == 2
        said = capsys.readouterr().err
        assert "field 4 looks like a value" in said
        assert f"{value}" not in said.replace(str(tmp_path), "") or value in ("#", "PM", "289")
        assert not (tmp_path / "c.toml").exists()


def test_a_first_line_in_which_no_trip_is_recognised_is_not_repeated(tmp_path: Path) -> None:
    """Words alone may be a row as well: the configuration says EDIT, and no word of the line."""
    (tmp_path / "trips.csv").write_text("Anna,Harbour,yesterday\n")
    assert cli.main(["init", str(tmp_path / "trips.csv"), "--out", str(tmp_path / "c.toml")]) == 0
    text = (tmp_path / "c.toml").read_text(encoding="utf-8")
    assert "EDIT: the column of origin, destination, time" in text
    assert not any(word in text for word in ("Anna", "Harbour", "yesterday"))
