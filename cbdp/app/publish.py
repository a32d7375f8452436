"""From a plan to a published release, once: what `cbdp release` does.

The order makes it safe to be killed at any instant. ε is reserved, durably, before any noise is drawn. The release is
written beside its place and renamed into it as a whole. Then the ledger notes its manifest's hash. So a run that dies

- before the reservation has spent and left nothing;
- after it has spent its charge; what it drew was never published, and the next run pays for noise of its own;
- after the renaming has published; the next run finds the release by the charge in its manifest and notes it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cbdp.errors import InputError, SolverError
from cbdp.privacy.ledger import Charge, Ledger
from cbdp.progress import in_quarters, watched
from cbdp.release.layout import check
from cbdp.release.loading import load
from cbdp.release.saving import PARTIAL, Saved, leftovers
from cbdp.trips.count import Counts, count

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.release.release import Release

MANIFEST = "manifest.json"

Say = Callable[[str], None]


@dataclass(frozen=True)
class PublishedRelease:
    """Where a release is, and whether this run made it."""

    path: Path
    fresh: bool


def publish(plan: Plan, say: Say = lambda _: None) -> PublishedRelease:
    """Count, charge, measure, solve, round, write: or find the release that an identical request has made before."""
    claim = plan.mechanism.claim()
    if not claim.holds:
        raise InputError(
            f"{plan.mechanism.name} is {claim}. It is here to be studied, not to release real trips"
        )
    if plan.output == plan.account.path:
        raise InputError(f"the output {str(plan.output)!r} is the ledger's file: choose another path")
    check(plan.features)
    with _alone_in(plan.output.absolute().parent):
        done = _found(plan) or _made(plan, say)
    _export(plan, done, say)
    return done


def _found(plan: Plan) -> PublishedRelease | None:
    """The release that an identical request has made before."""
    if not Ledger.started(plan.account.path):
        return None
    with Ledger.open(plan.account.path, dataset=plan.dataset) as ledger, ledger.lock(plan.request):
        return _earlier(ledger, plan)


def _made(plan: Plan, say: Say) -> PublishedRelease:
    """Everything that can fail is done before the ledger is asked, or created."""
    counts = _count(plan, say)
    _rehearse(plan, say)
    claim, cap = plan.mechanism.claim(), plan.account.cap
    opened = Ledger.open(
        plan.account.path, dataset=plan.dataset, cap=cap.epsilon, cap_delta=cap.delta, create=True
    )
    with opened as ledger, ledger.lock(plan.request):
        earlier = _earlier(ledger, plan)
        if earlier is not None:
            return earlier
        charge = ledger.reserve(plan.request, claim.cost.epsilon, claim.cost.delta, what=plan.mechanism.name)
        say(f"charged ε = {float(charge.epsilon):g} to the ledger")
        release = _measure(plan, counts, say)
        saved = _write(plan, release, charge, say)
        ledger.released(charge, saved.sha256, plan.output)
    return PublishedRelease(plan.output, fresh=True)


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


def _earlier(ledger: Ledger, plan: Plan) -> PublishedRelease | None:
    """The release of an identical request, finished or only to be noted; leftovers of runs that died are removed."""
    done = ledger.finished(plan.request)
    if done is not None:
        _check_stored(Path(done.path), done.sha256)
        return PublishedRelease(Path(done.path), fresh=False)
    heads = {charge.head: charge for charge in ledger.unfinished(plan.request)}
    if plan.output.exists():
        charge = heads.get(_head(plan.output) or "")
        if charge is None:
            raise InputError(
                f"the output folder {str(plan.output)!r} exists already: choose another, or move it away"
            )
        ledger.released(charge, _digest(plan.output), plan.output)
        return PublishedRelease(plan.output, fresh=False)
    for dead in leftovers(plan.output):
        shutil.rmtree(dead, ignore_errors=True)
    return None


def _check_stored(folder: Path, sha256: str) -> None:
    if not (folder / MANIFEST).is_file():
        raise InputError(
            f"this request was released to {str(folder)!r}, which is gone: restore it, or change the request, "
            "which will be charged again"
        )
    if _digest(folder) != sha256:
        raise InputError(
            f"the manifest in {str(folder)!r} is not the one that was released: restore the folder"
        )
    load(folder)


def _count(plan: Plan, say: Say) -> Counts:
    with _stage(say, "counting trips"):
        return count(plan.trips, plan.universe, columns=plan.columns, unit=plan.unit, clock=plan.clock)


def _rehearse(plan: Plan, say: Say) -> None:
    """All steps with no trips at all, so that what can fail fails before anything is spent."""
    from cbdp.release.export import export
    from cbdp.report import build

    nothing = np.empty(0, dtype=np.int64)
    work = plan.output.absolute().with_name(f".{plan.output.name}.{secrets.token_hex(8)}{PARTIAL}")
    with _stage(say, "rehearsing without trips"):
        try:
            work.mkdir()
            release = plan.mechanism.simulate(Counts(plan.universe, nothing, nothing, plan.unit), seed=0)
            release = replace(release, places=plan.stops)
            release.save(work / "rehearsal", extra={"report.html": build(release)}, simulation=True)
            for name in plan.exports:
                export(release, work / f"rehearsal-{name}", format=name)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _measure(plan: Plan, counts: Counts, say: Say) -> Release:
    with _stage(say, "measuring, solving and rounding"), watched(in_quarters(say)):
        release = replace(plan.mechanism.release(counts), places=plan.stops)
    with _stage(say, "simulating intervals from the release"), watched(in_quarters(say)):
        try:
            return release.with_intervals(plan.confidence)
        except (
            InputError,
            SolverError,
        ) as why:  # ε is spent: a release without intervals is better than none
            say(f"there are no intervals: {why}")
            return release


def _write(plan: Plan, release: Release, charge: Charge, say: Say) -> Saved:
    from cbdp.report import build

    with _stage(say, "drawing the report"):
        page = build(release)
    with _stage(say, "writing files"):
        return release.save(plan.output, ledger_head=charge.head, extra={"report.html": page})


def _export(plan: Plan, done: PublishedRelease, say: Say) -> None:
    """The formats asked for, beside the release; those that are there already are left alone."""
    from cbdp.release.export import export

    for name in plan.exports:
        path = done.path.with_name(f"{done.path.name}-{name}")
        if not path.exists():
            with _stage(say, f"exporting {name}"):
                export(done.path, path, format=name)


def _digest(folder: Path) -> str:
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def _head(folder: Path) -> str | None:
    import json

    try:
        return str(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["ledger"]["head"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def _stage(say: Say, what: str) -> Iterator[None]:
    start = time.perf_counter()
    say(f"{what} …")
    yield
    say(f"{what}: {time.perf_counter() - start:.1f} s")
