"""What the columns of trips seem to be, by their names and types. No row is looked at."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbdp.app.guessing.header import check_header
from cbdp.app.guessing.names import count_like, score, words_of
from cbdp.app.guessing.stops import StopsGuess, guess_stops
from cbdp.app.guessing.taps import ACTION, STOP, tap_columns
from cbdp.app.plan.trips import is_text
from cbdp.trips import Schema, schema_of

# What people call columns, in lower case, in English and a little in German, Spanish and French; a column's score for a role is the
# sum over its words.
START = dict.fromkeys(
    ("origin", "orig", "o", "from", "start", "begin", "source", "pickup", "pu", "board", "boarding", "entry", "departure",
     "von", "origen", "origine"),
    4,
)  # fmt: skip
END = dict.fromkeys(
    ("destination", "dest", "d", "to", "end", "finish", "target", "dropoff", "do", "alight", "alighting", "exit", "arrival",
     "nach", "destino", "ziel"),
    4,
)  # fmt: skip
# where a card was tapped on and off: with a word for a place only, for alone they are often numbers of riders
TAPPED = {"origin": dict.fromkeys(("on", "in"), 4), "destination": dict.fromkeys(("off", "out"), 4)}
SPOT = {"stop", "station", "stn", "location", "loc", "terminal", "zone", "place"}
PLACE = {"id": 2, "code": 2, "terminal": 2, "stop": 1, "station": 1, "location": 1, "zone": 1, "name": -1}
EPOCH = dict.fromkeys(("epoch", "unix", "unixtime", "posix"), 4)
OF_DAY = {"time", "uhrzeit", "zeit"}  # a time without its date, where no date is named
MOMENT = EPOCH | dict.fromkeys(
    ("datetime", "timestamp", "at", "ts", "when", "moment", "period", "starttime", *OF_DAY), 4
)
HOUR = dict.fromkeys(("hour", "hr", "hours", "stunde", "hora", "heure"), 4)
DATE = dict.fromkeys(("date", "day", "dates", "datum", "fecha"), 4)
ONLY_DATE = set(DATE) | {
    "service",
    "calendar",
    "travel",
    "operating",
}  # "Start Date" may hold a time, "date" of sums does not
THOUSANDTHS = {"ms", "millis", "milliseconds", "msec"}
NEVER = dict.fromkeys(
    ("duration", "created", "updated", "type", "kind", "count", "zone", "of", "week", "weekday"), -20
)
COORDINATE = dict.fromkeys(("lat", "lon", "lng", "long", "latitude", "longitude", "x", "y"), -20)
PERSON = dict.fromkeys(
    ("person", "user", "rider", "card", "customer", "member", "passenger", "account", "traveller", "token", "media",
     "smartcard", "cardholder", "subscriber", "client", "pan", "traveler", "patron", "farecard", "travelcard", "medium",
     "tarjeta", "carte", "karte"),
    4,
) | {"device": 2}  # fmt: skip
ID = {"id", "hash", "hashed", "key", "number", "num", "nr", "no", "uuid", "serial", "fare", "masked", "encrypted", "pseudonym",
      "anonymous", "anonymised", "anonymized", "numero", "nummer", "transit", "travel", "payment", "app", "emv", "opal",
      "oyster", "clipper", "myki", "smart"}  # fmt: skip
GLUED = re.compile(
    r"(person|user|rider|card|customer|member|passenger|account|travell?er|karten)(id|no|nr|num|number|nummer)"
)
READER = {"device"}  # beside taps it is what reads the cards: to protect it would protect nobody


@dataclass(frozen=True)
class Guess:
    """What the columns seem to be: role → column. A role that nothing fits is not there."""

    columns: Mapping[str, str]  # origin, destination, time, day, person, count; of taps: stop, action
    formats: tuple[str, ...] = ()  # of times, where names and types tell
    stops: StopsGuess = field(default_factory=StopsGuess)
    text_times: bool = False  # times or dates are text, so that their format may have to be stated
    zoned_times: bool = False  # times know their zone
    others: tuple[str, ...] = ()
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


def guess(trips: Sequence[str], stops: str | Path | None = None) -> Guess:
    """What the columns of the trips (by their names and types) and of the stops (by their values too) seem to be."""
    source = schema_of(trips[0] if len(trips) == 1 else list(trips))
    public = StopsGuess() if stops is None else guess_stops(Path(stops))
    check_header(source, public.known)
    columns = guess_columns(source)
    return Guess(
        columns,
        _formats(source, columns),
        public,
        any(is_text(source.kinds[columns[r]]) for r in ("time", "day") if r in columns),
        getattr(source.kinds.get(columns.get("time", "")), "tz", None) is not None,
        _others(source, columns),
    )


def guess_columns(source: Schema) -> dict[str, str]:
    """Role → column, by names and types."""
    columns: dict[str, str] = {}
    for role, fits in _ROLES.items():
        best = max(source.kinds, key=lambda name: fits(name, source.kinds[name]), default=None)
        if best is not None and fits(best, source.kinds[best]) > 0 and best not in columns.values():
            columns[role] = best
    columns |= _times(source)
    if "person" not in columns:
        columns |= _count(source, columns)
    if "count" in columns and "day" not in columns and set(words_of(columns.get("time", "x"))) <= ONLY_DATE:
        columns = {"day": columns.pop("time"), **columns}
    if {"origin", "destination"} & set(columns):
        return columns
    if READER & set(words_of(columns.get("person", ""))):
        del columns["person"]
    return columns | tap_columns(source, columns)


def _others(source: Schema, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Names of other columns. A CSV file in which no trip was recognised may have a private row in its first line."""
    if not source.typed and not ({"origin", "destination"} <= set(columns) or STOP in columns):
        return ()
    return tuple(name for name in source.kinds if name and name not in columns.values())


# The roles


def _place(role: str, other: str) -> Callable[[str, Any], int]:
    def fits(name: str, kind: Any) -> int:
        import pyarrow as pa

        side, opposite = _sided(role, name), _sided(other, name)
        if pa.types.is_temporal(kind) or not score(name, side) or score(name, MOMENT, DATE, HOUR):
            return 0
        fraction = 2 if pa.types.is_floating(kind) else 0
        zone = 20 if "zone" in words_of(name) else 0  # a place may be one
        return score(name, side, PLACE, NEVER, COORDINATE) + zone - score(name, opposite) - fraction

    return fits


def _sided(role: str, name: str) -> Mapping[str, int]:
    """What makes a name mean this end of a trip."""
    tapped = TAPPED[role] if SPOT & set(words_of(name)) else {}
    return {**(START if role == "origin" else END), **tapped}


def _person(name: str, kind: Any) -> int:  # noqa: ARG001
    """A person's id is called so and nothing else: `member_casual` or `user_type` are kinds of persons."""
    words = {part for word in words_of(name) for part in _parts(word)}
    if words - set(PERSON) - ID:
        return 0
    return sum(PERSON.get(word, 0) for word in words) + ("id" in words)


def _parts(word: str) -> tuple[str, ...]:
    """Two words that are written as one, as in `cardid`."""
    glued = GLUED.fullmatch(word)
    return (word,) if glued is None else ("card" if glued[1] == "karten" else glued[1], glued[2])


_ROLES: Mapping[str, Callable[[str, Any], int]] = {
    "origin": _place("origin", "destination"),
    "destination": _place("destination", "origin"),
    "person": _person,
}


def _count(source: Schema, columns: Mapping[str, str]) -> dict[str, str]:
    """A column of counts: by its name, and where there is a column of hours, by names that elsewhere mean something else."""
    hours = bool(score(columns.get("time", ""), HOUR))
    fits = [
        name
        for name, kind in source.kinds.items()
        if name not in columns.values() and count_like(name, kind, aggregated=hours)
    ]
    return {"count": fits[0]} if fits else {}


# Times: one column with date and time, or one each


def _times(source: Schema) -> dict[str, str]:
    stamps = _ranked(source, _stamp)
    hours = _ranked(source, lambda name, _: score(name, HOUR, NEVER))
    dates = _ranked(source, _date)
    if stamps:
        alone = _is_time_of_day(stamps[0], source.kinds[stamps[0]])
        return {"time": stamps[0], **({"day": dates[0]} if alone and dates else {})}
    if hours:
        return {"time": hours[0], **({"day": dates[0]} if dates else {})}
    whole = [d for d in dates if is_text(source.kinds[d])]  # "Start Date" may well hold a time
    return {"time": whole[0]} if whole else {}


def _ranked(source: Schema, fits: Callable[[str, Any], int]) -> list[str]:
    """The columns that fit, the best first; of those that begin or end a trip, the ones that begin it."""

    def of(name: str) -> int:
        side = score(name, START) // 2 - score(name, END, TAPPED["destination"])
        return fits(name, source.kinds[name]) + side if fits(name, source.kinds[name]) > 0 else 0

    return sorted((n for n in source.kinds if of(n) > 0), key=of, reverse=True)


def _stamp(name: str, kind: Any) -> int:
    import pyarrow as pa

    if pa.types.is_date(kind) or score(name, HOUR):
        return 0
    stamped = 5 if pa.types.is_temporal(kind) else 0
    named = score(name, MOMENT) if stamped or is_text(kind) or pa.types.is_integer(kind) else 0
    return stamped + named + score(name, NEVER) if stamped or named else 0


def _date(name: str, kind: Any) -> int:
    import pyarrow as pa

    if pa.types.is_date(kind):
        return 8
    fits = is_text(kind) or pa.types.is_integer(kind)
    return score(name, DATE, NEVER) if fits and not score(name, MOMENT) else 0


def _is_time_of_day(name: str, kind: Any) -> bool:
    import pyarrow as pa

    alone = bool(OF_DAY & set(words_of(name))) and not score(name, DATE)
    return pa.types.is_time(kind) or (is_text(kind) and alone)


def _formats(source: Schema, columns: Mapping[str, str]) -> tuple[str, ...]:
    """What names and types tell about how times are written: seconds since 1970, dates as numbers."""
    import pyarrow as pa

    found = []
    for role in ("day", "time"):
        name = columns.get(role, "")
        kind = source.kinds.get(name)
        if kind is None or score(name, HOUR):
            continue
        if role == "day" and pa.types.is_integer(kind):
            found.append("%Y%m%d")
        elif pa.types.is_integer(kind) or (is_text(kind) and score(name, EPOCH)):
            found.append("epoch_ms" if THOUSANDTHS & set(words_of(name)) else "epoch_s")
    return tuple(found)
