"""What earlier days say about the next: their published noisy answers pooled, before anything of the next day is seen.

Days of the same kind are added up: noise averages out, and what persists stands out. Days of another kind (weekends for a weekday)
are scaled to the same number of trips and take part with a weight that is learnt from the published answers alone:

- how much a type's noisy count varies from day to day, noise and all (S, added up over types), is seen among days of a kind;
- how far the means of the two kinds are apart (D) is seen beyond what this variation explains;
- a mean of n days of the same kind errs by S/n, one of m other days by S′/m + D: the two are weighed by the inverse.

The weighted mean is as good as that of so many equal days, the effective days. It is taken as their sum, whose noise is normal (or the day's own
where there is but one), and the expected count of every trip type given it tells where trips were: a number above zero for each.

Where trips were on these days need not be where they will be. What persists is seen in products of two days' counts, whose noise is
independent: P, added up over types, each less the mean of its cell. It is compared with how uneven a day's trips are, W, beside noise and chance. A mean of n days
predicts the next with the factor P/(P + (W − P)/n). With the rest of its weight the prior is even within each cell: what tables tell apart
is measured on the next day anyway, and a prior that is sure of types where nothing persists would do harm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.estimate.posterior.estimate import expected_leaves
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.solvers.problem import bincount

Floats = NDArray[np.float64]
Answers = Sequence[Measurement]

LEAST = 1e-9  # of a trip: no type is impossible because it was never seen
NORMAL = "gaussian"


@dataclass(frozen=True, eq=False)
class Learnt:
    """Weights for every trip type, and what they were learnt from."""

    weights: Floats = field(repr=False)
    share: float  # of the days of the same kind in the mean
    effective_days: float
    varies: float  # variance of a type's count from day to day beside noise, added up over types; trips by chance among it
    apart: float  # squared distance of the kinds' mean counts, added up over types
    persists: float  # the part of the unevenness within cells that the next day is expected to have again


@dataclass(frozen=True, eq=False)
class _Kind:
    """Days of one kind: the sum and the squares of every noisy answer."""

    days: int
    total: Mapping[str, Floats]
    noise: Mapping[str, float]  # variance of the mean's noise
    spread: float  # S: variance of one day's leaves, noise and all, added up; NaN where one day tells none
    uneven: float  # Σ of squared deviations of a day's noisy leaves from their cells' means, of the mean day
    product: (
        float  # and of the products of two days' deviations, of the mean pair; NaN where one day tells none
    )


def learnt(features: FeatureDag, alike: Sequence[Answers], others: Sequence[Answers] = ()) -> Learnt:
    """A prior from earlier days: those of the same kind, and others."""
    if not alike and not others:
        raise InputError("there is no earlier release to learn from: leave the prior out")
    same, rest = (_kind(features, days) if days else None for days in (alike, others))
    share, scale, apart = 1.0, 1.0, 0.0
    if same is not None and rest is not None:
        scale = _scale(same, rest)
        share, apart = _share(same, rest, scale)
    only = same or rest
    assert only is not None
    second = rest if same is not None else None
    pooled = _pooled(features, only, second, share, scale, [*alike, *others])
    effective = _effective(only, second, share, scale, [*alike, *others][0])
    persists = _persists(features, [k for k in (same, rest) if k is not None], share)
    weights = _expected(features, pooled, persists)
    return Learnt(weights, share, effective, _beside(features, only), apart, persists)


def _kind(features: FeatureDag, days: Sequence[Answers]) -> _Kind:
    sums: dict[str, Floats] = {}
    noise: dict[str, float] = {}
    squares, uneven = np.zeros(features.universe.size), 0.0
    for answers in days:
        for m in _whole(features, answers):
            sums[m.feature] = sums.get(m.feature, 0.0) + m.values.astype(float)
            noise[m.feature] = noise.get(m.feature, 0.0) + float(np.mean(m.variance))
            if m.feature == SINGLETON:
                squares += m.values.astype(float) ** 2
                uneven += float(np.sum(_within(features, m.values.astype(float)) ** 2))
    many = len(days)
    mean = {name: total / many for name, total in sums.items()}
    spread = product = math.nan
    if many > 1:
        spread = float(np.sum(squares - many * mean[SINGLETON] ** 2) / (many - 1))
        whole = float(np.sum(_within(features, sums[SINGLETON]) ** 2))
        product = (whole - uneven) / (many * (many - 1))
    return _Kind(many, mean, {name: v / many**2 for name, v in noise.items()}, spread, uneven / many, product)


def _within(features: FeatureDag, leaves: Floats) -> Floats:
    """Deviations from the mean of each cell."""
    return np.asarray(leaves - _cell_means(features, leaves))


def _cell_means(features: FeatureDag, leaves: Floats) -> Floats:
    cell, many = features.cell_of_leaf, features.cells.size
    means = bincount(cell, leaves, many) / np.maximum(np.bincount(cell, minlength=many), 1)
    return np.asarray(means[cell])


def _persists(features: FeatureDag, kinds: Sequence[_Kind], share: float) -> float:
    """The factor P/(P + (W − P)/n); 0 where single days tell nothing about it. P is taken a deviation below what is seen."""
    told = [k for k in kinds if k.days > 1]
    if not told:
        return 0.0
    kind = max(told, key=lambda k: k.days)
    types = features.universe.size
    noise = kind.days * kind.noise[SINGLETON] * max(types - features.cells.size, 0)
    trips = max(float(kind.total[SINGLETON].sum()), 0.0)
    chance = kind.uneven / math.sqrt(types) * math.sqrt(2 / (kind.days * (kind.days - 1)))
    lasting = max(0.0, kind.product - chance)
    varies = max(0.0, kind.uneven - noise - trips - lasting)
    parts = [share, 1 - share] if len(kinds) > 1 else [1.0]
    days = 1 / sum(part**2 / k.days for part, k in zip(parts, kinds, strict=True))
    return lasting / (lasting + varies / days) if lasting else 0.0


def _whole(features: FeatureDag, answers: Answers) -> list[Measurement]:
    """The measurements that tell all of a feature's counts; each feature once, and the leaves among them."""
    found = {
        m.feature: m
        for m in answers
        if m.feature in features and m.elements is None and m.variance is not None and not m.exact
        and len(m.values) == features.size(m.feature)
    }  # fmt: skip
    if SINGLETON not in found:
        raise InputError(
            "an earlier release does not tell the noisy count of every trip type: it cannot be learnt from"
        )
    return list(found.values())


def _scale(same: _Kind, rest: _Kind) -> float:
    """How many times as many trips the same kind of day has."""
    one, other = (max(float(k.total[SINGLETON].sum()), 1.0) for k in (same, rest))
    return one / other


def _spreads(same: _Kind, rest: _Kind) -> tuple[float, float]:
    """S of both kinds; of a single day, noise and the chance of trips."""
    return tuple(  # type: ignore[return-value]
        k.spread
        if not math.isnan(k.spread)
        else k.days * k.noise[SINGLETON] * len(k.total[SINGLETON]) + max(float(k.total[SINGLETON].sum()), 0.0)
        for k in (same, rest)
    )


def _share(same: _Kind, rest: _Kind, scale: float) -> tuple[float, float]:
    """The weight of the same kind in the mean, and how far the kinds are apart."""
    one, other = _spreads(same, rest)
    own, theirs = one / same.days, scale**2 * other / rest.days
    seen = float(np.sum((same.total[SINGLETON] - scale * rest.total[SINGLETON]) ** 2))
    apart = max(0.0, seen - own - theirs)
    return (theirs + apart) / max(own + theirs + apart, 1e-300), apart


def _effective(same: _Kind, rest: _Kind | None, share: float, scale: float, day: Answers) -> float:
    """As many equal days have a mean of this noise."""
    one = next(float(np.mean(m.variance)) for m in day if m.feature == SINGLETON)
    return one / max(_mixed_noise(same, rest, share, scale)[SINGLETON], 1e-300)


def _pooled(
    features: FeatureDag, same: _Kind, rest: _Kind | None, share: float, scale: float, days: Sequence[Answers]
) -> list[Measurement]:
    """The weighted mean as the sum of effective days."""
    if len(days) == 1:
        return _whole(features, days[0])
    made = []
    noise = _mixed_noise(same, rest, share, scale)
    first = next(m for m in _whole(features, days[0]) if m.feature == SINGLETON)
    effective = float(np.mean(first.variance)) / noise[SINGLETON]
    for name, variance in noise.items():
        mean = (
            same.total[name]
            if rest is None
            else share * same.total[name] + (1 - share) * scale * rest.total[name]
        )
        values = np.rint(effective * mean).astype(np.int64)
        made.append(Measurement(name, values, effective * math.sqrt(variance), law=NORMAL))
    return made


def _mixed_noise(same: _Kind, rest: _Kind | None, share: float, scale: float) -> dict[str, float]:
    if rest is None:
        return dict(same.noise)
    both = [name for name in same.noise if name in rest.noise]
    return {n: share**2 * same.noise[n] + ((1 - share) * scale) ** 2 * rest.noise[n] for n in both}


def _expected(features: FeatureDag, pooled: Sequence[Measurement], persists: float) -> Floats:
    seen: Floats = np.maximum(expected_leaves(features, pooled).values.astype(float), LEAST)
    made = persists * seen + (1 - persists) * _cell_means(features, seen)
    return np.asarray(made / made.sum())


def _beside(features: FeatureDag, kind: _Kind) -> float:
    """What a type's count varies from day to day beside noise, added up over types; 0 where one day tells nothing."""
    if math.isnan(kind.spread):
        return 0.0
    return max(0.0, kind.spread - kind.days * kind.noise[SINGLETON] * features.universe.size)
