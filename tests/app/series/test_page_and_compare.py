"""`cbdp series page` and `compare`: what is made, added up by spans of days."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path

import pytest
from daily_city import write_daily_city

import cbdp
from cbdp.app import cli
from cbdp.app.series import run_series
from cbdp.commands.series import span_of
from cbdp.config import read
from cbdp.errors import InputError

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine days of a series, from a Sunday on."""
    folder = write_daily_city(tmp_path_factory.mktemp("series"), days=12)
    run_series(read(folder / "cbdp.toml"), dt.date(2026, 3, 9), create_ledger=True)
    return folder


def test_the_page_shows_every_release(city: Path, tmp_path: Path, capsys: Captured) -> None:
    """Each day with its number, the total of all, and the statement for one person."""
    out = tmp_path / "series.html"
    assert (
        cli.main(["series", "page", str(city / "cbdp.toml"), "--until", "2026-03-09", "--out", str(out)]) == 0
    )
    assert str(out) in capsys.readouterr().out
    html = out.read_text()
    totals = [cbdp.load(city / "releases" / f"2026-03-0{n}").total for n in range(1, 10)]
    assert f"{sum(totals):,}" in html
    assert all(f"{total:,} trips (" in html for total in totals)
    assert "since the start" in html
    assert cli.main(["series", "page", str(city / "cbdp.toml"), "--out", str(out)]) == 2


def test_the_page_is_of_what_the_ledger_knows(tmp_path: Path, capsys: Captured) -> None:
    """A manifest, or a file, that is not the one that was released: one line, and no page."""
    folder = write_daily_city(tmp_path, days=2)
    run_series(read(folder / "cbdp.toml"), dt.date(2026, 3, 1), create_ledger=True)
    release, out = folder / "releases" / "2026-03-01", tmp_path / "series.html"
    asked = ["series", "page", str(folder / "cbdp.toml"), "--until", "2026-03-01", "--out", str(out)]
    for name, says in (
        ("features/zone.parquet", "'features/zone.parquet' of the release .* does not match its manifest"),
        ("manifest.json", "is not the one that was released: restore the folder"),
    ):
        held = (release / name).read_bytes()
        (release / name).write_bytes(held + b" ")
        assert cli.main(asked) == 2
        assert re.search(says, capsys.readouterr().err)
        (release / name).write_bytes(held)
    assert not out.exists()
    assert cli.main(asked) == 0


def test_weeks_and_days_are_compared(city: Path, capsys: Captured) -> None:
    """A span is the sum of its days; any days from one to another can be given."""
    asked = ["series", "compare", str(city / "cbdp.toml"), "--until", "2026-03-09"]
    assert cli.main([*asked, "2026-03-02", "2026-03-09", "--by", "origin.zone", "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    days = [cbdp.load(city / "releases" / f"2026-03-0{n}") for n in (2, 9)]
    made = cbdp.compare(*days, by="origin.zone")
    assert [r["change"] for r in said["rows"]] == made.columns["change"].tolist()
    assert cli.main([*asked, "2026-03-02..2026-03-04", "2026-03-05..2026-03-07", "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["first"] == "2–4 March 2026 (3 releases)"
    total = sum(cbdp.load(city / "releases" / f"2026-03-0{n}").total for n in (2, 3, 4))
    assert said["rows"][0]["first"] == total


@pytest.mark.parametrize(
    ("spans", "says"),
    [
        (
            ["2026-02-02", "2026-03-02"],
            "2026-02-02 is not all in the series: the series begins on 2026-03-01",
        ),
        (
            ["2026-W10", "2026-W11"],
            "2026-W11 is not all in the series: it is not over by the end of 2026-03-09",
        ),
        (["2026-03-02", "march"], "'march' is no span of days: write 2026-03-02"),
        (["2026-03-02", "2026-13"], "is no span of days"),
        (["2026-03-04..2026-03-02", "2026-03-05"], "ends before it begins"),
        (["2026-03-02", "2026-03-02"], "the same release is on both sides"),
    ],
)
def test_wrong_spans_are_one_clear_line(city: Path, spans: list[str], says: str, capsys: Captured) -> None:
    """Exit code 2."""
    assert cli.main(["series", "compare", str(city / "cbdp.toml"), "--until", "2026-03-09", *spans]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_days_that_are_due_and_not_made_are_not_left_out(city: Path, capsys: Captured) -> None:
    """Of 10 March there is no release yet, though it is due: the span would come out too small."""
    asked = ["series", "compare", str(city / "cbdp.toml"), "--until", "2026-03-10"]
    assert cli.main([*asked, "2026-03-02..2026-03-03", "2026-03-09..2026-03-10"]) == 2
    assert "1 release in 2026-03-09..2026-03-10 is not made yet" in capsys.readouterr().err


def test_spans() -> None:
    """Weeks begin on Monday; a month has all its days."""
    assert span_of("2026-W01")[0] == dt.date(2025, 12, 29)
    assert span_of("2028-02")[1] == dt.date(2028, 2, 29)
    with pytest.raises(InputError, match="is no span"):
        span_of("2026-W60")
