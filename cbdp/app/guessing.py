"""What the columns of a user's files seem to be, for `cbdp init`.

Of the trips only the schema is looked at (of CSV the first line), never a row. The stops are public and are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbdp.app.plan.trips import is_text, opened
from cbdp.errors import InputError
from cbdp.features import places

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
    stop_columns: Mapping[str, str] = field(default_factory=dict)  # id, name, lat, lon if called otherwise
    zone: str | None = None
    located: bool = False  # the stops have coordinates
    stops: int = 0
    text_times: bool = False  # times are text, so that their format may have to be stated
    zoned_times: bool = False  # times know their zone
    others: tuple[str, ...] = ()


def guess(trips: Sequence[str], stops: str | Path | None = None) -> Guess:
    """What the columns of the trips (by their names and types) and of the stops (by their values too) seem to be."""
    source = opened(trips[0] if len(trips) == 1 else list(trips))
    if not source.typed:
        _check_header(source.label, list(source.kinds))
    columns: dict[str, str] = {}
    for role, score in _ROLES.items():
        best = max(source.kinds, key=lambda name: score(name, source.kinds[name]), default=None)
        if best is not None and score(best, source.kinds[best]) > 0 and best not in columns.values():
            columns[role] = best
    kind = source.kinds.get(columns.get("time", ""))
    found = {} if stops is None else _guess_stops(Path(stops))
    return Guess(
        columns,
        text_times=kind is not None and is_text(kind),
        zoned_times=getattr(kind, "tz", None) is not None,
        others=tuple(name for name in source.kinds if name not in columns.values()),
        **found,
    )


def _check_header(label: str, names: Sequence[str]) -> None:
    """A first line without names is a private row: nothing of it may be repeated."""
    for name in names:
        if not re.search(r"[^\W\d_]", name) or re.search(r"\d[-/:.]\d", name):
            raise InputError(
                f"the first line of {label} does not look like column names: add a line with the names"
            )


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

    if pa.types.is_date(kind) or not (pa.types.is_temporal(kind) or is_text(kind)):
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
        return {"stops": len(read), "zone": None, "located": "nan" not in map(str, read.lat)}
    rows = places.table_rows(places.text_of(path), path)
    if not rows:
        raise InputError(f"{str(path)!r} holds no stops: give a file with a row for each stop")
    distinct = {name: {row[name] for row in rows} for name in rows[0]}
    found = _stop_columns(path, distinct, len(rows))
    zones = [
        n
        for n in distinct
        if _sum(n, ZONE) and "" not in distinct[n] and 2 <= len(distinct[n]) <= len(rows) // 2
    ]
    return {
        "stops": len(rows),
        "stop_columns": {role: name for role, name in found.items() if role != name},
        "zone": max(zones, key=lambda n: _sum(n, ZONE)) if zones else None,
        "located": all(role in found and "" not in distinct[found[role]] for role in ("lat", "lon")),
    }


def _stop_columns(path: Path, distinct: Mapping[str, set[str]], rows: int) -> dict[str, str]:
    """The columns of id, name and coordinates, from the distinct values of each column."""
    keys = [n for n in distinct if len(distinct[n]) == rows and "" not in distinct[n]]
    if not keys:
        raise InputError(f"no column of {str(path)!r} tells the stops apart: add one with an id for each")
    found = {"id": max(keys, key=lambda n: _sum(n, STOP_ID, NOT_STOP_ID))}
    roles = {"name": {"name"}, "lat": {"lat", "latitude"}, "lon": {"lon", "lng", "long", "longitude"}}
    for role, words in roles.items():
        fits = [n for n in distinct if _words(n) & words]
        if fits:
            found[role] = fits[0]
    return found
