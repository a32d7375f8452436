"""A prior from earlier releases: their published noisy answers pooled, before anything of the next day is measured.

Days of the same kind are summed: noise averages out, and what persists remains. Days of another kind (weekends for a weekday) are scaled to the same number
of trips and pooled with a weight estimated from the published answers alone, by the moments of a random-effects model (DerSimonian and Laird 1986):

- the variance of a type's noisy count from day to day, noise included (S, summed over types), is estimated among days of a kind;
- the squared distance of the means of the two kinds (D) is what exceeds the variance of the means, or zero;
- a mean of n days of the same kind has error S/n, one of m other days S′/m + D: the two are weighed by the inverse.

The weighted mean is as precise as a number of equal days, the effective days. It is taken as their sum, whose noise is normal (or the day's own where there
is but one), and the posterior mean of every trip type given it is the weight of that type: above zero for each.

How much of these weights persists is chosen by forward validation on published days. The last third of the days of the kind is held out and predicted
from the others with every share on a grid: first of the tables (with the rest of its weight trips are even over all types), then of the types within each cell
(the rest is even within the cell). Predictions are scored by squared errors over the variance of noise and Poisson counts. Of the shares within one
deviation of the best the smallest is taken (compare the one-standard-error rule of Breiman and others 1984). Where the published days cannot
decide, the prior is even; a single day can be compared with none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.estimation.posterior import expected_leaves
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp_solvers.problem import bincount

Answers = Sequence[Measurement]

MIN_WEIGHT = 1e-9  # trips: no type is impossible because it was never observed
NORMAL_NOISE_NAME = "gaussian"
DAYS_PER_HELD_OUT_DAY = 3  # the last third of the days of a kind is held out
PERSISTENCE_GRID = np.linspace(0.0, 1.0, 41)  # shares of the observed weights that are compared


@dataclass(frozen=True, eq=False)
class PriorOfEarlierDays:
    """Weights for every trip type, and the estimates that they rest on."""

    weights: Floats = field(repr=False)
    share: float  # of the days of the same kind in the mean
    effective_days: float
    varies: float  # variance of a type's count from day to day less that of noise, summed over types; Poisson variance included
    apart: float  # D: squared distance of the kinds' mean counts, summed over types
    tables: float  # share of the tables' unevenness that persists
    persists: float  # and of the types' within their cells


@dataclass(frozen=True, eq=False)
class _DaySums:
    """Days of one kind: the mean of every noisy answer, and its variances."""

    days: int
    total: Mapping[str, Floats]
    noise: Mapping[str, float]  # variance of the mean's noise
    spread: float  # S: variance of one day's leaves, noise included, summed over types; NaN of a single day


@dataclass(frozen=True, eq=False)
class _PooledDays:
    """Days of two kinds as one mean, and its composition."""

    first: _DaySums  # of the same kind, or the only one
    measurements: Sequence[Measurement]
    share: float
    apart: float
    effective: float


def prior_of_earlier_days(
    features: FeatureDag, alike: Sequence[Answers], others: Sequence[Answers] = ()
) -> PriorOfEarlierDays:
    """A prior from earlier days, in their order: those of the same kind, and others."""
    if not alike and not others:
        raise InputError("there is no earlier release to learn from: leave the prior out")
    pool = _pooled_days(features, alike, others)
    tables, types = _persistence(features, alike, others)
    weights = _prior_weights(features, _observed_weights(features, pool), tables, types)
    beside = _day_to_day_variance(features, pool.first)
    return PriorOfEarlierDays(weights, pool.share, pool.effective, beside, pool.apart, tables, types)


def _pooled_days(features: FeatureDag, alike: Sequence[Answers], others: Sequence[Answers]) -> _PooledDays:
    same, rest = (_day_sums(features, days) if days else None for days in (alike, others))
    share, scale, apart = 1.0, 1.0, 0.0
    if same is not None and rest is not None:
        scale = _demand_ratio(same, rest)
        share, apart = _pooling_weight(same, rest, scale)
    only = same or rest
    assert only is not None
    second = rest if same is not None else None
    days = [*alike, *others]
    pooled = _pooled_mean(features, only, second, share, scale, days)
    return _PooledDays(only, pooled, share, apart, _effective_days(only, second, share, scale, days[0]))


def _day_sums(features: FeatureDag, days: Sequence[Answers]) -> _DaySums:
    sums: dict[str, Floats] = {}
    noise: dict[str, float] = {}
    squares = np.zeros(features.universe.size)
    for answers in days:
        for m in _complete_answers(features, answers):
            sums[m.feature] = sums.get(m.feature, 0.0) + m.values.astype(float)
            noise[m.feature] = noise.get(m.feature, 0.0) + float(np.mean(m.variance))
            if m.feature == SINGLETON:
                squares += m.values.astype(float) ** 2
    count = len(days)
    mean = {name: total / count for name, total in sums.items()}
    spread = math.nan
    if count > 1:
        spread = float(np.sum(squares - count * mean[SINGLETON] ** 2) / (count - 1))
    return _DaySums(count, mean, {name: v / count**2 for name, v in noise.items()}, spread)


def _cell_means(features: FeatureDag, leaves: Floats) -> Floats:
    cell, cells = features.cell_of_leaf, features.cells.size
    means = bincount(cell, leaves, cells) / np.maximum(np.bincount(cell, minlength=cells), 1)
    return np.asarray(means[cell])


# Persistence


def _persistence(
    features: FeatureDag, alike: Sequence[Answers], others: Sequence[Answers]
) -> tuple[float, float]:
    """The shares of tables, and of types within cells, that persist: validated on the last days of the kind, predicted by the others."""
    held_out = -(-len(alike) // DAYS_PER_HELD_OUT_DAY)
    rest = alike[: len(alike) - held_out]
    if not held_out or not (rest or others):
        return 0.0, 0.0
    seen, truth = (
        _observed_weights(features, _pooled_days(features, rest, others)),
        _day_sums(features, alike[len(rest) :]),
    )
    tables = _table_persistence(features, seen, truth)
    return tables, _type_persistence(features, seen, truth, tables)


def _table_persistence(features: FeatureDag, seen: Floats, truth: _DaySums) -> float:
    """The share with which the held-out days' tables are predicted best."""
    trips = _mean_trips(truth)
    misses = np.zeros(len(PERSISTENCE_GRID))
    counted, tables = 0, [n for n, t in truth.total.items() if n != SINGLETON and len(t) > 1]
    predicted = [trips * _prior_weights(features, seen, share, 0.0) for share in PERSISTENCE_GRID]
    for name in tables:
        came, element = truth.total[name], features.partition(name).of_every_type()
        sums = np.array([bincount(element, each, len(came)) for each in predicted])
        variance = truth.noise[name] + sums.mean(axis=0) / truth.days
        # the same trips are in every table: scores are averaged, not added up
        misses += np.sum((came - sums) ** 2 / variance, axis=1) / len(tables)
        counted += len(came)
    return _smallest_plausible_share(misses, counted / len(tables)) if tables else 0.0


def _type_persistence(features: FeatureDag, seen: Floats, truth: _DaySums, tables: float) -> float:
    """The same for the types within their cells."""
    even = _mean_trips(truth) * _prior_weights(features, seen, tables, 0.0)
    departures = even * (seen / _cell_means(features, seen) - 1.0)
    leaves = truth.total[SINGLETON]
    came = leaves - _cell_means(features, leaves)
    variance = truth.noise[SINGLETON] + even / truth.days
    return _smallest_plausible_share(
        np.array([np.sum((came - share * departures) ** 2 / variance) for share in PERSISTENCE_GRID]),
        len(came),
    )


def _smallest_plausible_share(misses: Floats, terms: float) -> float:
    """The smallest share within one deviation of the best; `misses` are sums of `terms` standardised squares, by share.

    Where days differ by more than noise and Poisson variance, the deviation is scaled by the overdispersion at the best share.
    """
    best = float(misses.min())
    return float(PERSISTENCE_GRID[np.argmax(misses <= best + max(1.0, best / terms))])


def _mean_trips(kind: _DaySums) -> float:
    """Trips of the mean day: the totals of all tables, weighed by inverse variance. The leaves' own total is mostly noise where types are many."""
    precise = {name: 1 / (len(kind.total[name]) * noise) for name, noise in kind.noise.items()}
    weighted = sum(weight * float(kind.total[name].sum()) for name, weight in precise.items())
    return max(weighted / sum(precise.values()), 1.0)


def _prior_weights(features: FeatureDag, seen: Floats, tables: float, types: float) -> Floats:
    """The prior: these shares of the observed weights, the rest even. For tables the share is an exponent: what is rare stays rare."""
    cell = _cell_means(features, seen)
    weights = (cell / cell.max()) ** tables * (1 + types * (seen / cell - 1))
    return np.asarray(weights / weights.sum())


def _complete_answers(features: FeatureDag, answers: Answers) -> list[Measurement]:
    """The measurements of all of a feature's counts; each feature once, and the leaves among them."""
    by_feature = {
        m.feature: m
        for m in answers
        if m.feature in features and m.elements is None and m.variance is not None and not m.exact
        and len(m.values) == features.size(m.feature)
    }  # fmt: skip
    if SINGLETON not in by_feature:
        raise InputError(
            "an earlier release does not tell the noisy count of every trip type: it cannot be learnt from"
        )
    return list(by_feature.values())


def _demand_ratio(same: _DaySums, rest: _DaySums) -> float:
    """Ratio of the mean day's trips, the same kind to the other."""
    one, other = (_mean_trips(k) for k in (same, rest))
    return one / other


def _day_variances(same: _DaySums, rest: _DaySums) -> tuple[float, float]:
    """S of both kinds; of a single day, the variance of noise and of Poisson counts."""
    return tuple(  # type: ignore[return-value]
        k.spread
        if not math.isnan(k.spread)
        else k.days * k.noise[SINGLETON] * len(k.total[SINGLETON]) + _mean_trips(k)
        for k in (same, rest)
    )


def _pooling_weight(same: _DaySums, rest: _DaySums, scale: float) -> tuple[float, float]:
    """The weight of the same kind in the mean, and D by moments (DerSimonian and Laird 1986)."""
    one, other = _day_variances(same, rest)
    variance, other_variance = one / same.days, scale**2 * other / rest.days
    seen = float(np.sum((same.total[SINGLETON] - scale * rest.total[SINGLETON]) ** 2))
    apart = max(0.0, seen - variance - other_variance)
    return (other_variance + apart) / max(variance + other_variance + apart, 1e-300), apart


def _effective_days(same: _DaySums, rest: _DaySums | None, share: float, scale: float, day: Answers) -> float:
    """How many equal days have a mean of this variance of noise."""
    one = next(float(np.mean(m.variance)) for m in day if m.feature == SINGLETON)
    return one / max(_mixed_noise(same, rest, share, scale)[SINGLETON], 1e-300)


def _pooled_mean(
    features: FeatureDag,
    same: _DaySums,
    rest: _DaySums | None,
    share: float,
    scale: float,
    days: Sequence[Answers],
) -> list[Measurement]:
    """The weighted mean as the sum of effective days."""
    if len(days) == 1:
        return _complete_answers(features, days[0])
    measurements = []
    noise = _mixed_noise(same, rest, share, scale)
    first = next(m for m in _complete_answers(features, days[0]) if m.feature == SINGLETON)
    effective = float(np.mean(first.variance)) / noise[SINGLETON]
    for name, variance in noise.items():
        mean = (
            same.total[name]
            if rest is None
            else share * same.total[name] + (1 - share) * scale * rest.total[name]
        )
        values = np.rint(effective * mean).astype(np.int64)
        measurements.append(Measurement(name, values, effective * math.sqrt(variance), law=NORMAL_NOISE_NAME))
    return measurements


def _mixed_noise(same: _DaySums, rest: _DaySums | None, share: float, scale: float) -> dict[str, float]:
    if rest is None:
        return dict(same.noise)
    both = [name for name in same.noise if name in rest.noise]
    return {n: share**2 * same.noise[n] + ((1 - share) * scale) ** 2 * rest.noise[n] for n in both}


def _observed_weights(features: FeatureDag, pool: _PooledDays) -> Floats:
    """The posterior means of the pooled days, as shares: above zero for every type."""
    expected = np.maximum(expected_leaves(features, pool.measurements).values.astype(float), MIN_WEIGHT)
    return np.asarray(expected / expected.sum())


def _day_to_day_variance(features: FeatureDag, kind: _DaySums) -> float:
    """Variance of a type's count from day to day less that of noise, summed over types; 0 of a single day."""
    if math.isnan(kind.spread):
        return 0.0
    return max(0.0, kind.spread - kind.days * kind.noise[SINGLETON] * features.universe.size)
