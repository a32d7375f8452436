"""The work of a release: count, rehearse, measure, write, export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cbdp.errors import InputError, SolverError
from cbdp.progress import in_quarters, watched
from cbdp.release.saving import Saved
from cbdp.scratch import partial_name
from cbdp.trips.count import Counts, count

if TYPE_CHECKING:
    from cbdp.app.publish.run import Run
    from cbdp.release.release import Release


INVENTED = 1000  # trips of a rehearsal


def counted(run: Run) -> Counts:
    plan = run.plan
    with run.stage("counting trips"):
        return count(
            plan.trips, plan.universe, columns=plan.columns, unit=plan.unit, clock=plan.clock, days=plan.days
        )


def rehearse(run: Run) -> None:
    """All steps with trips that are made up, so that what can fail fails before anything is spent.

    They are of one type, and so many that some are published: with none, an export of flows would have nothing to draw and nothing to fail at.
    """
    from cbdp.release.export import FORMATS, export
    from cbdp.report import build

    plan, first, many = run.plan, np.array([0]), np.array([INVENTED])
    place = run.folder / partial_name(plan.output.name)
    with (
        run.stage("trying all steps with made-up trips, before anything is spent"),
        run.interrupts.temporary(place) as work,
    ):
        release = plan.mechanism.simulate(Counts(plan.universe, first, many, plan.unit), seed=0)
        release = replace(release, places=plan.stops, about=plan.about, series=plan.series)
        release.save(work / "rehearsal", extra={"report.html": build(release)}, simulation=True)
        for name in plan.exports:
            export(release, work / FORMATS.get(name).beside("rehearsal"), format=name)


def stages_after_charge(run: Run) -> int:
    return 4 + len(run.plan.exports)


def measured(run: Run, counts: Counts) -> Release:
    plan = run.plan
    with run.stage("measuring, solving and rounding"), watched(in_quarters(run.say)):
        release = (plan.running or plan.mechanism).release(counts)
        release = replace(release, places=plan.stops, about=plan.about, series=plan.series)
    with run.stage("simulating intervals from the release"), watched(in_quarters(run.say)):
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
