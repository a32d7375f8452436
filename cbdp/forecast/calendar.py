"""The calendar of a series: its periods, when their releases are due, what each of them is as a plan, and which are still to be made."""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any
from zoneinfo import ZoneInfo

from cbdp.config import Config, DayRange, DaySpan, SeriesSection
from cbdp.errors import CbdpError, InputError
from cbdp.features import FeatureDag, Universe
from cbdp.forecast.plan import PlannedMechanism
from cbdp.ledger import Charge, ChargeScope, Ledger, SeriesPart
from cbdp.privacy.accounting import rho_for
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp.release.earlier import with_renamed_values
from cbdp.release.files import read_manifest
from cbdp.release.layout import universe_hash
from cbdp.release.release import Release
from cbdp.release.series import FINAL, PRELIMINARY, RUNNING_TOTALS, InSeries, series_from
from cbdp_features.calendar import DAY_STARTS, dates_or_none, day_dimension, fixed_offset, seconds_of_day
from cbdp_features.contribution import contribution_structure

DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Slot:
    """One release of a series: its period, its stage, and the day at whose end it is due."""

    period: str
    first: dt.date
    last: dt.date
    stage: str
    due: dt.date
    share: Fraction = Fraction(1)  # of epsilon

    @property
    def label(self) -> str:
        return self.period if self.stage == FINAL else f"{self.period} ({self.stage})"

    def place(self, series: SeriesSection) -> InSeries:
        return InSeries(
            series.name, series.version, series.calendar, self.period, self.first, self.last, self.stage
        )


def series_of(config: Config) -> SeriesSection:
    if config.series is None:
        raise InputError(
            f"{config.source.path} describes one release: add [series] with calendar and start to make it a series"
        )
    return config.series


def first_slot(config: Config) -> Slot:
    """The first release of a series."""
    check_series(config)
    series = series_of(config)
    for period in _periods(config, series):
        return next(iter(_slots(series, *period)))
    raise config.source.error(("series", "gaps"), "every period of the series is in a gap: state fewer gaps")


def due_slots(config: Config, until: dt.date) -> list[Slot]:
    """All releases that are due when this day has ended, in the order in which they fall due."""
    check_series(config)
    series = series_of(config)
    slots: list[Slot] = []
    for period in _periods(config, series):
        if period[2] > until:
            break
        slots += [slot for slot in _slots(series, *period) if slot.due <= until]
    return sorted(slots, key=lambda slot: (slot.due, slot.first, slot.stage))


def slot_of(config: Config, place: InSeries) -> Slot:
    """The release of the series that a manifest says it is."""
    series = series_of(config)
    for slot in due_slots(config, place.last + (series.final_after or 0) * DAY):
        if (slot.first, slot.last, slot.stage) == (place.first, place.last, place.stage):
            return slot
    raise config.source.error(
        ("series",),
        f"the series has no {place.stage} release of {place.first} to {place.last}: give the configuration it was made with",
    )


def slot_of_release(config: Config, release: Path) -> Slot | None:
    """Which release of the configured series a folder holds; None, the first, if its manifest does not say."""
    try:
        series = series_from(read_manifest(release).get("series"))
    except CbdpError:
        return None
    return None if series is None else slot_of(config, series)


def _slots(series: SeriesSection, label: str, first: dt.date, last: dt.date) -> Iterator[Slot]:
    if series.revise == "never":
        yield Slot(label, first, last, FINAL, last)
        return
    assert series.shares is not None
    assert series.final_after is not None
    for stage, due in ((PRELIMINARY, last), (FINAL, last + series.final_after * DAY)):
        yield Slot(label, first, last, stage, due, series.shares[stage])


def check_series(config: Config) -> None:
    """What is wrong with a calendar, in one line with its place."""
    series = series_of(config)
    start = _as_date(series.start)
    if series.calendar == "monthly" and start.day != 1:
        raise config.source.error(
            ("series", "start"),
            f"start is {start}, and months begin on the first: write {start.replace(day=1)}",
        )
    if series.end is not None and _as_date(series.end) < start:
        raise config.source.error(
            ("series", "end"), f"end is {series.end}, which is before the start {start}: swap them"
        )
    _check_shares(config, series)
    _check_gaps(config, series)
    if "{period}" not in PurePath(config.output.path).name or "{" in str(PurePath(config.output.path).parent):
        raise config.source.error(
            ("output", "path"),
            f"path is {config.output.path!r}: a series needs {{period}} in the name of the folder of each release, "
            'for example "releases/{period}"',
        )
    if config.about is not None and config.about.period is not None:
        raise config.source.error(
            ("about", "period"), "every release of a series states its own period: leave about.period out"
        )


def _check_shares(config: Config, series: SeriesSection) -> None:
    where = ("series", "shares" if series.shares is not None else "revise")
    if series.revise == "never":
        if series.shares is not None:
            raise config.source.error(where, 'shares are for revise = "once": leave them out, or write that')
        return
    if (
        series.shares is None
        or set(series.shares) != {PRELIMINARY, FINAL}
        or sum(series.shares.values()) != 1
    ):
        raise config.source.error(
            where,
            'revise is "once": state how epsilon is divided, like shares = { preliminary = 0.25, final = 0.75 }, which add '
            "up to 1, and final_after, the days from the end of a period to its final release",
        )


def _check_gaps(config: Config, series: SeriesSection) -> None:
    """Gaps lie apart, and hold whole periods."""
    ranges = sorted((*_gap_range(gap), n) for n, gap in enumerate(series.gaps))
    for n, (first, last, place) in enumerate(ranges):
        keys = ("series", "gaps", place)
        if last < first:
            raise config.source.error(
                keys, f"the gap ends on {last}, before its first day {first}: swap them"
            )
        if n and first <= ranges[n - 1][1]:
            raise config.source.error(
                keys, f"the gap from {first} overlaps the one to {ranges[n - 1][1]}: keep one of them"
            )
        for label, begin, end in _cut_by(config, series, first, last):
            raise config.source.error(
                keys,
                f"the gap from {first} to {last} cuts the period {label} ({begin} to {end}) in two: a gap holds whole "
                f"periods of a {series.calendar} calendar",
            )


def _cut_by(
    config: Config, series: SeriesSection, first: dt.date, last: dt.date
) -> Iterator[tuple[str, dt.date, dt.date]]:
    """The periods that a gap covers in part."""
    for label, begin, end in _all_periods(config, series):
        if begin > last:
            return
        if end >= first and not (first <= begin and end <= last):
            yield label, begin, end


def _periods(config: Config, series: SeriesSection) -> Iterator[tuple[str, dt.date, dt.date]]:
    """Label, first and last day of all periods that are in no gap."""
    gaps = [_gap_range(gap) for gap in series.gaps]
    for label, first, last in _all_periods(config, series):
        if not any(begin <= first and last <= end for begin, end in gaps):
            yield label, first, last


def _all_periods(config: Config, series: SeriesSection) -> Iterator[tuple[str, dt.date, dt.date]]:
    first = _as_date(series.start)
    end = dt.date.max - 366 * DAY if series.end is None else _as_date(series.end)
    while first <= end:
        last = last_of(series.calendar, first)
        if last > end:
            if series.end is not None:
                raise config.source.error(
                    ("series", "end"),
                    f"end is {end}, in the middle of the period from {first} to {last}: write {first - DAY} or {last}",
                )
            return
        yield _period_label(series.calendar, first), first, last
        first = last + DAY


def last_of(calendar: str, first: dt.date) -> dt.date:
    """The last day of the period that begins on a day."""
    if calendar == "daily":
        return first
    if calendar == "weekly":
        return first + 6 * DAY
    return (first.replace(day=1) + 31 * DAY).replace(day=1) - DAY


def _period_label(calendar: str, first: dt.date) -> str:
    """2026-03-02, 2026-03, or the week as in ISO 8601 if it begins on Monday, else by its first day."""
    if calendar == "monthly":
        return f"{first:%Y-%m}"
    if calendar == "weekly":
        year, week, day = first.isocalendar()
        return f"{year}-W{week:02d}" if day == 1 else f"week-of-{first}"
    return first.isoformat()


def _gap_range(gap: str | DayRange) -> tuple[dt.date, dt.date]:
    if isinstance(gap, str):
        return _as_date(gap), _as_date(gap)
    return _as_date(gap.first), _as_date(gap.last)


def _as_date(text: str) -> dt.date:
    return dt.date.fromisoformat(text)


# One release of a series as a plan: its configuration, days and request, and whether unit and universe fit the calendar


GAUSSIAN = "gaussian"
UNIT_PERIODS_OF_CALENDAR: Mapping[
    str, tuple[str, ...]
] = {  # calendar → periods of a unit that lie within one of its own
    "daily": ("release", "day"),
    "weekly": ("release", "day", "week"),
    "monthly": ("release", "day", "month"),
}


def release_of_series(config: Config, slot: Slot | None) -> tuple[Config, Slot]:
    """The configuration of one release of a series: that of the slot, or the first."""
    check_series(config)
    chosen = slot or first_slot(config)
    return config_of_slot(config, chosen), chosen


def config_of_slot(config: Config, slot: Slot) -> Config:
    """The configuration of one release: its place, its rows' place, its share of ε, its period."""
    check_series(config)
    about = config.about
    if about is not None:
        about = replace(about, period=DaySpan(slot.first.isoformat(), slot.last.isoformat()))
    return replace(
        config,
        data=replace(config.data, trips=tuple(_with_period(t, slot) for t in config.data.trips)),
        output=replace(config.output, path=_stage_path(config.output.path, slot)),
        privacy=replace(config.privacy, **_stage_share(config, slot)),
        about=about,
    )


def _stage_path(written: str, slot: Slot) -> str:
    """The folder of a release; a preliminary one has a name of its own."""
    if slot.stage == PRELIMINARY and "{stage}" not in written:
        written = written.replace("{period}", f"{{period}}-{PRELIMINARY}")
    return _with_period(written, slot)


def _with_period(written: str, slot: Slot) -> str:
    return written.replace("{period}", slot.period).replace("{stage}", slot.stage)


def _stage_share(config: Config, slot: Slot) -> dict[str, Any]:
    """The amounts of [privacy] that a stage gets its share of: of ρ where the noise costs ρ, which ε and δ do not share out."""
    privacy, share = config.privacy, slot.share
    if share == 1:
        return {}
    budget = privacy.budget
    amounts: dict[str, Any] = {}
    if isinstance(budget, Mapping):
        amounts["budget"] = {name: value * share for name, value in budget.items()}
    if privacy.rho is not None:
        return amounts | {"rho": privacy.rho * share}
    assert privacy.epsilon is not None
    if GAUSSIAN in (privacy.law, config.mechanism.settings.get("law")) and privacy.delta:
        return amounts | {"epsilon": None, "rho": rho_for(privacy.epsilon, privacy.delta) * share}
    delta = None if privacy.delta is None else privacy.delta * share
    return amounts | {"epsilon": privacy.epsilon * share, "delta": delta}


def check_fits(config: Config, unit: Unit, universe: Universe) -> None:
    """Whether the unit's period lies within those of the calendar, and the universe is the same for all of them."""
    series = series_of(config)
    per = unit.per
    if per not in UNIT_PERIODS_OF_CALENDAR[series.calendar]:
        raise config.source.error(
            ("privacy", "unit"),
            f"the unit protects one {per} of a person, and releases are {series.calendar}: one {per} would be in several "
            f"releases, each of which costs ε. Protect a person per {' or '.join(UNIT_PERIODS_OF_CALENDAR[series.calendar][1:])}, or release "
            f"{'monthly' if per == 'month' else 'weekly'}",
        )
    start = dt.date.fromisoformat(series.start)
    if per == "week" and start.weekday() != 0:
        monday = start + dt.timedelta(days=7 - start.weekday())
        raise config.source.error(
            ("series", "start"),
            f"the unit's weeks begin on Monday, and start is a {start:%A}: write {monday}, or protect a person per release",
        )
    named = day_dimension(universe.dimensions)
    if named is not None and dates_or_none(universe.dimensions[named]) is not None:
        raise config.source.error(
            ("universe", "days"),
            "all releases of a series have one universe, and this one lists dates: leave universe.days out, or list types of "
            'days like ["weekday", "saturday", "sunday"]',
        )


def request_of_slot(config: Config, slot: Slot) -> str:
    """What the ledger knows a release of a series by: the period, whatever else has changed, so that it is made once."""
    series, data = series_of(config), config.data
    days = [slot.first.isoformat(), slot.last.isoformat()]
    stated = ["series", data.id, data.riders, series.name, slot.period, *days, slot.stage]
    return hashlib.sha256(json.dumps(stated).encode()).hexdigest()


def part_of(config: Config, slot: Slot, features: FeatureDag) -> SeriesPart:
    series = series_of(config)
    return SeriesPart(series.name, series.version, slot.period, slot.stage, shape_of(features))


def shape_of(features: FeatureDag) -> str:
    """A hash of universe and features."""
    listed = {name: sorted(feature.by) for name, feature in features.features.items()}
    text = json.dumps([universe_hash(features.universe), listed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def covers_of(
    unit: Unit, universe: Universe, slot: Slot | None, mechanism: PlannedMechanism | None = None
) -> ChargeScope:
    """The days that a release looks at: of its period, or those that the universe lists; and whether all that is measured tells them apart."""
    if slot is not None:
        return ChargeScope.of(unit, slot.first, slot.last)
    named = day_dimension(universe.dimensions)
    dates = None if named is None else dates_or_none(universe.dimensions[named])
    if not dates:
        return ChargeScope.of(unit)
    apart = mechanism is not None and tells_periods_apart(mechanism)
    return ChargeScope.of(unit, min(dates), max(dates), disjoint_periods=apart)


def tells_periods_apart(mechanism: PlannedMechanism) -> bool:
    """Whether no count that is measured holds trips of two periods of the unit; where that is a trip, of two days."""
    unit = mechanism.unit
    per = unit.per if isinstance(unit, Person) else "day"
    if per == RELEASE:
        return False
    asked = [answer.feature for answer in mechanism.answers()]
    return bool(asked) and all(
        contribution_structure(mechanism.measured_features, name, per).periods for name in asked
    )


# Pending releases: the ledger alone decides


def pending(config: Config, slots: Sequence[Slot]) -> list[Slot]:
    """The slots whose release the ledger does not know. A preliminary one is left out when the final one is due, unless it was charged."""
    path = config.path(config.privacy.ledger)
    final = {slot.period for slot in slots if slot.stage == FINAL}
    late = {slot for slot in slots if slot.stage != FINAL and slot.period in final}
    if not path.parent.is_dir() or not Ledger.started(path):
        return [slot for slot in slots if slot not in late]
    with config.source.at("privacy", "ledger"), Ledger.view(path) as ledger:
        ledger.verify()
        open_requests = {charge.request for charge in ledger.unfinished()}
        requests = [(slot, request_of_slot(config, slot)) for slot in slots]
        return [
            slot
            for slot, request in requests
            if ledger.finished(request) is None and (slot not in late or request in open_requests)
        ]


def charges_of(ledger: Ledger, name: str, dataset: str) -> list[Charge]:
    """The charges of one series for its releases; those for running totals pay no single one."""
    return [
        c
        for c in ledger.charges()
        if c.part is not None
        and c.part.series == name
        and c.part.stage != RUNNING_TOTALS
        and c.dataset == dataset
    ]


# Renamed stops: a public file for each version of a series, with the old and the new name


OLD, NEW = "old", "new"


def names_since(config: Config, version: int) -> dict[Hashable, Hashable]:
    """Old name → new name of what was renamed with this version; nothing where no file is stated."""
    stated = series_of(config).renamed or {}
    if str(version) not in stated:
        return {}
    with config.source.at("series", "renamed", str(version)):
        return _read(config, stated[str(version)])


def _read(config: Config, written: str) -> dict[Hashable, Hashable]:
    path = config.path(written)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error) as why:
        raise InputError(f"the file {written!r} cannot be read: {why}") from None
    pairs: dict[Hashable, Hashable] = {}
    for number, row in enumerate(rows, 2):
        old, new = ((row.get(column) or "").strip() for column in (OLD, NEW))
        if not old or not new:
            raise InputError(
                f"line {number} of {written!r} does not name an old and a new stop: it needs the columns old and new"
            )
        if old in pairs or new in pairs.values():
            twice = old if old in pairs else new
            raise InputError(
                f"line {number} of {written!r} names {twice!r} a second time: a stop has one new name. Where stops were joined or split, their "
                "counts are of other trip types: leave them out"
            )
        pairs[old] = new
    return pairs


def check_names(before: FeatureDag, after: FeatureDag, names: dict[Hashable, Hashable]) -> None:
    """Refuse names that were not there before, are not there now, or stand for something else."""
    old, new = (
        {value for d in dag.universe.dimensions.values() for value in d.values} for dag in (before, after)
    )
    for was, is_now in names.items():
        if was not in old:
            raise InputError(
                f"{was!r} is called {is_now!r}, and the version before has no {was!r}: check the file"
            )
        if is_now not in new or is_now in old:
            state = "was there before" if is_now in old else "is not there now"
            raise InputError(f"{was!r} is called {is_now!r}, which {state}: check the file")


def as_named_now(config: Config, release: Release) -> Release:
    """A release of an earlier version, with the names that stops have in the present one."""
    if release.series is None:
        return release
    names: dict[Hashable, Hashable] = {}
    for version in range(release.series.version + 1, series_of(config).version + 1):
        step = names_since(config, version)
        names = {was: step.pop(is_now, is_now) for was, is_now in names.items()} | step
    return with_renamed_values(release, names) if names else release


# The last service day that is over, by the agency's clock: the calendar is stated, the clock only says how far it has got


def last_ended_day(config: Config, now: dt.datetime | None = None) -> dt.date:
    """The last service day that is over: in the agency's time zone, from the hour at which its days begin."""
    zone = _zone(config.data.timezone)
    moment = (now or dt.datetime.now(dt.UTC)).astimezone(zone)
    starts = config.data.day_starts or DAY_STARTS
    service = moment.replace(tzinfo=None) - dt.timedelta(seconds=seconds_of_day(starts))
    return service.date() - dt.timedelta(days=1)


def until_of(config: Config, text: str | None) -> dt.date:
    """The day that is asked for, or the last that is over."""
    if text is None:
        return last_ended_day(config)
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"--until is {text!r}: write a day like 2026-11-15") from None


def check_over(config: Config, until: dt.date, now: dt.datetime | None = None) -> None:
    """Refuse to release a day before it is over: its later rows would be in no release, ever."""
    last = last_ended_day(config, now)
    if until > last:
        raise InputError(
            f"{until} is not over: the last service day that is, by this machine's clock and data.timezone, is {last}. A release of a day "
            "that goes on would leave its later trips out for ever"
        )


def _zone(name: str | None) -> dt.tzinfo | None:
    """The agency's zone; that of this machine where none is stated."""
    if name is None:
        return None
    offset = fixed_offset(name)
    return ZoneInfo(name) if offset is None else dt.timezone(dt.timedelta(seconds=offset))
