"""The order of a release: everything that can fail, the charge, the noise, the files, the note."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from cbdp.app.plan.bought import unbought
from cbdp.app.publish.earlier import earlier
from cbdp.app.publish.making import counted, exported, measured, rehearse, stages_after_charge, written
from cbdp.app.publish.opening import check_ledger, opened
from cbdp.app.publish.run import Judge, Run, Say, approve, silent
from cbdp.app.stopping import Interrupts
from cbdp.errors import CbdpError, InputError
from cbdp.privacy.ledger import Charge, Ledger
from cbdp.privacy.ledger.amounts import SYMBOLS
from cbdp.privacy.ledger.prices import terms_of
from cbdp.release.layout import check
from cbdp.release.loading import read_manifest

if TYPE_CHECKING:
    from cbdp.app.plan import Plan


@dataclass(frozen=True)
class PublishedRelease:
    """Where a release is, and whether this run made it."""

    path: Path
    fresh: bool


class LostChargeError(CbdpError):
    """The run failed after its charge."""

    exit_code: ClassVar[int] = 1  # 2 promises that nothing was spent


def publish(
    plan: Plan,
    say: Say = silent,
    *,
    create_ledger: bool = False,
    interrupts: Interrupts | None = None,
    judge: Judge = approve,
    rehearsed: bool = False,
) -> PublishedRelease:
    """Count, charge, measure, solve, round, write: or find the release that an identical request has made before.

    A ledger that does not exist is created only if `create_ledger` says so. `interrupts` is how a command is stopped by signals.
    `judge` sees the counts before anything is charged, and may refuse them. `rehearsed`: a plan that differs by its days alone was
    rehearsed by this process already.
    """
    run = Run(plan, say, interrupts or Interrupts(), judge, rehearsed)
    _check(plan)
    with _alone_in(run.folder):
        check_ledger(plan, create=create_ledger)
        done = _found(run) or _made(run, create_ledger=create_ledger)
    _compare_about(run, done)
    exported(run, done.path)
    return done


def _check(plan: Plan) -> None:
    claim = plan.mechanism.claim()
    if not claim.holds:
        raise InputError(
            f"{plan.mechanism.name} is {claim}. It is here to be studied, not to release real trips"
        )
    if unbought(plan.config, plan.universe, plan.columns, plan.clock, plan.unit):
        raise InputError("max_trips is not bought yet: run `cbdp choose` with this configuration first")
    if plan.output == plan.account.path:
        raise InputError(f"the output {str(plan.output)!r} is the ledger's file: choose another path")
    check(plan.features)


def _found(run: Run) -> PublishedRelease | None:
    """The release that an identical request has made before."""
    plan = run.plan
    if not Ledger.started(plan.account.path):
        return None
    with opened(plan, create=False) as ledger, ledger.lock(plan.request):
        path = earlier(ledger, plan)
    return None if path is None else PublishedRelease(path, fresh=False)


def _made(run: Run, *, create_ledger: bool) -> PublishedRelease:
    """Everything that can fail is done before the ledger is charged, or created."""
    plan = run.plan
    counts = counted(run)
    run.judge(plan, counts)
    if not run.rehearsed:
        rehearse(run)
    with opened(plan, create=create_ledger) as ledger, ledger.lock(plan.request):
        path = earlier(ledger, plan)
        if path is not None:
            return PublishedRelease(path, fresh=False)
        run.interrupts.no_return(stages_after_charge(run))
        charge = _charged(ledger, plan)
        with _paid(charge):
            run.say(
                f"charged {SYMBOLS[charge.amount.currency]} = {float(charge.amount.value):g} to the ledger"
            )
            release = measured(run, counts)
            saved = written(run, release, ledger.statement(charge))
            ledger.released(charge, saved.sha256, plan.output)
    return PublishedRelease(plan.output, fresh=True)


def _charged(ledger: Ledger, plan: Plan) -> Charge:
    if plan.running is not None:
        plan.running.charge(ledger)
    terms = terms_of(plan.mechanism.claim().cost)
    return ledger.reserve(plan.request, **terms, what=plan.mechanism.name, covers=plan.covers, part=plan.part)


@contextmanager
def _paid(charge: Charge) -> Iterator[None]:
    """What goes wrong now has its price: say so."""
    try:
        yield
    except (CbdpError, OSError, MemoryError) as why:
        said = str(why) or type(why).__name__
        raise LostChargeError(
            f"the release failed after its charge: {said}. The charge of {charge.amount} stays spent; once the cause is cured, "
            "run the command again: it finds what was published, or charges anew"
        ) from why


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """One release at a time is written to a folder, so that what lies there half written is of a run that died."""
    try:
        import fcntl
    except ImportError:  # not on this system: the ledger's own lock still keeps identical requests apart
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


def _compare_about(run: Run, done: PublishedRelease) -> None:
    """What was published keeps what it says about itself: the ledger knows its manifest's hash."""
    wanted = None if run.plan.about is None else run.plan.about.json()
    if not done.fresh and read_manifest(done.path)["about"] != wanted:
        run.say("[about] is not what it was: the release keeps what it was published with")
