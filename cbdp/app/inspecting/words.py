"""An inspection in words: sections of lines, the same on a terminal, in a text file and on a page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cbdp.app.inspecting.cause import Cause, counted, quoted
from cbdp.app.inspecting.curve import chart
from cbdp.app.inspecting.dates import date_lines
from cbdp.app.inspecting.judging import verdict
from cbdp.app.inspecting.reading import TripReading, counts_column
from cbdp.app.inspecting.taps import linked_taps, read_lines
from cbdp.app.plan.stops import stop_dimensions
from cbdp.app.printing import aligned
from cbdp.privacy.unit import RELEASE
from cbdp.release.counted import Noun
from cbdp.release.counted import counted as noun
from cbdp.report.markup import INTERNAL, internal_banner, join, page, tag
from cbdp.trips import Inspection, planning
from cbdp.trips.inspect import Loads

WIDTH = 110
DAYS = 62  # that are listed


@dataclass(frozen=True)
class Section:
    title: str
    lines: tuple[str, ...]


def sections(reading: TripReading, found: Inspection, causes: Sequence[Cause]) -> list[Section]:
    made = [
        Section("What was read", tuple(_read(reading, found))),
        Section("What may be wrong, and what to do", tuple(_causes(causes))),
        Section("Rows that do not count, and why", tuple(_dropped(found))),
        Section("Whether a release would go on", tuple(_verdict(reading, found))),
    ]
    by, what = found.by, noun(reading.universe)
    if "time" in by and found.trips:
        made.append(Section(what.say("Trips by time of day"), tuple(chart(by["time"]))))
    if "day" in by and found.trips and len(by["day"]) <= DAYS:
        made.append(Section(what.say("Trips by day"), tuple(chart(by["day"]))))
    names = {} if reading.stops is None else dict(zip(reading.stops.ids, reading.stops.names, strict=True))
    for dimension in stop_dimensions(reading.config):
        busy = [
            (str(value), str(names.get(value, "")), f"{trips:,}")
            for value, trips in found.busiest(dimension)
            if trips
        ]
        if busy:
            title = f"Busiest stops, as {dimension}"
            made.append(Section(title, tuple(aligned([("stop", "name", what.many), *busy], right=[2]))))
    if found.loads is not None and found.loads.persons:
        made.append(Section(what.say("Trips per person"), tuple(_loads(found.loads, what))))
    return made


def _read(reading: TripReading, found: Inspection) -> Iterator[str]:
    yield found.label
    yield from (f"note: {note}" for note in found.notes)
    yield from date_lines(reading, found)
    linked = linked_taps(reading)
    if linked is not None:
        yield from read_lines(reading, found, linked)
    else:
        share = f" ({100 * found.share:.1f} %)" if found.read else ""
        yield f"{counted(found.read, 'row')} read, {found.counted:,} counted{share}, {found.read - found.counted:,} dropped"
    if counts_column(reading) is not None:
        yield f"the counted rows stand for {noun(reading.universe).number(found.trips)}"
    if reading.clock.timezone is not None:
        yield f"times are converted to {reading.clock.timezone}; those without an offset are taken for UTC"
    if found.counted and planning.DAY not in reading.universe.dimensions and reading.config.series is None:
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


def _verdict(reading: TripReading, found: Inspection) -> Iterator[str]:
    """What stops a release before its charge, by the same rules."""
    stops = list(verdict(reading, found))
    for stop in stops:
        yield from _wrapped(f"- it would stop: {stop}")
    if not stops:
        each = " (of a series, each release is looked at when it is made)" if reading.config.series else ""
        yield f"yes: nothing in the rows would stop it{each}"


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(
        line,
        WIDTH,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


def _dropped(found: Inspection) -> Iterator[str]:
    if not found.dropped:
        yield "none"
        return
    rows = [
        (d.reason, f"in {d.column!r}" if d.column else "", f"{d.rows:,}", ", ".join(quoted(d.examples)))
        for d in found.dropped
    ]
    yield from aligned([("reason", "column", "rows", "examples"), *rows], right=[2])
    yield "a row may have several reasons"


def _loads(loads: Loads, what: Noun) -> Iterator[str]:
    who = "person" if loads.per == RELEASE else f"person-{loads.per}"
    said = f" (a person-{loads.per} is one {loads.per} of one person)" if loads.per != RELEASE else ""
    yield f"{counted(loads.persons, who)} with {what.number(loads.trips)}{said}"
    yield ", ".join(f"{100 * share:g} % have at most {most:,}" for share, most in loads.quantiles.items())
    if loads.together:
        yield f"{counted(loads.together, 'trip')} would be dropped to keep trips apart, whatever max_trips is (a second one of a person in the same period); the table includes them"
    rows = [
        (f"{most}", f"{lost:,}", f"{100 * lost / loads.trips:.1f} %" if loads.trips else "–")
        for most, lost in loads.dropped.items()
    ]
    yield from aligned([("max_trips", "would drop", f"of the {what.many}"), *rows], right=[0, 1, 2])


def as_text(made: Sequence[Section]) -> str:
    """Under the mark, and ended by it."""
    lines = [INTERNAL, ""]
    for section in made:
        lines += [section.title, *(f"  {line}".rstrip() for line in section.lines), ""]
    return "\n".join([*lines, INTERNAL])


def as_page(made: Sequence[Section]) -> str:
    body = join(
        internal_banner(),
        tag("header", tag("h1", "How the trips are read")),
        tag("main", [tag("section", tag("h2", s.title), tag("pre", "\n".join(s.lines))) for s in made]),
        tag("footer", tag("p", INTERNAL)),
    )
    return page("INTERNAL: how the trips are read", body, None)
