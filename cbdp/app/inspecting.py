"""`cbdp inspect`: how trips are read, what of them counts, and why the rest does not. Private: for the curator's eyes only.

`cbdp.app.reading` looks at the rows, `cbdp.app.causes` proposes what is wrong with them, and `cbdp.app.judging` decides by the same rules whether a release goes on.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cbdp.app.causes import ROWS_OF_LINKED_TAPS, causes_of, chart, linked_taps, read_lines
from cbdp.app.judging import verdict
from cbdp.app.reading import (
    Cause,
    TripReading,
    counts_column,
    date_lines,
    look,
    number_of,
    quoted_examples,
    reading_of,
)
from cbdp.counting import Inspection, planner
from cbdp.counting.inspection import PersonLoads
from cbdp.forecast.inputs import stop_dimensions
from cbdp.privacy.unit import RELEASE
from cbdp.release.roles import Noun
from cbdp.release.roles import counted_noun as noun
from cbdp.report.markup import INTERNAL_WARNING, internal_banner, join, page, tag
from cbdp.text import aligned

# Sections of lines: the same on a terminal, in a text file and on a page


INSPECTION_WIDTH = 110  # characters of a line
MAX_LISTED_DAYS = 62  # days up to which each has a bar: two months


@dataclass(frozen=True)
class Section:
    title: str
    lines: tuple[str, ...]


def sections(reading: TripReading, inspection: Inspection, causes: Sequence[Cause]) -> list[Section]:
    parts = [
        Section("What was read", tuple(_read(reading, inspection))),
        Section("What may be wrong, and what to do", tuple(_causes(causes))),
        Section("Rows that do not count, and why", tuple(_dropped(inspection))),
        Section("Whether a release would go on", tuple(_verdict(reading, inspection))),
    ]
    by, what = inspection.by, noun(reading.universe)
    if "time" in by and inspection.trips:
        parts.append(Section(what.say("Trips by time of day"), tuple(chart(by["time"]))))
    if "day" in by and inspection.trips and len(by["day"]) <= MAX_LISTED_DAYS:
        parts.append(Section(what.say("Trips by day"), tuple(chart(by["day"]))))
    names = {} if reading.stops is None else dict(zip(reading.stops.ids, reading.stops.names, strict=True))
    for dimension in stop_dimensions(reading.config):
        busy = [
            (str(value), str(names.get(value, "")), f"{trips:,}")
            for value, trips in inspection.busiest(dimension)
            if trips
        ]
        if busy:
            title = f"Busiest stops, as {dimension}"
            parts.append(Section(title, tuple(aligned([("stop", "name", what.many), *busy], right=[2]))))
    if inspection.loads is not None and inspection.loads.persons:
        parts.append(Section(what.say("Trips per person"), tuple(_loads(inspection.loads, what))))
    return parts


def _read(reading: TripReading, inspection: Inspection) -> Iterator[str]:
    yield inspection.label
    yield from (f"note: {note}" for note in inspection.notes)
    yield from date_lines(reading, inspection)
    linked = linked_taps(reading)
    if linked is not None:
        yield from read_lines(reading, inspection, linked)
    else:
        share = f" ({100 * inspection.share:.1f} %)" if inspection.read else ""
        yield f"{number_of(inspection.read, 'row')} read, {inspection.counted:,} counted{share}, {inspection.read - inspection.counted:,} dropped"
    if counts_column(reading) is not None:
        yield f"the counted rows stand for {noun(reading.universe).number(inspection.trips)}"
    if reading.clock.timezone is not None:
        yield f"times are converted to {reading.clock.timezone}; those without an offset are taken for UTC"
    if (
        inspection.counted
        and planner.DAY_KEY not in reading.universe.dimensions
        and reading.config.series is None
    ):
        yield "all days are added up; to tell them apart, state universe.days"


def _causes(causes: Sequence[Cause]) -> Iterator[str]:
    for cause in causes:
        yield from _wrapped(f"- {cause.what}")
        yield from _wrapped(f"  → {cause.cure}")
        if cause.line:
            yield from _wrapped(f"  → {cause.line}")
        if cause.shown:
            yield from _wrapped(f"  for example {', '.join(cause.shown)}")
    if not causes:
        yield "nothing suspicious was found in how rows are read"


def _verdict(reading: TripReading, inspection: Inspection) -> Iterator[str]:
    """What stops a release before its charge, by the same rules."""
    stops = list(verdict(reading, inspection))
    for stop in stops:
        yield from _wrapped(f"- it would stop: {stop}")
    if not stops:
        each = " (of a series, each release is looked at when it is made)" if reading.config.series else ""
        yield f"yes: nothing in the rows would stop it{each}"


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(
        line,
        INSPECTION_WIDTH,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


def _dropped(inspection: Inspection) -> Iterator[str]:
    if not inspection.dropped:
        yield "none"
        return
    rows = [
        (
            d.reason,
            f"in {d.column!r}" if d.column else "",
            f"{d.rows:,}",
            ", ".join(quoted_examples(d.examples)),
        )
        for d in inspection.dropped
    ]
    yield from aligned([("reason", "column", "rows", "examples"), *rows], right=[2])
    yield "a row may have several reasons"


def _loads(loads: PersonLoads, what: Noun) -> Iterator[str]:
    who = "person" if loads.per == RELEASE else f"person-{loads.per}"
    definition = f" (a person-{loads.per} is one {loads.per} of one person)" if loads.per != RELEASE else ""
    yield f"{number_of(loads.persons, who)} with {what.number(loads.trips)}{definition}"
    yield ", ".join(f"{100 * share:g} % have at most {most:,}" for share, most in loads.quantiles.items())
    if loads.together:
        yield f"{number_of(loads.together, 'trip')} would be dropped to keep trips apart, whatever max_trips is (a second one of a person in the same period); the table includes them"
    rows = [
        (f"{most}", f"{lost:,}", f"{100 * lost / loads.trips:.1f} %" if loads.trips else "–")
        for most, lost in loads.dropped.items()
    ]
    yield from aligned([("max_trips", "would drop", f"of the {what.many}"), *rows], right=[0, 1, 2])


def as_text(parts: Sequence[Section]) -> str:
    """Under the mark, and ended by it."""
    lines = [INTERNAL_WARNING, ""]
    for section in parts:
        lines += [section.title, *(f"  {line}".rstrip() for line in section.lines), ""]
    return "\n".join([*lines, INTERNAL_WARNING])


def as_page(parts: Sequence[Section]) -> str:
    body = join(
        internal_banner(),
        tag("header", tag("h1", "How the trips are read")),
        tag("main", [tag("section", tag("h2", s.title), tag("pre", "\n".join(s.lines))) for s in parts]),
        tag("footer", tag("p", INTERNAL_WARNING)),
    )
    return page("INTERNAL: how the trips are read", body, None)


def all_sections(reading: TripReading) -> list[Section]:
    """What `cbdp inspect` shows of a configuration's trips, closed periods of a series included."""
    inspection = look(reading)
    parts = sections(reading, inspection, causes_of(reading, inspection))
    if reading.config.series is not None:
        from cbdp.app.series.continuity import closed_periods, lines_of

        closed = lines_of(
            closed_periods(reading), "rows" if linked_taps(reading) is None else ROWS_OF_LINKED_TAPS
        )
        parts.append(Section("Closed periods of the series", tuple(closed)))
    return parts


__all__ = ["Cause", "TripReading", "causes_of", "look", "reading_of"]
