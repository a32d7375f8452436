"""`cbdp inspect`: it names the cause of what is misread; and a release of such a table stops with nothing spent."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import misread
import pyarrow as pa
import pytest
from misread import STOPS, write_config, write_counts, write_stops, write_trips
from pyarrow import parquet

import cbdp
from cbdp.app import cli
from cbdp.app.inspecting import reading_of
from cbdp.config import read
from cbdp.counting.diagnosis import causes_of
from cbdp.counting.reading import Cause, look
from cbdp.ledger import Ledger
from cbdp.text import INTERNAL_WARNING

Captured = pytest.CaptureFixture[str]
BY_STOP = 'origin = "from_stop", destination = "to_stop", time = "left_at"'


def iso(moment: dt.datetime) -> str:
    return moment.isoformat(" ")


def written(form: str) -> Callable[[dt.datetime], str]:
    return lambda moment: moment.strftime(form)


def _counts_as_trips(folder: Path) -> None:
    write_counts(folder, 'origin = "from", destination = "to", time = "hour"')


def _counts_by_date(folder: Path) -> None:
    write_counts(folder, 'origin = "from", destination = "to", time = "date"')


def _half_of_the_stops(folder: Path) -> None:
    write_trips(folder, iso)
    write_stops(folder, STOPS[::2])


def _empty(folder: Path) -> None:
    write_trips(folder, iso, rows=0)


def _wrong_column(folder: Path) -> None:
    write_trips(folder, iso)
    write_config(folder, BY_STOP.replace('"from_stop"', '"card"'))


# name → how it is made, what `inspect` calls the cause, what it says to do
MISREAD = {
    "metro counts as trips": (
        _counts_as_trips,
        "column 'count' looks like a number of trips, but each row counts as one trip",
        'columns = { count = "count" } as well as the others: 1,500 rows then stand for 21,786 trips',
    ),
    "metro counts by date": (
        _counts_by_date,
        "column 'date' holds dates without a time of day",
        'columns = { origin = "from", destination = "to", time = "hour", count = "count" }: 1,500 rows then stand for 21,786',
    ),
    "day first": (
        lambda f: write_trips(f, written("%d/%m/%Y %H:%M")),
        "times in column 'left_at' are not understood; they look like 99/99/9999 99:99",
        'write time_format = "%d/%m/%Y %H:%M": 2,000 of 2,000 rows then count',
    ),
    "AM and PM": (
        lambda f: write_trips(f, written("%m/%d/%Y %I:%M:%S %p")),
        "they look like 99/99/9999 99:99:99 AM",
        'write time_format = "%m/%d/%Y %I:%M:%S %p": 2,000 of 2,000 rows then count',
    ),
    "mixed formats": (
        lambda f: write_trips(f, [iso, iso, written("%d/%m/%Y %H:%M")]),
        "times in column 'left_at' are not understood",
        'write time_format = ["iso", "%d/%m/%Y %H:%M"]: 2,000 of 2,000 rows then count',
    ),
    "half of the stops": (
        _half_of_the_stops,
        "10 stop ids in column 'from_stop' are not in 'stops.csv'",
        "add these stops to the file",
    ),
    "an empty file": (_empty, "trips.csv' holds no rows", "check that the export is complete"),
    "a wrong column": (
        _wrong_column,
        "column 'card' does not hold values of 'origin', but column 'from_stop' does",
        'columns = { origin = "from_stop" }',
    ),
}


def causes(folder: Path) -> tuple[Cause, ...]:
    reading = reading_of(read(folder / "cbdp.toml"))
    return causes_of(reading, look(reading))


def test_a_column_that_is_right_where_it_stands_is_not_offered_for_another(tmp_path: Path) -> None:
    """Stop ids from 1 to 9 could be hours: the format of the times is the cause, and not that columns are swapped."""
    write_stops(tmp_path, range(1, 10))
    rows = (f"{1 + n % 9},{1 + n % 7},{13 + n % 15}/03/2020 08:{n % 60:02d},card{n}" for n in range(400))
    (tmp_path / "trips.csv").write_text("\n".join(["from_stop,to_stop,left_at,card", *rows]) + "\n")
    write_config(tmp_path, BY_STOP)
    found = causes(tmp_path)
    assert "time_format" in found[0].cure
    assert not any("swapped" in cause.cure for cause in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", MISREAD)
def test_inspect_names_the_cause_and_release_stops_before_the_charge(
    name: str, tmp_path: Path, capsys: Captured
) -> None:
    """The cause and its cure stand under the mark; the release ends with code 2, and no file appears, no ledger either."""
    make, cause, cure = MISREAD[name]
    make(tmp_path)
    before = sorted(tmp_path.iterdir())
    config = str(tmp_path / "cbdp.toml")
    assert cli.main(["inspect", config]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(INTERNAL_WARNING + "\n")
    assert shown.endswith(INTERNAL_WARNING + "\n")
    said = " ".join(shown.split())
    assert cause in said
    assert cure in said
    assert cli.main(["release", config, "--create-ledger"]) == 2
    told = capsys.readouterr()
    assert not told.out
    last = told.err.splitlines()[-1]
    assert "Nothing was spent" in last
    assert f"cbdp inspect {config}" in last
    assert "--accept-dropped" in last
    assert sorted(tmp_path.iterdir()) == before


def test_ids_with_a_fraction_are_read_exactly(tmp_path: Path, capsys: Captured) -> None:
    """The eighth table, ids like 289.0, is not misread any more: "289.0", 289.0, 289 and "289" are one stop."""
    write_trips(tmp_path, iso, stop=lambda s: f"{s}.0")
    found = look(reading_of(read(tmp_path / "cbdp.toml")))
    assert (found.read, found.counted) == (2000, 2000)
    wanted = dict(found.by["origin"])
    table = {"from_stop": [o for o, _ in misread.pairs(2000)], "to_stop": [d for _, d in misread.pairs(2000)]}
    for kind in (pa.int64(), pa.float64(), pa.int16()):
        columns = {name: pa.array(values, kind) for name, values in table.items()}
        parquet.write_table(
            pa.table({**columns, "left_at": misread.moments(2000)}), tmp_path / "trips.parquet"
        )
        text = (tmp_path / "cbdp.toml").read_text().replace("trips.csv", "trips.parquet")
        (tmp_path / "other.toml").write_text(text)
        found = look(reading_of(read(tmp_path / "other.toml")))
        assert {str(stop): trips for stop, trips in found.by["origin"]} == wanted
    assert cli.main(["release", str(tmp_path / "cbdp.toml"), "--create-ledger"]) == 0
    assert "counted 2,000 of 2,000 rows (private: for you alone)" in capsys.readouterr().err


def test_what_was_misread_can_be_released_all_the_same(tmp_path: Path, capsys: Captured) -> None:
    """--accept-dropped is the curator's word; the charge is made."""
    _half_of_the_stops(tmp_path)
    assert cli.main(["release", str(tmp_path / "cbdp.toml"), "--create-ledger", "--accept-dropped"]) == 0
    with Ledger.view(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.spent.epsilon == 1


@pytest.mark.slow
def test_a_stop_says_nothing_of_any_single_row(tmp_path: Path, capsys: Captured) -> None:
    """What a release says may end up in logs: no cell is quoted there, only by `inspect`."""
    write_trips(tmp_path, written("%d/%m/%Y %H:%M"))
    cells = set((tmp_path / "trips.csv").read_text().replace("\n", ",").split(",")[4:]) - {""}
    cli.main(["release", str(tmp_path / "cbdp.toml"), "--create-ledger"])
    told = capsys.readouterr().err
    assert not [cell for cell in cells if len(cell) > 3 and cell in told]
    cli.main(["inspect", str(tmp_path / "cbdp.toml")])
    shown = capsys.readouterr().out
    assert [cell for cell in cells if len(cell) > 3 and cell in shown]


# Day first or month first


@pytest.mark.slow
@pytest.mark.parametrize("form", ["%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"])
def test_which_of_day_and_month_stands_first_is_told_by_the_days_above_12(form: str, tmp_path: Path) -> None:
    """All of March tells them apart."""
    write_trips(tmp_path, written(form))
    assert f'write time_format = "{form}": 2,000 of 2,000 rows then count' in causes(tmp_path)[0].cure


@pytest.mark.slow
def test_days_up_to_12_may_be_months_and_both_ways_are_told(tmp_path: Path) -> None:
    """With the dates that each way would mean: the curator knows which is right."""
    write_trips(tmp_path, lambda t: t.replace(day=t.day % 12 + 1).strftime("%d/%m/%Y %H:%M"))
    cure = causes(tmp_path)[0].cure
    assert 'time_format = "%d/%m/%Y %H:%M": the trips are then from 2020-03-01 to 2020-03-12' in cure
    assert 'time_format = "%m/%d/%Y %H:%M": the trips are then from 2020-01-03 to 2020-12-03' in cure


def test_a_declared_format_with_day_and_month_swapped_is_replaced(tmp_path: Path) -> None:
    """The wrong one is not kept beside the right one: it would read days up to 12 as months."""
    write_trips(tmp_path, written("%d/%m/%Y %H:%M"))
    write_config(tmp_path, BY_STOP, 'time_format = "%m/%d/%Y %H:%M"')
    found = look(reading_of(read(tmp_path / "cbdp.toml")))
    assert 0 < found.counted < found.read
    assert 'write time_format = "%d/%m/%Y %H:%M": 2,000 of 2,000 rows then count' in causes(tmp_path)[0].cure


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stamp", "cure"),
    [
        (lambda t: str(int(t.replace(tzinfo=dt.UTC).timestamp())), 'time_format = "epoch_s"'),
        (lambda t: str(1000 * int(t.replace(tzinfo=dt.UTC).timestamp())), 'time_format = "epoch_ms"'),
        (written("%d.%m.%y %H:%M"), 'time_format = "%d.%m.%y %H:%M"'),
        (written("%d-%b-%Y %I:%M %p"), 'time_format = "%d-%b-%Y %I:%M %p"'),
        (written("%Y%m%d%H%M%S"), 'time_format = "%Y%m%d%H%M%S"'),
        (lambda t: f"{t.hour}:00-{t.hour + 1}:00", "keep the time at which each range begins"),
        (lambda t: "soon", "state how they are written"),
    ],
    ids=["seconds", "milliseconds", "dots", "months by name", "digits", "ranges", "nonsense"],
)
def test_times_of_all_kinds(stamp: Callable[[dt.datetime], str], cure: str, tmp_path: Path) -> None:
    """What is proposed was tried on all rows."""
    write_trips(tmp_path, stamp, rows=300)
    found = causes(tmp_path)[0].cure
    assert cure in found
    assert "time_format" not in cure or "300 of 300 rows then count" in found


def test_hours_up_to_24_are_told(tmp_path: Path) -> None:
    """Hour 24 is of no day."""
    write_counts(tmp_path, 'origin = "from", destination = "to", time = "hour", count = "count"')
    lines = (tmp_path / "trips.csv").read_text().replace(",23,", ",24,").replace(",8,", ",24,")
    (tmp_path / "trips.csv").write_text(lines)
    assert "hours run from 0 to 23" in causes(tmp_path)[0].cure


# Stops


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stop", "what"),
    [
        (lambda s: f"Stop {s} Street", "holds the names of stops, not their ids"),
        (lambda s: f"0{s}", "differ from those in the stops file by leading zeros"),
        (lambda s: f" {s}", "differ from those in the stops file by spaces around them"),
    ],
    ids=["names", "zeros", "spaces"],
)
def test_stops_that_are_written_otherwise(stop: Callable[[int], str], what: str, tmp_path: Path) -> None:
    """The difference is named once for each column."""
    write_trips(tmp_path, iso, stop=stop, rows=300)
    assert sum(what in cause.what for cause in causes(tmp_path)) == 2


# Other oddities


def test_times_in_utc_are_suspected_by_the_quiet_hours(tmp_path: Path) -> None:
    """A city that sleeps from ten to two in the afternoon lives elsewhere; with a time zone nothing is said."""
    write_trips(tmp_path, lambda t: iso(t + dt.timedelta(hours=11)))
    (cause,) = causes(tmp_path)
    assert "times may be in UTC" in cause.what
    assert "timezone = " in cause.cure
    write_config(tmp_path, BY_STOP, 'timezone = "Pacific/Honolulu"')
    assert causes(tmp_path) == ()


def test_counts_that_are_no_numbers_are_shown(tmp_path: Path) -> None:
    """Suppressed small counts are dropped, and told."""
    write_counts(tmp_path, 'origin = "from", destination = "to", time = "hour", count = "count"')
    lines = (tmp_path / "trips.csv").read_text().splitlines()
    (tmp_path / "trips.csv").write_text("\n".join(line + "<5" * (n % 2) for n, line in enumerate(lines)))
    cause = next(c for c in causes(tmp_path) if "not whole numbers" in c.what)
    assert cause.rows == 750
    assert any("<5" in text for text in cause.shown)


def test_counts_that_are_rarely_wrong_or_empty_are_shown(tmp_path: Path) -> None:
    """One count with a comma among many others, and three empty ones: each is told with its rows."""
    write_counts(tmp_path, 'origin = "from", destination = "to", time = "hour", count = "count"')
    head, *lines = (tmp_path / "trips.csv").read_text().splitlines()
    rows = [line.rpartition(",")[0] + f",{n + 1}" for n, line in enumerate(lines)]
    rows[3] = rows[3].rpartition(",")[0] + ',"1,234"'
    rows[5:8] = [row.rpartition(",")[0] + "," for row in rows[5:8]]
    (tmp_path / "trips.csv").write_text("\n".join([head, *rows]))
    cause = next(c for c in causes(tmp_path) if "not whole numbers" in c.what)
    assert cause.rows == 4
    assert cause.shown == ("'1,234' in 1 row", "an empty cell in 3 rows")


def test_a_person_column_that_holds_no_persons(tmp_path: Path) -> None:
    """Trip ids, stop ids and kinds of persons are told from persons."""
    write_trips(tmp_path, iso)
    lines = (tmp_path / "trips.csv").read_text().splitlines()
    body = [f"{line},t{n},{'adult' if n % 3 else 'child'}" for n, line in enumerate(lines[1:])]
    (tmp_path / "trips.csv").write_text("\n".join([lines[0] + ",ride,category", *body]) + "\n")
    for column, what in (
        ("ride", "may be the id of a trip"),
        ("from_stop", "stated as the person, holds stop ids"),
        ("category", "may hold kinds of persons"),
        ("card", None),
    ):
        text = write_config(tmp_path, BY_STOP).read_text()
        (tmp_path / "cbdp.toml").write_text(text + f'unit = {{ person = "{column}", max_trips = 2 }}\n')
        found = [cause.what for cause in causes(tmp_path)]
        assert [what in said for said in found] == ([True] if what else [])


def test_files_that_are_named_twice_are_counted_once_and_told(tmp_path: Path, capsys: Captured) -> None:
    """By `inspect`, and by a release on its way."""
    write_trips(tmp_path, iso, rows=300)
    (tmp_path / "again.csv").symlink_to(tmp_path / "trips.csv")
    text = (tmp_path / "cbdp.toml").read_text().replace('"trips.csv"', '["trips.csv", "again.csv"]')
    (tmp_path / "cbdp.toml").write_text(text)
    assert cli.main(["inspect", str(tmp_path / "cbdp.toml")]) == 0
    shown = capsys.readouterr().out
    assert "300 rows read, 300 counted" in shown
    assert "again.csv' is a file that is there already: it is counted once" in shown


def test_rows_that_are_no_rows_are_counted_as_such(tmp_path: Path) -> None:
    """A field too many, a quote that does not close: malformed, and nothing else is said of them."""
    write_trips(tmp_path, iso, rows=100)
    with (tmp_path / "trips.csv").open("a") as out:
        out.write('1,2,3,4,5\n"open,1,2,3\n')
    (cause,) = causes(tmp_path)
    assert cause.what.startswith("2 rows have more or fewer fields")


def test_persons_are_shown_with_what_each_bound_would_drop(tmp_path: Path, capsys: Captured) -> None:
    """2,000 trips of 700 cards, two or three each."""
    file = write_trips(tmp_path, iso)
    file.write_text(file.read_text() + 'unit = { person = "card", max_trips = 2 }\n')
    assert cli.main(["inspect", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "700 persons with 2,000 trips" in shown
    rows = {line.split()[0]: line.split()[1] for line in shown.splitlines() if line.strip().endswith("%")}
    assert rows["1"] == "1,300"
    assert rows["2"] == "600"
    assert rows["3"] == "0"
    assert cli.main(["release", str(file), "--create-ledger"]) == 0
    told = capsys.readouterr().err
    assert "counted 2,000 of 2,000 rows, of which 1,400 are kept with at most 2 of each person" in told


def test_inspect_needs_no_budget(tmp_path: Path, capsys: Captured) -> None:
    """Neither a ledger nor room in it: it spends nothing, and can be run after the release as well."""
    file = write_trips(tmp_path, iso, rows=300)
    file.write_text(file.read_text().replace("cap = 2.0", "cap = 1.0"))
    assert cli.main(["release", str(file), "--create-ledger"]) == 0
    file.write_text(file.read_text().replace("[universe]", "[universe]\norigin_is_destination = false"))
    assert cli.main(["check", str(file)]) == 2
    assert cli.main(["inspect", str(file)]) == 0
    assert "300 rows read" in capsys.readouterr().out


# Files


def test_an_inspection_is_written_only_where_it_says_what_it_is(tmp_path: Path, capsys: Captured) -> None:
    """Marked by its name, outside any release, as text or as a page; both say the same."""
    file = str(write_trips(tmp_path, iso, rows=300))
    assert cli.main(["release", file, "--create-ledger"]) == 0
    capsys.readouterr()
    for place, why in (
        ("inspection.txt", "must contain 'internal'"),
        ("release/internal.txt", "lies in the release"),
        ("release/features/internal.html", "lies in the release"),
    ):
        assert cli.main(["inspect", file, "--out", str(tmp_path / place)]) == 2
        assert why in capsys.readouterr().err
        assert not (tmp_path / place).exists()
    for name in ("internal.txt", "internal.html"):
        assert cli.main(["inspect", file, "--out", str(tmp_path / name)]) == 0
        assert capsys.readouterr().out == f"{INTERNAL_WARNING}\n{tmp_path / name}\n"
    text = (tmp_path / "internal.txt").read_text(encoding="utf-8")
    html = (tmp_path / "internal.html").read_text(encoding="utf-8")
    assert cli.main(["inspect", file]) == 0
    assert capsys.readouterr().out == text
    assert text.count(INTERNAL_WARNING) == html.count(INTERNAL_WARNING) == 2
    for line in text.splitlines():
        assert line.strip().replace("'", "&#x27;") in html.replace(
            "\u00a0", " "
        )  # a page ties signs to numbers


# Tables of counts


COUNTS = """\
data = { trips = "trips.csv", id = "metro", stops = "stops.csv", columns = { origin = "from", destination = "to", time = "hour", count = "count" } }
universe.time = { start = "00:00", end = "24:00", every = "1h" }
privacy.epsilon = 8
preset = "odmts"
"""


def test_a_table_of_counts_is_released_with_four_lines(tmp_path: Path, capsys: Captured) -> None:
    """With its total, not its number of rows."""
    total = write_counts(tmp_path, "")
    (tmp_path / "cbdp.toml").write_text(COUNTS)
    assert len(COUNTS.splitlines()) == 4
    assert cli.main(["check", str(tmp_path / "cbdp.toml")]) == 0
    assert cli.main(["release", str(tmp_path / "cbdp.toml"), "--create-ledger"]) == 0
    assert f"counted 1,500 of 1,500 rows, {total:,} of {total:,} trips" in capsys.readouterr().err
    assert abs(cbdp.load(tmp_path / "release").total - total) < 60


@pytest.mark.slow
def test_counts_that_mostly_do_not_count_stop_by_rows_and_by_trips(tmp_path: Path, capsys: Captured) -> None:
    """Few rows of great weight outside, or many of none."""
    write_counts(tmp_path, "")
    (tmp_path / "cbdp.toml").write_text(COUNTS)
    lines = (tmp_path / "trips.csv").read_text()
    (tmp_path / "trips.csv").write_text(lines + "2020-03-01,8,100,nowhere,1000000\n")
    assert cli.main(["release", str(tmp_path / "cbdp.toml"), "--create-ledger"]) == 2
    assert "only 21,786 of 1,021,786 trips would count" in capsys.readouterr().err
    (tmp_path / "trips.csv").write_text(lines + "2020-03-01,8,100,nowhere,0\n" * 1501)
    assert cli.main(["release", str(tmp_path / "cbdp.toml"), "--create-ledger"]) == 2
    assert "only 1,500 of 3,001 rows would count" in capsys.readouterr().err


def test_counts_of_persons_are_refused_at_check(tmp_path: Path, capsys: Captured) -> None:
    """A count names nobody."""
    write_counts(tmp_path, "")
    text = COUNTS.replace(
        "privacy.epsilon = 8", 'privacy = { epsilon = 8, unit = { person = "from", max_trips = 2 } }'
    )
    (tmp_path / "cbdp.toml").write_text(text)
    assert cli.main(["check", str(tmp_path / "cbdp.toml")]) == 2
    assert "which name no persons" in capsys.readouterr().err


def test_check_warns_of_a_column_that_looks_like_counts(tmp_path: Path, capsys: Captured) -> None:
    """By its name alone: no row is read."""
    _counts_as_trips(tmp_path)
    assert cli.main(["check", str(tmp_path / "cbdp.toml")]) == 0
    assert "column 'count' looks like a number of trips" in " ".join(capsys.readouterr().out.split())
