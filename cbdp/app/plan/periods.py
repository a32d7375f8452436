"""The calendar of a series: its periods, when their releases are due, and what they are called. From the configuration alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePath

from cbdp.app.config import Config, DayRange, SeriesSection
from cbdp.errors import InputError
from cbdp.release.series import FINAL, PRELIMINARY, InSeries

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
    found: list[Slot] = []
    for period in _periods(config, series):
        if period[2] > until:
            break
        found += [slot for slot in _slots(series, *period) if slot.due <= until]
    return sorted(found, key=lambda slot: (slot.due, slot.first, slot.stage))


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
    start = _date(series.start)
    if series.calendar == "monthly" and start.day != 1:
        raise config.source.error(
            ("series", "start"),
            f"start is {start}, and months begin on the first: write {start.replace(day=1)}",
        )
    if series.end is not None and _date(series.end) < start:
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
    ranges = sorted((*_range(gap), n) for n, gap in enumerate(series.gaps))
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
    gaps = [_range(gap) for gap in series.gaps]
    for label, first, last in _all_periods(config, series):
        if not any(begin <= first and last <= end for begin, end in gaps):
            yield label, first, last


def _all_periods(config: Config, series: SeriesSection) -> Iterator[tuple[str, dt.date, dt.date]]:
    first = _date(series.start)
    end = dt.date.max - 366 * DAY if series.end is None else _date(series.end)
    while first <= end:
        last = last_of(series.calendar, first)
        if last > end:
            if series.end is not None:
                raise config.source.error(
                    ("series", "end"),
                    f"end is {end}, in the middle of the period from {first} to {last}: write {first - DAY} or {last}",
                )
            return
        yield _label(series.calendar, first), first, last
        first = last + DAY


def last_of(calendar: str, first: dt.date) -> dt.date:
    """The last day of the period that begins on a day."""
    if calendar == "daily":
        return first
    if calendar == "weekly":
        return first + 6 * DAY
    return (first.replace(day=1) + 31 * DAY).replace(day=1) - DAY


def _label(calendar: str, first: dt.date) -> str:
    """2026-03-02, 2026-03, or the week as in ISO 8601 if it begins on Monday, else by its first day."""
    if calendar == "monthly":
        return f"{first:%Y-%m}"
    if calendar == "weekly":
        year, week, day = first.isocalendar()
        return f"{year}-W{week:02d}" if day == 1 else f"week-of-{first}"
    return first.isoformat()


def _range(gap: str | DayRange) -> tuple[dt.date, dt.date]:
    if isinstance(gap, str):
        return _date(gap), _date(gap)
    return _date(gap.first), _date(gap.last)


def _date(text: str) -> dt.date:
    return dt.date.fromisoformat(text)
