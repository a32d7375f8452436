"""Likely mistakes in how trips are read, the weightiest first."""

from __future__ import annotations

from collections.abc import Iterator

from cbdp.app.inspecting.cause import Cause, counted
from cbdp.app.inspecting.curve import curve_causes
from cbdp.app.inspecting.places import place_causes
from cbdp.app.inspecting.reading import TripReading
from cbdp.app.inspecting.roles import role_causes
from cbdp.app.inspecting.tables import table_causes
from cbdp.app.inspecting.times import time_causes
from cbdp.trips import Inspection
from cbdp.trips.engines.base import MISSING
from cbdp.trips.inspect import MALFORMED, NOBODY, REASONS, ZERO, Dropped
from cbdp.trips.preparing import Linked, Prepared


def causes_of(reading: TripReading, found: Inspection) -> tuple[Cause, ...]:
    """What may be wrong. Private: it reads the trips, several times."""
    if not found.read:
        return (_empty(reading, found),)
    kinds = (table_causes, role_causes, time_causes, place_causes, curve_causes, _others)
    causes = [cause for kind in kinds for cause in kind(reading, found)]
    return tuple(sorted(causes, key=lambda cause: -cause.rows))


def _empty(reading: TripReading, found: Inspection) -> Cause:
    linked = linked_taps(reading)
    if linked is not None:
        words = ", ".join((*linked.on[:3], *linked.off[:3]))
        what = f"{found.label} holds no taps: no row's {linked.action!r} is a word like {words}"
        cure = 'say in [data] how your file writes them, for example taps = { on = "1", off = "2" }'
        return Cause(0, what, cure)
    return Cause(0, f"{found.label} holds no rows", "check that the export is complete")


def linked_taps(reading: TripReading) -> Linked | None:
    """How taps are linked, where rows are taps."""
    by = reading.trips.by if isinstance(reading.trips, Prepared) else None
    return by if isinstance(by, Linked) else None


def _others(reading: TripReading, found: Inspection) -> Iterator[Cause]:
    for dropped in found.dropped:
        said = _untapped(reading, dropped) or _plain(found, dropped)
        if said is not None:
            yield Cause(dropped.rows, *said)


def _untapped(reading: TripReading, dropped: Dropped) -> tuple[str, str] | None:
    """Taps that are not linked."""
    linked = linked_taps(reading)
    if (
        linked is None
        or dropped.reason != REASONS[MISSING]
        or dropped.column not in ("origin", "destination")
    ):
        return None
    other = "tap-off" if dropped.column == "destination" else "tap-on"
    taps = counted(dropped.rows, "tap")
    what = f"{taps} have no {other} of the same {linked.person!r} within {linked.within // 3600} hours"
    if other == "tap-on":
        return what, "they are left out: the tap-on is missing, or was before the file begins"
    return (
        what,
        "they are left out. If riders need not tap off, work out the missing ends of their trips first",
    )


def _plain(found: Inspection, dropped: Dropped) -> tuple[str, str] | None:
    rows, many = counted(dropped.rows, "row"), dropped.rows * 10 > found.read
    if dropped.reason == MALFORMED:
        what = f"{rows} have more or fewer fields than the first line, or quotes that do not close"
        return what, "export the file again, with quotes around text"
    if dropped.reason == NOBODY:
        return (
            f"{rows} have no value in {dropped.column!r}, so they belong to no person",
            "name another column, or protect a trip",
        )
    if dropped.reason == ZERO and many:
        what = f"{rows} are trips that the universe excludes, such as those that end where they began"
        return what, "if they are meant, write origin_is_destination = true"
    if dropped.reason == REASONS[MISSING] and many:
        return f"column {dropped.column!r} is empty in {rows}", "name another column, if there is one"
    return None
