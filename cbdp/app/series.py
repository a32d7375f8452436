"""A series of releases: one for every period of a calendar, each made once, whatever happens to the run that makes it.

Which releases are made is known from the ledger alone. `cbdp.forecast.calendar` says which are due, `cbdp.forecast.continuity` refuses what would make it
another series, `cbdp.app.publish` makes each release. Rows that come late are counted for the curator; running totals go on from what earlier runs kept.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cbdp.app.inspecting import reading_of_plan
from cbdp.app.plan import Plan, plan, plan_of
from cbdp.app.publish import Judge, PublishedRelease, publish
from cbdp.app.trips import schema_of
from cbdp.commands.stopping import Interrupts
from cbdp.config import Config
from cbdp.counting import Counts, count
from cbdp.counting import plan as counting_plan
from cbdp.counting.files import are_files, source_hash
from cbdp.counting.linking import Prepared
from cbdp.counting.plan import ServiceDays
from cbdp.counting.plausibility import (
    NOTHING_ACCEPTED,
    Accepted,
    DroppedError,
    Plausibility,
    judge_rows,
    refuse_bounded,
    refuse_unusual,
)
from cbdp.counting.reading import TripReading
from cbdp.errors import CbdpError, InputError
from cbdp.features import Universe
from cbdp.forecast.account import Status, refuse_in_series, status_of
from cbdp.forecast.calendar import (
    Slot,
    check_series,
    config_of_slot,
    due_slots,
    last_ended_day,
    pending,
    series_of,
)
from cbdp.forecast.continuity import changes_since, check_continuity, prior_of_earlier
from cbdp.forecast.running import PlaceInSpan, charges_for, check_fits_caps, declared, place_of
from cbdp.ledger import FinishedCharge, Ledger
from cbdp.ledger.store import exclusive_lock
from cbdp.mechanisms import ConstraintBased
from cbdp.mechanisms.continual import History, release_in_series
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.unit import RELEASE, Person
from cbdp.progress import Say, silent
from cbdp.release import Release
from cbdp.release.files import load
from cbdp.release.series import FINAL, RUNNING_TOTALS
from cbdp.release.views import counted_noun
from cbdp.text import aligned
from cbdp.untrusted import read_json
from cbdp_features import calendar

Watching = Callable[[], AbstractContextManager[Interrupts]]


def unwatched() -> AbstractContextManager[Interrupts]:
    """For programs that use this as a library: their signals stay their own."""
    return nullcontext(Interrupts())


class SeriesStoppedError(CbdpError):
    """A run ended early, after it had made releases."""

    exit_code: ClassVar[int] = 1  # 2 promises that nothing was spent


@dataclass(frozen=True)
class Ran:
    """What a run has done."""

    due: int  # releases that are due by the day that was asked for
    released: tuple[Path, ...]
    finished: int  # by other runs
    stopped: bool = False  # by a signal, after a release


def run_series(
    config: Config,
    until: dt.date,
    say: Say = silent,
    *,
    create_ledger: bool = False,
    watching: Watching = unwatched,
    accept_dropped: bool = False,
    accept_unusual: bool = False,
    detail: Say = silent,
) -> Ran:
    """Make what is due by the end of a day. It may be killed at any instant and run again, also twice at once.

    `say` is told of each release and, for the curator alone, of its trips; `detail` of its stages. Where most rows would not count, or a period has no trips, it
    stops before anything is charged, unless `accept_dropped` says otherwise; where rows are repeated, days have none, trips are many more or fewer than
    expected or times are in UTC, unless `accept_unusual` does.
    """
    check_series(config)
    refuse_in_series(config)
    slots = due_slots(config, until)
    waiting = pending(config, slots)
    released: list[Path] = []
    finished = len(slots) - len(waiting)
    planner, judge = _Planner(config, waiting), judge_series(say, Accepted(accept_dropped, accept_unusual))
    for n, slot in enumerate(waiting):
        with _counting(released), watching() as interrupts:
            if released:  # what they cost is spent
                interrupts.stopped = f"{_after(released)}; nothing was charged for {slot.label}: run the command again to go on"
            say(f"{slot.label}: release {n + 1} of {len(waiting)} that are due")
            create = create_ledger and not released
            done = _release(planner, slot, detail, create=create, interrupts=interrupts, judge=judge)
        if done.fresh:
            released.append(done.path)
        else:
            finished += 1
            say(f"{slot.label}: another run has made it meanwhile")
        if interrupts.heard and n + 1 < len(waiting):
            return Ran(len(slots), tuple(released), finished, stopped=True)
    return Ran(len(slots), tuple(released), finished)


@contextmanager
def _counting(released: Sequence[Path]) -> Iterator[None]:
    """What stops a run that has made releases must not say that nothing was spent."""
    try:
        yield
    except CbdpError as why:
        if not released or getattr(why, "exit_code", None) == SeriesStoppedError.exit_code:
            raise
        raise SeriesStoppedError(f"{_after(released)}: {why}") from why


def _after(released: Sequence[Path]) -> str:
    stay = "which stays as it is" if len(released) == 1 else "which stay as they are"
    return f"stopped after {len(released)} release{'s' * (len(released) > 1)} of this run, {stay}"


@dataclass
class _Planner:
    """Plans of a series: what all its releases share is planned and rehearsed once for each stage."""

    config: Config
    waiting: Sequence[Slot]

    def __post_init__(self) -> None:
        self._first: dict[str, Plan] = {}
        self.rehearsed: set[str] = set()
        self.totals = Totals(self.config)
        self.rows = RowsNow(() if _apart(self.config) else self.waiting)

    def plan(self, slot: Slot) -> Plan:
        first = self._first.get(slot.stage)
        if first is not None:
            return plan_of(first, self.config, slot)
        self._first[slot.stage] = plan(self.config, slot)
        return self._first[slot.stage]


def _apart(config: Config) -> bool:
    """Whether the rows of each period lie in files of their own."""
    return any("{period}" in place for place in config.data.trips)


def _release(
    planner: _Planner, slot: Slot, say: Say, *, create: bool, interrupts: Interrupts, judge: Judge
) -> PublishedRelease:
    """One release, while no other run of the series makes one: what it is checked against stays as it is."""
    with _alone(planner.config):
        planned = planner.plan(slot)
        check_continuity(planned)
        changes, renamed = changes_since(planned)
        planned = replace(planned, changes=changes, renamed=renamed)
        planned = planner.totals.beside(with_earlier(planned))
        rows = planner.rows.of(reading_of_plan(planned), slot)
        with _folder(planned.output.parent):
            done = publish(
                planned,
                say,
                create_ledger=create,
                interrupts=interrupts,
                judge=judge,
                rehearsed=slot.stage in planner.rehearsed,
            )
        if done.fresh:
            planner.rehearsed.add(slot.stage)
            note(planner.config, rows)
            planner.totals.published(planned, done.path)
    return done


@contextmanager
def _folder(place: Path) -> Iterator[None]:
    """The folder of all releases, made for the first of them; a run that is refused leaves none behind."""
    if place.is_dir():
        yield
        return
    place.mkdir()
    try:
        yield
    except BaseException:
        with suppress(OSError):  # it holds something
            place.rmdir()
        raise


@contextmanager
def _alone(config: Config) -> Iterator[None]:
    ledger = Path(
        os.path.realpath(config.path(config.privacy.ledger))
    )  # whatever links lead to it, there is one lock
    if not ledger.parent.is_dir():  # planning says so
        yield
        return
    with exclusive_lock(ledger.with_name(f"{ledger.name}-lock-series")):
        yield


# Whether the rows of a series may be released: all of them are judged once in a run, and a period must have trips
#
# Both are decisions about private rows, shown to the curator alone, before anything is charged (docs/explanation/threat-model.md).


def judge_series(say: Callable[[str], None], accepted: Accepted = NOTHING_ACCEPTED) -> Judge:
    """The judge of one run of a series; what is `accepted` stops nothing."""
    judged: dict[str, Plausibility] = {}  # places of trips that were looked at as a whole

    def one(plan: Plan, counts: Counts) -> None:
        noun = counted_noun(plan.universe)
        say(f"counted {noun.number(int(counts.value.sum()))} in {plan.days} (private: for you alone)")
        if accepted.dropped and accepted.unusual:
            return
        place = repr(plan.trips)
        if place not in judged:
            every, reading = _all_rows(plan), reading_of_plan(plan)
            judge_rows(say, reading, every, accepted, days="all days together: ")
            if not accepted.dropped and _periodic(plan):
                refuse_bounded(reading, every)
            judged[place] = Plausibility(reading, 0 if every.rows is None else every.rows.read)
        if not accepted.dropped and not _periodic(plan):
            refuse_bounded(reading_of_plan(plan), counts)
        if not accepted.unusual and counts.value.sum():
            inside = counts.value.sum() if counts.rows is None else counts.rows.inside
            refuse_unusual(judged[place], int(inside), int(counts.value.sum()), plan.days)
        if not accepted.dropped and not counts.value.sum():
            raise DroppedError(
                f"there are no {noun.many} in {plan.days}, nothing was spent: if its rows are still to come, run this again when they "
                "are there; if nobody travelled, list the days in series.gaps or add --accept-dropped"
            )

    return one


def _periodic(plan: Plan) -> bool:
    """Whether a person's trips are bounded by periods, so that all rows together are bounded as each release is."""
    return isinstance(plan.unit, Person) and plan.unit.per != RELEASE


def _all_rows(plan: Plan) -> Counts:
    return count(plan.trips, plan.universe, columns=plan.columns, unit=plan.unit, clock=plan.clock)


# Earlier releases as a prior for the next (`series.earlier`): published files only, so nothing is spent


def with_earlier(plan: Plan) -> Plan:
    """The plan with a prior from the releases before its period; as it is where none is wanted, or there is none yet."""
    if not series_of(plan.config).earlier:
        return plan
    mechanism = plan.mechanism
    with plan.config.source.at("series", "earlier"):
        if not isinstance(mechanism, ConstraintBased):
            raise InputError(f"{mechanism.name} has no use for earlier releases: leave it out")
        prior = prior_of_earlier(plan)
    return plan if prior is None else replace(plan, mechanism=replace(mechanism, **prior.settings))


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
        state = source_hash(source)
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


__all__ = ["Ran", "Status", "run_series", "status_of"]
