"""Intervals about expected values, from runs of the mechanism on trips as they may be.

Expected values are nearer to the truth than any unbiased answer, but nothing published says at once by how much. So trips are drawn
from what the noisy answers leave possible (`Estimator.drawn`): they are as rough as true ones should be. The
mechanism is run on them, and its errors are seen. Intervals are made of these as follows.

1. *Spread.* The mean square error of a count is that of its own group over the runs, drawn to that of groups of a similar estimate.
2. *Doubt.* The model may be wrong: groups may differ by more than it can see. How far the real estimate is from the best unbiased answer
   (`cbdp.estimate.combined`) tells, against how far it is in the runs. The excess of the mean square error is weighed over a prior of
   all sizes up to ten times; without evidence it is about a tenth.
3. *Optimism.* Where estimates differ among groups by many times their errors, it was seen how much groups differ, and runs err as the release does. Where they
   do not, that is assumed rather than seen (groups that are few are told by finer ones), and drawn trips may be smoother than true ones. There the mean square error is taken to be larger by a half and more, and by what a
   further run says: one on trips drawn from a run's own answers. By how much that errs less than the first is what the first may err less than the truth (an iterated bootstrap).
4. *Every size.* Of counts with about the same estimate the intervals hold as many as they say. Of counts with the same truth they hold fewer where
   these are large, for the estimate is drawn to what is usual. Where they would miss more than half of the counts of some size in the runs,
   and where they are wider, the interval of the unbiased answer is taken: single trip types are of this kind.
5. *No sharper than can be checked.* An interval is at least a fifth as wide as that of the unbiased answer. Where noise is much larger than the runs'
   errors, it could not show that the model is wrong.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from cbdp.arrays import Floats, Ints
from cbdp.estimate.combined import Combination, combined
from cbdp.estimate.estimate import Estimate
from cbdp.estimate.intervals import ReleaseLike
from cbdp.features import SINGLETON
from cbdp.features.grouping import Grouping
from cbdp.progress import tell
from cbdp.solvers.problem import bincount

RUNS = 12  # of small universes
FEW = 6  # and of large ones
LARGE = 2**19  # trip types of all runs together, from which they are fewer
MOST = 2**20  # trip types beyond which runs would take minutes
PART = 20  # groups of similar estimates that share a mean square error
OWN = 12.0  # runs that this is worth, against a group's own
ENOUGH = 30  # errors that coverage of one size is judged by
SIZES = 4  # parts of the counts above zero, by their size
MISSED = 5  # times the risk that counts of one size may be missed
MANY = 100  # errors that the reach is read off
GROUPS = 20  # fewer of them do not tell how much they differ
EXCESS = np.concatenate([[0.0], np.logspace(-1, 1, 21)])  # of a mean square error, that are weighed
MOST_OPTIMISM = 10.0
OPTIMISTIC = 1.5  # times the logarithm of the optimism that is seen one step further on: each step smooths less than the one before
FEW_RUNS = (
    1.15  # times the mean square error of the runs: that of so few of them may well be so much too small
)
ASSUMED = 0.5  # the logarithm of the mean square error's excess where how groups differ is assumed: over dozens of cases there, half were below
ASSUMED_FEW = 1.5  # and that of few groups, which finer ones stand for
SEEN = (
    1.0  # the estimates' deviation among groups, in their errors, at which it is half seen how groups differ
)
LEAST = 0.2  # of the unbiased answer's interval: by noise that is so much wider, a model that errs would not be found out
FURTHER = 1  # run on trips that the answers of other runs leave possible
BELIEF = np.concatenate([[0.8], 0.2 * EXCESS[1:] ** -1 / np.sum(EXCESS[1:] ** -1)])


class Estimated(ReleaseLike, Protocol):
    """A release with the estimate that its trips are rounded from."""

    @property
    def estimate(self) -> Estimate | None: ...


class Likely(Protocol):
    """Runs on trips as they may be, from seeds: handed in by a mechanism."""

    def likely(self, seed: int) -> tuple[tuple[Ints, Ints], Estimated]:
        """Trip types and counts that were drawn, and what the mechanism makes of them."""
        ...

    def further(self, seed: int) -> tuple[tuple[Ints, Ints], Estimated]:
        """The same from the answers of the run from this seed, in the place of those published."""
        ...


@dataclass(frozen=True, eq=False)
class LikelyRuns:
    """What was seen in runs (rows) of groups (columns)."""

    truth: Floats = field(repr=False)
    estimate: Floats = field(repr=False)
    told: Floats = field(repr=False)  # the best unbiased answers
    further: Floats = field(repr=False)  # errors of runs that start from what these runs published

    @property
    def error(self) -> Floats:
        return self.estimate - self.truth


def can_draw(release: Estimated) -> bool:
    """Does the release hold what trips are drawn from: an estimate, and a noisy count of every trip type, of not too many?"""
    whole = [m for m in release.measurements if m.feature == SINGLETON and m.elements is None]
    small = release.features.universe.size <= MOST
    return small and release.estimate is not None and len(whole) == 1 and whole[0].noise is not None


def likely_runs(
    release: Estimated, again: Likely, groupings: Mapping[str, Grouping]
) -> dict[str, LikelyRuns]:
    """The runs of a release, seen by several questions at once. Progress is told as the stage "runs"."""
    many = min(RUNS, max(FEW, LARGE // release.features.universe.size))
    rows: dict[str, list[tuple[Floats, Floats, Floats]]] = {name: [] for name in groupings}
    further: dict[str, list[Floats]] = {name: [] for name in groupings}
    for run, seed in enumerate(seeds(release, many)):
        (index, value), made = again.likely(seed)
        for name, grouping in groupings.items():
            truth = grouping.added(index, value).astype(float)
            rows[name].append((truth, estimates(made, grouping), combined(made, grouping).value))
        if run < FURTHER:
            (index, value), made = again.further(seed)
            for name, grouping in groupings.items():
                further[name].append(estimates(made, grouping) - grouping.added(index, value))
        tell("runs", (run + 1) / many)
    columns = {name: [np.array(part) for part in zip(*seen, strict=True)] for name, seen in rows.items()}
    return {
        name: LikelyRuns(seen[0], seen[1], seen[2], np.array(further[name])) for name, seen in columns.items()
    }


def estimates(release: Estimated, grouping: Grouping) -> Floats:
    """What the published counts are rounded from; where there is nothing of the kind, those themselves."""
    if release.estimate is None:
        return grouping.added(release.index, release.value).astype(float)
    index, value = release.estimate.trips()
    if not grouping.named:
        return np.asarray(value.sum(keepdims=True))
    group = grouping.group_of(grouping.universe.unrank_codes(index))
    here = group >= 0
    return bincount(group[here], value[here], grouping.size)


@dataclass(frozen=True, eq=False)
class Seen:
    """The estimates of groups, and the runs of the same groups: where they are many, they tell how much groups differ."""

    estimate: Floats
    runs: LikelyRuns


def half_widths(asked: Seen, among: Seen, best: Combination, risk: float) -> Floats | None:
    """How far the truth may be from each estimate; None: counts of some size would be missed too often.

    `among` are the same groups, or finer ones where these are few; `best` is the unbiased answer.
    """
    runs = asked.runs
    half = reaching(asked.estimate, runs.error, runs.truth, excess(asked, among, best), risk)
    noise = best.half_width(risk)
    return None if half is None else np.maximum(half, np.where(np.isfinite(noise), LEAST * noise, 0.0))


def reaching(estimate: Floats, error: Floats, truth: Floats, excess: float, risk: float) -> Floats | None:
    """The same for any numbers, such as shares, with a known excess of the mean square error."""
    deviation = np.sqrt(_mean_squares(estimate, error))
    half = _reach(estimate, error, risk) * deviation
    if not _holds_every_size(np.abs(error) <= half, truth, risk):
        return None
    made: Floats = half * np.sqrt(1 + excess)
    return made


def excess(asked: Seen, among: Seen, best: Combination) -> float:
    """By how many times the mean square error is taken to exceed that of the runs."""
    assumed = ASSUMED if len(asked.estimate) >= GROUPS else ASSUMED_FEW
    return FEW_RUNS * optimism(among, assumed) * (1 + doubt(asked, best)) - 1


def doubt(asked: Seen, best: Combination) -> float:
    """By how many times the mean square error may exceed that of the runs, given the unbiased answers."""
    if not best.told.all() or not best.variance.any():
        return float(BELIEF @ EXCESS)
    estimate, runs, noise = asked.estimate, asked.runs, best.variance
    usual = noise * (
        np.mean((runs.estimate - runs.told) ** 2) / max(float(noise.mean()), np.finfo(float).tiny)
    )
    square = _mean_squares(estimate, runs.error)
    whole = np.maximum(usual[:, None] + square[:, None] * EXCESS, np.finfo(float).tiny)
    missed = ((estimate - best.value) ** 2)[:, None]
    fit = np.log(BELIEF) - np.sum(np.log(whole) + missed / whole, axis=0) / 2
    belief = np.exp(fit - fit.max())
    return float(belief @ EXCESS / belief.sum())


def optimism(among: Seen, assumed: float = ASSUMED) -> float:
    """By how many times runs on trips as they may be have a smaller mean square error than the true trips would.

    That is assumed, and seen one step further on: the runs' own answers leave trips possible, too, and runs on those err less, or not.
    """
    runs = among.runs
    first, second = (float(np.mean(e**2)) for e in (runs.error, runs.further))
    seen = float(np.std(among.estimate)) / max(first**0.5, np.finfo(float).tiny) / SEEN
    told = runs.error.size >= MANY and second > 0
    smoother = math.log(min(max(first / second, 1.0), MOST_OPTIMISM)) if told else 0.0
    return math.exp((assumed + OPTIMISTIC * smoother) / (1 + seen**2))


def _mean_squares(estimate: Floats, error: Floats) -> Floats:
    own: Floats = np.mean(error**2, axis=0)
    return _drawn_together(own, len(error), _similar(estimate, own))


def _similar(estimate: Floats, own: Floats) -> Floats:
    """The mean over groups of a similar estimate."""
    made = np.empty(len(estimate))
    for part in np.array_split(np.argsort(estimate, kind="stable"), max(1, len(estimate) // PART)):
        made[part] = own[part].mean()
    return made


def _drawn_together(own: Floats, runs: int, similar: Floats) -> Floats:
    worth = OWN if len(similar) > 1 else 0.0
    made: Floats = (runs * own + worth * similar) / (runs + worth)
    return np.maximum(made, np.finfo(float).tiny)


def _reach(estimate: Floats, error: Floats, risk: float) -> float:
    """So many deviations hold all but the risk: of errors beside those of other runs, or by Student's law where these are few."""
    runs = len(error)
    if error.size < MANY:
        return float(stdtrit(runs + (OWN if len(estimate) > 1 else 0.0), 1 - risk / 2))
    own = np.mean(error**2, axis=0)
    others = np.maximum(runs * own - error**2, 0.0) / (runs - 1)
    beside = _drawn_together(others, runs - 1, _similar(estimate, own))
    return float(np.quantile(np.abs(error) / np.sqrt(beside), 1 - risk))


def _holds_every_size(holds: NDArray[np.bool_], truth: Floats, risk: float) -> bool:
    """Of counts of none, few and many trips each, at most so many times the risk is missed."""
    some = np.sort(truth[truth > 0])
    ends = some[[len(some) * part // SIZES for part in range(1, SIZES)]] if len(some) else some
    size = np.where(truth > 0, 1 + np.searchsorted(ends, truth, side="right"), 0)
    many, held = np.bincount(size.reshape(-1)), np.bincount(size.reshape(-1), holds.reshape(-1))
    judged = many >= ENOUGH
    return bool((held[judged] >= (1 - MISSED * risk) * many[judged]).all())


def seeds(release: ReleaseLike, runs: int) -> list[int]:
    """Seeds that depend on what is published and on nothing else."""
    published = hashlib.sha256()
    for part in (release.index, release.value):
        published.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
    key = published.digest()
    return [
        int.from_bytes(hashlib.sha256(key + run.to_bytes(8, "little")).digest()[:8], "little")
        for run in range(runs)
    ]
