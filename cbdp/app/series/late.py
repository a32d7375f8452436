"""Rows for periods that are closed: counted for the curator alone, and in nothing that is published. Private, all of it.

When a run has made releases, it notes how many rows the data held on the days of each, in a file beside the ledger that says what it is.
An inspection counts again: what has come since is in no release.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.app.plan.periods import Slot
from cbdp.app.plan.slots import applied
from cbdp.app.plan.source import source_hash
from cbdp.app.plan.trips import schema_of
from cbdp.app.printing import aligned
from cbdp.app.series.status import status_of
from cbdp.app.series.today import last_ended_day
from cbdp.features import Universe, calendar
from cbdp.trips import count, planning
from cbdp.trips.files import are_files
from cbdp.trips.preparing import Prepared
from cbdp.untrusted import read_json

if TYPE_CHECKING:
    from cbdp.app.config import Config
    from cbdp.app.inspecting.reading import TripReading

SUFFIX = ".rows-internal.json"


@dataclass(frozen=True)
class ClosedPeriod:
    """How many rows a released period had when its release was made, and has now."""

    slot: Slot
    then: int | None  # None: nobody noted it
    now: int

    @property
    def late(self) -> int:
        return 0 if self.then is None else max(0, self.now - self.then)


def rows_of(reading: TripReading, slots: Sequence[Slot]) -> dict[Slot, int]:
    """The rows on the days of each period, whether or not they count otherwise."""
    if not slots:
        return {}
    first, last = min(slot.first for slot in slots), max(slot.last for slot in slots)
    column = planning.dated_column(reading.columns, reading.universe)
    days = Universe(day=calendar.days(first, last))
    rows = count(reading.trips, days, columns={"day": column}, clock=reading.clock).dense()
    return {slot: int(rows[(slot.first - first).days : (slot.last - first).days + 1].sum()) for slot in slots}


@dataclass
class RowsNow:
    """The rows of the periods that a run is to release. Files are read once for all of them, and again when they have changed."""

    slots: Sequence[Slot]
    _state: str = ""
    _found: Mapping[Slot, int] = field(default_factory=dict, repr=False)

    def of(self, reading: TripReading, slot: Slot) -> dict[Slot, int]:
        trips = reading.trips
        given = trips.trips if isinstance(trips, Prepared) else trips
        if not are_files(given):
            return rows_of(reading, [slot])
        state = source_hash(trips)
        if state != self._state:
            wanted = self.slots if slot in self.slots else [slot]
            self._state, self._found = state, rows_of(reading, wanted)
        return {slot: self._found[slot]}


def noted(config: Config) -> dict[str, int]:
    """What earlier runs have noted, by the label of the release; nothing where the file is gone or is not theirs."""
    try:
        found = read_json(_file(config))
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in found.items() if isinstance(v, int)} if isinstance(found, dict) else {}


def note(config: Config, rows: Mapping[Slot, int]) -> None:
    """Add what was there when these releases were made. The file is for its owner's eyes."""
    known = noted(config) | {slot.label: number for slot, number in rows.items()}
    file = _file(config)
    for half in file.parent.glob(
        f".{file.name}.*"
    ):  # of a run that died; no other run of the series is at work
        half.unlink(missing_ok=True)
    work = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(work, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        json.dump({"private": "row counts of closed periods: never publish", **known}, out, indent=1)
    work.replace(file)


def closed_periods(reading: TripReading) -> list[ClosedPeriod]:
    """Every period that has been released, with its rows then and now."""
    config = reading.config
    made = [slot for slot, _ in status_of(config, last_ended_day(config)).made]
    then, now = noted(config), _now(reading, made)
    return [ClosedPeriod(slot, then.get(slot.label), now[slot]) for slot in made]


def _now(reading: TripReading, slots: Sequence[Slot]) -> dict[Slot, int]:
    """The rows of each period today: in one file, or in a file for each."""
    config = reading.config
    if not any("{period}" in place for place in config.data.trips):
        return rows_of(reading, slots)
    found: dict[Slot, int] = {}
    for slot in slots:
        found |= rows_of(replace(reading, trips=schema_of(applied(config, slot)).given), [slot])
    return found


def lines_of(closed: Sequence[ClosedPeriod], rows_are: str = "rows") -> list[str]:
    """What the curator is told of closed periods; `rows_are` says what rows are, where that needs words."""
    late = [one for one in closed if one.late]
    unknown = sum(one.then is None for one in closed)
    found = [f"{len(closed)} periods are closed: {rows_are} that come for them now are in no release"]
    if late:
        rows = [(one.slot.label, f"{one.then:,}", f"{one.now:,}", f"{one.late:,}") for one in late]
        found += aligned([("period", "rows at its release", "rows now", "came late"), *rows], right=(1, 2, 3))
    elif closed:
        found.append("no rows have come for them since their releases")
    if unknown:
        found.append(f"for {unknown} of them nobody noted the rows at the time of the release")
    return found


def _file(config: Config) -> Path:
    ledger = config.path(config.privacy.ledger)
    return ledger.with_name(f"{ledger.name}{SUFFIX}")
