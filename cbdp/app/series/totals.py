"""Running totals of a series: what a run keeps of earlier days, and the release that goes on from them.

The sums that end today hold the true counts of every day of the span. A run keeps them in a folder beside the ledger, which is private. Where a file
of it is missing, the rows of that day are counted again: nothing is lost but time. What is published is read from the releases.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cbdp.app.plan.periods import Slot
from cbdp.app.plan.slots import applied
from cbdp.app.plan.trips import schema_of
from cbdp.app.series.late import noted
from cbdp.app.series.spans import Place, charges_for, check_fits_caps, declared, place_of
from cbdp.errors import InputError
from cbdp.mechanisms import ConstraintBased
from cbdp.mechanisms.in_series import History, release_in_series
from cbdp.privacy.ledger import Finished, Ledger
from cbdp.privacy.measurement import Measurement
from cbdp.release import Release
from cbdp.release.loading import load
from cbdp.release.series import FINAL, RUNNING
from cbdp.trips import Counts, count
from cbdp.trips.days import Days

if TYPE_CHECKING:
    from cbdp.app.config import Config
    from cbdp.app.plan import Plan

SUFFIX = ".running-internal"  # of a folder beside the ledger; private
README = "True counts of days whose running totals are published. Private: never publish. A file that is missing is counted again.\n"


@dataclass
class RunningRelease:
    """The running totals that one release is part of, with what came before."""

    plan: Plan
    place: Place
    history: Mapping[str, History] = field(repr=False)
    counts: Counts | None = field(default=None, repr=False)
    made: Release | None = field(default=None, repr=False)

    def charge(self, ledger: Ledger) -> None:
        """Reserve what the span costs, where that was not done before."""
        for terms in charges_for(self.plan, self.place, ledger):
            ledger.reserve(**terms)

    def release(self, counts: Counts) -> Release:
        mechanism = self.plan.mechanism
        assert isinstance(mechanism, ConstraintBased)
        self.counts = counts
        self.made = release_in_series(mechanism, counts, self.place.span, self.history)
        return self.made


@dataclass
class Totals:
    """What a run knows of the spans: each day is read once."""

    config: Config = field(repr=False)
    _held: dict[str, dict[str, History]] = field(default_factory=dict, repr=False)
    _days: dict[str, int] = field(default_factory=dict, repr=False)

    def beside(self, plan: Plan) -> Plan:
        """The plan with its running totals; as it is where none are wanted. All that can fail fails here, before a charge."""
        given = declared(plan)
        if given is None:
            return plan
        place = place_of(self.config, plan, given)
        check_fits_caps(plan, place)
        return replace(plan, running=RunningRelease(plan, place, self._until(plan, place)))

    def published(self, plan: Plan, folder: Path) -> None:
        """Keep what the next day needs, and note in the ledger that what the span paid for is published."""
        running = plan.running
        if not isinstance(running, RunningRelease) or running.made is None or running.counts is None:
            return
        sha256 = _noted(plan, folder)
        with suppress(OSError):  # the next run counts this day again
            _write(plan, sha256, _day(plan, running.place, running.made, running.counts))

    def _until(self, plan: Plan, place: Place) -> dict[str, History]:
        held = self._held.setdefault(place.span.request, {n: History() for n in place.span.tables})
        for done in place.earlier[self._days.get(place.span.request, 0) :]:
            day = _read(self.config, plan, place, done)
            for name, history in held.items():
                history.add(**day[name])
            self._days[place.span.request] = self._days.get(place.span.request, 0) + 1
        return held


Day = dict[str, dict[str, Any]]  # table → what `History.add` takes


def _day(plan: Plan, place: Place, release: Release, counts: Counts) -> Day:
    assert release.running is not None
    own = {m.feature: m for m in release.measurements}
    return {
        name: {
            "counts": counts.of(plan.features, name),
            "sums": release.running.tables[name].answers,
            "own": own[name],
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
            part, own = charge.part, done.charge.part
            if part and own and part.stage == RUNNING and part.series == own.series:
                ledger.released(charge, done.sha256, folder)
        return done.sha256


def _file(plan: Plan, sha256: str) -> Path:
    ledger = plan.account.path
    return ledger.with_name(f"{ledger.name}{SUFFIX}") / f"{sha256}.npz"


def _write(plan: Plan, sha256: str, day: Day) -> None:
    """One file for each release, whole or not at all, for its owner's eyes; it goes by the hash of what was published."""
    file = _file(plan, sha256)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    for half in file.parent.glob(".*.npz"):  # of a run that died; no other run of the series is at work
        half.unlink(missing_ok=True)
    about = file.parent / "README"
    if not about.exists():
        about.write_text(README, "utf-8")
    arrays: dict[str, Any] = {}
    for n, (_, of) in enumerate(sorted(day.items())):
        arrays |= {f"{part} {n}": of[part] for part in ("counts", "sums", "published")}
        arrays |= {f"own {n}": of["own"].values, f"variance {n}": of["own"].variance[:1]}
    work = file.with_name(f".{secrets.token_hex(8)}.npz")
    with os.fdopen(os.open(work, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        np.savez(out, **arrays)
    work.replace(file)


def _read(config: Config, plan: Plan, place: Place, done: Finished) -> Day:
    """One earlier day: as it was kept, or from its folder and its rows."""
    try:
        return _kept(plan, place, done)
    except (OSError, ValueError, KeyError):
        return _counted(config, plan, place, done)


def _kept(plan: Plan, place: Place, done: Finished) -> Day:
    with np.load(_file(plan, done.sha256), allow_pickle=False) as held:
        made: Day = {}
        for n, name in enumerate(sorted(place.span.tables)):
            own = Measurement(name, held[f"own {n}"], variance=float(held[f"variance {n}"][0]))
            made[name] = {part: held[f"{part} {n}"] for part in ("counts", "sums", "published")} | {
                "own": own
            }
        return made


def _counted(config: Config, plan: Plan, place: Place, done: Finished) -> Day:
    part, covers = done.charge.part, done.charge.covers
    assert part is not None
    assert covers is not None
    assert covers.first is not None
    assert covers.last is not None
    slot = Slot(part.period, covers.first, covers.last, FINAL, covers.last)
    given = schema_of(applied(config, slot)).given
    days = Days(slot.first, slot.last)
    counts = count(given, plan.universe, columns=plan.columns, unit=plan.unit, clock=plan.clock, days=days)
    if not counts.value.sum() and noted(config).get(slot.label):
        raise InputError(
            f"running totals need the trips of {slot.period}, which are no longer in the data, and what was kept of them is gone: "
            f"restore {str(_file(plan, done.sha256).parent)!r}, or raise series.version to begin a new span"
        )
    day = _day(plan, place, load(done.path), counts)
    with suppress(OSError):
        _write(plan, done.sha256, day)
    return day
