"""From a plan to a published release, once: what `cbdp release` does.

The order makes it safe to be killed at any instant. ε is reserved, durably, before any noise is drawn. The release is written beside its place and
renamed into it as a whole. Then the ledger notes its manifest's hash. So a run that dies

- before the reservation has spent and left nothing;
- after it has spent its charge; what it drew was never published, and the next run pays for noise of its own;
- after the renaming has published; the next run finds the release by the charge in its manifest and notes it.

Why the second run pays again: docs/explanation/threat-model.md.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from cbdp.arrays import Ints
from cbdp.commands.stopping import Interrupts
from cbdp.compiling import prepare
from cbdp.counting.counts import Counts, count
from cbdp.errors import CbdpError, InputError, SolverError
from cbdp.features import FeatureDag, Universe
from cbdp.forecast.account import charge_missing_from_ledger, is_unbought, missing_ledger
from cbdp.ledger import Charge, Ledger
from cbdp.ledger.charges import SYMBOLS, reserve_arguments
from cbdp.machine import partial_name, sweep
from cbdp.measuring import MAX_DENSE_TRIP_TYPES
from cbdp.progress import Say, shown, silent, tell
from cbdp.release.files import MANIFEST, Saved, load, read_manifest
from cbdp.release.layout import check_writable
from cbdp.untrusted import read_json
from cbdp_features.calendar import dates_or_none

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.mechanisms import Mechanism
    from cbdp.release.manifest_model import Manifest
    from cbdp.release.release import Release


Judge = Callable[["Plan", "Counts"], None]  # refuses by an error


def approve(plan: Plan, counts: Counts) -> None:
    """Refuse nothing."""


@dataclass(frozen=True)
class Run:
    """One attempt to publish a plan."""

    plan: Plan
    say: Say = silent
    interrupts: Interrupts = field(default_factory=Interrupts)
    judge: Judge = approve  # of the counts, before the charge
    rehearsed: bool = False

    @property
    def folder(self) -> Path:
        """Where the release and what belongs to it are written."""
        return self.plan.output.absolute().parent

    @contextmanager
    def stage(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        self.say(f"{what} …")
        yield
        self.interrupts.stage_done()
        self.say(f"{what}: {time.perf_counter() - start:.1f} s")


# The order: everything that can fail, the charge, the noise, the files, the note


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
        sweep(run.folder)  # what runs that died have left, whether or not they came to create a ledger
        check_ledger(plan, create=create_ledger)
        done = _release_made_before(run) or _charged_release(run, create_ledger=create_ledger)
    _compare_about(run, done)
    exported(run, done.path)
    return done


def _check(plan: Plan) -> None:
    claim = plan.mechanism.claim()
    if not claim.holds:
        raise InputError(
            f"{plan.mechanism.name} is {claim}. It is here to be studied, not to release real trips"
        )
    if is_unbought(plan.config, plan.universe, plan.columns, plan.clock, plan.unit):
        raise InputError("max_trips is not bought yet: run `cbdp choose` with this configuration first")
    if plan.output == plan.account.path:
        raise InputError(f"the output {str(plan.output)!r} is the ledger's file: choose another path")
    check_writable(plan.features)


def _release_made_before(run: Run) -> PublishedRelease | None:
    """The release that an identical request has made before."""
    plan = run.plan
    if not Ledger.started(plan.account.path):
        return None
    with opened(plan, create=False) as ledger, ledger.lock(plan.request):
        path = earlier(ledger, plan)
    return None if path is None else PublishedRelease(path, fresh=False)


def _charged_release(run: Run, *, create_ledger: bool) -> PublishedRelease:
    """Everything that can fail is done before the ledger is charged, or created."""
    plan = run.plan
    counts = counted(run)
    run.judge(plan, counts)
    if not run.rehearsed:
        with run.stage("preparing compiled code"):
            prepare(loops_of(plan.mechanism))
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
    terms = reserve_arguments(plan.mechanism.claim().cost)
    return ledger.reserve(plan.request, **terms, what=plan.mechanism.name, covers=plan.covers, part=plan.part)


@contextmanager
def _paid(charge: Charge) -> Iterator[None]:
    """What goes wrong now has its price: say so."""
    try:
        yield
    except (CbdpError, OSError, MemoryError) as why:
        message = str(why) or type(why).__name__
        raise LostChargeError(
            f"the release failed after its charge: {message}. The charge of {charge.amount} stays spent; once the cause is cured, "
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
    stated = None if run.plan.about is None else run.plan.about.json()
    if not done.fresh and read_manifest(done.path)["about"] != stated:
        run.say("[about] is not what it was: the release keeps what it was published with")


# The steps: count, rehearse, measure, write, export


REHEARSAL_TRIPS = 1000  # trips of a rehearsal
REHEARSAL_USED_TYPES = 20  # trip types that they are of, so that some counts stand out of the noise
REHEARSAL_UNIVERSE_TYPES = (
    2000  # trip types of a rehearsal's universe, about: of 12 stops, 12 periods, 12 stops
)


def counted(run: Run) -> Counts:
    plan = run.plan
    with run.stage("counting trips"):
        return count(
            plan.trips, plan.universe, columns=plan.columns, unit=plan.unit, clock=plan.clock, days=plan.days
        )


def loops_of(mechanism: Mechanism) -> list[str]:
    """Modules, now imported, with the compiled loops that a release needs, where trip types are listed: elsewhere others are needed, and few."""
    from cbdp.estimation import ESTIMATORS
    from cbdp.rounding import ROUNDINGS
    from cbdp.solvers import SOLVERS

    if mechanism.features.universe.size > MAX_DENSE_TRIP_TYPES:
        return []
    modules: list[str] = []
    if hasattr(mechanism, "estimator"):
        modules += ESTIMATORS.get(mechanism.estimator).compiled
    if hasattr(mechanism, "solver"):
        modules += SOLVERS.get(mechanism.solver).compiled
    if hasattr(mechanism, "rounding"):
        modules += ROUNDINGS.get(mechanism.rounding).compiled
    for module in modules:
        import_module(module)
    return modules


def rehearse(run: Run) -> None:
    """All steps with trips that are made up, so that what can fail fails before anything is spent.

    They are those of the same configuration in a part of its universe: the same tables and parts, by the same code, with few stops, periods and
    days. So a rehearsal takes seconds whatever the universe. Trips are so many that some are published: with
    none, an export of flows would have nothing to draw and nothing to fail at.
    """
    from cbdp.release.export import FORMATS, export
    from cbdp.report import build

    plan = run.plan
    place = run.folder / partial_name(plan.output.name)
    with (
        run.stage("trying all steps with made-up trips, before anything is spent"),
        run.interrupts.temporary(place) as work,
        shown(run.say),
    ):
        mechanism, counts = rehearsed(plan.mechanism)
        named: Any = {"places": plan.stops, "about": plan.about, "series": plan.series}
        release = replace(mechanism.simulate(counts, seed=0), **named)
        tell("drawing the report")
        page = build(release)
        tell("writing files")
        release.save(work / "rehearsal", extra={"report.html": page}, simulation=True)
        # exports look at every stop and period, if not at every type: of the whole universe, with a few trips
        types = _spread(plan.universe.size)
        sketch = replace(
            plan.mechanism.publication(types, np.full(len(types), REHEARSAL_TRIPS // len(types))), **named
        )
        for name in plan.exports:
            tell(f"exporting {name}")
            export(sketch, work / FORMATS.get(name).beside("rehearsal"), format=name)


def rehearsed(mechanism: Mechanism) -> tuple[Mechanism, Counts]:
    """The mechanism on a part of its universe of at most about REHEARSED_TYPES trip types, and made-up trips there.

    Noise, estimator, solver and rounding are those of the whole, and so is the way noise is drawn, which depends on the size.
    Public counts become those of the made-up trips, so that they can be met.
    """
    features, whole = mechanism.features, mechanism.features.universe
    keep = _places(whole)
    universe = whole.restricted(keep)
    small = FeatureDag(universe, features.features.values())
    types = _spread(universe.size)
    counts = Counts(universe, types, np.full(len(types), REHEARSAL_TRIPS // len(types)), mechanism.protected)
    changes: dict[str, Any] = {"features": small}
    if getattr(mechanism, "public", None):
        changes["public"] = {name: counts.of(small, name).tolist() for name in mechanism.public}  # type: ignore[attr-defined]
    if getattr(mechanism, "prior", None) is not None:
        codes = universe.unrank_codes(np.arange(universe.size))
        index = whole.rank_codes(
            [np.asarray(keep[n])[c] for n, c in zip(whole.dimensions, codes, strict=True)]
        )
        weights = mechanism.prior[index]  # type: ignore[attr-defined]
        changes["prior"] = weights if weights.any() else np.ones_like(weights)
    if "sparse" in {f.name for f in fields(mechanism)} and mechanism.sparse is None:  # type: ignore[attr-defined]
        changes["sparse"] = whole.size > MAX_DENSE_TRIP_TYPES
    return replace(mechanism, **changes), counts


def _spread(size: int) -> Ints:
    """A few trip types of so many, the first among them."""
    return np.arange(min(size, REHEARSAL_USED_TYPES), dtype=np.int64) * max(1, size // REHEARSAL_USED_TYPES)


def _places(universe: Universe) -> dict[str, list[int]]:
    """For each dimension the places of the values that are rehearsed: the same for dimensions that list the same values.

    Of periods and dates the first few, which follow one another; of other values some that are spread over all, so that most zones
    have one. The values of a trip type that there is are among them: structural zeros leave something.
    """
    names = list(universe.dimensions)
    each = max(2, int(REHEARSAL_UNIVERSE_TYPES ** (1 / len(names))))
    first = [int(code[0]) for code in universe.unrank_codes(np.array([0]))]
    places: dict[str, list[int]] = {}
    for name, dimension in universe.dimensions.items():
        size = len(dimension)
        alike = [n for n in names if universe.dimensions[n].values == dimension.values]
        needed = [first[names.index(n)] for n in alike]
        if dimension.edges is not None or dates_or_none(dimension) is not None:
            start = max(0, min(*needed, size - each))
            places[name] = list(range(start, min(size, max(start + each, max(needed) + 1))))
        else:
            spread = np.linspace(0, size - 1, min(each, size)).astype(int).tolist()
            places[name] = sorted({*spread, *needed})
    return places


def stages_after_charge(run: Run) -> int:
    return 4 + len(run.plan.exports)


def measured(run: Run, counts: Counts) -> Release:
    plan = run.plan
    with run.stage("measuring, solving and rounding"), shown(run.say):
        release = (plan.running or plan.mechanism).release(counts)
        release = replace(release, places=plan.stops, about=plan.about, series=plan.series)
    with run.stage("working out intervals"):
        try:
            return release.with_intervals(plan.confidence)
        except (
            InputError,
            SolverError,
        ) as why:  # ε is spent: a release without intervals is better than none
            run.say(f"there are no intervals: {why}")
            return release


def written(run: Run, release: Release, ledger: Mapping[str, Any]) -> Saved:
    from cbdp.report import build

    with run.stage("drawing the report"):
        page = build(release)
    with run.stage("writing files"):
        return release.save(run.plan.output, ledger=ledger, extra={"report.html": page})


def exported(run: Run, release: Path) -> None:
    """The formats asked for, beside the release; those that are there already are left alone."""
    from cbdp.release.export import FORMATS, export

    for name in run.plan.exports:
        path = release.with_name(FORMATS.get(name).beside(release.name))
        if not path.exists():
            with run.stage(f"exporting {name}"):
                export(release, path, format=name)


# The ledger: there, created because somebody asked for it, or missing. A missing one is never created by itself


def check_ledger(plan: Plan, *, create: bool) -> None:
    """Refuse a release whose ledger is missing, or is asked for where it is not new, before any work is done."""
    if Ledger.started(plan.account.path):
        if create:
            _must_be_new(plan)
    elif create:
        _check_siblings(plan, None)
    else:
        raise InputError(missing_ledger(plan.config, plan.account))


def _must_be_new(plan: Plan) -> None:
    """Creating may be repeated after a kill; but nobody shall get used to asking for it with every release."""
    with Ledger.view(plan.account.path) as ledger:
        others = [e for e in ledger.entries() if e.fields.get("request", plan.request) != plan.request]
    if others:
        raise InputError(
            f"the ledger {str(plan.account.path)!r} exists already and holds charges of other releases: "
            "leave --create-ledger out"
        )


def opened(plan: Plan, *, create: bool) -> Ledger:
    """The ledger, ready to be charged; earlier releases beside the output must be in it."""
    account, data = plan.account, plan.config.data
    if create and not Ledger.started(account.path):
        _check_siblings(plan, None)
    ledger = Ledger.open(
        account.path,
        dataset=plan.dataset,
        riders=data.riders,
        cap=account.caps if create else None,
        currency=account.cap.currency,
        create=create,
    )
    try:
        _check_siblings(plan, ledger)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _check_siblings(plan: Plan, ledger: Ledger | None) -> None:
    lost = charge_missing_from_ledger(plan.output, plan.account.owner, ledger)
    if lost is not None:
        raise InputError(lost)


# Earlier runs of the same request: a release, one that the ledger has yet to note, or leftovers of a run that died


def earlier(ledger: Ledger, plan: Plan) -> Path | None:
    """The release of an identical request, finished or only to be noted."""
    done = ledger.finished(plan.request)
    if done is not None:
        _check_stored(Path(done.path), done.sha256)
        return Path(done.path)
    heads = {charge.head: charge for charge in ledger.unfinished(plan.request)}
    if plan.output.exists():
        charge = heads.get(_head(plan.output) or "")
        if charge is None:
            raise InputError(
                f"the output folder {str(plan.output)!r} exists already: choose another, or move it away"
            )
        ledger.released(charge, _digest(plan.output), plan.output)
        return plan.output
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


def _digest(folder: Path) -> str:
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def _head(folder: Path) -> str | None:
    try:
        manifest = cast("Manifest", read_json(folder / MANIFEST))
        return str(manifest["ledger"]["head"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


__all__ = ["LostChargeError", "PublishedRelease", "Say", "publish"]
