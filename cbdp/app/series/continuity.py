"""Whether the next release belongs to the series: same universe and features as before, periods that do not overlap."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.app.config import read
from cbdp.app.plan.periods import due_slots, series_of
from cbdp.app.plan.service_days import WRITTEN, DayReading, alike, read_as, service_days
from cbdp.app.plan.slots import applied, shape_of
from cbdp.app.plan.trips import schema_of
from cbdp.app.series.pending import charges_of
from cbdp.app.series.renaming import check_names, names_since
from cbdp.errors import CbdpError
from cbdp.privacy.ledger import Charge, Ledger
from cbdp.release.loading import load, read_manifest
from cbdp.trips.kinds import NOTHING

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.features import FeatureDag

SHOWN = 3  # values of a dimension that an error names


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
        found = tuple(_differences(plan, ledger, before, names))
        pairs = tuple((str(old), str(new)) for old, new in names.items())
        return replace(plan, changes=found, renamed=pairs)


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
        if text and (before is None or before.kind != NOTHING):  # what holds nothing has pinned nothing
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
        trips = schema_of(applied(raw, slot))
        seen = DayReading.of(
            service_days(plan.columns, plan.universe, trips.clock, trips.source, pinned=True)
        )
    except (CbdpError, OSError, StopIteration):
        return before
    if seen is None or seen.kind == NOTHING:
        return before
    zone = seen.zone if before.zone == WRITTEN else before.zone
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
        unit = (read_manifest(folder).get("privacy") or {}).get("unit") or {}
    except CbdpError:
        return None
    return unit.get("column")


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
    found = "; ".join(_differences(plan, ledger, same)) or "the universe or the features"
    return (
        f"what is counted has changed since the first release of version {series.version} of the series: {found}. Undo that, or "
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
    shown = ", ".join(repr(v) for v in values[:SHOWN])
    more = "" if len(values) <= SHOWN else f" and {len(values) - SHOWN} others"
    return f"{len(values)} value{'s' * (len(values) > 1)} ({shown}{more})"
