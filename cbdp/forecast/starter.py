"""A commented configuration for the user's files: its fixed texts, how values are written in it, and what is said about it. No row of the trips is read."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cbdp.config.guessing import ACTION_ROLE, STOP_ROLE, Guess, Preset, count_like, guess_stops
from cbdp.config.sections import UNKNOWN_COLUMN, format_parts
from cbdp.forecast.inputs import MAX_TYPES_WITH_STOP_TABLES

EDIT_MARK = "EDIT:"  # marks what could not be guessed
OTHER_COLUMNS = "# other columns of the trips: "

HEAD_TEXT = """\
# A configuration of cbdp. What stands behind a # is a note; to use a setting that stands in one, take away its #.
#   cbdp inspect THIS_FILE    shows you, and nobody else, how your rows are read: what counts, what does not, and why
#   cbdp check THIS_FILE      tells what would be released; spends nothing and reads no trip
#   cbdp release THIS_FILE    counts, spends and publishes
# Lines marked EDIT could not be guessed; correct them first. Paths are relative to this file."""

PRESET_TEXT = """\
# The usual tables of trips: by time, by zones and time (without zones by stop), by day and by mode if you add these below.
preset = "odmts\""""

DATA_TEXT = "# 1. Your files\n[data]"

UNIVERSE_TEXT = """\
# 2. What is counted: trips from every stop to every stop, in every period. "From A to B at 8" is one combination, or trip type;
# all of them together are the universe.
[universe]"""

UNIVERSE_OF_TAPS = """\
# 2. What is counted: taps at every stop, in every period. "At A at 8" is one combination; all of them together
# are the universe.
[universe]"""

PRIVACY_TEXT = "# 3. How it is protected\n[privacy]"

ABOUT_TEXT = """\
# 4. What the release says about itself, in its report and in every file. Public, and all of it optional
[about]
# title = "Bus trips in Ann Arbor"
# place = "Ann Arbor, Michigan"
# period = "March 2026"
# publisher = "Transportation Authority"
# licence = "CC BY 4.0"
# contact = "opendata@example.org\""""

MINIMAL_NOTE = f"""\
# {"-" * 70}
# You need not change anything below this line.
# {"-" * 70}"""

STOP_TABLES = """\
# Two more tables: boardings and alightings at every stop. If nobody reads them, delete both: the other tables then get more of epsilon.
[[feature]]
name = "origin"
by = ["origin"]

[[feature]]
name = "destination"
by = ["destination"]
"""

FEATURES_TEXT = """\
# Further tables, each with a name and what it groups by. Each takes a share of epsilon from the others:
# [[feature]]
# name = "departures"
# by = [{by}]"""

MECHANISM_TEXT = """\
# How the published counts are worked out from the noisy ones.
[mechanism]
name = "constraint-based"
preset = "best"            # or "paper": as it was first published, with equal shares of epsilon
# rounding = "nearest"     # or "few": on few trip types, for simulations of single riders
# prior = "boardings.csv"  # if there are public numbers of how busy stops are (columns stop and weight): they help small counts
solver = "newton"          # the program that does it"""

# how times are often written, with how each looks
TIME_FORMATS = {
    "%d/%m/%Y %H:%M": "31/01/2026 08:14, the day first",
    "%m/%d/%Y %H:%M": "01/31/2026 08:14, the month first",
    "%m/%d/%Y %I:%M:%S %p": "01/31/2026 08:14:00 AM",
    "%d.%m.%Y %H:%M": "31.01.2026 08:14",
    "epoch_s": "1769847240, seconds since 1970; epoch_ms: thousandths",
}
DATE_FORMATS = {
    "%d/%m/%Y": "31/01/2026, the day first",
    "%m/%d/%Y": "01/31/2026, the month first",
    "%Y%m%d": "20260131",
}


def quoted(text: str) -> str:
    """A text in quotes, as TOML has it."""
    return json.dumps(text, ensure_ascii=False)


def inline(table: Mapping[str, str]) -> str:
    """A table in one line."""
    return "{ " + ", ".join(f"{key} = {quoted(value)}" for key, value in table.items()) + " }"


def listed(texts: Sequence[str]) -> str:
    """A text, or a list where there are several."""
    return quoted(texts[0]) if len(texts) == 1 else "[" + ", ".join(map(quoted, texts)) + "]"


# Taps that nothing links: counted by place and time instead of by trips


def place_roles(guess: Guess) -> dict[str, str]:
    """The columns of taps under the names of the dimensions: location, and tap for tap-ons and tap-offs."""
    names = {STOP_ROLE: "location", ACTION_ROLE: "tap"}
    return {names.get(role, role): column for role, column in guess.columns.items()}


def place_dimensions(guess: Guess) -> str:
    """The dimension of places, and that of tap-ons and tap-offs where a column tells them."""
    action = guess.columns.get(ACTION_ROLE)
    if action is None:
        return 'dimensions = { location = "stops" }  # each row has one place, not two'
    note = f'all that column {action!r} may hold; if your file has tap-ons only, write tap = ["on"]'
    return f'dimensions = {{ location = "stops", tap = ["on", "off"] }}  # {EDIT_MARK} {note}'


def place_tables(guess: Guess) -> str:
    """Tables by time (or day), by place, and where there are zones by zone and time."""
    tap = ["tap"] if ACTION_ROLE in guess.columns else []
    when = "day" if guess.daily else "time"
    tables = {when: [*tap, when], "location": [*tap, "location"]}
    if guess.stops.zone is not None or guess.stops.located:
        tables["zone"] = [*tap, "location.zone", when]
    features = [
        f"[[feature]]\nname = {quoted(name)}\nby = [{', '.join(map(quoted, by))}]"
        for name, by in tables.items()
    ]
    return "\n\n".join(
        [
            f"# The tables to publish, in addition to the total and the single counts by place and {when}.",
            *features,
        ]
    )


# The configuration, section by section


TIME_LINES = (
    'time = { start = "00:00", end = "24:00", every = "1h" }  # rows at other times are left out',
    '# days = ["weekday", "saturday", "sunday"]  # without it all days are added up; or { first = "2026-03-02", last = "2026-03-08" }',
)
DAY_LINES = (
    'days = ["weekday", "saturday", "sunday"]  # there are dates and no times; or { first = "2026-03-02", last = "2026-03-08" }',
)
SEPARATE_ROWS_CURE = (
    "it is not counted. To count both, give each its own rows, and a column that tells which it is"
)
PERIODS_OF_A_DAY = 24  # periods in the hours that the configuration begins with
GENERIC_FILE_NAMES = {
    "trips",
    "trip",
    "data",
    "rides",
    "journeys",
    "records",
    "taps",
    "counts",
    "od",
    "demand",
    "table",
    "rider_trip",
    "fare_transactions",
}


@dataclass(frozen=True)
class Starter:
    """What a configuration is begun with."""

    trips: tuple[str, ...]  # as they are written
    stops: str | None
    guess: Guess
    preset: Preset | None = None


def _dataset_name(trips: Sequence[str]) -> str:
    """A name for the data set: of the file or table, or of its folder where every file is called so."""
    first = trips[0].rpartition("::")[2] if "://" in trips[0] else trips[0]
    path = Path(first).absolute()
    stem = path.name.partition(".")[0].strip("*?-_ ") or path.parent.name
    return (
        path.parent.name
        if stem.lower() in GENERIC_FILE_NAMES and "://" not in trips[0] and path.parent.name
        else stem
    )


def render(start: Starter) -> str:
    guess = start.guess
    sections = [
        HEAD_TEXT,
        *([] if guess.places else [PRESET_TEXT]),
        "\n".join(_data_section(start)),
        "\n".join(_universe_section(guess)),
        _privacy_section(start),
        ABOUT_TEXT,
        MINIMAL_NOTE,
        *([place_tables(guess)] if guess.places else [STOP_TABLES.rstrip()] if _tells_stops(guess) else []),
        FEATURES_TEXT.format(
            by=quoted("location" if guess.places else "origin")
            + ', "day"' * guess.daily
            + ', "time"' * (not guess.daily)
        ),
        MECHANISM_TEXT,
        _output_section(),
    ]
    return "\n\n".join(sections) + "\n"


def _data_section(start: Starter) -> list[str]:
    guess, preset = start.guess, start.preset
    lines = [
        DATA_TEXT,
        f'trips = {listed(start.trips)}  # a file, a list of files, a pattern, or a table: "duckdb:///city.db::trips"',
        f"id = {quoted(_dataset_name(start.trips))}  # a public name for these rows, in the account and in the release: keep it as long as they are the same",
    ]
    if preset is not None:
        lines.append(f"preset = {quoted(preset.name)}  # {preset.follows}: {preset.about}")
        guessed = "columns" if guess.linked else "# columns"
        lines.append(
            f"{guessed} = {inline(guess.columns)}  # {'guessed by their names' if guess.linked else 'as the preset finds them'}"
        )
    else:
        lines.append(_columns_line(place_roles(guess) if guess.places else guess.columns, guess.places))
    if guess.others:
        lines.append(f"{OTHER_COLUMNS}{', '.join(' '.join(n.split()) for n in guess.others)}")
    lines += [
        f"# {name!r} looks like counts too: {SEPARATE_ROWS_CURE}" for name in _further_count_columns(guess)
    ]
    lines += _stops_lines(start)
    lines += _time_lines(start)
    return [
        *lines,
        f"# expected_trips = 100000  # {_expected_trips_meaning(guess)}; a round number that anybody may know. `check` then says what the noise means, and `release` stops if there are many more or fewer",
    ]


def _further_count_columns(guess: Guess) -> list[str]:
    """Further columns that seem to be counts, as of those who board and those who alight: a row has one count."""
    import pyarrow as pa

    return [n for n in guess.others if "count" in guess.columns and count_like(n, pa.int64())]


def _expected_trips_meaning(guess: Guess) -> str:
    """What `expected_trips` is in a file of this kind."""
    what = "taps" if guess.places else "trips"
    if "count" in guess.columns:
        return f"roughly how many {what} all counts add up to"
    linked = " (a tap-on and its tap-off are one trip)" if guess.linked else ""
    return f"roughly how many {what} there are{linked}"


def _columns_line(guessed: Mapping[str, str], places: bool) -> str:
    when = "day" if "day" in guessed and "time" not in guessed else "time"
    needed = ("location", when) if places else ("origin", "destination", when)
    roles = {role: guessed.get(role, UNKNOWN_COLUMN) for role in needed}
    roles |= {role: guessed[role] for role in ("tap", "day", "person", "count") if role in guessed}
    missing = [role for role, column in roles.items() if column == UNKNOWN_COLUMN]
    note = "guessed by their names"
    if "count" in roles:
        note += f"; count: a row stands for that many {'taps' if places else 'trips'}"
    edit = f"EDIT: the column of {', '.join(missing)}" if missing else note
    return f"columns = {inline(roles)}  # {edit}"


def _stops_lines(start: Starter) -> list[str]:
    stops = start.guess.stops
    if start.stops is None:
        hint = start.preset.hint if start.preset is not None and start.preset.hint else ""
        what = hint or "a public list of all stops (CSV, GTFS or GeoJSON), used or not"
        return [
            f'stops = "stops.csv"  # EDIT: {what}',
            '# stop_columns = { id = "stop_id", name = "stop_name", lat = "lat", lon = "lon" }',
        ]
    named = [f"stop_columns = {inline(stops.columns)}"] if stops.columns else []
    return [f"stops = {quoted(start.stops)}", *named]


def _time_lines(start: Starter) -> list[str]:
    """How times are written, and in which zone. A schema cannot tell how text is written: candidates are comments."""
    guess, preset = start.guess, start.preset
    lines = []
    if guess.formats:
        lines.append(f"time_format = {listed(guess.formats)}  # how times are written")
    elif guess.text_times:
        lines.append(
            "# How are times written? Like 2026-01-31 08:14 they need no line. Otherwise one of these, or a list of several:"
        )
        offered = DATE_FORMATS if "day" in guess.columns else TIME_FORMATS
        lines += [f"# time_format = {quoted(form)}  # {looks}" for form, looks in offered.items()]
    zone = guess.stops.timezone
    if preset is not None and preset.local:
        return lines
    if guess.zoned_times and zone is not None:
        return [*lines, f"timezone = {quoted(zone)}  # of agency.txt; times are converted to it"]
    note = (
        "EDIT: yours; otherwise times count in their own zone, often UTC"
        if guess.zoned_times
        else "if times are in UTC, or end in Z or in an offset like +00:00: without it `release` then stops"
        if guess.text_times
        else "if times are in UTC"
    )
    return [*lines, f"# timezone = {quoted(zone or 'America/Los_Angeles')}  # {note}"]


def _universe_section(guess: Guess) -> list[str]:
    stops = guess.stops
    if stops.zone is not None:
        zones = f'zones = {{ column = {quoted(stops.zone)} }}  # of the stops; or {{ balanced = 8 }}, or {{ polygons = "zones.geojson" }}'
    elif stops.located:
        many = max(1, min(8, stops.number // 4))
        zones = f"zones = {{ balanced = {many} }}  # made from the coordinates, with equally many stops in each zone"
    else:
        zones = '# zones = { column = "zone" }  # of the stops; with coordinates also { balanced = 8 }'
    trips = [
        "origin_is_destination = true  # false: no trip ends where it began; such trips are left out",
        zones,
        '# modes = { distance_km = [1, 2, 4] }  # to tell trips apart by distance; or { column = "mode", values = ["bus", "tram"] }',
        '# dimensions = { fare = ["adult", "child"] }  # to count by a further column, with all that it may hold',
    ]
    every = UNIVERSE_OF_TAPS if guess.places else UNIVERSE_TEXT
    if guess.daily:
        every = every.replace("in every period", "on every kind of day").replace(" at 8", " on Sundays")
    return [
        every,
        *(DAY_LINES if guess.daily else TIME_LINES),
        *([zones, place_dimensions(guess)] if guess.places else trips),
    ]


def _tells_stops(guess: Guess) -> bool:
    """Whether stops get tables of their own: beside zones (without, the preset adds them), where all trip types can be listed."""
    stops = guess.stops
    return (
        stops.zone is not None or stops.located
    ) and 0 < stops.number**2 * PERIODS_OF_A_DAY <= MAX_TYPES_WITH_STOP_TABLES


def _privacy_section(start: Starter) -> str:
    person = quoted(start.guess.columns.get("person", "card_id"))
    daily = ', per = "day"' * bool({"time", "day"} & set(start.guess.columns))
    unit = (
        f'unit = "trip"           # {EDIT_MARK} {start.guess.columns.get("person")!r} seems to tell people apart: to hide them, write '
        f"{{ person = {person}, max_trips = 4{daily} }}; to hide each trip on its own, delete this note"
    )
    if "person" not in start.guess.columns:
        unit = 'unit = "trip"           # hides each trip; no column of cards or persons was found'
        if start.guess.possible:
            named = quoted(start.guess.possible[0])
            unit = (
                f'unit = "trip"           # {EDIT_MARK} {", ".join(map(repr, start.guess.possible[:3]))} may tell people apart: if so, write '
                f"{{ person = {named}, max_trips = 4{daily} }}; if not, delete this note"
            )
    if start.guess.places and (
        "count" in start.guess.columns or ("person" not in start.guess.columns and not start.guess.possible)
    ):
        unit = 'unit = "trip"           # each tap is protected on its own: for a trip with two taps epsilon counts twice'
    elif "count" in start.guess.columns:
        unit = 'unit = "trip"           # counts name no persons: each trip is protected on its own'
    elif start.guess.linked or (start.guess.places and "person" in start.guess.columns):
        unit = f'unit = {{ person = {person}, max_trips = 4, per = "day" }}  # hides all that a person did on any one day; or "trip"'
    elif start.preset is not None and start.preset.persons:
        unit = f'unit = {{ person = {person}, max_trips = 4 }}  # hides whether a person travelled at all; or "trip"'
    return "\n".join(
        [
            PRIVACY_TEXT,
            "epsilon = 1.0           # of the whole release; smaller is more private and noisier",
            unit,
            'ledger = "ledger.sqlite"  # the account of what was spent on these rows',
            "cap = 2.0               # the most that may ever be spent on them: fixed when the ledger is created. Twice epsilon, for one retry: a run that",
            "                        # dies after it has paid (a power cut) stays paid, and another costs epsilon again. Riders are then promised 2.0 in the",
            "                        # worst case; with cap = 1.0 they are promised 1.0, and a run that dies so cannot be repeated",
            'budget = "balanced"     # shared so that all tables come out useful; `check` shows each one\'s share',
            "# target = { zone = 2, singleton = 1 }  # instead of budget: how much the error of each table matters to you",
            "# public = { total = 37714 }  # numbers that are public already: published as they are, at no cost",
        ]
    )


def _output_section() -> str:
    others = ", ".join(name for name in format_parts().table if name != "csv")
    return f"""\
[output]
path = "release"        # a folder that does not exist yet
confidence = 0.9        # of the intervals
# export = ["csv"]      # also: {others}
# noise_bound = 0.5     # `check` warns of tables whose average count may be off by more than this part"""


# What `cbdp init` prints


MAX_NAMED_COLUMNS = 8  # columns that a message names


def summary_lines(file: Path) -> list[str]:
    """What was understood, what is left to edit, and what comes next: for whoever ran `cbdp init`."""
    text = file.read_text("utf-8")
    written = tomllib.loads(text)
    columns = written["data"].get("columns", {})
    edit = [
        f"{line.strip('# ').partition(' ')[0]} in line {n}"
        for n, line in enumerate(text.splitlines(), 1)
        if EDIT_MARK in line.partition("#")[2]
    ]
    return [
        f"wrote {file} for a file of {_file_kind(columns)}",
        *([f"  {_role_line(columns)}"] if _role_line(columns) else []),
        *(
            f"  {line}"
            for line in ([] if _needs_edit(edit, "stops") else _stop_lines(written, file.absolute().parent))
        ),
        *(f"  {line}" for line in _protection_lines(written, text)),
        f"you have to edit, marked {EDIT_MARK} {', '.join(edit)}"
        if edit
        else "nothing has to be edited; look it over",
        f"next: cbdp inspect {file} (how the rows are read), then cbdp check {file}",
    ]


def _needs_edit(edit: list[str], key: str) -> bool:
    """Whether a setting is left to edit."""
    return any(line.startswith(f"{key} ") for line in edit)


def _file_kind(columns: Mapping[str, str]) -> str:
    if "action" in columns:
        return "taps, which are linked to trips"
    rows = "taps, which are counted by stop" if "location" in columns else "trips"
    return f"counts of {rows.partition(',')[0]}" if "count" in columns else rows


def _role_line(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{role} is {column!r}" for role, column in columns.items() if column != UNKNOWN_COLUMN)


def _protection_lines(written: Mapping[str, Any], text: str) -> list[str]:
    """Where each row is protected on its own although a column may tell people apart: nobody shall overlook it."""
    columns = written["data"].get("columns", {})
    if written["privacy"]["unit"] != "trip" or "count" in columns:
        return []
    row = "tap" if "location" in columns else "trip"
    line = re.search(r'^unit = "trip".*$', text, re.MULTILINE)
    proposal = None if line is None else re.search(r"# (EDIT:.*)?person = (\"[^\"]*\")", line[0])
    if line is not None and proposal is not None:
        sure = "seems to tell" if "seems to tell" in line[0] else "may tell"
        who = "people apart" if sure == "seems to tell" else "people apart; look at it"
        return [
            f"ATTENTION: column {proposal[2]} {sure} {who}, and each {row} is protected on its own: a person with many trips is not hidden",
            f'  to protect people, write unit = {{ person = {proposal[2]}, max_trips = 4, per = "day" }}',
        ]
    others = re.search(rf"^{OTHER_COLUMNS}(.*)$", text, re.MULTILINE)
    named = others[1].split(", ") if others else []
    if not named:
        return []
    shown = ", ".join(named[:MAX_NAMED_COLUMNS]) + (", …" if len(named) > MAX_NAMED_COLUMNS else "")
    return [
        f"each {row} is protected on its own; no column of cards or persons was found among {shown}",
        '  if one of them tells people apart, write unit = { person = "its name", max_trips = 4, per = "day" }',
    ]


def _stop_lines(written: Mapping[str, Any], folder: Path) -> list[str]:
    """What is read of the stops, and where their zones come from: a column that was taken by its name may be the wrong one."""
    data, zones = written["data"], written["universe"].get("zones", {})
    path = folder / data["stops"]
    stops = guess_stops(path, data.get("stop_columns"), zones.get("column"))
    columns = _role_line(stops.roles) or "ids, names and coordinates as the format has them"
    if "column" in zones:
        zone_line = f"zones: column {zones['column']!r} of the stops, {stops.zones} zones"
    elif "balanced" in zones:
        zone_line = f"zones: {zones['balanced']}, made from the coordinates; no column of zones was found"
    else:
        zone_line = "zones: none; no column of zones and no coordinates were found"
    return [f"of the {stops.number:,} stops, {columns}", zone_line]
