"""`cbdp series status`, `page` and `compare`: what a ledger and published folders say of a series. No row is read."""

from __future__ import annotations

import calendar
import datetime as dt
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbdp.commands.program import FILE, argument, check_new, group, option, say, write_new
from cbdp.commands.releases import AskedComparison, comparison_options
from cbdp.errors import InputError
from cbdp.progress import Say, silent

if TYPE_CHECKING:
    from cbdp.config import Config
    from cbdp.forecast.account import Status
    from cbdp.forecast.calendar import Slot
    from cbdp.release import Release


@group("series")
def series() -> None:
    """Make the releases of a series that are due, or show what is made, due and spent."""


series_argument = argument("config", "configuration file with [series]", type=FILE)
until_option = option(
    "--until",
    metavar="DAY",
    about="make or show what is due at the end of this day (default: the last service day that is over)",
)


@series.command("status")
@series_argument
@until_option
def series_status(config: str, until: str | None) -> int:
    """Say what is made, due and spent, and what it costs one person."""
    from cbdp.config import read
    from cbdp.forecast.account import status_of
    from cbdp.forecast.calendar import until_of

    settings = read(config)
    print("\n".join(status_of(settings, until_of(settings, until)).lines()))
    return 0


@series.command("page")
@option("--out", metavar="FILE", required=True, type=FILE, about="the new HTML file")
@series_argument
@until_option
def series_page(out: str, config: str, until: str | None) -> int:
    """Write a page with every release of the series."""
    from cbdp.config import read
    from cbdp.forecast.account import status_of
    from cbdp.forecast.calendar import until_of

    path = Path(out)
    check_new(path, internal=False)
    settings = read(config)
    write_new(path, page_of(settings, status_of(settings, until_of(settings, until)), say))
    print(path)
    return 0


PROGRESS_FROM_RELEASES = 50  # releases after which progress is told
DEFAULT_SERIES_NAME = "series"  # what a series is called unless told
OFTEN_IN_WORDS = {"daily": "day by day", "weekly": "week by week", "monthly": "month by month"}


def page_of(config: Config, status: Status, say: Say = silent) -> str:
    """The page of what is made; where a period has two releases, of the final one. It is public: charges of runs that died are not in it."""
    from cbdp.release.series import PRELIMINARY
    from cbdp.report.series import PeriodFacts, build, period_of

    facts: list[PeriodFacts] = []
    secure = True
    for number, (slot, path) in enumerate(latest(status)):
        release = _read(path, status.noted[path])
        secure = secure and release.secure
        facts.append(period_of(release, slot.first, slot.last, preliminary=slot.stage == PRELIMINARY))
        if number and number % PROGRESS_FROM_RELEASES == 0:
            say(f"read {number:,} releases")
    if not facts:
        raise InputError("the series has no release yet: run `cbdp series run` first")
    return build(facts, status.published, title=title_of(config), simulation=not secure)


def _read(folder: Path, sha256: str) -> Release:
    """A release whose manifest the ledger knows and whose files the manifest knows: so they need not be worked out again to be believed."""
    from cbdp.release import load
    from cbdp.release.files import MANIFEST, read_manifest, verify_files

    try:
        same = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest() == sha256
    except OSError:
        same = False
    if not same:
        raise InputError(
            f"the manifest in {str(folder)!r} is not the one that was released: restore the folder"
        )
    verify_files(folder, read_manifest(folder)["files"])
    return load(folder, verify=False)


def title_of(config: Config) -> str:
    """As the publisher says, or what is counted and how often; two series of one ledger have names of their own."""
    from cbdp.forecast.calendar import series_of

    about, series = config.about, series_of(config)
    if about is not None and about.title:
        return about.title
    suffix = "" if series.name == DEFAULT_SERIES_NAME else f" ({series.name})"
    return f"{config.data.id}, {OFTEN_IN_WORDS[series.calendar]}{suffix}"


def latest(status: Status) -> Iterator[tuple[Slot, Path]]:
    """The last release of every period whose folder is there, in the order of the calendar."""
    from cbdp.release.series import PRELIMINARY

    releases: dict[str, tuple[Slot, Path]] = {}
    gone = set(status.missing)
    for slot, path in status.released:
        if path in gone or (slot.stage == PRELIMINARY and slot.period in releases):
            continue
        releases[slot.period] = (slot, path)
    yield from sorted(releases.values(), key=lambda pair: pair[0].first)


# `cbdp series compare`: how counts changed between two spans of days, weeks or months


@series.command("compare")
@series_argument
@until_option
@argument("first", "2026-03-02, 2026-W10, 2026-03 or 2026-03-02..2026-03-08", metavar="SPAN")
@argument("second", "the later one, likewise", metavar="SPAN")
@comparison_options
def compare_spans(config: str, until: str | None, first: str, second: str, **asked: Any) -> int:
    """Say how counts changed between two spans of days."""
    from cbdp.config import read
    from cbdp.forecast.account import status_of
    from cbdp.forecast.calendar import until_of

    comparison = AskedComparison(**asked)
    settings = read(config)
    status = status_of(settings, until_of(settings, until))
    return comparison.of(releases_in(status, first), releases_in(status, second))


WEEK, MONTH = re.compile(r"(\d{4})-W(\d{2})$"), re.compile(r"(\d{4})-(\d{2})$")
BETWEEN = ".."


def span_of(written: str) -> tuple[dt.date, dt.date]:
    """The first and the last day of a span.

    >>> [str(day) for day in span_of("2026-W10")], [str(day) for day in span_of("2026-02")]
    (['2026-03-02', '2026-03-08'], ['2026-02-01', '2026-02-28'])
    """
    text = written.strip()
    try:
        if match := WEEK.match(text):
            monday = dt.date.fromisocalendar(int(match[1]), int(match[2]), 1)
            return monday, monday + dt.timedelta(days=6)
        if match := MONTH.match(text):
            year, month = int(match[1]), int(match[2])
            return dt.date(year, month, 1), dt.date(year, month, calendar.monthrange(year, month)[1])
        first, _, last = text.partition(BETWEEN)
        days = dt.date.fromisoformat(first.strip()), dt.date.fromisoformat((last or first).strip())
    except (ValueError, calendar.IllegalMonthError):
        raise InputError(
            f"{written!r} is no span of days: write 2026-03-02, 2026-W10, 2026-03 or 2026-03-02..2026-03-08"
        ) from None
    if days[1] < days[0]:
        raise InputError(f"{written!r} ends before it begins: swap its days")
    return days


def releases_in(status: Status, written: str) -> list[Release]:
    """The releases that lie in a span. They must fill it, but for gaps of the calendar, and none may stick out."""
    from cbdp.forecast.calendar import as_named_now, series_of
    from cbdp.release import load

    first, last = span_of(written)
    start = dt.date.fromisoformat(series_of(status.config).start)
    if last > status.until or first < start:
        why = (
            f"the series begins on {start}"
            if first < start
            else f"it is not over by the end of {status.until}"
        )
        raise InputError(f"{written} is not all in the series: {why}; choose a span of published days")
    touching = [(s, path) for s, path in latest(status) if s.last >= first and s.first <= last]
    due = [s for s in status.due if s.last >= first and s.first <= last]
    if not {s.period for s in due} <= {s.period for s, _ in touching}:
        many = "1 release" if len(due) == 1 else f"{len(due)} releases"
        raise InputError(
            f"{many} in {written} {'is' if len(due) == 1 else 'are'} not made yet: run `cbdp series run` first"
        )
    if not touching:
        raise InputError(f"the series has no release in {written}: see `cbdp series status`")
    for slot, _ in touching:
        if slot.first < first or slot.last > last:
            raise InputError(
                f"the release {slot.period} is only partly in {written}: choose a span of whole releases"
            )
    return [as_named_now(status.config, load(path)) for _, path in touching]
