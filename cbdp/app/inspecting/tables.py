"""Tables of counts: those that are read as trips, and counts that are no whole numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from cbdp.app.guessing import count_like, guess_columns
from cbdp.app.inspecting.cause import Cause, counted, quoted
from cbdp.app.inspecting.reading import TripReading, counts_column, look, values_in
from cbdp.errors import InputError
from cbdp.privacy.unit import Person, Trip, Unit
from cbdp.trips import Inspection, Schema, planning
from cbdp.trips.inspect import WEIGHTLESS

LOOKED_AT = 20_000  # different values: wrong ones may be rare
WHOLE = re.compile(r"\s*\+?\d+(\.0*)?\s*")


def unused_counts(schema: Schema, columns: Mapping[str, str], unit: Unit) -> str | None:
    """A column that seems to hold numbers of trips and is not used, by its name alone. Public: no row is looked at.

    With persons, rows are trips: counts name nobody.
    """
    if planning.COUNT in columns or isinstance(unit, Person):
        return None
    fits = [n for n, kind in schema.kinds.items() if n not in columns.values() and count_like(n, kind)]
    return fits[0] if fits else None


def read_as_trips(column: str) -> Cause:
    """What to say of such a column."""
    return Cause(
        0,
        f"column {column!r} looks like a number of trips, but each row counts as one trip",
        f'write columns = {{ count = "{column}" }} as well as the others',
    )


def table_causes(reading: TripReading, found: Inspection) -> Iterator[Cause]:
    column = unused_counts(reading.schema, reading.columns, reading.unit)
    if column is not None:
        yield _tried(reading, found, column)
    counts = counts_column(reading)
    for dropped in found.dropped:
        if dropped.reason == WEIGHTLESS and counts is not None:
            read, values = values_in(reading.trips, counts, LOOKED_AT)
            wrong = [pair for pair in values if not WHOLE.fullmatch(pair[0])]
            what = f"column {counts!r} holds counts that are not whole numbers of at least 0, or is empty"
            cure = (
                "write whole numbers without marks (1234, not 1,234 or 1234,0), and 0 where nobody was counted; "
                "rows with suppressed counts (<5, *) cannot be counted"
            )
            empty = read - sum(rows for _, rows in values) if len(values) < LOOKED_AT else 0
            yield Cause(dropped.rows, what, cure, _and_empty(quoted(wrong), empty))


def _and_empty(shown: tuple[str, ...], rows: int) -> tuple[str, ...]:
    return (*shown, f"an empty cell in {counted(rows, 'row')}") if rows > 0 else shown


def _tried(reading: TripReading, found: Inspection, column: str) -> Cause:
    """The columns as they are with the counts beside them; where that counts nothing, as they would be guessed."""
    cause = replace(read_as_trips(column), rows=found.read)
    guessed = {r: c for r, c in guess_columns(reading.schema).items() if r in reading.columns}
    for others in ({}, guessed):
        columns = {**reading.columns, **others, planning.COUNT: column}
        try:
            tried = look(replace(reading, columns=columns, unit=Trip()))
        except InputError:
            continue
        if tried.counted:
            written = {r: c for r, c in columns.items() if others or r == planning.COUNT}
            said = f"{tried.counted:,} rows then stand for {tried.trips:,} trips"
            listed = ", ".join(f'{role} = "{name}"' for role, name in written.items())
            return replace(
                cause,
                cure=f"write columns = {{ {listed} }}{'' if others else ' as well as the others'}: {said}",
            )
    return cause
