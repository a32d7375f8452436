"""Whether all releases of a ledger read days alike, and whether the next release belongs to its series: by ledgers and manifests alone."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from cbdp.config import Config, read
from cbdp.errors import CbdpError, InputError
from cbdp.features import FeatureDag
from cbdp.forecast.calendar import (
    charges_of,
    check_names,
    config_of_slot,
    due_slots,
    names_since,
    series_of,
    shape_of,
)
from cbdp.forecast.plan import PlannedRelease
from cbdp.ledger import Charge, ChargeScope, Ledger
from cbdp.release.earlier import EarlierPrior, earlier_prior
from cbdp.release.files import MANIFEST, load, read_manifest
from cbdp.release.series import RUNNING_TOTALS


class DatedRelease(PlannedRelease, Protocol):
    """A planned release that says how rows are given a service day."""

    @property
    def service_days(self) -> str: ...
    def service_days_at(self, config: Config) -> str:
        """The same for another release of the series, by its own trips."""


# Service days: whether all releases of a ledger give rows a day alike
#
# A ledger adds up by service day what releases cost one person. If one series' days begin at midnight and another's at four, what a person does on one day
# of the first lies on two days of the second, and costs more there than the ledger says. So releases of near days must read days alike.


MAX_DAY_SHIFT = dt.timedelta(days=3)  # no zone and no start of a day moves a trip further
AS_WRITTEN = "as they are written"
TEXT, NULLS = "text", "nothing"
ZONED, ZONELESS = "time stamps that have a zone", "time stamps without a zone"
TEXT_TIMES, TEXT_DATES = f"{TEXT} that is dates with times", f"{TEXT} that is dates alone"
COLUMN_KINDS = (  # as `cbdp.counting.columns` calls them
    TEXT_TIMES,
    TEXT_DATES,
    ZONED,
    ZONELESS,
    TEXT,
    "dates",
    "times of day",
    "whole numbers",
    "numbers",
    "true or false",
    NULLS,
    "other",
)
_READING = re.compile(
    rf"of column (.*?)(?: with ({'|'.join(COLUMN_KINDS)}))?, times ([^,]*), days from ([^,]*) on", re.DOTALL
)


@dataclass(frozen=True)
class DayReading:
    """How rows are given a service day: by which column, of which kind, in which zone, from which time on.

    >>> text = "of column 'at' with dates, times as they are written, days from 04:00 on"
    >>> DayReading.of(text).kind, str(DayReading.of(text)) == text
    ('dates', True)
    """

    column: str  # with the written forms of its times
    kind: str  # one of KINDS; "" in what versions up to 0.2 wrote
    zone: str
    starts: str

    def __str__(self) -> str:
        kind = f" with {self.kind}" if self.kind else ""
        return f"of column {self.column}{kind}, times {self.zone}, days from {self.starts} on"

    @classmethod
    def of(cls, text: str) -> DayReading | None:
        match = _READING.fullmatch(text)
        return None if match is None else cls(match[1], match[2] or "", match[3], match[4])

    def agrees(self, before: DayReading) -> bool:
        """Whether no trip can have one day here and another there, as far as both say it.

        What earlier versions wrote names no kind, and no zone that the column has by its type.
        """
        if (self.column, self.starts) != (before.column, before.starts):
            return False
        if NULLS in (self.kind, before.kind):  # no row has a day
            return self.zone == before.zone or AS_WRITTEN in (self.zone, before.zone)
        if before.kind:
            return (self.kind, self.zone) == (before.kind, before.zone)
        typed = before.zone == AS_WRITTEN and self.kind == ZONED
        texts = self.kind.startswith(TEXT) and {self.zone, before.zone} == {AS_WRITTEN, "UTC"}  # read alike
        return self.zone == before.zone or typed or texts


def check_alike(config: Config, covers: ChargeScope, path: Path) -> None:
    """Refuse a release whose days are read in another way than those of other releases near it, before a row is read."""
    if not covers.days or not path.parent.is_dir() or not Ledger.started(path):
        return
    series = None if config.series is None else config.series.name
    with Ledger.view(path) as ledger:
        for charge in ledger.charges():
            same = (
                charge.part is not None and charge.part.series == series and charge.dataset == config.data.id
            )
            if same or not _near(charge, covers):  # a series by itself: `cbdp.app.series.continuity`
                continue
            before = read_as(charge, ledger)
            if before and not alike(before, covers.days, same_data=charge.dataset == config.data.id):
                raise _refusal(config, charge, before, covers.days)


def _near(charge: Charge, covers: ChargeScope) -> bool:
    other = charge.covers
    if other is None or (charge.part and charge.part.stage == RUNNING_TOTALS):
        return False
    if other.first is None or other.last is None or covers.first is None or covers.last is None:
        return True  # it may be about any day
    return other.first <= covers.last + MAX_DAY_SHIFT and covers.first <= other.last + MAX_DAY_SHIFT


def read_as(charge: Charge, ledger: Ledger) -> str:
    """As the charge states it; of those that earlier versions made, as the release does, if it can be read."""
    stated, done = "" if charge.covers is None else charge.covers.days, ledger.finished(charge.request)
    if stated or done is None:
        return stated
    try:
        manifest = read_manifest(Path(done.path))
        return manifest["series"].get("days", "") if "series" in manifest else ""
    except CbdpError:
        return ""


def alike(before: str, now: str, *, same_data: bool = True) -> bool:
    """Of the same trips everything is read alike. Other trips have columns of their own; their zone is compared where both state one."""
    one, two = DayReading.of(before), DayReading.of(now)
    if before == now or one is None or two is None:
        return before == now
    if same_data:
        return two.agrees(one)
    return one.starts == two.starts and (one.zone == two.zone or AS_WRITTEN in (one.zone, two.zone))


def _refusal(config: Config, charge: Charge, before: str, now: str) -> InputError:
    whose = f"the series {charge.part.series!r}" if charge.part else "another release"
    return config.source.error(
        ("data",),
        f"the ledger also holds {whose} of near days, which reads a trip's day {before}, and here it is read {now}: one day of a person would "
        "lie on two days there, and cost more than the ledger says. Write the same data.timezone, data.day_starts and column of the day in both, or "
        "leave three days between them",
    )


# Whether the next release belongs to the series


MAX_SHOWN_VALUES = 3  # values of a dimension that an error names


def check_continuity(plan: DatedRelease) -> None:
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


def changes_since(plan: DatedRelease) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """What has changed since the version before, as the last release of that one tells; and stops with another name: old, new."""
    version = series_of(plan.config).version
    if version == 1 or not Ledger.started(plan.account.path):
        return (), ()
    with Ledger.view(plan.account.path) as ledger:
        earlier = charges_of(ledger, series_of(plan.config).name, plan.dataset)
        before = [c for c in reversed(earlier) if c.part and c.part.version == version - 1]
        names = names_since(plan.config, version)
        changes = tuple(_differences(plan, ledger, before, names))
        return changes, tuple((str(old), str(new)) for old, new in names.items())


def _check_periods(plan: DatedRelease, earlier: Sequence[Charge]) -> None:
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


def _check_days(plan: DatedRelease, ledger: Ledger, earlier: Sequence[Charge]) -> None:
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


def _with_kind(before: DayReading, plan: DatedRelease, charge: Charge) -> DayReading:
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
        seen = DayReading.of(plan.service_days_at(config_of_slot(raw, slot)))
    except (CbdpError, OSError, StopIteration):
        return before
    if seen is None or seen.kind == NULLS:
        return before
    zone = seen.zone if before.zone == AS_WRITTEN else before.zone
    return replace(before, kind=seen.kind, zone=zone)


def _check_person(plan: DatedRelease, ledger: Ledger, earlier: Sequence[Charge]) -> None:
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


def _check_version(plan: DatedRelease, earlier: Sequence[Charge]) -> None:
    series = series_of(plan.config)
    latest = max((c.part.version for c in earlier if c.part), default=0)
    if series.version < latest or (latest and series.version > latest + 1):
        raise plan.config.source.error(
            ("series", "version"),
            f"version is {series.version}, and the last release is of version {latest}: write {latest}, or {latest + 1} "
            "if universe or features have changed",
        )


def _changed(plan: DatedRelease, ledger: Ledger, same: Sequence[Charge]) -> str:
    series = series_of(plan.config)
    differences = "; ".join(_differences(plan, ledger, same)) or "the universe or the features"
    return (
        f"what is counted has changed since the first release of version {series.version} of the series: {differences}. Undo that, or "
        f"write version = {series.version + 1} to go on with the new one"
    )


def _differences(
    plan: DatedRelease,
    ledger: Ledger,
    same: Sequence[Charge],
    names: Mapping[Hashable, Hashable] | None = None,
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


# Earlier releases as a prior for the next (`series.earlier`): published files only, so nothing is spent


SATURDAY = 5  # as `datetime.date.weekday` has it


def prior_of_earlier(plan: PlannedRelease) -> EarlierPrior | None:
    """What the latest releases before the plan's period tell of it; None: there is none yet."""
    releases = _earlier(plan)[-series_of(plan.config).earlier :]
    if not releases:
        return None
    alike, others = ([path for day, path in releases if _kind(plan, day) is same] for same in _kinds(plan))
    return earlier_prior(alike, others)


def _earlier(plan: PlannedRelease) -> list[tuple[dt.date, Path]]:
    """The first day and the folder of every release of the series that ended before, in order; of two stages the later one."""
    slot = plan.slot
    assert slot is not None
    if not Ledger.started(plan.account.path):
        return []
    series, shape = series_of(plan.config), shape_of(plan.features)
    releases: dict[dt.date, Path] = {}
    with Ledger.view(plan.account.path) as ledger:
        for charge in charges_of(ledger, series.name, plan.dataset):
            covers, done = charge.covers, ledger.finished(charge.request)
            if covers is None or covers.first is None or covers.last is None or done is None:
                continue
            same = charge.part is not None and charge.part.shape == shape
            if same and covers.last < slot.first and (Path(done.path) / MANIFEST).is_file():
                releases[covers.first] = Path(done.path)
    return sorted(releases.items())


def _kinds(plan: PlannedRelease) -> tuple[bool, bool]:
    """The kind of the plan's own day, and the other."""
    assert plan.slot is not None
    kind = _kind(plan, plan.slot.first)
    return kind, not kind


def _kind(plan: PlannedRelease, day: dt.date) -> bool:
    """Whether a day is on a weekend; weeks and months are all of one kind."""
    return series_of(plan.config).calendar == "daily" and day.weekday() >= SATURDAY
