"""Making every release that is due and not yet made, in order, each once."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from cbdp.app.inspecting.judging import Accepted
from cbdp.app.inspecting.reading import reading_of_plan
from cbdp.app.plan import Plan, plan
from cbdp.app.plan.bought import refuse_in_series
from cbdp.app.plan.periods import Slot, check_series, due_slots
from cbdp.app.plan.planned import plan_of
from cbdp.app.publish import PublishedRelease, publish
from cbdp.app.publish.run import Judge, Say, silent
from cbdp.app.series.continuity import check_continuity, with_changes
from cbdp.app.series.earlier import with_earlier
from cbdp.app.series.judging import judge_series
from cbdp.app.series.late import RowsNow, note
from cbdp.app.series.pending import pending
from cbdp.app.series.totals import Totals
from cbdp.app.stopping import Interrupts
from cbdp.errors import CbdpError
from cbdp.privacy.ledger.locks import held

if TYPE_CHECKING:
    from cbdp.app.config import Config

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
    made: tuple[Path, ...]
    found: int  # that other runs have made
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
    made: list[Path] = []
    found = len(slots) - len(waiting)
    planner, judge = _Planner(config, waiting), judge_series(say, Accepted(accept_dropped, accept_unusual))
    for n, slot in enumerate(waiting):
        with _counting(made), watching() as interrupts:
            if made:  # what they cost is spent
                interrupts.stopped = (
                    f"{_after(made)}; nothing was charged for {slot.label}: run the command again to go on"
                )
            say(f"{slot.label}: release {n + 1} of {len(waiting)} that are due")
            create = create_ledger and not made
            done = _release(planner, slot, detail, create=create, interrupts=interrupts, judge=judge)
        if done.fresh:
            made.append(done.path)
        else:
            found += 1
            say(f"{slot.label}: another run has made it meanwhile")
        if interrupts.heard and n + 1 < len(waiting):
            return Ran(len(slots), tuple(made), found, stopped=True)
    return Ran(len(slots), tuple(made), found)


@contextmanager
def _counting(made: Sequence[Path]) -> Iterator[None]:
    """What stops a run that has made releases must not say that nothing was spent."""
    try:
        yield
    except CbdpError as why:
        if not made or getattr(why, "exit_code", None) == SeriesStoppedError.exit_code:
            raise
        raise SeriesStoppedError(f"{_after(made)}: {why}") from why


def _after(made: Sequence[Path]) -> str:
    stay = "which stays as it is" if len(made) == 1 else "which stay as they are"
    return f"stopped after {len(made)} release{'s' * (len(made) > 1)} of this run, {stay}"


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
        known = self._first.get(slot.stage)
        if known is not None:
            return plan_of(known, self.config, slot)
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
    with held(ledger.with_name(f"{ledger.name}-lock-series")):
        yield
