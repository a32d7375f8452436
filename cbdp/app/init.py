"""What `cbdp init` writes: a commented configuration for the user's files, to be read and edited.

Of the trips only the schema is looked at (of CSV the first line), never a row. The stops are public and are read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbdp.errors import InputError
from cbdp.features import places
from cbdp.trips import sources as trips_io

GENERIC = {"trips", "trip", "data", "rides", "journeys", "records", "table"}

# What people call columns, in lower case; a column's score for a role is the sum over its words.
START = dict.fromkeys(
    ("origin", "orig", "o", "from", "start", "pickup", "pu", "board", "boarding", "entry", "departure"), 4
)
END = dict.fromkeys(
    ("destination", "dest", "d", "to", "end", "dropoff", "do", "alight", "alighting", "exit", "arrival"), 4
)
PLACE = {"id": 2, "code": 2, "terminal": 2, "stop": 1, "station": 1, "location": 1, "zone": 1, "name": -1}
MOMENT = dict.fromkeys(("time", "date", "datetime", "timestamp", "at", "ts", "hour"), 4)
NEVER = dict.fromkeys(("duration", "created", "updated", "type", "kind", "count"), -20)
COORDINATE = dict.fromkeys(("lat", "lon", "lng", "long", "latitude", "longitude", "x", "y"), -20)
PERSON = dict.fromkeys(
    ("person", "user", "rider", "card", "customer", "member", "passenger", "account", "device", "traveller"),
    4,
)
STOP_ID = {"id": 4, "code": 3, "stop": 2, "station": 2, "terminal": 2, "number": 1}
NOT_STOP_ID = dict.fromkeys(("parent", "zone", "level", "date", "count", "dock", "name"), -20)
ZONE = {"zone": 6, "district": 5, "city": 4, "landmark": 4, "region": 4, "borough": 4, "county": 3, "area": 3}


@dataclass(frozen=True)
class Guess:
    """What the columns seem to be: role → column. A role that nothing fits is not there."""

    columns: Mapping[str, str]  # origin, destination, time, person
    stop_columns: Mapping[str, str] = field(
        default_factory=dict
    )  # id, name, lat, lon where they are not called so
    zone: str | None = None
    located: bool = False  # the stops have coordinates
    stops: int = 0
    text_times: bool = False  # times are text, so that their format may have to be stated
    zoned_times: bool = False  # times know their zone
    others: tuple[str, ...] = ()


def write(
    path: str | Path, trips: str | Path | Sequence[str | Path], stops: str | Path | None = None
) -> Path:
    """Write a configuration for these files; one that is there is left alone."""
    file = Path(path)
    text = starter(trips, stops, file.absolute().parent)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise InputError(
            f"{str(file)!r} exists already: choose another name, it is not overwritten"
        ) from None
    except OSError as wrong:
        raise InputError(
            f"{str(file)!r} cannot be written ({wrong.strerror}): choose another place"
        ) from None
    return file


def starter(
    trips: str | Path | Sequence[str | Path], stops: str | Path | None = None, folder: Path | None = None
) -> str:
    """The text of a configuration in this folder."""
    listed = [trips] if isinstance(trips, str | Path) else list(trips)
    if not listed:
        raise InputError("there are no trips: name at least one file")
    return _render(
        [_relative(t, folder) for t in listed],
        None if stops is None else _relative(stops, folder),
        guess([str(t) for t in listed], stops),
    )


def guess(trips: Sequence[str], stops: str | Path | None = None) -> Guess:
    """What the columns of the trips (by their names and types) and of the stops (by their values too) seem to be."""
    with trips_io.duck() as engine, trips_io.reading("the trips"):
        source = trips_io.open_source(engine, trips[0] if len(trips) == 1 else list(trips), ())
    if not source.typed:
        _check_header(source)
    columns: dict[str, str] = {}
    for role, score in _ROLES.items():
        best = max(source.kinds, key=lambda name: score(name, source.kinds[name]), default=None)
        if best is not None and score(best, source.kinds[best]) > 0 and best not in columns.values():
            columns[role] = best
    kind = source.kinds.get(columns.get("time", ""))
    found = {} if stops is None else _guess_stops(Path(stops))
    return Guess(
        columns,
        text_times=kind is not None and trips_io.is_text(trips_io.plain_kind(kind)),
        zoned_times=getattr(kind, "tz", None) is not None,
        others=tuple(name for name in source.kinds if name not in columns.values()),
        **found,
    )


def _check_header(source: trips_io.Source) -> None:
    """A first line without names is a private row: nothing of it may be repeated."""
    for name in source.kinds:
        if not re.search(r"[^\W\d_]", name) or re.search(r"\d[-/:.]\d", name):
            raise InputError(
                f"the first line of {source.label} does not look like names of columns: add such a line"
            )


# Guessing


def _words(name: str) -> set[str]:
    """The words of a column's name.

    >>> sorted(_words("startStation_ID"))
    ['id', 'start', 'station']
    """
    return {w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def _sum(name: str, *tables: Mapping[str, int]) -> int:
    words = _words(name)
    return sum(table.get(word, 0) for table in tables for word in words)


def _place(side: Mapping[str, int], other: Mapping[str, int]) -> Callable[[str, Any], int]:
    def score(name: str, kind: Any) -> int:
        import pyarrow as pa

        if pa.types.is_temporal(kind) or not _sum(name, side) or _sum(name, MOMENT):
            return 0
        fraction = 2 if pa.types.is_floating(kind) else 0
        return _sum(name, side, PLACE, NEVER, COORDINATE) - _sum(name, other) - fraction

    return score


def _time(name: str, kind: Any) -> int:
    import pyarrow as pa

    if pa.types.is_date(kind) or not (
        pa.types.is_temporal(kind) or trips_io.is_text(trips_io.plain_kind(kind))
    ):
        return 0
    stamped = 5 if pa.types.is_temporal(kind) else 0
    named = _sum(name, MOMENT)
    side = _sum(name, START) // 2 - _sum(name, END)
    return stamped + named + side + _sum(name, NEVER) if stamped or named else 0


def _person(name: str, kind: Any) -> int:  # noqa: ARG001
    """A person's id is called so and nothing else: `member_casual` or `user_type` are kinds of persons."""
    kinds = _words(name) - set(PERSON) - {"id", "hash", "key", "number", "no", "uuid"}
    return 0 if kinds else _sum(name, PERSON) + ("id" in _words(name))


_ROLES: Mapping[str, Callable[[str, Any], int]] = {
    "origin": _place(START, END),
    "destination": _place(END, START),
    "time": _time,
    "person": _person,
}


def _guess_stops(path: Path) -> dict[str, Any]:
    """The columns of a public file of stops. GTFS and GeoJSON have names of their own."""
    if path.is_dir() or path.suffix.lower() in (".txt", ".zip", ".geojson", ".json"):
        read = places.stops(path)
        return {
            "stops": len(read),
            "zone": None,
            "located": not bool(set(map(str, read.lat)) & {"nan"}),
        }
    rows = places.table_rows(places.text_of(path), path)
    if not rows:
        raise InputError(f"{str(path)!r} holds no stops")
    names = list(rows[0])
    distinct = {n: {row[n] for row in rows} for n in names}
    keys = [n for n in names if len(distinct[n]) == len(rows) and "" not in distinct[n]]
    if not keys:
        raise InputError(f"no column of {str(path)!r} tells the stops apart: add one with an id for each")
    found = {"id": max(keys, key=lambda n: _sum(n, STOP_ID, NOT_STOP_ID))}
    for role, words in (
        ("name", {"name"}),
        ("lat", {"lat", "latitude"}),
        ("lon", {"lon", "lng", "long", "longitude"}),
    ):
        fits = [n for n in names if _words(n) & words]
        if fits:
            found[role] = fits[0]
    zones = [
        n
        for n in names
        if _sum(n, ZONE) and "" not in distinct[n] and 2 <= len(distinct[n]) <= len(rows) // 2
    ]
    located = all(role in found and "" not in distinct[found[role]] for role in ("lat", "lon"))
    return {
        "stops": len(rows),
        "stop_columns": {role: name for role, name in found.items() if role != name},
        "zone": max(zones, key=lambda n: _sum(n, ZONE)) if zones else None,
        "located": located,
    }


# Writing


def _relative(given: str | Path, folder: Path | None) -> str:
    """A path as the configuration's folder sees it; one that was given in full stays so, and a URL as well."""
    if "://" in str(given) or folder is None or Path(given).is_absolute():
        return str(given)
    return Path(os.path.relpath(given, folder)).as_posix()


def _name(trips: Sequence[str]) -> str:
    """A name for the data set: of the file or table, or of its folder where every file is called so."""
    first = trips[0].rpartition("::")[2] if "://" in trips[0] else trips[0]
    path = Path(first).absolute()
    stem = path.name.partition(".")[0].strip("*?-_ ") or path.parent.name
    return (
        path.parent.name if stem.lower() in GENERIC and "://" not in trips[0] and path.parent.name else stem
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _inline(table: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{key} = {_quoted(value)}" for key, value in table.items()) + " }"


def _render(trips: Sequence[str], stops: str | None, found: Guess) -> str:
    return "\n".join(
        [
            "# A configuration of cbdp. Read it, edit it, then:",
            "#   cbdp check THIS_FILE      says what would be released; spends nothing and reads no trip",
            "#   cbdp release THIS_FILE    counts, spends, publishes",
            "# Lines marked EDIT could not be guessed. Paths are relative to this file.",
            "",
            'preset = "odmts"  # tables by time, by zone pair and time, and by mode and time, as far as zones and modes are there',
            "",
            *_data(trips, stops, found),
            "",
            *_universe(found),
            "",
            *_features(),
            "",
            *_privacy(found),
            "",
            "[mechanism]",
            'name = "constraint-based"',
            'preset = "best"         # "paper": as it was published, with ε shared evenly and least squares alone',
            '# estimator = "posterior"  # or "projection", which weighs by weights = "size"',
            '# rounding = "few"       # trip types that carry the whole trips; "nearest": as close to the estimate as can be',
            '# prior = "boardings.csv"  # public weights (columns stop and weight): where trips are to be expected',
            'solver = "newton"',
            "",
            "[output]",
            'path = "release"        # a folder that does not exist yet',
            "confidence = 0.9        # of the intervals",
            '# export = ["csv"]       # also: omx, geojson, matsim, sumo, xarray',
            "# noise_bound = 0.5      # `check` warns of tables whose expected relative noise is above this",
            "",
        ]
    )


def _data(trips: Sequence[str], stops: str | None, found: Guess) -> list[str]:
    given = _quoted(trips[0]) if len(trips) == 1 else "[" + ", ".join(map(_quoted, trips)) + "]"
    roles = {role: found.columns.get(role, "?") for role in ("origin", "destination", "time")}
    if "person" in found.columns:
        roles["person"] = found.columns["person"]
    missing = [role for role, column in roles.items() if column == "?"]
    edit = f"  # EDIT: the column of {', '.join(missing)}" if missing else "  # guessed by their names"
    lines = [
        "[data]",
        f'trips = {given}  # a file, a list of files, a pattern, or a table: "duckdb:///city.db::trips"',
        f"id = {_quoted(_name(trips))}  # the data set's name in the ledger: keep it as long as the trips are the same",
        f"columns = {_inline(roles)}{edit}",
    ]
    if found.others:
        lines.append(f"# other columns of the trips: {', '.join(' '.join(n.split()) for n in found.others)}")
    if stops is None:
        lines.append(
            'stops = "stops.csv"  # EDIT: a public list of all stops (CSV, GTFS or GeoJSON), used or not'
        )
        lines.append('# stop_columns = { id = "stop_id", name = "stop_name", lat = "lat", lon = "lon" }')
    else:
        lines.append(f"stops = {_quoted(stops)}")
        if found.stop_columns:
            lines.append(f"stop_columns = {_inline(found.stop_columns)}")
    if found.text_times:
        lines.append(
            '# time_format = "%m/%d/%Y %H:%M"  # if times are written like 8/29/2013 14:13; without: 2013-08-29 14:13'
        )
    zone = (
        "the times know their zone: name yours, or they count in theirs"
        if found.zoned_times
        else "if times are in UTC"
    )
    lines.append(f'# timezone = "America/Los_Angeles"  # {zone}')
    lines.append(
        "# expected_trips = 100000  # a public order of magnitude: `check` then knows what errors to expect"
    )
    lines.append(
        "# expected_filled = 0.05   # a public guess of the share of trip types that have any trips, likewise"
    )
    return lines


def _universe(found: Guess) -> list[str]:
    lines = [
        "[universe]",
        'time = { start = "00:00", end = "24:00", every = "1h" }  # trips at other times are left out',
        '# days = ["weekday", "saturday", "sunday"]  # or { first = "2026-03-02", last = "2026-03-08" }: a dimension `day`',
        "origin_is_destination = true  # false: no trip ends where it began, and such trips are left out",
    ]
    clusters = f"zones = {{ clusters = {max(1, min(8, found.stops // 4))} }}  # compact zones made of the coordinates"
    if found.zone is not None:
        lines.append(
            f'zones = {{ column = {_quoted(found.zone)} }}  # or {{ clusters = 8 }}, or {{ polygons = "zones.geojson" }}'
        )
    elif found.located:
        lines.append(clusters)
    else:
        lines.append(
            '# zones = { column = "zone" }  # or { clusters = 8 }, or { polygons = "zones.geojson" }'
        )
    lines.append(
        '# modes = { distance_km = [1, 2, 4] }  # or { table = "pairs.csv" }, or { column = "mode", values = ["bus"] }'
    )
    lines.append(
        '# dimensions = { fare = ["adult", "child"] }  # further columns to count by, with all their values'
    )
    return lines


def _features() -> list[str]:
    return [
        "# Further tables, each a name and what it groups by:",
        "# [[feature]]",
        '# name = "departures"',
        '# by = ["origin", "time"]',
    ]


def _privacy(found: Guess) -> list[str]:
    person = found.columns.get("person", "card_id")
    return [
        "[privacy]",
        "epsilon = 1.0           # of the whole release; smaller is more private and noisier",
        f'unit = "trip"           # or {{ person = {_quoted(person)}, max_trips = 4 }}: whether a person travelled at all',
        'budget = "balanced"     # what epsilon is spent on; also "leaves" (single trip types), "tables", "uniform", "geometric",',
        "                        # or { total = 0.1, … } with every table; `check` says what each would do",
        "# target = { singleton = 1, zone = 2 }  # instead of budget: how much the error of each table matters",
        'ledger = "ledger.sqlite"',
        "cap = 1.0               # the most this data set may ever spend: fixed when the ledger is created",
    ]
