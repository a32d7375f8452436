"""`cbdp ask`: a table on the terminal, or a CSV file, with what `Release.ask` says."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import cbdp
from cbdp.app import cli

STOPS = cbdp.Dimension(["Quay", "Mill", "Hill"], zone=["harbour", "harbour", "town"])
UNIVERSE = cbdp.Universe(
    origin=STOPS, destination=STOPS, time=cbdp.periods("08:00", "10:00", "30min"), day=["weekday", "saturday"]
)
DAG = cbdp.FeatureDag(
    UNIVERSE,
    [cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"]), cbdp.Feature("day", by="day")],
)

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with counts of four digits."""
    place = tmp_path_factory.mktemp("asked") / "release"
    counts = np.arange(UNIVERSE.size) % 11 * 20
    counts[1] = 2000  # saturday, before 09:00
    cbdp.ConstraintBased(DAG, 1).simulate(counts, 1).save(place, simulation=True)
    return place


def _rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_a_table_on_the_terminal(folder: Path, capsys: Captured) -> None:
    """The attributes asked for, then count, estimate, low and high; the same numbers as in Python."""
    asked = ["--by", "origin.zone,destination.zone", "--where", "time<09:00", "--where", "day=saturday"]
    assert cli.main(["ask", str(folder), *asked]) == 0
    head, *rows = _rows(capsys.readouterr().out)
    assert head == ["origin.zone", "destination.zone", "count", "estimate", "low", "high"]
    same = cbdp.load(folder).ask(["origin.zone", "destination.zone"], ["time<09:00", "day=saturday"])
    assert [row[0] for row in rows] == same["origin.zone"]
    for column, name in ((2, "count"), (4, "low"), (5, "high")):
        assert [int(row[column].replace(",", "")) for row in rows] == same[name].tolist()


def test_shares_of_all_trips_and_of_a_group(folder: Path, capsys: Captured) -> None:
    """`--share-of all` is of everything that meets the conditions; shares of each group add up to 100 %."""
    assert cli.main(["ask", str(folder), "--by", "day", "--share-of", "all"]) == 0
    head, *rows = _rows(capsys.readouterr().out)
    assert head[-3:] == ["share", "share_low", "share_high"]
    assert sum(float(row[5]) for row in rows) == pytest.approx(100, abs=0.1)
    assert cli.main(["ask", str(folder), "--by", "origin.zone,day", "--share-of", "origin.zone"]) == 0
    _, *rows = _rows(capsys.readouterr().out)
    assert sum(float(row[6]) for row in rows) == pytest.approx(200, abs=0.2)


def test_a_csv_file_has_every_row(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    """Also those that are too many for a terminal, and nothing is overwritten."""
    path = tmp_path / "answer.csv"
    asked = ["ask", str(folder), "--by", "origin,destination,time,day", "--csv", str(path)]
    assert cli.main(asked) == 0
    assert capsys.readouterr().out.strip() == str(path)
    with path.open(encoding="utf-8", newline="") as held:
        rows = list(csv.DictReader(held))
    assert len(rows) == UNIVERSE.size
    assert sum(int(row["count"]) for row in rows) == cbdp.load(folder).total
    assert cli.main(asked) == 2
    assert "answer.csv" in capsys.readouterr().err


def test_long_answers_are_cut_on_the_terminal(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the number of rows that are not shown, and how to have them."""
    monkeypatch.setattr("cbdp.commands.releases.MAX_ANSWER_ROWS", 5)
    assert cli.main(["ask", str(folder), "--by", "origin,time"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert lines[-1] == "… 7 more rows: write all with --csv FILE"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--by", "zones"], "unknown attribute 'zones'"),
        (["--where", "day=sunday"], "day has no 'sunday': did you mean"),
        (["--by", "day", "--share-of", "time"], "'time', which is not in by"),
        (["--confidence", "90"], "between 0 and 1"),
    ],
)
def test_wrong_questions_are_one_line(folder: Path, asked: list[str], says: str, capsys: Captured) -> None:
    """Exit code 2, and what would do."""
    assert cli.main(["ask", str(folder), *asked]) == 2
    shown = capsys.readouterr().err
    assert says in shown
    assert len(shown.splitlines()) == 1
