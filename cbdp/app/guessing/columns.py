"""What the columns of trips seem to be, by their names and types. No row is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbdp.app.guessing import vocabulary
from cbdp.app.guessing.header import check_header
from cbdp.app.guessing.names import Columns, count_like, is_text
from cbdp.app.guessing.stops import StopsGuess, guess_stops
from cbdp.app.guessing.taps import ACTION, STOP, tap_columns
from cbdp.app.guessing.vocabulary import may_name_person, names_person, points, score, words_of

# points of words; a column's score for a role is the sum over its words
SIDES = {
    "origin": (points(vocabulary.START, 4), points(vocabulary.TAPPED_ON, 4)),
    "destination": (points(vocabulary.END, 4), points(vocabulary.TAPPED_OFF, 4)),
}
PLACE = (
    points(vocabulary.SPOT | vocabulary.ZONE, 1)
    | points(vocabulary.NAME, -1)
    | {"id": 2, "code": 2, "codigo": 2, "kode": 2, "terminal": 2}
)
MOMENT = points(vocabulary.EPOCH | vocabulary.MOMENT, 4)
HOUR, DATE, EPOCH = (points(w, 4) for w in (vocabulary.HOUR, vocabulary.DATE, vocabulary.EPOCH))
ONLY_DATE = vocabulary.DATE | {
    "service",
    "calendar",
    "travel",
    "operating",
}  # "Start Date" may hold a time, "date" of sums does not
NEVER = points(vocabulary.NEVER, -20)
COORDINATE = points(vocabulary.COORDINATE, -20)
READER = {
    "device"
}  # beside taps it is what reads the cards, beside vehicles it is the vehicle: to protect it would protect nobody
VEHICLES = {
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
        taps = {STOP, ACTION, "person"} <= set(self.columns) and "count" not in self.columns
        return taps and not self.alone

    @property
    def daily(self) -> bool:
        """Whether rows seem to have a date and no time of day."""
        return "day" in self.columns and "time" not in self.columns

    @property
    def places(self) -> bool:
        """Whether rows seem to have one place each and nothing that links two of them."""
        return STOP in self.columns and not self.linked


def guess_of(source: Columns, stops: str | Path | None = None) -> Guess:
    """What the columns of the trips (by their names and types) and of the stops (by their values too) seem to be."""
    public = StopsGuess() if stops is None else guess_stops(Path(stops))
    check_header(source, public.known)
    columns = guess_columns(source)
    return Guess(
        columns,
        _formats(source, columns),
        public,
        any(is_text(source.kinds[columns[r]]) for r in ("time", "day") if r in columns),
        getattr(source.kinds.get(columns.get("time", "")), "tz", None) is not None,
        (others := _others(source, columns)),
        () if "person" in columns else tuple(name for name in others if may_name_person(name)),
    )


def guess_columns(source: Columns) -> dict[str, str]:
    """Role → column, by names and types."""
    columns: dict[str, str] = {}
    leaving = _leaving(source)
    for role in ("origin", "destination"):
        _take(columns, role, source, _place(role, leaving))
    _take(columns, "person", source, lambda name, _: names_person(name))
    columns |= _times(source, columns)
    if "person" not in columns:
        columns |= _count(source, columns)
    if "count" in columns and "day" not in columns and set(words_of(columns.get("time", "x"))) <= ONLY_DATE:
        columns = {"day": columns.pop("time"), **columns}
    device = bool(READER & set(words_of(columns.get("person", ""))))
    if device and any(VEHICLES & set(words_of(name)) for name in source.kinds):
        del columns["person"]
    if {"origin", "destination"} & set(columns):
        return columns
    if device:
        columns.pop("person", None)
    return columns | tap_columns(source, columns)


def _take(columns: dict[str, str], role: str, source: Columns, fits: Callable[[str, Any], int]) -> None:
    """Give a role the column that fits it best, if one does and it has no other."""
    best = max(source.kinds, key=lambda name: fits(name, source.kinds[name]), default=None)
    if best is not None and fits(best, source.kinds[best]) > 0 and best not in columns.values():
        columns[role] = best


def _leaving(source: Columns) -> str:
    """The end of a trip that words like "salida" mean: its start, but its end where other columns speak of entering."""
    every = {word for name in source.kinds for word in words_of(name)}
    return "destination" if every & vocabulary.ENTERING else "origin"


def _others(source: Columns, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Names of other columns. A CSV file in which no trip was recognised may have a private row in its first line."""
    if not source.typed and not ({"origin", "destination"} <= set(columns) or STOP in columns):
        return ()
    return tuple(name for name in source.kinds if name and name not in columns.values())


# The roles


def _place(role: str, leaving: str) -> Callable[[str, Any], int]:
    def fits(name: str, kind: Any) -> int:
        import pyarrow as pa

        words = set(words_of(name))
        side, opposite = (
            (_sided(r, words, leaving) for r in SIDES)
            if role == "origin"
            else (_sided(r, words, leaving) for r in reversed(SIDES))
        )
        if pa.types.is_temporal(kind) or not score(name, side) or score(name, MOMENT, DATE, HOUR):
            return 0
        if words & vocabulary.TRIP and not words & (vocabulary.SPOT | vocabulary.ZONE):
            return 0  # "start of the trip" is a time
        fraction = 2 if pa.types.is_floating(kind) else 0
        return score(name, side, PLACE, NEVER, COORDINATE) - score(name, opposite) - fraction

    return fits


def _sided(role: str, words: set[str], leaving: str) -> Mapping[str, int]:
    """What makes a name mean this end of a trip."""
    plain, tapped = SIDES[role]
    also = tapped if words & (vocabulary.SPOT | vocabulary.ZONE) else {}
    return {**plain, **also, **(points(vocabulary.LEAVING, 4) if role == leaving else {})}


def _count(source: Columns, columns: Mapping[str, str]) -> dict[str, str]:
    """A column of counts: by its name, and where there is a column of hours, by names that elsewhere mean something else."""
    hours = bool(score(columns.get("time", ""), HOUR))
    fits = [
        name
        for name, kind in source.kinds.items()
        if name not in columns.values() and count_like(name, kind, aggregated=hours)
    ]
    return {"count": fits[0]} if fits else {}


# Times: one column with date and time, or one each


def _times(source: Columns, taken: Mapping[str, str]) -> dict[str, str]:
    stamps = _ranked(source, _stamp)
    hours = _ranked(source, lambda name, _: score(name, HOUR, NEVER) if not score(name, DATE) else 0)
    dates = _ranked(source, _date)
    if stamps:
        alone = _is_time_of_day(stamps[0], source.kinds[stamps[0]])
        return {"time": stamps[0], **({"day": dates[0]} if alone and dates else {})}
    if hours:
        return {"time": hours[0], **({"day": dates[0]} if dates else {})}
    whole = [d for d in dates if is_text(source.kinds[d])]  # "Start Date" may well hold a time
    begun = [] if whole else [n for n in _ranked(source, _trip_begins) if n not in taken.values()]
    return {"time": (whole or begun)[0]} if whole or begun else {}


def _trip_begins(name: str, kind: Any) -> int:
    """A column that is called the start of the trip, and no place: the time at which it starts."""
    words = set(words_of(name))
    begins = words & vocabulary.START and words & vocabulary.TRIP
    other = words & (
        vocabulary.SPOT
        | vocabulary.ZONE
        | vocabulary.COORDINATE
        | vocabulary.ID
        | vocabulary.NAME
        | vocabulary.NEVER
    )
    return 4 if begins and not other and is_text(kind) else 0


def _ranked(source: Columns, fits: Callable[[str, Any], int]) -> list[str]:
    """The columns that fit, the best first; of those that begin or end a trip, the ones that begin it."""
    leaving = _leaving(source)

    def of(name: str) -> int:
        words = set(words_of(name))
        start, end = (
            {**SIDES[r][0], **(points(vocabulary.LEAVING, 4) if r == leaving else {})} for r in SIDES
        )
        off = SIDES["destination"][1] if not words & vocabulary.TAPPED_ON else {}
        side = score(name, start) // 2 - score(name, end, off)
        return fits(name, source.kinds[name]) + side if fits(name, source.kinds[name]) > 0 else 0

    return sorted((n for n in source.kinds if of(n) > 0), key=of, reverse=True)


def _stamp(name: str, kind: Any) -> int:
    import pyarrow as pa

    if pa.types.is_date(kind) or (score(name, HOUR) and not score(name, DATE)):
        return 0
    stamped = 5 if pa.types.is_temporal(kind) else 0
    both = 4 if score(name, HOUR) else 0  # "fecha_hora"
    named = both + score(name, MOMENT) if stamped or is_text(kind) or pa.types.is_integer(kind) else 0
    return stamped + named + score(name, NEVER) if stamped or named else 0


def _date(name: str, kind: Any) -> int:
    import pyarrow as pa

    if pa.types.is_date(kind):
        return 8
    fits = is_text(kind) or pa.types.is_integer(kind)
    return score(name, DATE, NEVER) if fits and not score(name, MOMENT, HOUR) else 0


def _is_time_of_day(name: str, kind: Any) -> bool:
    import pyarrow as pa

    alone = bool(vocabulary.TIME_OF_DAY & set(words_of(name))) and not score(name, DATE)
    return pa.types.is_time(kind) or (is_text(kind) and alone)


def _formats(source: Columns, columns: Mapping[str, str]) -> tuple[str, ...]:
    """What names and types tell about how times are written: seconds since 1970, dates as numbers."""
    import pyarrow as pa

    found = []
    for role in ("day", "time"):
        name = columns.get(role, "")
        kind = source.kinds.get(name)
        if kind is None or (score(name, HOUR) and not score(name, DATE)):
            continue
        if role == "day" and pa.types.is_integer(kind):
            found.append("%Y%m%d")
        elif pa.types.is_integer(kind) or (is_text(kind) and score(name, EPOCH)):
            found.append("epoch_ms" if vocabulary.THOUSANDTHS & set(words_of(name)) else "epoch_s")
    return tuple(found)
