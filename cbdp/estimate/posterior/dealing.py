"""What is expected of a group's unnamed types, dealt out as parts of trips to types drawn at random."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.estimate.posterior.censored import Expected
from cbdp.estimate.posterior.lattice import TINY
from cbdp.estimate.posterior.settings import TUNING
from cbdp.features.index import among
from cbdp.privacy.measurement import Measurement
from cbdp.solvers.problem import bincount


def dealt(found: Expected, mass: Floats, seed: int) -> tuple[Ints, Floats]:
    """Types other than those found that get each group's mass, in ascending order, and how much each gets.

    They are as many as trips, or more while these are few. Which ones is drawn at random from each group, without listing it:
    evenly, or the more likely the busier their values are.
    """
    partition, rng = found.groups.partition, np.random.default_rng(seed)
    taken, sizes = np.bincount(found.group, minlength=len(mass)), partition.sizes
    finely = _parts(mass, sizes)
    wanted = np.ceil(mass * finely)
    many = np.where(mass > 0, np.clip(wanted, 1, sizes - taken), 0).astype(np.int64)
    further = np.where(taken * TUNING.crowded > sizes, taken, np.minimum(taken, many // 8 + TUNING.spare))
    times = (
        np.ceil(TUNING.choice / finely).astype(np.int64) if found.groups.busy else 1
    )  # small parts need no choice
    drawn = np.where(many > 0, np.minimum(times * many + further, sizes), 0)
    inside = np.repeat(np.arange(len(mass)), drawn)
    index = partition.type_at(inside, _places(sizes, drawn, inside, rng))
    free = np.flatnonzero(~among(index, found.index))
    index, inside = index[free], inside[free]
    weight = found.groups.weight(index)
    kept = _of_each(inside, many, weight, rng)
    part = 1 + TUNING.jitter * (rng.random(int(kept.sum())) - 0.5)
    if found.groups.busy:
        part *= _even(inside, many, weight)[kept]
    index, inside = index[kept], inside[kept]
    part *= (mass / np.maximum(bincount(inside, part, len(mass)), TINY))[inside]
    order = np.argsort(index)
    return index[order], part[order]


def _parts(mass: Floats, sizes: Ints) -> Floats:
    """By group, to how many types a trip is dealt: to several where trips are few, or types not many more than trips."""
    total = max(float(mass.sum()), 1.0)
    few, many = max(1.0, TUNING.listed / total), min(TUNING.dealt_parts, TUNING.dealt / total)
    return np.where(mass > TUNING.dealt_rate * sizes, max(few, many), few)


def _of_each(inside: Ints, many: Ints, weight: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which of the types drawn from each group are kept: so many of them, at random, the more likely the more they weigh."""
    kept = np.ones(len(inside), dtype=bool)
    spare = np.flatnonzero((np.bincount(inside, minlength=len(many)) > many)[inside])
    late = rng.standard_exponential(len(spare)) / np.maximum(weight[spare], TINY)
    spare = spare[np.lexsort((late, inside[spare]))]
    kept[spare] = _rank(inside[spare]) < many[inside[spare]]
    return kept


def _even(inside: Ints, many: Ints, weight: Floats) -> Floats:
    """Weight divided by about the probability to be kept: where few are kept the choice has told them apart, where all are, this does."""
    often = np.bincount(inside, minlength=len(many))
    share = np.minimum(many / np.maximum(often, 1), 1.0)[inside]
    mean = (bincount(inside, weight, len(many)) / np.maximum(often, 1))[inside]
    relative = weight / np.maximum(mean, TINY)
    with np.errstate(divide="ignore"):
        chance = -np.expm1(np.log1p(-share) * relative)
    made: Floats = relative / np.maximum(chance, TINY)
    return made


def _places(sizes: Ints, drawn: Ints, inside: Ints, rng: np.random.Generator) -> Ints:
    """One place in each of as many equal stretches of a group as types are drawn: none is drawn twice."""
    stretch = _rank(inside)
    width, further = np.divmod(sizes, np.maximum(drawn, 1))
    width, further = width[inside], further[inside]
    own = width + (stretch < further)
    within = np.minimum((rng.random(len(inside)) * own).astype(np.int64), own - 1)
    made: Ints = stretch * width + np.minimum(stretch, further) + within
    return made


def _rank(ordered: Ints) -> Ints:
    """The place of each among its equals, which stand together."""
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    made: Ints = np.arange(len(ordered)) - np.repeat(starts, np.diff(starts, append=len(ordered)))
    return made


def seed_of(measurements: Sequence[Measurement]) -> int:
    """A number that follows from the noisy answers: whoever has these can deal again."""
    told = hashlib.sha256()
    for m in measurements:
        told.update(m.feature.encode())
        for part in (m.values, m.elements, m.floor):
            told.update(b"-" if part is None else np.ascontiguousarray(part).tobytes())
    return int.from_bytes(told.digest()[:16], "big")
