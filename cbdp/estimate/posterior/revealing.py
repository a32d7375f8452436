"""How many noisy counts of trip types the posterior asks for where types are too many to list: as many as memory allows.

Of a type with few trips a noisy count says little more than whether it is above zero. So floors at zero hide next to nothing, and a
higher floor leaves about twice the share of noise that exceeds it of what all noisy counts say about rates: how sharp
stops, pairs of stops and shapes become is decided by how many types are revealed. Where the types are few enough, all are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.estimate.floors import SPARE, densities, first_floors, merged_floors
from cbdp.estimate.posterior.settings import TUNING
from cbdp.features import FeatureDag
from cbdp.privacy.laws import Law
from cbdp.privacy.measurement import BOTTOM, Measurement, Revealing


def sharp_floors(features: FeatureDag, tables: Sequence[Measurement], leaves: Revealing, most: int) -> Ints:
    """At the bottom where there are at most so many types; else as low as that number allows.

    A function of public sizes and of the noisy tables: cells with more expected trips to a type have lower floors.
    """
    sizes, law = features.cells.partition.sizes, leaves.noise
    if features.universe.size <= most:
        return np.full(len(sizes), BOTTOM, dtype=np.int64)
    density = densities(features, tables)
    worth = density**2 / law.variance() >= TUNING.revealed_worth
    share = _shares(np.where(worth, density, 0.0), sizes.astype(float), most)
    sharp = np.minimum(_heights(law, share), law.extreme(sizes, SPARE))
    return merged_floors(np.where(worth, sharp, first_floors(features, tables, leaves)), features, leaves)


def _heights(law: Law, share: Floats) -> Floats:
    """The whole numbers from 0 on that about these shares of noise exceed."""
    low, high = np.zeros(len(share)), np.ones(len(share))
    while (law.survival(high) > share).any() and high[0] < -BOTTOM:
        high *= 2
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        over = law.survival(middle) > share
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    nearer = law.survival(low) * law.survival(high) < share**2
    return np.where(nearer, low, high)


def _shares(density: Floats, sizes: Floats, most: int) -> Floats:
    """By cell, the part of its types to reveal if none has trips: in proportion to expected trips, as far as more tell more."""
    part = TUNING.revealed_part
    wanted = min(most * part, float(density @ sizes) * TUNING.revealed_each)
    low, high = 0.0, part / max(float(density.min(initial=1.0, where=density > 0)), 1e-300)
    for _ in range(60):
        middle = (low + high) / 2
        many = float(np.minimum(middle * density, part) @ sizes)
        low, high = (low, middle) if many > wanted else (middle, high)
    return np.clip(low * density, 1e-300, part)
