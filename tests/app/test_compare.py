"""`cbdp compare`: text, CSV and JSON with what `cbdp.compare` says."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import cbdp
from cbdp.app import cli

STOPS = cbdp.Dimension(["Quay", "Mill", "Hill"], zone=["harbour", "harbour", "town"])
UNIVERSE = cbdp.Universe(origin=STOPS, destination=STOPS, time=cbdp.periods("08:00", "10:00", "30min"))
DAG = cbdp.FeatureDag(UNIVERSE, [cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"])])

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two releases; in the second everything but the first stop's trips is as it was."""
    place = tmp_path_factory.mktemp("compared")
    counts = np.arange(UNIVERSE.size) % 11 * 20
    for name, trips, seed in (("one", counts, 1), ("two", counts + 60 * (np.arange(UNIVERSE.size) < 12), 2)):
        cbdp.ConstraintBased(DAG, 1).simulate(trips, seed).save(place / name, simulation=True)
    return str(place / "one"), str(place / "two")


def test_text_begins_with_what_stands_out(folders: tuple[str, str], capsys: Captured) -> None:
    """Sentences, then rows, the ones that stand out first."""
    assert cli.main(["compare", *folders, "--by", "origin"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("From the first release to the second release.")
    assert "Benjamini–Hochberg" in text
    rows = text.split("\n\n")[1].splitlines()
    assert rows[0].split()[:3] == ["origin", "first", "second"]
    assert rows[1].split()[0] == "Quay"
    assert rows[1].endswith("more than noise can explain")


def test_csv_and_json_have_the_same_rows_as_python(
    folders: tuple[str, str], capsys: Captured, tmp_path: Path
) -> None:
    """Every column, in full."""
    made = cbdp.compare(*map(cbdp.load, folders), by=["origin.zone", "time"], where="time<09:00")
    asked = [*folders, "--by", "origin.zone,time", "--where", "time<09:00"]
    assert cli.main(["compare", *asked, "--format", "csv", "--out", str(tmp_path / "c.csv")]) == 0
    capsys.readouterr()
    rows = list(csv.DictReader((tmp_path / "c.csv").read_text().splitlines()))
    assert [int(r["change"]) for r in rows] == made.columns["change"].tolist()
    assert cli.main(["compare", *asked, "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["correction"] == "Benjamini–Hochberg"
    assert [r["verdict"] for r in said["rows"]] == made.columns["verdict"]
    assert [r["low"] for r in said["rows"]] == made.columns["low"].tolist()
    assert tuple(said["headline"]) == made.headline


def test_several_folders_are_added_up(folders: tuple[str, str], capsys: Captured) -> None:
    """Joined by commas."""
    one, two = folders
    assert cli.main(["compare", one, f"{one},{two}"]) == 2
    assert "the same release is on both sides" in capsys.readouterr().err
    assert cli.main(["compare", one, f"{two}, "]) == 0


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--by", "zone"], "unknown attribute 'zone'"),
        (["--confidence", "2"], "between 0 and 1"),
        (["--where", "time~9"], "is not a condition"),
    ],
)
def test_bad_questions_are_one_clear_line(
    asked: list[str], says: str, folders: tuple[str, str], capsys: Captured
) -> None:
    """Exit code 2."""
    assert cli.main(["compare", *folders, *asked]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_folder_that_is_no_release(folders: tuple[str, str], capsys: Captured) -> None:
    """Named."""
    assert cli.main(["compare", folders[0], "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
