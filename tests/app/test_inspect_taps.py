"""`cbdp inspect` on taps: how many became trips, what was left alone, and words that say neither on nor off."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbdp.app import cli, init
from cbdp.app.inspecting import reading_of
from cbdp.config import read
from cbdp.counting.diagnosis import causes_of
from cbdp.counting.reading import Cause, look
from cbdp.datasets import practice

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """Stops and a few taps: two trips, a tap-on without its end, and an end without its beginning."""
    (tmp_path / "stops.csv").write_text(practice.practice_files()["stops.csv"], "utf-8")
    taps(tmp_path, "on", "off")
    return tmp_path


def taps(folder: Path, on: str, off: str, *more: str) -> None:
    """Write taps with these words."""
    rows = [
        f"a,2026-03-02 08:00,S01,{on}", f"a,2026-03-02 08:20,S02,{off}", f"b,2026-03-03 09:00,S03,{on}",
        f"b,2026-03-03 09:30,S04,{off}", f"c,2026-03-04 07:00,S01,{on}", f"d,2026-03-05 07:00,S01,{off}", *more,
    ]  # fmt: skip
    (folder / "taps.csv").write_text("\n".join(["card,time,stop,tap", *rows]) + "\n", "utf-8")


def shown(town: Path, capsys: Captured, *changes: tuple[str, str]) -> str:
    """What `inspect` prints of the configuration that `init` writes, with these changes."""
    path = init.write(town / "cbdp.toml", town / "taps.csv", town / "stops.csv")
    text = path.read_text("utf-8")
    for old, new in changes:
        text = text.replace(old, new, 1)
    path.write_text(text, "utf-8")
    assert cli.main(["inspect", str(path)]) == 0
    return " ".join(capsys.readouterr().out.split())


def causes(town: Path) -> tuple[Cause, ...]:
    path = init.write(town / "cbdp.toml", town / "taps.csv", town / "stops.csv")
    reading = reading_of(read(path))
    return causes_of(reading, look(reading))


def test_taps_trips_and_what_is_left_alone_add_up(town: Path, capsys: Captured) -> None:
    """Dates first; then six taps, of which four are two trips."""
    said = shown(town, capsys)
    assert (
        "from 2026-03-02 to 2026-03-05 6 taps read: 3 tap-ons and 3 tap-offs 2 trips linked: a tap-on with the next tap-off of the "
        "same 'card' 2 taps left alone: 1 tap-on without a tap-off, 1 tap-off without a tap-on 2 of 2 trips counted (100.0 %)"
    ) in said


def test_unknown_words_are_shown_with_the_line_to_write(town: Path, capsys: Captured) -> None:
    """Both orders are tried; what a stopped release may say quotes no word of a row."""
    taps(town, "A", "B")
    (cause,) = causes(town)
    assert cause.shown == ("'A' in 3 rows", "'B' in 3 rows")
    assert cause.line == 'taps = { on = "A", off = "B" }: 2 trips then count (the other way round 0)'
    assert not {"A", "B"} & set((cause.what + " " + cause.cure).replace('"', " ").split())
    (town / "cbdp.toml").unlink()
    assert cause.line in shown(town, capsys)
    (town / "cbdp.toml").unlink()
    assert "2 of 2 trips counted" in shown(
        town, capsys, ("[data]\n", '[data]\ntaps = { on = "A", off = "B" }\n')
    )


def test_of_three_unknown_words_none_is_proposed(town: Path) -> None:
    """Which of them are taps, only the curator knows; at most eight are shown."""
    taps(town, "A", "B", *(f"e,2026-03-05 09:00,S01,word{n}" for n in range(9)))
    (cause,) = causes(town)
    assert cause.line == ""
    assert len(cause.shown) == 9
    assert cause.shown[-1] == "and 3 more"


def test_rows_that_are_no_taps_are_named(town: Path, capsys: Captured) -> None:
    """A third word beside on and off is left out, and that is said."""
    taps(town, "on", "off", "a,2026-03-02 08:10,S01,inspected", "b,2026-03-02 08:10,S01,inspected")
    said = shown(town, capsys)
    assert "6 taps read in 8 rows" in said
    assert "2 rows are neither tap-on nor tap-off by what stands in column 'tap', and are left out" in said
    assert "'inspected' in 2 rows" in said


def test_tap_ons_alone_lead_to_counts_by_stop(town: Path) -> None:
    """No trip can be linked, and init can write the other configuration."""
    lines = (town / "taps.csv").read_text("utf-8").splitlines()
    (town / "taps.csv").write_text("\n".join(line for line in lines if not line.endswith("off")) + "\n")
    (cause,) = causes(town)
    assert cause.what == "column 'tap' has no tap-off, so no trip can be linked"
    files = f"{town / 'taps.csv'} --stops {town / 'stops.csv'}"
    assert cause.cure == f"count taps by stop instead: cbdp init {files} --count-taps --out by-stop.toml"
    path = init.write(town / "by-stop.toml", town / "taps.csv", town / "stops.csv", count_taps=True)
    reading = reading_of(read(path))
    found = look(reading)
    assert found.counted == 3
    (empty,) = causes_of(reading, found)
    assert empty.what == "no row that counts holds 'off', which universe.dimensions lists for 'tap'"
    path.write_text(path.read_text("utf-8").replace('tap = ["on", "off"] }', 'tap = ["on"] }', 1), "utf-8")
    reading = reading_of(read(path))
    assert causes_of(reading, look(reading)) == ()


def test_times_that_are_not_understood_are_the_one_cause(town: Path, capsys: Captured) -> None:
    """Without times nothing can be linked: that is not told as if partners were missing."""
    text = (town / "taps.csv").read_text("utf-8").replace("2026-03-0", "0").replace(" 0", "/03/2026 0")
    text = text.replace("2 08", "02 08")
    (town / "taps.csv").write_text(text, "utf-8")
    said = shown(town, capsys)
    assert "6 taps left alone: their times are not understood" in said
    assert "have no tap-off of the same" not in said


@pytest.mark.parametrize(
    ("dates", "said"),
    [
        ("2026-03-02,2026-03-08", "from 2026-03-02 to 2026-03-08 "),
        ("20260302,20260308", 'from 2026-03-02 to 2026-03-08 (dates are read by time_format = "%Y%m%d": write it in [data] if you state universe.days)'),
        ("02/03/2026,08/03/2026", "the dates in column 'date' are not understood; they are needed only to tell days apart"),
    ],
)  # fmt: skip
def test_dates_are_told_although_days_are_added_up(
    dates: str, said: str, town: Path, capsys: Captured
) -> None:
    """Counts with a date and an hour: the count needs no dates, whoever looks at it does."""
    first, last = dates.split(",")
    (town / "taps.csv").write_text(f"date,hour,from,to,count\n{first},7,S01,S02,4\n{last},8,S02,S01,2\n")
    assert said in shown(town, capsys)


def test_a_file_without_dates_says_so(town: Path, capsys: Captured) -> None:
    (town / "taps.csv").write_text("hour,from,to,count\n7,S01,S02,4\n")
    assert "no dates: column 'hour' holds times of day alone." in shown(town, capsys)


def test_taps_without_a_card_and_second_taps_are_named_for_what_they_are(
    town: Path, capsys: Captured
) -> None:
    """No other column would help them, nor another unit: they cannot be linked."""
    more = [
        f"f{n},2026-03-06 0{hour}:00,S01,{word}" for n in range(20) for hour, word in ((7, "on"), (8, "off"))
    ]
    twice = [f"e,2026-03-06 07:0{n},S01,on" for n in (0, 1)]
    taps(town, "on", "off", ",2026-03-06 07:00,S01,on", *twice, *more)
    said = shown(town, capsys)
    assert "1 tap have" not in said
    assert (
        "1 tap has no value in 'card', so nobody can tell which taps belong together → they are left out"
        in said
    )
    assert "or the card tapped on twice" in said


def test_a_release_tells_trips_from_taps_that_are_part_of_none(town: Path, capsys: Captured) -> None:
    """Two trips and two single taps are four rows; the two trips count."""
    path = init.write(town / "cbdp.toml", town / "taps.csv", town / "stops.csv")
    assert cli.main(["release", str(path), "--create-ledger"]) == 0
    told = "counted 2 of 4 rows (a row is a trip, or a tap that is part of none), of which 2 are kept"
    assert told in capsys.readouterr().err
