"""What the columns of a user's files are by a data preset, or seem to be by their names, for `cbdp init`.

Of the trips only the schema is looked at (of CSV the first line), never a row. The stops are public and are read.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cbdp.config import vocabulary
from cbdp.config.vocabulary import (
    FILLER,
    MANY,
    ONE,
    SUMS,
    may_name_person,
    names_person,
    points,
    score,
    words_of,
)
from cbdp.errors import InputError
from cbdp.untrusted import zip_member
from cbdp_features import places

if TYPE_CHECKING:
    import pyarrow as pa


# Data presets: the columns of a published specification, how its times are written, and what makes its rows trips

ColumnsByRole = Mapping[str, str]


@dataclass(frozen=True)
class Preset:
    """How files of one specification are read. All of it is public, and nothing of it is guessed from rows.

    `columns` are roles with the names that the specification gave them over time: the first that a file has is meant. Roles are
    dimensions, `person`, `count`, and whatever `prepare` asks for; those in `optional` may be absent. `prepare` makes a
    preparation of the columns that were found (role → column) and the declared time formats. The columns of what that makes
    are in `yields`; None stands for the column as it was.
    """

    name: str
    about: str
    follows: str  # the specification and its version
    columns: Mapping[str, tuple[str, ...]]
    optional: frozenset[str] = frozenset()
    time_format: tuple[str, ...] = ()
    prepare: Callable[[ColumnsByRole, tuple[str, ...]], object | None] | None = None
    yields: Mapping[str, str | None] = field(default_factory=dict)
    local: bool = True  # times are the clock's on the wall; False: instants, which a time zone must place
    persons: bool = False  # a starting configuration protects persons
    stop_columns: ColumnsByRole = field(
        default_factory=dict
    )  # what the stops' columns are called in the file that goes with it
    zone: str | None = None  # the stops' column of zones
    hint: str = ""  # what to give as --stops


@dataclass(frozen=True)
class PresetColumns:
    """A preset applied to a file: its columns, and what is done before counting."""

    columns: ColumnsByRole  # role → column of what is counted
    formats: tuple[str, ...] = ()
    preparation: object | None = None  # of `cbdp.counting`: it reads rows, and only its name is known here
    raw: ColumnsByRole = field(default_factory=dict)  # role → column of the file


def apply_preset(
    preset: Preset,
    there: Mapping[str, object],
    stated: ColumnsByRole | None = None,
    formats: tuple[str, ...] = (),
) -> PresetColumns:
    """The preset for a file with the columns `there`; columns and formats that a configuration states go first."""
    settled = dict(stated or {})
    for role, names in preset.columns.items():
        fits = [n for n in names if n in there]
        if role in settled:
            continue
        if fits:
            settled[role] = fits[0]
        elif role not in preset.optional:
            listed = " or ".join(repr(n) for n in names)
            raise InputError(
                f"the preset {preset.name!r} ({preset.follows}) looks for {role} in the column {listed}, which is not there: "
                f"write columns = {{ {role} = … }} with its name in your file"
            )
    declared = formats or preset.time_format
    preparation = None if preset.prepare is None else preset.prepare(settled, declared)
    if preparation is None:
        return PresetColumns(settled, declared, None, settled)
    columns = {role: new or settled[role] for role, new in preset.yields.items() if new or role in settled}
    left = () if "time" in columns and columns["time"] not in there else declared  # made by us, in ISO 8601
    return PresetColumns(columns, left, preparation, settled)


# Guesses, by the names and types of columns


class Columns(Protocol):
    """Names and types of the columns of a file or table; no row."""

    @property
    def kinds(self) -> Mapping[str, pa.DataType]: ...
    @property
    def typed(self) -> bool: ...
    @property
    def label(self) -> str: ...


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type holds text, however it is stored."""
    import pyarrow as pa

    while isinstance(kind, pa.BaseExtensionType) or pa.types.is_dictionary(kind):
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind.storage_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def count_like(name: str, kind: pa.DataType, *, aggregated: bool = False) -> bool:
    """Whether a column seems to hold numbers of trips, by its name and type."""
    import pyarrow as pa

    if pa.types.is_temporal(kind) or pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        return False
    words = words_of(name)
    rest = {w for w in words if w not in FILLER}
    if not rest:
        return words in (["n"], ["num"]) or (aggregated and words == ["total"])
    count_words = MANY | ONE | (SUMS if aggregated else set())
    return rest <= count_words and bool(rest & (MANY | (SUMS if aggregated else set())))


# Headers: the first line of a CSV file may be a private row, and then nothing of it may be repeated


_VALUE_PATTERNS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"[\W\d_]+",  # no letter at all: numbers, "289.0", "12:30"
        r".*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*",  # a date
        r".*\d{1,2}:\d{2}.*",  # a time
        r".*\b(am|pm)\b.*",
        r"[a-z]{0,3}[-_ ]?\d+[a-z]?",  # an id: S1, A17, ST-04
        r"(?=.*\d)[0-9a-f]{8,}",  # a hash
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        r".*@.*",
        r"true|false|null|none|nan|n/?a|yes|no",
        r".{61,}",
    )
]


def looks_like_a_value(cell: str) -> bool:
    """Whether a cell of a first line is rather a value than a column's name.

    >>> [looks_like_a_value(c) for c in ("289.0", "S1", "01/03/2020 00:14", "Start Date", "Bike #", "")]
    [True, True, True, False, False, False]
    """
    text = cell.strip()
    digits, letters = sum(c.isdigit() for c in text), sum(c.isalpha() for c in text)
    return bool(text) and (digits > max(letters, 3) or any(p.fullmatch(text) for p in _VALUE_PATTERNS))


def check_header(source: Columns, public: Iterable[str] = ()) -> None:
    """Refuse a CSV file whose first line may be a private row: nothing of it may be repeated, not even here.

    It may be one if any cell looks like a value, or is the id or the name of a stop.
    """
    if source.typed:
        return
    names, stops = list(source.kinds), set(public)
    for place, name in enumerate(names, 1):
        if looks_like_a_value(name) or name.strip() in stops:
            raise InputError(
                f"the first line of {source.label} does not look like column names (field {place} looks like a value): "
                "add a line with the names, or give that column a name in words"
            )


# Stops: a public file, whose values are read


STOP_ID_SCORES = (
    points(vocabulary.SPOT - {"dock"}, 2)
    | points(("codigo", "code", "kode", "clave", "nummer", "numero", "codice"), 3)
    | {"id": 4, "number": 1}
)
UNFIT_STOP_ID_SCORES = points(
    vocabulary.ZONE
    | vocabulary.NAME
    | vocabulary.DATE
    | vocabulary.NEVER
    | {"parent", "level", "count", "dock"},
    -20,
)
ZONE_SCORES = points(vocabulary.ZONE, 5) | {
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
    ids_and_names: frozenset[str] = frozenset()


def guess_stops(path: Path, columns: Mapping[str, str] | None = None, zone: str | None = None) -> StopsGuess:
    """GTFS, GBFS and GeoJSON have names of their own; of CSV the columns are guessed, unless they are known and there."""
    if path.is_dir() or path.suffix.lower() in (".txt", ".zip", ".geojson", ".json"):
        return _of_format(path)
    rows = places.table_rows(places.stops_text(path), path)
    if not rows:
        raise InputError(f"{str(path)!r} holds no stops: give a file with a row for each stop")
    distinct = {name: {row[name] for row in rows} for name in rows[0]}
    roles = _stop_columns(path, distinct, len(rows))
    roles |= {role: name for role, name in (columns or {}).items() if name in distinct}
    zones = [
        n
        for n in distinct
        if score(n, ZONE_SCORES) and "" not in distinct[n] and 2 <= len(distinct[n]) <= len(rows) // 2
    ]
    if zone in zones:
        zones = [n for n in zones if n == zone]
    best = max(zones, key=lambda n: score(n, ZONE_SCORES)) if zones else None
    return StopsGuess(
        len(rows),
        {role: name for role, name in roles.items() if role != name},
        roles,
        best,
        0 if best is None else len(distinct[best]),
        all(role in roles and "" not in distinct[roles[role]] for role in ("lat", "lon")),
        ids_and_names=frozenset().union(*(distinct[roles[r]] for r in ("id", "name") if r in roles)) - {""},
    )


def _of_format(path: Path) -> StopsGuess:
    """GTFS, GBFS and GeoJSON. The fare zones of GTFS are zones where every stop has one and they group the stops."""
    read = places.stops(path)
    gtfs = path.suffix.lower() not in (".geojson", ".json")
    many = len(set(read.zone or ()))
    zoned = gtfs and 2 <= many <= len(read) // 2
    there = places.table_rows(places.stops_text(path), path)[0] if gtfs else {}
    return StopsGuess(
        len(read),
        roles={role: name for role, name in places.GTFS_COLUMNS.items() if role != "zone" and name in there},
        zone=places.GTFS_COLUMNS["zone"] if zoned else None,
        zones=many if zoned else 0,
        located="nan" not in map(str, read.lat),
        timezone=_agency_zone(path),
        ids_and_names=frozenset(map(str, (*read.ids, *read.names))),
    )


def _stop_columns(path: Path, distinct: Mapping[str, set[str]], rows: int) -> dict[str, str]:
    """The columns of id, name and coordinates, from the distinct values of each column."""
    keys = [n for n in distinct if len(distinct[n]) == rows and "" not in distinct[n]]
    if not keys:
        meant = max(distinct, key=lambda n: score(n, STOP_ID_SCORES, UNFIT_STOP_ID_SCORES))
        twice = f" (column {meant!r} has {len(distinct[meant]):,} different values in {rows:,} rows)"
        raise InputError(
            f"no column of {str(path)!r} tells the stops apart{twice}: give each stop one row and an id of its own"
        )
    columns = {"id": max(keys, key=lambda n: score(n, STOP_ID_SCORES, UNFIT_STOP_ID_SCORES))}
    roles = {"name": vocabulary.NAME, "lat": vocabulary.LATITUDE, "lon": vocabulary.LONGITUDE}
    for role, words in roles.items():
        fits = [n for n in distinct if set(words_of(n)) & words]
        if fits:
            columns[role] = fits[0]
    return columns


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


# Taps: rows with one place instead of an origin and a destination


STOP_ROLE, ACTION_ROLE = "stop", "action"
TAP_PLACE_SCORES = (
    points(vocabulary.SPOT, 4) | points(vocabulary.NAME, -1) | {"id": 2, "code": 2, "codigo": 2, "kode": 2}
)
UNFIT_TAP_PLACE_SCORES = points(
    vocabulary.COORDINATE | {"type", "kind", "count", "tipo", "typ", "jenis"}, -20
)
TAP_ACTION_SCORES = points(vocabulary.TAP, 4)
CARD_ACTION_SCORES = points(vocabulary.TAP_WITH_CARDS, 2) | {
    "direction": 4,
    "io": 4,
    "sentido": 4,
    "sens": 4,
    "richtung": 4,
    "arah": 4,
}
UNFIT_ACTION_SCORES = points(
    vocabulary.SPOT
    | vocabulary.MOMENT
    | vocabulary.HOUR
    | vocabulary.DATE
    | {"id", "count", "number", "numero", "nummer"},
    -20,
)


def tap_columns(source: Columns, taken: Mapping[str, str]) -> dict[str, str]:
    """The column of the one place, and of what was done there if there is one; nothing where no place is named.

    `taken` are the roles that are found already. Without a time or a date among them, the first line of a file may as well be a private row.
    """
    place = _best_free_column(source, taken, _tap_place_score) if {"time", "day"} & set(taken) else None
    if place is None:
        return {}
    action = _best_free_column(source, {**taken, STOP_ROLE: place}, _tap_action_score)
    if action is None and "person" in taken:  # of cards, other names can hardly mean anything else
        action = _best_free_column(source, {**taken, STOP_ROLE: place}, _card_action_score)
    return {STOP_ROLE: place} if action is None else {STOP_ROLE: place, ACTION_ROLE: action}


def _best_free_column(
    source: Columns, taken: Mapping[str, str], fits: Callable[[str, pa.DataType], int]
) -> str | None:
    free = [name for name in source.kinds if name not in taken.values()]
    best = max(free, key=lambda name: fits(name, source.kinds[name]), default=None)
    return best if best is not None and fits(best, source.kinds[best]) > 0 else None


def _tap_place_score(name: str, kind: pa.DataType) -> int:
    import pyarrow as pa

    named = bool(set(words_of(name)) & {word for word, points in TAP_PLACE_SCORES.items() if points == 4})
    return (
        score(name, TAP_PLACE_SCORES, UNFIT_TAP_PLACE_SCORES)
        if named and not pa.types.is_temporal(kind)
        else 0
    )


def _card_action_score(name: str, kind: pa.DataType) -> int:
    import pyarrow as pa

    unfit = pa.types.is_temporal(kind) or pa.types.is_floating(kind)
    return 0 if unfit else score(name, CARD_ACTION_SCORES, UNFIT_ACTION_SCORES)


def _tap_action_score(name: str, kind: pa.DataType) -> int:
    import pyarrow as pa

    if pa.types.is_temporal(kind) or pa.types.is_floating(kind):
        return 0
    words = set(words_of(name))
    return score(name, TAP_ACTION_SCORES, UNFIT_ACTION_SCORES) + 4 * any(
        both <= words for both in vocabulary.TAP_PAIRS
    )


# Trips: columns by their names and types


# points of words; a column's score for a role is the sum over its words
TRIP_END_SCORES = {
    "origin": (points(vocabulary.START, 4), points(vocabulary.TAPPED_ON, 4)),
    "destination": (points(vocabulary.END, 4), points(vocabulary.TAPPED_OFF, 4)),
}
PLACE_SCORES = (
    points(vocabulary.SPOT | vocabulary.ZONE, 1)
    | points(vocabulary.NAME, -1)
    | {"id": 2, "code": 2, "codigo": 2, "kode": 2, "terminal": 2}
)
MOMENT_SCORES = points(vocabulary.EPOCH | vocabulary.MOMENT, 4)
HOUR_SCORES, DATE_SCORES, EPOCH_SCORES = (
    points(w, 4) for w in (vocabulary.HOUR, vocabulary.DATE, vocabulary.EPOCH)
)
DATE_ONLY_WORDS = vocabulary.DATE | {
    "service",
    "calendar",
    "travel",
    "operating",
}  # "Start Date" may hold a time, "date" of sums does not
UNFIT_SCORES = points(vocabulary.NEVER, -20)
COORDINATE_SCORES = points(vocabulary.COORDINATE, -20)
CARD_READER_WORDS = {
    "device"
}  # beside taps it is what reads the cards, beside vehicles it is the vehicle: to protect it would protect nobody
VEHICLE_WORDS = {
    "vehicle",
    "bike",
    "scooter",
    "veicolo",
    "vehiculo",
    "veiculo",
    "vehicule",
    "fahrzeug",
    "kendaraan",
}


@dataclass(frozen=True)
class Guess:
    """What the columns seem to be: role → column. A role that nothing fits is not there."""

    columns: Mapping[str, str]  # origin, destination, time, day, person, count; of taps: stop, action
    formats: tuple[str, ...] = ()  # of times, where names and types tell
    stops: StopsGuess = field(default_factory=StopsGuess)
    text_times: bool = False  # times or dates are text, so that their format may have to be stated
    zoned_times: bool = False  # times know their zone
    others: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()  # columns that may tell people apart, where none surely does
    alone: bool = False  # taps are to be counted, each on its own

    @property
    def linked(self) -> bool:
        """Whether rows seem to be taps of cards, which are trips once a tap-on is linked with a tap-off."""
        taps = {STOP_ROLE, ACTION_ROLE, "person"} <= set(self.columns) and "count" not in self.columns
        return taps and not self.alone

    @property
    def daily(self) -> bool:
        """Whether rows seem to have a date and no time of day."""
        return "day" in self.columns and "time" not in self.columns

    @property
    def places(self) -> bool:
        """Whether rows seem to have one place each and nothing that links two of them."""
        return STOP_ROLE in self.columns and not self.linked


def guess_roles(source: Columns, stops: str | Path | None = None) -> Guess:
    """What the columns of the trips (by their names and types) and of the stops (by their values too) seem to be."""
    public = StopsGuess() if stops is None else guess_stops(Path(stops))
    check_header(source, public.ids_and_names)
    columns = guess_columns(source)
    return Guess(
        columns,
        _time_formats(source, columns),
        public,
        any(is_text(source.kinds[columns[r]]) for r in ("time", "day") if r in columns),
        getattr(source.kinds.get(columns.get("time", "")), "tz", None) is not None,
        (others := _other_names(source, columns)),
        () if "person" in columns else tuple(name for name in others if may_name_person(name)),
    )


def guess_columns(source: Columns) -> dict[str, str]:
    """Role → column, by names and types."""
    columns: dict[str, str] = {}
    leaving = _end_called_leaving(source)
    for role in ("origin", "destination"):
        _assign(columns, role, source, _trip_end_score(role, leaving))
    _assign(columns, "person", source, lambda name, _: names_person(name))
    columns |= _time_columns(source, columns)
    if "person" not in columns:
        columns |= _count_column(source, columns)
    if (
        "count" in columns
        and "day" not in columns
        and set(words_of(columns.get("time", "x"))) <= DATE_ONLY_WORDS
    ):
        columns = {"day": columns.pop("time"), **columns}
    device = bool(CARD_READER_WORDS & set(words_of(columns.get("person", ""))))
    if device and any(VEHICLE_WORDS & set(words_of(name)) for name in source.kinds):
        del columns["person"]
    if {"origin", "destination"} & set(columns):
        return columns
    if device:
        columns.pop("person", None)
    return columns | tap_columns(source, columns)


def _assign(
    columns: dict[str, str], role: str, source: Columns, fits: Callable[[str, pa.DataType], int]
) -> None:
    """Give a role the column that fits it best, if one does and it has no other."""
    best = max(source.kinds, key=lambda name: fits(name, source.kinds[name]), default=None)
    if best is not None and fits(best, source.kinds[best]) > 0 and best not in columns.values():
        columns[role] = best


def _end_called_leaving(source: Columns) -> str:
    """The end of a trip that words like "salida" mean: its start, but its end where other columns speak of entering."""
    every = {word for name in source.kinds for word in words_of(name)}
    return "destination" if every & vocabulary.ENTERING else "origin"


def _other_names(source: Columns, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Names of other columns. A CSV file in which no trip was recognised may have a private row in its first line."""
    if not source.typed and not ({"origin", "destination"} <= set(columns) or STOP_ROLE in columns):
        return ()
    return tuple(name for name in source.kinds if name and name not in columns.values())


# The roles


def _trip_end_score(role: str, leaving: str) -> Callable[[str, pa.DataType], int]:
    def fits(name: str, kind: pa.DataType) -> int:
        import pyarrow as pa

        words = set(words_of(name))
        side, opposite = (
            (_side_scores(r, words, leaving) for r in TRIP_END_SCORES)
            if role == "origin"
            else (_side_scores(r, words, leaving) for r in reversed(TRIP_END_SCORES))
        )
        if (
            pa.types.is_temporal(kind)
            or not score(name, side)
            or score(name, MOMENT_SCORES, DATE_SCORES, HOUR_SCORES)
        ):
            return 0
        if words & vocabulary.TRIP and not words & (vocabulary.SPOT | vocabulary.ZONE):
            return 0  # "start of the trip" is a time
        fraction = 2 if pa.types.is_floating(kind) else 0
        return (
            score(name, side, PLACE_SCORES, UNFIT_SCORES, COORDINATE_SCORES)
            - score(name, opposite)
            - fraction
            + bool(words & vocabulary.ORIGIN_OR_DESTINATION)  # rather than "inicio", which may be a time
        )

    return fits


def _side_scores(role: str, words: set[str], leaving: str) -> Mapping[str, int]:
    """What makes a name mean this end of a trip."""
    plain, tapped = TRIP_END_SCORES[role]
    also = tapped if words & (vocabulary.SPOT | vocabulary.ZONE) else {}
    return {**plain, **also, **(points(vocabulary.LEAVING, 4) if role == leaving else {})}


def _count_column(source: Columns, columns: Mapping[str, str]) -> dict[str, str]:
    """A column of counts: by its name, and where there is a column of hours, by names that elsewhere mean something else."""
    hours = bool(score(columns.get("time", ""), HOUR_SCORES))
    fits = [
        name
        for name, kind in source.kinds.items()
        if name not in columns.values() and count_like(name, kind, aggregated=hours)
    ]
    return {"count": fits[0]} if fits else {}


# Times: one column with date and time, or one each


def _time_columns(source: Columns, taken: Mapping[str, str]) -> dict[str, str]:
    stamps = _ranked(source, _time_stamp_score)
    hours = _ranked(
        source, lambda name, _: score(name, HOUR_SCORES, UNFIT_SCORES) if not score(name, DATE_SCORES) else 0
    )
    dates = _ranked(source, _date_score)
    if stamps:
        alone = _is_time_of_day(stamps[0], source.kinds[stamps[0]])
        return {"time": stamps[0], **({"day": dates[0]} if alone and dates else {})}
    if hours:
        return {"time": hours[0], **({"day": dates[0]} if dates else {})}
    whole = [d for d in dates if is_text(source.kinds[d])]  # "Start Date" may well hold a time
    begun = [] if whole else [n for n in _ranked(source, _trip_begins) if n not in taken.values()]
    return {"time": (whole or begun)[0]} if whole or begun else {}


def _trip_begins(name: str, kind: pa.DataType) -> int:
    """A column that is called the start of the trip, and no place: the time at which it starts."""
    words = set(words_of(name))
    alone = (
        words <= vocabulary.START - vocabulary.ORIGIN_OR_DESTINATION
    )  # "inicio", where the origin is another column
    begins = words & vocabulary.START and (words & vocabulary.TRIP or alone)
    other = words & (
        vocabulary.SPOT
        | vocabulary.ZONE
        | vocabulary.COORDINATE
        | vocabulary.ID
        | vocabulary.NAME
        | vocabulary.NEVER
    )
    return 4 if begins and not other and is_text(kind) else 0


def _ranked(source: Columns, fits: Callable[[str, pa.DataType], int]) -> list[str]:
    """The columns that fit, the best first; of those that begin or end a trip, the ones that begin it."""
    leaving = _end_called_leaving(source)

    def of(name: str) -> int:
        words = set(words_of(name))
        start, end = (
            {**TRIP_END_SCORES[r][0], **(points(vocabulary.LEAVING, 4) if r == leaving else {})}
            for r in TRIP_END_SCORES
        )
        off = TRIP_END_SCORES["destination"][1] if not words & vocabulary.TAPPED_ON else {}
        side = score(name, start) // 2 - score(name, end, off)
        return fits(name, source.kinds[name]) + side if fits(name, source.kinds[name]) > 0 else 0

    return sorted((n for n in source.kinds if of(n) > 0), key=of, reverse=True)


def _time_stamp_score(name: str, kind: pa.DataType) -> int:
    import pyarrow as pa

    if pa.types.is_date(kind) or (score(name, HOUR_SCORES) and not score(name, DATE_SCORES)):
        return 0
    stamped = 5 if pa.types.is_temporal(kind) else 0
    both = 4 if score(name, HOUR_SCORES) else 0  # "fecha_hora"
    named = both + score(name, MOMENT_SCORES) if stamped or is_text(kind) or pa.types.is_integer(kind) else 0
    return stamped + named + score(name, UNFIT_SCORES) if stamped or named else 0


def _date_score(name: str, kind: pa.DataType) -> int:
    import pyarrow as pa

    if pa.types.is_date(kind):
        return 8
    fits = is_text(kind) or pa.types.is_integer(kind)
    return (
        score(name, DATE_SCORES, UNFIT_SCORES) if fits and not score(name, MOMENT_SCORES, HOUR_SCORES) else 0
    )


def _is_time_of_day(name: str, kind: pa.DataType) -> bool:
    import pyarrow as pa

    alone = bool(vocabulary.TIME_OF_DAY & set(words_of(name))) and not score(name, DATE_SCORES)
    return pa.types.is_time(kind) or (is_text(kind) and alone)


def _time_formats(source: Columns, columns: Mapping[str, str]) -> tuple[str, ...]:
    """What names and types tell about how times are written: seconds since 1970, dates as numbers."""
    import pyarrow as pa

    formats = []
    for role in ("day", "time"):
        name = columns.get(role, "")
        kind = source.kinds.get(name)
        if kind is None or (score(name, HOUR_SCORES) and not score(name, DATE_SCORES)):
            continue
        if role == "day" and pa.types.is_integer(kind):
            formats.append("%Y%m%d")
        elif pa.types.is_integer(kind) or (is_text(kind) and score(name, EPOCH_SCORES)):
            formats.append("epoch_ms" if vocabulary.THOUSANDTHS & set(words_of(name)) else "epoch_s")
    return tuple(formats)


__all__ = ["Guess", "StopsGuess", "check_header", "count_like", "guess_columns", "guess_roles"]
