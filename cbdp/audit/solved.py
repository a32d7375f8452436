"""Whether the published numbers are what post-processing makes of the published noisy answers.

Nothing private is needed: post-processing has one answer, so making the release again gives the published numbers, or some were
changed. Which one, the optimality conditions tell (`cbdp.audit.culprit`).

What no arithmetic can notice: a noisy count of a leaf that lies below its shift before and after the change. It has no
influence on any published count. With the posterior estimator every noisy count has some influence, on all estimates: a change
is noticed, but which of the two was changed cannot be told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.audit.culprit import culprit, signed, spread, type_words
from cbdp.audit.finding import Finding, worst
from cbdp.audit.tampering import tampered
from cbdp.errors import CbdpError
from cbdp.estimate import Estimate
from cbdp.features.index import merged
from cbdp.release.manifest import software
from cbdp.release.recipe import given
from cbdp.release.release import Release
from cbdp.release.saving import MANIFEST
from cbdp.rounding import ROUNDINGS

Remake = Callable[[], Release]  # makes the release again from what is published: its mechanism's `finish`

CHECK = "estimate"
PACKAGE, FINGERPRINT = "cbdp", "code"  # in the manifest's list of versions
MOVED = "One trip moved, added or taken away would have been found for certain."
CLOSE = 1e-6  # of the largest count: by how much estimates of one program may differ


def attack(release: Release, remake: Remake) -> list[Finding]:
    """The published numbers against those made again; the item that was changed is named where it can be told."""
    try:
        again = remake()
    except CbdpError as wrong:
        return [tampered(CHECK, "No release follows from the noisy answers", str(wrong))]
    if release.estimate is None:
        made = _compared(release, again.index, again.value, "what the mechanism makes of the noisy answers")
        return [*_tables(release, again), made]
    if again.estimate is None:
        text = (
            f"The recipe is that of {release.mechanism!r}, which estimates nothing; the files hold estimates."
        )
        return [tampered(CHECK, f"{MANIFEST}: recipe is not the one that made the estimates", text)]
    found = [*_estimates(release, release.estimate, again.estimate)]
    return found if worst(found) == "contradicts" else [*found, *_trips(release, release.estimate)]


def rounded(release: Release) -> list[Finding]:
    """The published trips against the published estimates, where an estimator of another version made those."""
    return [] if release.estimate is None else [*_trips(release, release.estimate)]


def of_another_estimator(release: Release) -> str | None:
    """The version whose posterior means are not this one's; None where the estimates are the solution of one program for every version.

    Posterior means follow from the code of their version. Up to 0.2 the manifest had no fingerprint of the code: that tells a folder
    of 0.2 from one that was written since, before the number changed.
    """
    if release.stored is None or release.recipe.estimator != "posterior":
        return None
    written_by = release.stored.software
    version = written_by.get(PACKAGE, "of an unknown version")
    return version if FINGERPRINT not in written_by or version != software()[PACKAGE] else None


def _tables(release: Release, again: Release) -> Iterator[Finding]:
    """What is said of the noise of tables that are published as they were measured, against the recipe."""
    for name, stated in release.recipe.tables.items():
        made = again.recipe.tables.get(name)
        if stated != made:
            text = f"The manifest says {stated}; the settings of {release.mechanism!r} give {made}."
            yield tampered(CHECK, f"{MANIFEST}: features/{name}/noise is not what the recipe gives", text)


def _compared(release: Release, index: Ints, value: Ints, what: str) -> Finding:
    """Published trips against those made again."""
    every = merged(index, release.index)
    made, here = spread(every, index, value), spread(every, release.index, release.value)
    off = np.flatnonzero(made != here)
    if not len(off):
        return Finding(
            CHECK, "clear", "The trips follow from the noisy answers", f"They are {what}.", power=MOVED
        )
    words = type_words(release.features, int(every[off[0]]))
    text = f"{words}: {here[off[0]]} published, {made[off[0]]} expected; {len(off):,} types differ."
    return tampered(CHECK, f"singleton: the count of {words} is not {what}", text, types=len(off))


def _estimates(release: Release, published: Estimate, again: Estimate) -> Iterator[Finding]:
    (index, made), (at, here) = again.trips(), published.trips()
    every = merged(index, at)
    off = spread(every, at, here) - spread(every, index, made)
    largest = max((float(np.abs(m.values).max(initial=0)) for m in release.measurements), default=0.0)
    bound = max(CLOSE, 10 * published.solution.kkt_residual) * (1 + largest)
    bad = np.flatnonzero(np.abs(off) > bound)
    if len(bad):
        furthest = int(bad[np.argmax(np.abs(off[bad]))])
        yield _changed(release, int(every[furthest]), float(off[furthest]), len(bad))
        return
    stated, objective = published.solution.objective, again.solution.objective
    if not math.isclose(stated, objective, rel_tol=1e-6, abs_tol=1e-6):
        text = f"estimate/objective says {stated:.6g}; solved again it is {objective:.6g}."
        yield tampered(CHECK, f"{MANIFEST}: estimate/objective is not that of the program", text)
        return
    text = f"The program was solved again: {len(every):,} trip types above zero agree {_within(off)}."
    yield Finding(CHECK, "clear", "The estimates follow from the noisy answers", text, power=_power(bound))


def _changed(release: Release, furthest: int, off: float, types: int) -> Finding:
    """The finding that estimates do not follow, with what was changed where it can be told."""
    words = type_words(release.features, furthest)
    text = f"Solved again, {types:,} trip types differ; the largest difference is {signed(off)} trips, of {words}."
    named = culprit(release)
    if named is None:
        return tampered(
            CHECK, f"singleton: the estimate of {words} does not follow from the noisy answers", text
        )
    return tampered(CHECK, f"{named[0]} was changed", f"{named[1]} {text}", types=types)


def _trips(release: Release, estimate: Estimate) -> Iterator[Finding]:
    """The published trips made again from the published estimates: within each cell nothing is left to choose."""
    if release.recipe.rounding is None or any((release.violations or {}).values()):
        return
    rounding, budget = (
        ROUNDINGS.installed(release.recipe.rounding),
        given(release.recipe.settings.get("budget")),
    )
    trips = (release.index, release.value)
    made = rounding.again(release.features, *estimate.trips(), trips, budget)
    if made is None:
        text = "Trip types that no table tells apart have, together, neither the floor nor the ceiling of their estimates' sum."
        yield tampered(CHECK, "singleton: the trips of a cell are not its estimates rounded", text)
    else:
        yield _compared(release, *made, "the estimates, rounded to whole trips")


def _power(bound: float) -> str:
    return (
        f"An estimate changed by more than {bound:.1g} trips would have been found for certain, and a noisy count wherever an estimate "
        "depends on it."
    )


def _within(off: Floats) -> str:
    largest = float(np.abs(off).max(initial=0))
    return f"within {largest:.1e} trips" if largest else "to the last digit"
