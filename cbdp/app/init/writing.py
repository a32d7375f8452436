"""A commented configuration for the user's files, to be read and edited. No row of the trips is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cbdp.app.config.choices import UNKNOWN, formats
from cbdp.app.guessing import Guess, count_like
from cbdp.app.init.places import place_dimensions, place_roles, place_tables
from cbdp.app.init.texts import (
    ABOUT,
    DATA,
    DATE_FORMATS,
    EDIT,
    ENOUGH,
    FEATURES,
    HEAD,
    MECHANISM,
    OTHERS,
    PRESET,
    PRIVACY,
    STOP_TABLES,
    TIME_FORMATS,
    UNIVERSE,
    UNIVERSE_OF_TAPS,
    inline,
    listed,
    quoted,
)
from cbdp.app.plan.features import STOPS_TOLD
from cbdp.app.presets.base import Preset

TIMES = (
    'time = { start = "00:00", end = "24:00", every = "1h" }  # rows at other times are left out',
    '# days = ["weekday", "saturday", "sunday"]  # without it all days are added up; or { first = "2026-03-02", last = "2026-03-08" }',
)
DAYS = (
    'days = ["weekday", "saturday", "sunday"]  # there are dates and no times; or { first = "2026-03-02", last = "2026-03-08" }',
)
OWN_ROWS = "it is not counted. To count both, give each its own rows, and a column that tells which it is"
PERIODS = 24  # of the day, as it is begun with
GENERIC = {
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
class Start:
    """What a configuration is begun with."""

    trips: tuple[str, ...]  # as they are written
    stops: str | None
    found: Guess
    preset: Preset | None = None


def _name(trips: Sequence[str]) -> str:
    """A name for the data set: of the file or table, or of its folder where every file is called so."""
    first = trips[0].rpartition("::")[2] if "://" in trips[0] else trips[0]
    path = Path(first).absolute()
    stem = path.name.partition(".")[0].strip("*?-_ ") or path.parent.name
    return (
        path.parent.name if stem.lower() in GENERIC and "://" not in trips[0] and path.parent.name else stem
    )


def render(start: Start) -> str:
    found = start.found
    sections = [
        HEAD,
        *([] if found.places else [PRESET]),
        "\n".join(_data(start)),
        "\n".join(_universe(found)),
        _privacy(start),
        ABOUT,
        ENOUGH,
        *([place_tables(found)] if found.places else [STOP_TABLES.rstrip()] if _tells_stops(found) else []),
        FEATURES.format(
            by=quoted("location" if found.places else "origin")
            + ', "day"' * found.daily
            + ', "time"' * (not found.daily)
        ),
        MECHANISM,
        _output(),
    ]
    return "\n\n".join(sections) + "\n"


def _data(start: Start) -> list[str]:
    found, preset = start.found, start.preset
    lines = [
        DATA,
        f'trips = {listed(start.trips)}  # a file, a list of files, a pattern, or a table: "duckdb:///city.db::trips"',
        f"id = {quoted(_name(start.trips))}  # a public name for these rows, in the account and in the release: keep it as long as they are the same",
    ]
    if preset is not None:
        lines.append(f"preset = {quoted(preset.name)}  # {preset.follows}: {preset.about}")
        guessed = "columns" if found.linked else "# columns"
        lines.append(
            f"{guessed} = {inline(found.columns)}  # {'guessed by their names' if found.linked else 'as the preset finds them'}"
        )
    else:
        lines.append(_columns(place_roles(found) if found.places else found.columns, found.places))
    if found.others:
        lines.append(f"{OTHERS}{', '.join(' '.join(n.split()) for n in found.others)}")
    lines += [f"# {name!r} looks like counts too: {OWN_ROWS}" for name in _more_counts(found)]
    lines += _stops(start)
    lines += _time_lines(start)
    return [
        *lines,
        f"# expected_trips = 100000  # {_expected(found)}; a round number that anybody may know. `check` then says what the noise means, and `release` stops if there are many more or fewer",
    ]


def _more_counts(found: Guess) -> list[str]:
    """Further columns that seem to be counts, as of those who board and those who alight: a row has one count."""
    import pyarrow as pa

    return [n for n in found.others if "count" in found.columns and count_like(n, pa.int64())]


def _expected(found: Guess) -> str:
    """What `expected_trips` is in a file of this kind."""
    what = "taps" if found.places else "trips"
    if "count" in found.columns:
        return f"roughly how many {what} all counts add up to"
    linked = " (a tap-on and its tap-off are one trip)" if found.linked else ""
    return f"roughly how many {what} there are{linked}"


def _columns(guessed: Mapping[str, str], places: bool) -> str:
    when = "day" if "day" in guessed and "time" not in guessed else "time"
    needed = ("location", when) if places else ("origin", "destination", when)
    roles = {role: guessed.get(role, UNKNOWN) for role in needed}
    roles |= {role: guessed[role] for role in ("tap", "day", "person", "count") if role in guessed}
    missing = [role for role, column in roles.items() if column == UNKNOWN]
    said = "guessed by their names"
    if "count" in roles:
        said += f"; count: a row stands for that many {'taps' if places else 'trips'}"
    edit = f"EDIT: the column of {', '.join(missing)}" if missing else said
    return f"columns = {inline(roles)}  # {edit}"


def _stops(start: Start) -> list[str]:
    found = start.found.stops
    if start.stops is None:
        hint = start.preset.hint if start.preset is not None and start.preset.hint else ""
        what = hint or "a public list of all stops (CSV, GTFS or GeoJSON), used or not"
        return [
            f'stops = "stops.csv"  # EDIT: {what}',
            '# stop_columns = { id = "stop_id", name = "stop_name", lat = "lat", lon = "lon" }',
        ]
    named = [f"stop_columns = {inline(found.columns)}"] if found.columns else []
    return [f"stops = {quoted(start.stops)}", *named]


def _time_lines(start: Start) -> list[str]:
    """How times are written, and in which zone. A schema cannot tell how text is written: candidates are comments."""
    found, preset = start.found, start.preset
    lines = []
    if found.formats:
        lines.append(f"time_format = {listed(found.formats)}  # how times are written")
    elif found.text_times:
        lines.append(
            "# How are times written? Like 2026-01-31 08:14 they need no line. Otherwise one of these, or a list of several:"
        )
        offered = DATE_FORMATS if "day" in found.columns else TIME_FORMATS
        lines += [f"# time_format = {quoted(form)}  # {looks}" for form, looks in offered.items()]
    zone = found.stops.timezone
    if preset is not None and preset.local:
        return lines
    if found.zoned_times and zone is not None:
        return [*lines, f"timezone = {quoted(zone)}  # of agency.txt; times are converted to it"]
    said = (
        "EDIT: yours; otherwise times count in their own zone, often UTC"
        if found.zoned_times
        else "if times are in UTC, or end in Z or in an offset like +00:00: without it `release` then stops"
        if found.text_times
        else "if times are in UTC"
    )
    return [*lines, f"# timezone = {quoted(zone or 'America/Los_Angeles')}  # {said}"]


def _universe(found: Guess) -> list[str]:
    stops = found.stops
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
    every = UNIVERSE_OF_TAPS if found.places else UNIVERSE
    if found.daily:
        every = every.replace("in every period", "on every kind of day").replace(" at 8", " on Sundays")
    return [
        every,
        *(DAYS if found.daily else TIMES),
        *([zones, place_dimensions(found)] if found.places else trips),
    ]


def _tells_stops(found: Guess) -> bool:
    """Whether stops get tables of their own: beside zones (without, the preset adds them), where all trip types can be listed."""
    stops = found.stops
    return (stops.zone is not None or stops.located) and 0 < stops.number**2 * PERIODS <= STOPS_TOLD


def _privacy(start: Start) -> str:
    person = quoted(start.found.columns.get("person", "card_id"))
    daily = ', per = "day"' * bool({"time", "day"} & set(start.found.columns))
    unit = (
        f'unit = "trip"           # {EDIT} {start.found.columns.get("person")!r} seems to tell people apart: to hide them, write '
        f"{{ person = {person}, max_trips = 4{daily} }}; to hide each trip on its own, delete this note"
    )
    if "person" not in start.found.columns:
        unit = 'unit = "trip"           # hides each trip; no column of cards or persons was found'
        if start.found.possible:
            named = quoted(start.found.possible[0])
            unit = (
                f'unit = "trip"           # {EDIT} {", ".join(map(repr, start.found.possible[:3]))} may tell people apart: if so, write '
                f"{{ person = {named}, max_trips = 4{daily} }}; if not, delete this note"
            )
    if start.found.places and (
        "count" in start.found.columns or ("person" not in start.found.columns and not start.found.possible)
    ):
        unit = 'unit = "trip"           # each tap is protected on its own: for a trip with two taps epsilon counts twice'
    elif "count" in start.found.columns:
        unit = 'unit = "trip"           # counts name no persons: each trip is protected on its own'
    elif start.found.linked or (start.found.places and "person" in start.found.columns):
        unit = f'unit = {{ person = {person}, max_trips = 4, per = "day" }}  # hides all that a person did on any one day; or "trip"'
    elif start.preset is not None and start.preset.persons:
        unit = f'unit = {{ person = {person}, max_trips = 4 }}  # hides whether a person travelled at all; or "trip"'
    return "\n".join(
        [
            PRIVACY,
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


def _output() -> str:
    others = ", ".join(name for name in formats().table if name != "csv")
    return f"""\
[output]
path = "release"        # a folder that does not exist yet
confidence = 0.9        # of the intervals
# export = ["csv"]      # also: {others}
# noise_bound = 0.5     # `check` warns of tables whose average count may be off by more than this part"""
