"""Intervals about posterior means by the parametric bootstrap: counts drawn from the posterior, the mechanism re-run on them.

A posterior mean is nearer to the truth than any unbiased answer, but nothing published states its error. So counts of every trip type are
drawn from the posterior (`Estimator.drawn`), the mechanism is re-run on them, and the errors of its estimates are observed (parametric bootstrap:
Efron and Tibshirani 1993, chapter 6; of empirical-Bayes estimates: Laird and Louis 1987).

1. *Variance.* The mean square error of a count is that of its own group over the replicates, shrunk to the mean over groups of a similar estimate.
2. *Misspecification.* Groups may differ by more than the model can see. The distance of the published estimate from the unbiased answer, the inverse-variance
   combination of the sums that refine the group (`cbdp.estimation.gls`), against that distance in the replicates, is the evidence. The inflation of the mean square error is averaged over its posterior,
   under a prior on a grid up to ten times; without evidence it is about a tenth.
3. *Optimism.* Where estimates differ among groups by many times their errors, the spread among groups was measured, and replicates err as the release does.
   Elsewhere it is an assumption (groups that are few are judged by finer ones) and draws may be smoother than true counts. There the mean square error is
   inflated by a half and more, and by what a double bootstrap shows: a replicate drawn from a replicate's own answers (Hall 1986; Beran 1987).
4. *Coverage by size.* Among counts with about the same estimate intervals have their confidence. Among counts with the same truth they have less where
   these are large, since estimates are shrunk. Where more than `MAX_MISS_RATIO` times the risk of some size would be missed in the replicates, there is no such
   interval, and the caller takes that of the unbiased answer: single trip types are of this kind.
5. *Minimum width.* An interval is at least a fifth as wide as that of the unbiased answer: through noise much wider than the replicates' errors a
   misspecified model could not be recognised.
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

MAX_REPLICATES = 12  # replicates of small universes
REPLICATES_OF_LARGE_UNIVERSES = 6  # replicates at least, however large the universe
MAX_REPLICATED_TYPES = 2**19  # trip types of all replicates together: beyond, there are fewer replicates
MAX_BOOTSTRAP_TYPES = 2**20  # trip types beyond which replicates would take minutes
DOUBLE_BOOTSTRAP_REPLICATES = 1  # replicates from which a second level is drawn
MIN_POOLED_GROUPS = 20  # groups of similar estimates that share a mean square error
# replicates that the shared mean square error counts as, against a group's own
POOLED_REPLICATE_WEIGHT = 12.0
MIN_ERRORS_PER_SIZE = 30  # errors that coverage of one size is judged by
SIZE_CLASSES = 4  # parts of the counts above zero, by their size
MAX_MISS_RATIO = 5  # times the risk that counts of one size may be missed
MIN_POOLED_ERRORS = 100  # errors that a quantile is read off; of fewer it is Student's
MIN_GROUPS_FOR_OPTIMISM = 20  # groups: fewer do not show how much groups differ
MIN_WIDTH_RATIO = 0.2  # of the unbiased interval's width
MAX_OPTIMISM = 10.0  # ratio of mean square errors between two levels of the bootstrap
# times the logarithm of the optimism observed one level further: each level smooths less than the one before
OPTIMISM_EXTRAPOLATION = 1.5
# times the replicates' mean square error: that of so few may well be so much too small
FEW_REPLICATES_INFLATION = 1.15
# logarithm of the mean square error's excess where the spread among groups is assumed: in dozens of such cases half were below
LOG_VARIANCE_INFLATION = 0.5
LOG_VARIANCE_INFLATION_FEW_GROUPS = 1.5  # and of few groups, which finer ones stand for
# deviation of the estimates among groups, in their errors, at which half of the spread counts as measured
HALF_WEIGHT_DEVIATION = 1.0
VARIANCE_INFLATION_GRID = np.concatenate([[0.0], np.logspace(-1, 1, 21)])  # excess of the mean square error
VARIANCE_INFLATION_PRIOR = np.concatenate(
    [[0.8], 0.2 * VARIANCE_INFLATION_GRID[1:] ** -1 / np.sum(VARIANCE_INFLATION_GRID[1:] ** -1)]
)


class Estimated(ReleaseLike, Protocol):
    """A release with the estimate that its trips are rounded from."""

    @property
    def estimate(self) -> Estimate | None: ...


class BootstrapSampler(Protocol):
    """Re-runs the mechanism on counts drawn from the posterior, by seed: handed in by the mechanism."""

    def likely(self, seed: int) -> tuple[tuple[Ints, Ints], Estimated]:
        """Trip types and counts drawn from the posterior, and the mechanism's release of them."""
        ...

    def further(self, seed: int) -> tuple[tuple[Ints, Ints], Estimated]:
        """The second level: the same, drawn from the posterior of the replicate of this seed."""
        ...


@dataclass(frozen=True, eq=False)
class BootstrapReplicates:
    """Replicates (rows) of groups (columns)."""

    truth: Floats = field(repr=False)
    estimate: Floats = field(repr=False)
    unbiased: Floats = field(repr=False)  # the inverse-variance combinations
    further: Floats = field(repr=False)  # errors at the second level, drawn from what replicates published

    @property
    def error(self) -> Floats:
        return self.estimate - self.truth


@dataclass(frozen=True, eq=False)
class GroupReplicates:
    """The estimates of groups and their replicates: many of them show how much groups differ."""

    estimate: Floats
    runs: BootstrapReplicates


def can_bootstrap(release: Estimated) -> bool:
    """Whether the release has what counts are drawn from: an estimate, and a noisy count of every trip type, of not too many."""
    whole = [m for m in release.measurements if m.feature == SINGLETON and m.elements is None]
    small = release.features.universe.size <= MAX_BOOTSTRAP_TYPES
    return small and release.estimate is not None and len(whole) == 1 and whole[0].noise is not None


def bootstrap_replicates(
    release: Estimated, sampler: BootstrapSampler, groupings: Mapping[str, Grouping]
) -> dict[str, BootstrapReplicates]:
    """Parametric bootstrap of a release for several groupings at once. Progress is reported as the stage "runs"."""
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
    columns = {name: [np.array(part) for part in zip(*row, strict=True)] for name, row in rows.items()}
    return {
        name: BootstrapReplicates(truth, estimate, unbiased, np.array(further[name]))
        for name, (truth, estimate, unbiased) in columns.items()
    }


def seeds(release: ReleaseLike, runs: int) -> list[int]:
    """Seeds that are a function of what is published and of nothing else: intervals are repeatable, and post-processing."""
    published = hashlib.sha256()
    for part in (release.index, release.value):
        published.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
    key = published.digest()
    return [
        int.from_bytes(hashlib.sha256(key + run.to_bytes(8, "little")).digest()[:8], "little")
        for run in range(runs)
    ]


def estimated_counts(release: Estimated, grouping: Grouping) -> Floats:
    """The estimate that the published counts are rounded from; of a mechanism without one, the counts themselves."""
    if release.estimate is None:
        return grouping.added(release.index, release.value).astype(float)
    index, value = release.estimate.trips()
    if not grouping.named:
        return np.asarray(value.sum(keepdims=True))
    group = grouping.group_of(grouping.universe.unrank_codes(index))
    here = group >= 0
    return bincount(group[here], value[here], grouping.size)


def half_widths(
    asked: GroupReplicates, among: GroupReplicates, best: UnbiasedAnswer, risk: float
) -> Floats | None:
    """Half-widths of intervals about the estimates; None: counts of some size would be missed too often.

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
    """The same for any statistic, such as shares, when the excess of the mean square error is given."""
    deviation = np.sqrt(_mean_squares(estimate, error))
    half = _error_quantile(estimate, error, risk) * deviation
    if not _covers_every_size(np.abs(error) <= half, truth, risk):
        return None
    inflated: Floats = half * np.sqrt(1 + excess)
    return inflated


def variance_inflation(asked: GroupReplicates, among: GroupReplicates, best: UnbiasedAnswer) -> float:
    """Excess of the mean square error over the replicates', as a share of it: few replicates, optimism and misspecification together."""
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
    """Posterior mean of the excess, from the distances between estimates and unbiased answers (normal likelihood on the grid)."""
    if not best.told.all() or not best.variance.any():
        return float(VARIANCE_INFLATION_PRIOR @ VARIANCE_INFLATION_GRID)
    estimate, runs, noise = asked.estimate, asked.runs, best.variance
    usual = noise * (
        np.mean((runs.estimate - runs.unbiased) ** 2) / max(float(noise.mean()), np.finfo(float).tiny)
    )
    square = _mean_squares(estimate, runs.error)
    whole = np.maximum(usual[:, None] + square[:, None] * VARIANCE_INFLATION_GRID, np.finfo(float).tiny)
    missed = ((estimate - best.value) ** 2)[:, None]
    fit = np.log(VARIANCE_INFLATION_PRIOR) - np.sum(np.log(whole) + missed / whole, axis=0) / 2
    belief = np.exp(fit - fit.max())
    return float(belief @ VARIANCE_INFLATION_GRID / belief.sum())


def optimism(among: GroupReplicates, assumed: float = LOG_VARIANCE_INFLATION) -> float:
    """By how many times the mean square error on true trips exceeds that on trips drawn from the posterior.

    The assumed value, and the ratio between the first and the second level of the double bootstrap (Hall 1986), extrapolated.
    """
    runs = among.runs
    first, second = (float(np.mean(e**2)) for e in (runs.error, runs.further))
    seen = float(np.std(among.estimate)) / max(first**0.5, np.finfo(float).tiny) / HALF_WEIGHT_DEVIATION
    measurable = runs.error.size >= MIN_POOLED_ERRORS and second > 0
    smoother = math.log(min(max(first / second, 1.0), MAX_OPTIMISM)) if measurable else 0.0
    return math.exp((assumed + OPTIMISM_EXTRAPOLATION * smoother) / (1 + seen**2))


def _mean_squares(estimate: Floats, error: Floats) -> Floats:
    """The mean square error of each group, shrunk to that of similar groups."""
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
    """Quantile of |error| in deviations: of each error against the other replicates' (leave one out), or Student's where errors are few."""
    runs = len(error)
    if error.size < MIN_POOLED_ERRORS:
        return float(stdtrit(runs + (POOLED_REPLICATE_WEIGHT if len(estimate) > 1 else 0.0), 1 - risk / 2))
    mean_square = np.mean(error**2, axis=0)
    others = np.maximum(runs * mean_square - error**2, 0.0) / (runs - 1)
    beside = _pooled_mean_squares(others, runs - 1, _mean_of_similar(estimate, mean_square))
    return float(np.quantile(np.abs(error) / np.sqrt(beside), 1 - risk))


def _covers_every_size(holds: NDArray[np.bool_], truth: Floats, risk: float) -> bool:
    """Whether counts of no, few and many trips are each missed at most `MAX_MISS_RATIO` times the risk."""
    some = np.sort(truth[truth > 0])
    ends = some[[len(some) * part // SIZE_CLASSES for part in range(1, SIZE_CLASSES)]] if len(some) else some
    size = np.where(truth > 0, 1 + np.searchsorted(ends, truth, side="right"), 0)
    judgeable, covered = np.bincount(size.reshape(-1)), np.bincount(size.reshape(-1), holds.reshape(-1))
    judged = judgeable >= MIN_ERRORS_PER_SIZE
    return bool((covered[judged] >= (1 - MAX_MISS_RATIO * risk) * judgeable[judged]).all())
