"""From when to when rows are, for the curator's eyes, also where the count adds up all days and reads no dates."""

from __future__ import annotations

from collections.abc import Iterator

from cbdp.app.inspecting.cause import toml
from cbdp.app.inspecting.formats import cover, day_first
from cbdp.app.inspecting.reading import TripReading, days_in, values_of
from cbdp.errors import InputError
from cbdp.trips import Inspection, planning


def date_lines(reading: TripReading, found: Inspection) -> Iterator[str]:
    """The first and the last day, or why they are not known."""
    column = reading.config.data.columns.get(planning.DAY)
    span = (found.first, found.last) if found.first else days_in(reading, column) if column else None
    if span is not None:
        yield f"from {span[0]} to {span[1]}"
    elif column is not None and planning.DAY not in reading.universe.dimensions:
        yield _otherwise(reading, column)
    elif column is None and found.counted:
        times = reading.columns.get("time")
        where = f"column {times!r} holds times of day alone" if times else "no column of dates is named"
        yield f"no dates: {where}. If your file has dates, name their column: columns = {{ day = … }}"


def _otherwise(reading: TripReading, column: str) -> str:
    """Dates that are not needed, read by the format in which they seem to be written."""
    try:
        forms = cover(dict(values_of(reading, column)), day=True)
        span = days_in(reading.with_formats(forms), column)
    except InputError:
        span = None
    if span is None or any(day_first(form) is not None for form in forms):
        return f"the dates in column {column!r} are not understood; they are needed only to tell days apart"
    return f"from {span[0]} to {span[1]} (dates are read by time_format = {toml(forms)}: write it in [data] if you state universe.days)"
