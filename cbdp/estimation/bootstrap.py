"""Intervals about expected values, from runs of the mechanism on trips as they may be.

Expected values are nearer to the truth than any unbiased answer, but nothing published says at once by how much. So trips are drawn
from what the noisy answers leave possible (`Estimator.drawn`): they are as rough as true ones should be. The
mechanism is run on them, and its errors are seen. Intervals are made of these as follows.

1. *Spread.* The mean square error of a count is that of its own group over the runs, drawn to that of groups of a similar estimate.
2. *Doubt.* The model may be wrong: groups may differ by more than it can see. How far the real estimate is from the best unbiased answer
   (`cbdp.estimation.gls`) tells, against how far it is in the runs. The excess of the mean square error is weighed over a prior of
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
from cbdp.estimation.engine import Estimate
from cbdp.estimation.gls import UnbiasedAnswer, best_linear_unbiased
from cbdp.estimation.intervals import ReleaseLike
from cbdp.features import SINGLETON
from cbdp.progress import tell
from cbdp_features.queries import Grouping
from cbdp_solvers.problem import bincount

MAX_REPLICATES = 12  # of small universes
REPLICATES_OF_LARGE_UNIVERSES = 6  # and of large ones
MAX_REPLICATED_TYPES = 2**19  # trip types of all runs together, from which they are fewer
MAX_BOOTSTRAP_TYPES = 2**20  # trip types beyond which runs would take minutes
MIN_POOLED_GROUPS = 20  # groups of similar estimates that share a mean square error
POOLED_REPLICATE_WEIGHT = 12.0  # runs that this is worth, against a group's own
MIN_ERRORS_PER_SIZE = 30  # errors that coverage of one size is judged by
SIZE_CLASSES = 4  # parts of the counts above zero, by their size
MAX_MISS_RATIO = 5  # times the risk that counts of one size may be missed
MIN_POOLED_ERRORS = 100  # errors that the reach is read off
MIN_GROUPS_FOR_OPTIMISM = 20  # fewer of them do not tell how much they differ
VARIANCE_INFLATION_GRID = np.concatenate(
    [[0.0], np.logspace(-1, 1, 21)]
)  # of a mean square error, that are weighed
MAX_OPTIMISM = 10.0
OPTIMISM_EXTRAPOLATION = 1.5  # times the logarithm of the optimism that is seen one step further on: each step smooths less than the one before
FEW_REPLICATES_INFLATION = (
    1.15  # times the mean square error of the runs: that of so few of them may well be so much too small
)
LOG_VARIANCE_INFLATION = 0.5  # the logarithm of the mean square error's excess where how groups differ is assumed: over dozens of cases there, half were below
LOG_VARIANCE_INFLATION_FEW_GROUPS = 1.5  # and that of few groups, which finer ones stand for
HALF_WEIGHT_DEVIATION = (
    1.0  # the estimates' deviation among groups, in their errors, at which it is half seen how groups differ
)
MIN_WIDTH_RATIO = 0.2  # of the unbiased answer's interval: by noise that is so much wider, a model that errs would not be found out
DOUBLE_BOOTSTRAP_REPLICATES = 1  # run on trips that the answers of other runs leave possible
VARIANCE_INFLATION_PRIOR = np.concatenate(
    [[0.8], 0.2 * VARIANCE_INFLATION_GRID[1:] ** -1 / np.sum(VARIANCE_INFLATION_GRID[1:] ** -1)]
)


class Estimated(ReleaseLike, Protocol):
    """A release with the estimate that its trips are rounded from."""

    @property
    def estimate(self) -> Estimate | None: ...


class BootstrapSampler(Protocol):
    """Runs on trips as they may be, from seeds: handed in by a mechanism."""

    def likely(self, seed: int) -> tuple[tuple[Ints, Ints], Estimated]:
        """Trip types and counts that were drawn, and what the mechanism makes of them."""
        ...

    def further(self, seed: int) -> tuple[tuple[Ints, Ints], Estimated]:
        """The same from the answers of the run from this seed, in the place of those published."""
        ...


@dataclass(frozen=True, eq=False)
class BootstrapReplicates:
    """What was seen in runs (rows) of groups (columns)."""

    truth: Floats = field(repr=False)
    estimate: Floats = field(repr=False)
    told: Floats = field(repr=False)  # the best unbiased answers
    further: Floats = field(repr=False)  # errors of runs that start from what these runs published

    @property
    def error(self) -> Floats:
        return self.estimate - self.truth


def can_bootstrap(release: Estimated) -> bool:
    """Does the release hold what trips are drawn from: an estimate, and a noisy count of every trip type, of not too many?"""
    whole = [m for m in release.measurements if m.feature == SINGLETON and m.elements is None]
    small = release.features.universe.size <= MAX_BOOTSTRAP_TYPES
    return small and release.estimate is not None and len(whole) == 1 and whole[0].noise is not None


def bootstrap_replicates(
    release: Estimated, sampler: BootstrapSampler, groupings: Mapping[str, Grouping]
) -> dict[str, BootstrapReplicates]:
    """The runs of a release, seen by several questions at once. Progress is told as the stage "runs"."""
    replicates = min(
        MAX_REPLICATES,
        max(REPLICATES_OF_LARGE_UNIVERSES, MAX_REPLICATED_TYPES // release.features.universe.size),
    )
    rows: dict[str, list[tuple[Floats, Floats, Floats]]] = {name: [] for name in groupings}
    further: dict[str, list[Floats]] = {name: [] for name in groupings}
    for run, seed in enumerate(seeds(release, replicates)):
        (index, value), replicate = sampler.likely(seed)
        for name, grouping in groupings.items():
            truth = grouping.added(index, value).astype(float)
            rows[name].append(
                (
                    truth,
                    estimated_counts(replicate, grouping),
                    best_linear_unbiased(replicate, grouping).value,
                )
            )
        if run < DOUBLE_BOOTSTRAP_REPLICATES:
            (index, value), replicate = sampler.further(seed)
            for name, grouping in groupings.items():
                further[name].append(estimated_counts(replicate, grouping) - grouping.added(index, value))
        tell("runs", (run + 1) / replicates)
    columns = {name: [np.array(part) for part in zip(*seen, strict=True)] for name, seen in rows.items()}
    return {
        name: BootstrapReplicates(seen[0], seen[1], seen[2], np.array(further[name]))
        for name, seen in columns.items()
    }


def estimated_counts(release: Estimated, grouping: Grouping) -> Floats:
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
class GroupReplicates:
    """The estimates of groups, and the runs of the same groups: where they are many, they tell how much groups differ."""

    estimate: Floats
    runs: BootstrapReplicates


def half_widths(
    asked: GroupReplicates, among: GroupReplicates, best: UnbiasedAnswer, risk: float
) -> Floats | None:
    """How far the truth may be from each estimate; None: counts of some size would be missed too often.

    `among` are the same groups, or finer ones where these are few; `best` is the unbiased answer.
    """
    runs = asked.runs
    half = bootstrap_half_widths(
        asked.estimate, runs.error, runs.truth, variance_inflation(asked, among, best), risk
    )
    noise = best.half_width(risk)
    return (
        None if half is None else np.maximum(half, np.where(np.isfinite(noise), MIN_WIDTH_RATIO * noise, 0.0))
    )


def bootstrap_half_widths(
    estimate: Floats, error: Floats, truth: Floats, excess: float, risk: float
) -> Floats | None:
    """The same for any numbers, such as shares, with a known excess of the mean square error."""
    deviation = np.sqrt(_mean_squares(estimate, error))
    half = _error_quantile(estimate, error, risk) * deviation
    if not _covers_every_size(np.abs(error) <= half, truth, risk):
        return None
    inflated: Floats = half * np.sqrt(1 + excess)
    return inflated


def variance_inflation(asked: GroupReplicates, among: GroupReplicates, best: UnbiasedAnswer) -> float:
    """By how many times the mean square error is taken to exceed that of the runs."""
    assumed = (
        LOG_VARIANCE_INFLATION
        if len(asked.estimate) >= MIN_GROUPS_FOR_OPTIMISM
        else LOG_VARIANCE_INFLATION_FEW_GROUPS
    )
    return (
        FEW_REPLICATES_INFLATION
        * optimism(among, assumed)
        * (1 + variance_inflation_of_measurements(asked, best))
        - 1
    )


def variance_inflation_of_measurements(asked: GroupReplicates, best: UnbiasedAnswer) -> float:
    """By how many times the mean square error may exceed that of the runs, given the unbiased answers."""
    if not best.told.all() or not best.variance.any():
        return float(VARIANCE_INFLATION_PRIOR @ VARIANCE_INFLATION_GRID)
    estimate, runs, noise = asked.estimate, asked.runs, best.variance
    usual = noise * (
        np.mean((runs.estimate - runs.told) ** 2) / max(float(noise.mean()), np.finfo(float).tiny)
    )
    square = _mean_squares(estimate, runs.error)
    whole = np.maximum(usual[:, None] + square[:, None] * VARIANCE_INFLATION_GRID, np.finfo(float).tiny)
    missed = ((estimate - best.value) ** 2)[:, None]
    fit = np.log(VARIANCE_INFLATION_PRIOR) - np.sum(np.log(whole) + missed / whole, axis=0) / 2
    belief = np.exp(fit - fit.max())
    return float(belief @ VARIANCE_INFLATION_GRID / belief.sum())


def optimism(among: GroupReplicates, assumed: float = LOG_VARIANCE_INFLATION) -> float:
    """By how many times runs on trips as they may be have a smaller mean square error than the true trips would.

    That is assumed, and seen one step further on: the runs' own answers leave trips possible, too, and runs on those err less, or not.
    """
    runs = among.runs
    first, second = (float(np.mean(e**2)) for e in (runs.error, runs.further))
    seen = float(np.std(among.estimate)) / max(first**0.5, np.finfo(float).tiny) / HALF_WEIGHT_DEVIATION
    measurable = runs.error.size >= MIN_POOLED_ERRORS and second > 0
    smoother = math.log(min(max(first / second, 1.0), MAX_OPTIMISM)) if measurable else 0.0
    return math.exp((assumed + OPTIMISM_EXTRAPOLATION * smoother) / (1 + seen**2))


def _mean_squares(estimate: Floats, error: Floats) -> Floats:
    mean_square: Floats = np.mean(error**2, axis=0)
    return _pooled_mean_squares(mean_square, len(error), _mean_of_similar(estimate, mean_square))


def _mean_of_similar(estimate: Floats, mean_square: Floats) -> Floats:
    """The mean over groups of a similar estimate."""
    pooled = np.empty(len(estimate))
    for part in np.array_split(
        np.argsort(estimate, kind="stable"), max(1, len(estimate) // MIN_POOLED_GROUPS)
    ):
        pooled[part] = mean_square[part].mean()
    return pooled


def _pooled_mean_squares(mean_square: Floats, runs: int, similar: Floats) -> Floats:
    worth = POOLED_REPLICATE_WEIGHT if len(similar) > 1 else 0.0
    pooled: Floats = (runs * mean_square + worth * similar) / (runs + worth)
    return np.maximum(pooled, np.finfo(float).tiny)


def _error_quantile(estimate: Floats, error: Floats, risk: float) -> float:
    """So many deviations hold all but the risk: of errors beside those of other runs, or by Student's law where these are few."""
    runs = len(error)
    if error.size < MIN_POOLED_ERRORS:
        return float(stdtrit(runs + (POOLED_REPLICATE_WEIGHT if len(estimate) > 1 else 0.0), 1 - risk / 2))
    mean_square = np.mean(error**2, axis=0)
    others = np.maximum(runs * mean_square - error**2, 0.0) / (runs - 1)
    beside = _pooled_mean_squares(others, runs - 1, _mean_of_similar(estimate, mean_square))
    return float(np.quantile(np.abs(error) / np.sqrt(beside), 1 - risk))


def _covers_every_size(holds: NDArray[np.bool_], truth: Floats, risk: float) -> bool:
    """Of counts of none, few and many trips each, at most so many times the risk is missed."""
    some = np.sort(truth[truth > 0])
    ends = some[[len(some) * part // SIZE_CLASSES for part in range(1, SIZE_CLASSES)]] if len(some) else some
    size = np.where(truth > 0, 1 + np.searchsorted(ends, truth, side="right"), 0)
    judgeable, covered = np.bincount(size.reshape(-1)), np.bincount(size.reshape(-1), holds.reshape(-1))
    judged = judgeable >= MIN_ERRORS_PER_SIZE
    return bool((covered[judged] >= (1 - MAX_MISS_RATIO * risk) * judgeable[judged]).all())


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
