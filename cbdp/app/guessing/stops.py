"""What the columns of a public file of stops seem to be. Its values are read: they are public."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cbdp.app.guessing import vocabulary
from cbdp.app.guessing.vocabulary import points, score, words_of
from cbdp.errors import InputError
from cbdp.features import places
from cbdp.untrusted import zip_member

STOP_ID = (
    points(vocabulary.SPOT - {"dock"}, 2)
    | points(("codigo", "code", "kode", "clave", "nummer", "numero", "codice"), 3)
    | {"id": 4, "number": 1}
)
NOT_STOP_ID = points(
    vocabulary.ZONE
    | vocabulary.NAME
    | vocabulary.DATE
    | vocabulary.NEVER
    | {"parent", "level", "count", "dock"},
    -20,
)
ZONE = points(vocabulary.ZONE, 5) | {
    "zone": 6,
    "zona": 6,
    "city": 4,
    "landmark": 4,
    "region": 4,
    "county": 3,
    "area": 3,
}


@dataclass(frozen=True)
class StopsGuess:
    """What is known of the stops."""

    number: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)  # id, name, lat, lon if called otherwise
    roles: Mapping[str, str] = field(
        default_factory=dict
    )  # all of these that the file has, whatever they are called
    zone: str | None = None
    zones: int = 0  # that this column tells apart
    located: bool = False  # they have coordinates
    timezone: str | None = None  # of a GTFS feed's agency
    known: frozenset[str] = frozenset()  # ids and names


def guess_stops(path: Path, columns: Mapping[str, str] | None = None, zone: str | None = None) -> StopsGuess:
    """GTFS, GBFS and GeoJSON have names of their own; of CSV the columns are guessed, unless they are known and there."""
    if path.is_dir() or path.suffix.lower() in (".txt", ".zip", ".geojson", ".json"):
        return _of_format(path)
    rows = places.table_rows(places.text_of(path), path)
    if not rows:
        raise InputError(f"{str(path)!r} holds no stops: give a file with a row for each stop")
    distinct = {name: {row[name] for row in rows} for name in rows[0]}
    found = _columns(path, distinct, len(rows))
    found |= {role: name for role, name in (columns or {}).items() if name in distinct}
    zones = [
        n
        for n in distinct
        if score(n, ZONE) and "" not in distinct[n] and 2 <= len(distinct[n]) <= len(rows) // 2
    ]
    if zone in zones:
        zones = [n for n in zones if n == zone]
    best = max(zones, key=lambda n: score(n, ZONE)) if zones else None
    return StopsGuess(
        len(rows),
        {role: name for role, name in found.items() if role != name},
        found,
        best,
        0 if best is None else len(distinct[best]),
        all(role in found and "" not in distinct[found[role]] for role in ("lat", "lon")),
        known=frozenset().union(*(distinct[found[r]] for r in ("id", "name") if r in found)) - {""},
    )


def _of_format(path: Path) -> StopsGuess:
    """GTFS, GBFS and GeoJSON. The fare zones of GTFS are zones where every stop has one and they group the stops."""
    read = places.stops(path)
    gtfs = path.suffix.lower() not in (".geojson", ".json")
    many = len(set(read.zone or ()))
    zoned = gtfs and 2 <= many <= len(read) // 2
    there = places.table_rows(places.text_of(path), path)[0] if gtfs else {}
    return StopsGuess(
        len(read),
        roles={role: name for role, name in places.GTFS.items() if role != "zone" and name in there},
        zone=places.GTFS["zone"] if zoned else None,
        zones=many if zoned else 0,
        located="nan" not in map(str, read.lat),
        timezone=_agency_zone(path),
        known=frozenset(map(str, (*read.ids, *read.names))),
    )


def _columns(path: Path, distinct: Mapping[str, set[str]], rows: int) -> dict[str, str]:
    """The columns of id, name and coordinates, from the distinct values of each column."""
    keys = [n for n in distinct if len(distinct[n]) == rows and "" not in distinct[n]]
    if not keys:
        meant = max(distinct, key=lambda n: score(n, STOP_ID, NOT_STOP_ID))
        twice = f" (column {meant!r} has {len(distinct[meant]):,} different values in {rows:,} rows)"
        raise InputError(
            f"no column of {str(path)!r} tells the stops apart{twice}: give each stop one row and an id of its own"
        )
    found = {"id": max(keys, key=lambda n: score(n, STOP_ID, NOT_STOP_ID))}
    roles = {"name": vocabulary.NAME, "lat": vocabulary.LATITUDE, "lon": vocabulary.LONGITUDE}
    for role, words in roles.items():
        fits = [n for n in distinct if set(words_of(n)) & words]
        if fits:
            found[role] = fits[0]
    return found


def _agency_zone(path: Path) -> str | None:
    """The time zone that a GTFS feed states, if its agencies agree on one."""
    try:
        if path.suffix.lower() == ".zip":
            text = (zip_member(path, "agency.txt") or b"").decode("utf-8-sig")
        else:
            folder = path if path.is_dir() else path.parent
            text = (folder / "agency.txt").read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError, InputError):
        return None
    zones = {(row.get("agency_timezone") or "").strip() for row in csv.DictReader(io.StringIO(text))} - {""}
    return zones.pop() if len(zones) == 1 else None
