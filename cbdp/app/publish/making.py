"""The work of a release: count, rehearse, measure, write, export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError, SolverError
from cbdp.features import FeatureDag, Universe
from cbdp.features.calendar import dates_of
from cbdp.measuring import DENSE
from cbdp.progress import in_quarters, tell, watched
from cbdp.release.saving import Saved
from cbdp.scratch import partial_name
from cbdp.trips.count import Counts, count

if TYPE_CHECKING:
    from cbdp.app.publish.run import Run
    from cbdp.mechanisms import Mechanism
    from cbdp.release.release import Release


INVENTED = 1000  # trips of a rehearsal
INVENTED_TYPES = 20  # and the trip types that they are of
REHEARSED_TYPES = 2000  # trip types of a rehearsal's universe, about: of 12 stops, 12 periods, 12 stops


def counted(run: Run) -> Counts:
    plan = run.plan
    with run.stage("counting trips"):
        return count(
            plan.trips, plan.universe, columns=plan.columns, unit=plan.unit, clock=plan.clock, days=plan.days
        )


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
        watched(in_quarters(run.say)),
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
        sketch = replace(plan.mechanism.made(types, np.full(len(types), INVENTED // len(types))), **named)
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
    counts = Counts(universe, types, np.full(len(types), INVENTED // len(types)), mechanism.unit)
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
        changes["sparse"] = whole.size > DENSE
    return replace(mechanism, **changes), counts


def _spread(size: int) -> Ints:
    """A few trip types of so many, the first among them."""
    return np.arange(min(size, INVENTED_TYPES), dtype=np.int64) * max(1, size // INVENTED_TYPES)


def _places(universe: Universe) -> dict[str, list[int]]:
    """For each dimension the places of the values that are rehearsed: the same for dimensions that list the same values.

    Of periods and dates the first few, which follow one another; of other values some that are spread over all, so that most zones
    have one. The values of a trip type that there is are among them: structural zeros leave something.
    """
    names = list(universe.dimensions)
    each = max(2, int(REHEARSED_TYPES ** (1 / len(names))))
    first = [int(code[0]) for code in universe.unrank_codes(np.array([0]))]
    places: dict[str, list[int]] = {}
    for name, dimension in universe.dimensions.items():
        size = len(dimension)
        alike = [n for n in names if universe.dimensions[n].values == dimension.values]
        needed = [first[names.index(n)] for n in alike]
        if dimension.edges is not None or dates_of(dimension) is not None:
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
    with run.stage("measuring, solving and rounding"), watched(in_quarters(run.say)):
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
