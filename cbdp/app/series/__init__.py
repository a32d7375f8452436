"""A series of releases: one for every period of a calendar, each made once, whatever happens to the run that makes it.

Which releases are made is known from the ledger alone. `cbdp.forecast.calendar` says which are due, `cbdp.app.series.continuity` refuses what would make it
another series, `cbdp.app.publish` makes each release.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from cbdp.app.inspecting import reading_of_plan
from cbdp.app.plan import Plan, plan, plan_of
from cbdp.app.publish import Judge, PublishedRelease, publish
from cbdp.app.series.continuity import RowsNow, Totals, check_continuity, note, with_changes
from cbdp.app.trips import refuse_in_series
from cbdp.commands.stopping import Interrupts
from cbdp.counting import Counts, count
from cbdp.counting.plausibility import (
    NOTHING_ACCEPTED,
    Accepted,
    DroppedError,
    Plausibility,
    judge_rows,
    refuse_bounded,
    refuse_unusual,
)
from cbdp.errors import CbdpError, InputError
from cbdp.forecast.account import Status, status_of
from cbdp.forecast.calendar import Slot, charges_of, check_series, due_slots, pending, series_of, shape_of
from cbdp.ledger import Ledger
from cbdp.ledger.store import exclusive_lock
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.unit import RELEASE, Person
from cbdp.progress import Say, silent
from cbdp.release.earlier import earlier_prior
from cbdp.release.files import MANIFEST
from cbdp.release.roles import counted_noun

if TYPE_CHECKING:
    from cbdp.config import Config


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
        planned = planner.totals.beside(with_earlier(with_changes(planned)))
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


SATURDAY = 5  # as `datetime.date.weekday` has it


def with_earlier(plan: Plan) -> Plan:
    """The plan with a prior from the releases before its period; as it is where none is wanted, or there is none yet."""
    most = series_of(plan.config).earlier
    if not most:
        return plan
    mechanism = plan.mechanism
    with plan.config.source.at("series", "earlier"):
        if not isinstance(mechanism, ConstraintBased):
            raise InputError(f"{mechanism.name} has no use for earlier releases: leave it out")
        releases = _earlier(plan)[-most:]
        if not releases:
            return plan
        alike, others = (
            [path for day, path in releases if _kind(plan, day) is same] for same in _kinds(plan)
        )
        prior = earlier_prior(alike, others)
    return replace(plan, mechanism=replace(mechanism, **prior.settings))


def _earlier(plan: Plan) -> list[tuple[dt.date, Path]]:
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


def _kinds(plan: Plan) -> tuple[bool, bool]:
    """The kind of the plan's own day, and the other."""
    assert plan.slot is not None
    kind = _kind(plan, plan.slot.first)
    return kind, not kind


def _kind(plan: Plan, day: dt.date) -> bool:
    """Whether a day is on a weekend; weeks and months are all of one kind."""
    return series_of(plan.config).calendar == "daily" and day.weekday() >= SATURDAY


__all__ = ["Ran", "Status", "run_series", "status_of"]
