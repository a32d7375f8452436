"""What holds a series together from one release to the next.

The universe and features stay the same within a version, periods do not overlap, days are over before they are released, rows that come late are counted for
the curator, and running totals go on from what earlier runs kept.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import secrets
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cbdp.app.trips import AS_WRITTEN, DayReading, alike, read_as, schema_of, service_days, source_hash
from cbdp.config import Config, read
from cbdp.counting import Counts, count
from cbdp.counting import plan as counting_plan
from cbdp.counting.columns import NULLS
from cbdp.counting.files import are_files
from cbdp.counting.linking import Prepared
from cbdp.counting.plan import ServiceDays
from cbdp.errors import CbdpError, InputError
from cbdp.features import Universe
from cbdp.forecast.account import status_of
from cbdp.forecast.calendar import (
    Slot,
    charges_of,
    check_names,
    config_of_slot,
    due_slots,
    last_ended_day,
    names_since,
    series_of,
    shape_of,
)
from cbdp.forecast.running import PlaceInSpan, charges_for, check_fits_caps, declared, place_of
from cbdp.ledger import Charge, FinishedCharge, Ledger
from cbdp.mechanisms import ConstraintBased
from cbdp.mechanisms.continual import History, release_in_series
from cbdp.privacy.measurement import Measurement
from cbdp.release import Release
from cbdp.release.files import load, read_manifest
from cbdp.release.series import FINAL, RUNNING_TOTALS
from cbdp.text import aligned
from cbdp.untrusted import read_json
from cbdp_features import calendar

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.counting.reading import TripReading
    from cbdp.features import FeatureDag


# Whether the next release belongs to the series


MAX_SHOWN_VALUES = 3  # values of a dimension that an error names


def check_continuity(plan: Plan) -> None:
    """Refuse a release that would make another series of it. Nothing is spent."""
    if not Ledger.started(plan.account.path):
        return
    series = series_of(plan.config)
    with Ledger.view(plan.account.path) as ledger:
        earlier = charges_of(ledger, series.name, plan.dataset)
        _check_periods(plan, earlier)
        _check_version(plan, earlier)
        _check_days(plan, ledger, earlier)
        _check_person(plan, ledger, earlier)
        same = [c for c in earlier if c.part and c.part.version == series.version]
        if any(c.part.shape != shape_of(plan.features) for c in same if c.part):
            raise plan.config.source.error(("series", "version"), _changed(plan, ledger, same))


def with_changes(plan: Plan) -> Plan:
    """The plan with what has changed since the version before, as the last release of that one tells."""
    version = series_of(plan.config).version
    if version == 1 or not Ledger.started(plan.account.path):
        return plan
    with Ledger.view(plan.account.path) as ledger:
        earlier = charges_of(ledger, series_of(plan.config).name, plan.dataset)
        before = [c for c in reversed(earlier) if c.part and c.part.version == version - 1]
        names = names_since(plan.config, version)
        changes = tuple(_differences(plan, ledger, before, names))
        pairs = tuple((str(old), str(new)) for old, new in names.items())
        return replace(plan, changes=changes, renamed=pairs)


def _check_periods(plan: Plan, earlier: Sequence[Charge]) -> None:
    slot = plan.slot
    assert slot is not None
    for charge in earlier:
        covers, part = charge.covers, charge.part
        if covers is None or part is None or covers.first is None or covers.last is None:
            continue
        apart = covers.last < slot.first or slot.last < covers.first
        if not apart and (covers.first, covers.last) != (slot.first, slot.last):
            raise plan.config.source.error(
                ("series", "calendar"),
                f"the period {slot.period} ({slot.first} to {slot.last}) overlaps {part.period} ({covers.first} to {covers.last}), "
                "which was charged before: keep calendar and start as they were, or give this series another name",
            )


def _check_days(plan: Plan, ledger: Ledger, earlier: Sequence[Charge]) -> None:
    """Rows are given their days as in the last release that can be read: else a trip could be counted on two days, and paid for on one."""
    for charge in reversed(earlier):
        text = read_as(charge, ledger)
        before = DayReading.of(text)
        if text and before is not None and not before.kind:
            text = str(before := _with_kind(before, plan, charge))
        if text and not alike(text, plan.service_days):
            raise plan.config.source.error(
                ("data",),
                f"a trip's day was read {text}, and would now be read {plan.service_days}: a trip could be counted on two days. Export the rows as before "
                "(the same column, of the same type, with the same zone and written form), and keep data.timezone, data.day_starts and data.time_format as they were; or "
                "begin a series of another name at least three days after the last release of this one",
            )
        if text and (before is None or before.kind != NULLS):  # what holds nothing has pinned nothing
            return


def _with_kind(before: DayReading, plan: Plan, charge: Charge) -> DayReading:
    """The kind that a release of version 0.2 did not state, by the file of its rows, if these lie in a file of their own that is still there."""
    raw, part = read(plan.config.source.path), charge.part
    if part is None or charge.covers is None or charge.covers.last is None or raw.series is None:
        return before
    if not any("{period}" in place for place in raw.data.trips):
        return before  # all rows are in one place, and have one kind
    try:
        slot = next(
            s
            for s in due_slots(raw, charge.covers.last + dt.timedelta(days=raw.series.final_after or 0))
            if (s.period, s.stage) == (part.period, part.stage)
        )
        trips = schema_of(config_of_slot(raw, slot))
        seen = DayReading.of(
            service_days(plan.columns, plan.universe, trips.clock, trips.source, pinned=True)
        )
    except (CbdpError, OSError, StopIteration):
        return before
    if seen is None or seen.kind == NULLS:
        return before
    zone = seen.zone if before.zone == AS_WRITTEN else before.zone
    return replace(before, kind=seen.kind, zone=zone)


def _check_person(plan: Plan, ledger: Ledger, earlier: Sequence[Charge]) -> None:
    """Persons are told apart by the same column as in the last release that can be read: else the account adds up two kinds of persons."""
    now = getattr(plan.unit, "column", None)
    if now is None:
        return
    for charge in reversed(earlier):
        done = ledger.finished(charge.request)
        before = None if done is None else _person_of(Path(done.path))
        if before not in (None, now):
            raise plan.config.source.error(
                ("privacy", "unit"),
                f"people were told apart by column {before!r}, and would now be by {now!r}: what all releases cost one person could not be told. "
                f"Write person = {before!r} again, or begin a series of another name",
            )
        if before is not None:
            return


def _person_of(folder: Path) -> str | None:
    try:
        unit = read_manifest(folder)["privacy"]["unit"]
    except CbdpError:
        return None
    return unit["column"] if unit["kind"] == "person" else None


def _check_version(plan: Plan, earlier: Sequence[Charge]) -> None:
    series = series_of(plan.config)
    latest = max((c.part.version for c in earlier if c.part), default=0)
    if series.version < latest or (latest and series.version > latest + 1):
        raise plan.config.source.error(
            ("series", "version"),
            f"version is {series.version}, and the last release is of version {latest}: write {latest}, or {latest + 1} "
            "if universe or features have changed",
        )


def _changed(plan: Plan, ledger: Ledger, same: Sequence[Charge]) -> str:
    series = series_of(plan.config)
    differences = "; ".join(_differences(plan, ledger, same)) or "the universe or the features"
    return (
        f"what is counted has changed since the first release of version {series.version} of the series: {differences}. Undo that, or "
        f"write version = {series.version + 1} to go on with the new one"
    )


def _differences(
    plan: Plan, ledger: Ledger, same: Sequence[Charge], names: Mapping[Hashable, Hashable] | None = None
) -> list[str]:
    """What has changed, as a release of that version tells; nothing if none can be read."""
    for charge in same:
        done = ledger.finished(charge.request)
        if done is not None:
            try:
                before = load(Path(done.path)).features
            except (CbdpError, OSError):
                continue
            if names:
                with plan.config.source.at("series", "renamed"):
                    check_names(before, plan.features, dict(names))
            return list(differences(before, plan.features, names))
    return []


def differences(
    before: FeatureDag, after: FeatureDag, names: Mapping[Hashable, Hashable] | None = None
) -> Iterator[str]:
    """How universe and features differ, in words; a value with another name is the same value."""
    old, new = before.universe.dimensions, after.universe.dimensions
    now = names or {}
    if now:
        yield f"{_named([*now])} with another name"
    for name in [*old, *(n for n in new if n not in old)]:
        if name not in new or name not in old:
            yield f"the dimension {name!r} is {'gone' if name in old else 'new'}"
            continue
        was = [now.get(v, v) for v in old[name].values]
        added = [v for v in new[name].values if v not in set(was)]
        gone = [v for v in was if v not in set(new[name].values)]
        if added:
            yield f"{name} has {_named(added)} more"
        if gone:
            yield f"{name} has {_named(gone)} less"
        if not added and not gone and list(new[name].values) != was:
            yield f"the values of {name} are in another order"
    tables, others = ({n: set(f.by) for n, f in dag.features.items()} for dag in (before, after))
    for name in [*tables, *(n for n in others if n not in tables)]:
        if name not in others or name not in tables:
            yield f"the table {name!r} is {'gone' if name in tables else 'new'}"
        elif tables[name] != others[name]:
            yield f"the table {name!r} is by {', '.join(sorted(others[name]))}, and was by {', '.join(sorted(tables[name]))}"


def _named(values: Sequence[object]) -> str:
    shown = ", ".join(repr(v) for v in values[:MAX_SHOWN_VALUES])
    more = "" if len(values) <= MAX_SHOWN_VALUES else f" and {len(values) - MAX_SHOWN_VALUES} others"
    return f"{len(values)} value{'s' * (len(values) > 1)} ({shown}{more})"


# Closed periods. Private: rows are counted for the curator alone, and are in nothing that is published
#
# A run that makes releases notes how many rows the data held on the days of each, in a file beside the ledger. An inspection counts again: what has come
# since is in no release.


LATE_ROWS_SUFFIX = ".rows-internal.json"


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
    column = counting_plan.dated_column(reading.columns, reading.universe)
    days = Universe(day=calendar.days(first, last))
    rows = count(reading.trips, days, columns={"day": column}, clock=reading.clock).dense()
    return {slot: int(rows[(slot.first - first).days : (slot.last - first).days + 1].sum()) for slot in slots}


@dataclass
class RowsNow:
    """The rows of the periods that a run is to release. Files are read once for all of them, and again when they have changed."""

    slots: Sequence[Slot]
    _state: str = ""
    _rows: Mapping[Slot, int] = field(default_factory=dict, repr=False)

    def of(self, reading: TripReading, slot: Slot) -> dict[Slot, int]:
        trips = reading.trips
        source = trips.trips if isinstance(trips, Prepared) else trips
        if not are_files(source):
            return rows_of(reading, [slot])
        state = source_hash(trips)
        if state != self._state:
            slots = self.slots if slot in self.slots else [slot]
            self._state, self._rows = state, rows_of(reading, slots)
        return {slot: self._rows[slot]}


def noted(config: Config) -> dict[str, int]:
    """What earlier runs have noted, by the label of the release; nothing where the file is gone or is not theirs."""
    try:
        document = read_json(_late_rows_file(config))
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in document.items() if isinstance(v, int)} if isinstance(document, dict) else {}


def note(config: Config, rows: Mapping[Slot, int]) -> None:
    """Add what was there when these releases were made. The file is for its owner's eyes."""
    numbers = noted(config) | {slot.label: number for slot, number in rows.items()}
    file = _late_rows_file(config)
    for half in file.parent.glob(
        f".{file.name}.*"
    ):  # of a run that died; no other run of the series is at work
        half.unlink(missing_ok=True)
    work = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(work, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        json.dump({"private": "row counts of closed periods: never publish", **numbers}, out, indent=1)
    work.replace(file)


def closed_periods(config: Config, reading: TripReading) -> list[ClosedPeriod]:
    """Every period that has been released, with its rows then and now."""
    released = [slot for slot, _ in status_of(config, last_ended_day(config)).released]
    then, now = noted(config), _now(config, reading, released)
    return [ClosedPeriod(slot, then.get(slot.label), now[slot]) for slot in released]


def _now(config: Config, reading: TripReading, slots: Sequence[Slot]) -> dict[Slot, int]:
    """The rows of each period today: in one file, or in a file for each."""
    if not any("{period}" in place for place in config.data.trips):
        return rows_of(reading, slots)
    rows: dict[Slot, int] = {}
    for slot in slots:
        rows |= rows_of(replace(reading, trips=schema_of(config_of_slot(config, slot)).trips), [slot])
    return rows


def lines_of(closed: Sequence[ClosedPeriod], rows_are: str = "rows") -> list[str]:
    """What the curator is told of closed periods; `rows_are` says what rows are, where that needs words."""
    late = [one for one in closed if one.late]
    unknown = sum(one.then is None for one in closed)
    lines = [f"{len(closed)} periods are closed: {rows_are} that come for them now are in no release"]
    if late:
        rows = [(one.slot.label, f"{one.then:,}", f"{one.now:,}", f"{one.late:,}") for one in late]
        lines += aligned([("period", "rows at its release", "rows now", "came late"), *rows], right=(1, 2, 3))
    elif closed:
        lines.append("no rows have come for them since their releases")
    if unknown:
        lines.append(f"for {unknown} of them nobody noted the rows at the time of the release")
    return lines


def _late_rows_file(config: Config) -> Path:
    ledger = config.path(config.privacy.ledger)
    return ledger.with_name(f"{ledger.name}{LATE_ROWS_SUFFIX}")


# Running totals. The sums that end today hold the true counts of every day of the span
#
# A run keeps them in a private folder beside the ledger. Where a file of it is missing, the rows of that day are counted again. What is published is read
# from the releases.


RUNNING_TOTALS_SUFFIX = ".running-internal"  # of a folder beside the ledger; private
RUNNING_TOTALS_README = "True counts of days whose running totals are published. Private: never publish. A file that is missing is counted again.\n"


@dataclass
class RunningRelease:
    """The running totals that one release is part of, with what came before."""

    plan: Plan
    place: PlaceInSpan
    history: Mapping[str, History] = field(repr=False)
    counts: Counts | None = field(default=None, repr=False)
    published: Release | None = field(default=None, repr=False)

    def charge(self, ledger: Ledger) -> None:
        """Reserve what the span costs, where that was not done before."""
        for terms in charges_for(self.plan, self.place, ledger):
            ledger.reserve(**terms)

    def release(self, counts: Counts) -> Release:
        mechanism = self.plan.mechanism
        assert isinstance(mechanism, ConstraintBased)
        self.counts = counts
        self.published = release_in_series(mechanism, counts, self.place.span, self.history)
        return self.published


@dataclass
class Totals:
    """What a run knows of the spans: each day is read once."""

    config: Config = field(repr=False)
    _histories: dict[str, dict[str, History]] = field(default_factory=dict, repr=False)
    _days: dict[str, int] = field(default_factory=dict, repr=False)

    def beside(self, plan: Plan) -> Plan:
        """The plan with its running totals; as it is where none are wanted. All that can fail fails here, before a charge."""
        section = declared(plan)
        if section is None:
            return plan
        place = place_of(self.config, plan, section)
        check_fits_caps(plan, place)
        return replace(plan, running=RunningRelease(plan, place, self._until(plan, place)))

    def published(self, plan: Plan, folder: Path) -> None:
        """Keep what the next day needs, and note in the ledger that what the span paid for is published."""
        running = plan.running
        if not isinstance(running, RunningRelease) or running.published is None or running.counts is None:
            return
        sha256 = _noted(plan, folder)
        with suppress(OSError):  # the next run counts this day again
            _write(plan, sha256, _day(plan, running.place, running.published, running.counts))

    def _until(self, plan: Plan, place: PlaceInSpan) -> dict[str, History]:
        histories = self._histories.setdefault(place.span.request, {n: History() for n in place.span.tables})
        for done in place.earlier[self._days.get(place.span.request, 0) :]:
            day = _read(self.config, plan, place, done)
            for name, history in histories.items():
                history.add(**day[name])
            self._days[place.span.request] = self._days.get(place.span.request, 0) + 1
        return histories


Day = dict[str, dict[str, Any]]  # table → what `History.add` takes


def _day(plan: Plan, place: PlaceInSpan, release: Release, counts: Counts) -> Day:
    assert release.running is not None
    measurements = {m.feature: m for m in release.measurements}
    return {
        name: {
            "counts": counts.of(plan.features, name),
            "sums": release.running.tables[name].answers,
            "measurement": measurements[name],
            "published": release.counts(name),
        }
        for name in place.span.tables
    }


def _noted(plan: Plan, folder: Path) -> str:
    """The hash of the release's manifest by the ledger, where charges of the span are noted as published."""
    data = plan.config.data
    with Ledger.open(plan.account.path, dataset=plan.dataset, riders=data.riders) as ledger:
        done = ledger.finished(plan.request)
        assert done is not None
        for charge in ledger.unfinished():
            part, of_release = charge.part, done.charge.part
            if part and of_release and part.stage == RUNNING_TOTALS and part.series == of_release.series:
                ledger.released(charge, done.sha256, folder)
        return done.sha256


def _running_totals_file(plan: Plan, sha256: str) -> Path:
    ledger = plan.account.path
    return ledger.with_name(f"{ledger.name}{RUNNING_TOTALS_SUFFIX}") / f"{sha256}.npz"


def _write(plan: Plan, sha256: str, day: Day) -> None:
    """One file for each release, whole or not at all, for its owner's eyes; it goes by the hash of what was published."""
    file = _running_totals_file(plan, sha256)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    for half in file.parent.glob(".*.npz"):  # of a run that died; no other run of the series is at work
        half.unlink(missing_ok=True)
    about = file.parent / "README"
    if not about.exists():
        about.write_text(RUNNING_TOTALS_README, "utf-8")
    arrays: dict[str, Any] = {}
    for n, (_, of) in enumerate(sorted(day.items())):
        arrays |= {f"{part} {n}": of[part] for part in ("counts", "sums", "published")}
        arrays |= {f"own {n}": of["measurement"].values, f"variance {n}": of["measurement"].variance[:1]}
    work = file.with_name(f".{secrets.token_hex(8)}.npz")
    with os.fdopen(os.open(work, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        np.savez(out, **arrays)
    work.replace(file)


def _read(config: Config, plan: Plan, place: PlaceInSpan, done: FinishedCharge) -> Day:
    """One earlier day: as it was kept, or from its folder and its rows."""
    try:
        return _kept(plan, place, done)
    except (OSError, ValueError, KeyError):
        return _counted(config, plan, place, done)


def _kept(plan: Plan, place: PlaceInSpan, done: FinishedCharge) -> Day:
    with np.load(_running_totals_file(plan, done.sha256), allow_pickle=False) as arrays:
        day: Day = {}
        for n, name in enumerate(sorted(place.span.tables)):
            measurement = Measurement(name, arrays[f"own {n}"], variance=float(arrays[f"variance {n}"][0]))
            day[name] = {part: arrays[f"{part} {n}"] for part in ("counts", "sums", "published")} | {
                "measurement": measurement
            }
        return day


def _counted(config: Config, plan: Plan, place: PlaceInSpan, done: FinishedCharge) -> Day:
    part, covers = done.charge.part, done.charge.covers
    assert part is not None
    assert covers is not None
    assert covers.first is not None
    assert covers.last is not None
    slot = Slot(part.period, covers.first, covers.last, FINAL, covers.last)
    source = schema_of(config_of_slot(config, slot)).trips
    days = ServiceDays(slot.first, slot.last)
    counts = count(source, plan.universe, columns=plan.columns, unit=plan.unit, clock=plan.clock, days=days)
    if not counts.value.sum() and noted(config).get(slot.label):
        raise InputError(
            f"running totals need the trips of {slot.period}, which are no longer in the data, and what was kept of them is gone: "
            f"restore {str(_running_totals_file(plan, done.sha256).parent)!r}, or raise series.version to begin a new span"
        )
    day = _day(plan, place, load(done.path), counts)
    with suppress(OSError):
        _write(plan, done.sha256, day)
    return day
