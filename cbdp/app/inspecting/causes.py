"""Likely mistakes in how trips are read, the weightiest first."""

from __future__ import annotations

from collections.abc import Iterator

from cbdp.app.inspecting.cause import Cause, counted
from cbdp.app.inspecting.curve import curve_causes
from cbdp.app.inspecting.places import place_causes, value_causes
from cbdp.app.inspecting.reading import TripReading
from cbdp.app.inspecting.roles import role_causes
from cbdp.app.inspecting.tables import table_causes
from cbdp.app.inspecting.taps import linked_taps, tap_causes
from cbdp.app.inspecting.times import time_causes
from cbdp.app.plan.public_files import PLACES
from cbdp.trips import Inspection
from cbdp.trips.engines.base import MISSING
from cbdp.trips.inspect import MALFORMED, NOBODY, REASONS, ZERO, Dropped


def causes_of(reading: TripReading, found: Inspection) -> tuple[Cause, ...]:
    """What may be wrong. Private: it reads the trips, several times."""
    if not found.read and linked_taps(reading) is None:
        return (Cause(0, f"{found.label} holds no rows", "check that the export is complete"),)
    kinds = (
        table_causes,
        role_causes,
        time_causes,
        place_causes,
        value_causes,
        tap_causes,
        curve_causes,
        _others,
    )
    causes = [cause for kind in kinds for cause in kind(reading, found)]
    return tuple(sorted(causes, key=lambda cause: -cause.rows))


def _others(reading: TripReading, found: Inspection) -> Iterator[Cause]:
    linked = linked_taps(reading) is not None
    for dropped in found.dropped:
        ends = linked and dropped.reason == REASONS[MISSING] and dropped.column in PLACES
        said = None if ends else _plain(found, dropped)
        if linked and dropped.reason == NOBODY:
            said = (
                f"{counted(dropped.rows, 'tap')} {'has' if dropped.rows == 1 else 'have'} no value in {dropped.column!r}, so nobody can tell which taps belong together",
                "they are left out",
            )
        if said is not None:
            yield Cause(dropped.rows, *said)


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
