"""Times that are not understood: how they seem to be written, tried on all rows before it is said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cbdp.app.inspecting.cause import Cause, quoted, toml
from cbdp.app.inspecting.formats import DATES, cover, fits, shape, swapped
from cbdp.app.inspecting.reading import TripReading, dropped_as, look
from cbdp.app.inspecting.taps import ROWS, linked_taps
from cbdp.trips import Inspection
from cbdp.trips.engines.base import MISSING, UNREAD
from cbdp.trips.inspect import Dropped
from cbdp.trips.written import ISO

DAILY = "leave time out of [universe] and of the tables, and write days instead"
TURNS = 3  # of looking at what is still not understood
RANGE = re.compile(r"\s*\d{1,2}(:\d\d)?\s*[-–]\s*\d{1,2}(:\d\d)?\s*")
LAST_HOUR = re.compile(r"\s*24(\.0*|:00(:00)?)?\s*")


@dataclass(frozen=True, eq=False)
class Trial:
    """Formats that were tried, and what came of it."""

    formats: tuple[str, ...]
    found: Inspection
    unread: int  # rows that are still not understood

    @property
    def written(self) -> str:
        return f"time_format = {toml(self.formats)}"

    def dates(self) -> str:
        return (
            ""
            if self.found.first is None
            else f": the trips are then from {self.found.first} to {self.found.last}"
        )


def time_causes(reading: TripReading, found: Inspection) -> Iterator[Cause]:
    for dropped in dropped_as(found, UNREAD):
        texts = dict(dropped.examples)
        if texts and _timed(reading, dropped) and all(_is_date(text) for text in texts):
            what = f"column {dropped.column!r} holds dates without a time of day"
            cure = f'name the column of times or hours: columns = {{ day = "{dropped.column}", time = … }}; if there is none, {DAILY}'
        else:
            shapes = ", ".join(dict.fromkeys(shape(text) for text in list(texts)[:3]))
            kind = "times" if _timed(reading, dropped) else "dates"
            what = f"{kind} in column {dropped.column!r} are not understood; they look like {shapes} (9: any digit)"
            cure = _cure(reading, found, dropped)
        yield Cause(dropped.rows, what, cure, quoted(dropped.examples))


def _timed(reading: TripReading, dropped: Dropped) -> bool:
    """Whether a time of day is asked for."""
    return reading.universe.dimensions[str(dropped.dimension)].edges is not None


def _is_date(text: str) -> bool:
    return any(fits(form, text) for form in DATES)


def _cure(reading: TripReading, found: Inspection, dropped: Dropped) -> str:
    texts = [text for text, _ in dropped.examples]
    if all(LAST_HOUR.fullmatch(t) for t in texts):
        return (
            "hours run from 0 to 23: write 24 as 0 of the next day, or subtract 1 if your hours count from 1"
        )
    if all(RANGE.fullmatch(t) for t in texts):
        return "keep the time at which each range begins"
    trials = [_trial(reading, found, dropped, day=day) for day in (True, False)]
    tried = [t for t in trials if t is not None and t.unread < dropped.rows]
    if not tried:
        return 'state how they are written, for example time_format = "%d.%m.%Y %H:%M", or write them like 2026-01-31 08:14'
    return _said(tried, "rows" if linked_taps(reading) is None else ROWS)


def _said(tried: list[Trial], rows: str) -> str:
    best = min(tried, key=lambda t: t.unread)
    others = [t for t in tried if t.formats != best.formats]
    if others and others[0].unread == best.unread:
        both = "; or ".join(f"{t.written}{t.dates()}" for t in (best, others[0]))
        return f"the day or the month may stand first, and both can be read: in [data], write {both}"
    then = f"{best.found.counted:,} of {best.found.read:,} {rows} then count"
    proof = " (with day and month the other way round, fewer can be read)" if others else ""
    return f"in [data], write {best.written}: {then}{proof}"


def _trial(reading: TripReading, found: Inspection, dropped: Dropped, *, day: bool) -> Trial | None:
    """Formats for what is not understood, beside those that understand other rows; tried until nothing is left."""
    formats = _kept(reading, found, dropped)
    texts, trial = dict(dropped.examples), None
    for _ in range(TURNS):
        more = [f for f in cover(texts, day=day) if f not in formats]
        if not more:
            break
        formats = (*(f for f in formats if swapped(f) not in more or f == swapped(f)), *more)
        tried = look(reading.with_formats(formats))
        left = [d for d in dropped_as(tried, UNREAD) if d.column == dropped.column]
        trial = Trial(formats, tried, sum(d.rows for d in left))
        texts = {text: rows for d in left for text, rows in d.examples}
    return trial


def _kept(reading: TripReading, found: Inspection, dropped: Dropped) -> tuple[str, ...]:
    """The formats of today, if they understand any row."""
    missing = sum(d.rows for d in dropped_as(found, MISSING) if d.column == dropped.column)
    if dropped.rows + missing >= found.read:
        return ()
    return reading.formats or (ISO,)
