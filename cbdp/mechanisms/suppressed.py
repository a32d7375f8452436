"""Tables that are noised one by one and suppressed below a threshold: what both of Opal's mechanisms publish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from cbdp.features import SINGLETON
from cbdp.measuring.noise import DiscreteLaplace, Entropy
from cbdp.mechanisms.base import Mechanism
from cbdp.release.release import Release
from cbdp.trips.count import Counts


def publish(
    mechanism: Mechanism,
    counts: Counts,
    entropy: Entropy,
    tables: Sequence[str],
    scale: Callable[[str], Fraction],
    threshold: Callable[[str], float],
    *,
    skip_zeros: bool,
) -> Release:
    """Each table's counts with noise of its scale; below its threshold 0. Their order is the features' own."""
    published = {}
    for name in tables:
        truth = counts.of(mechanism.features, name)
        where = np.flatnonzero(truth) if skip_zeros else np.arange(len(truth))
        noisy = truth[where] + DiscreteLaplace(scale(name)).sample(len(where), entropy)
        table = np.zeros(len(truth), dtype=np.int64)
        table[where] = np.where(noisy >= threshold(name), noisy, 0)
        published[name] = table
    leaves = published.get(SINGLETON, np.zeros(0, dtype=np.int64))
    index = np.flatnonzero(leaves).astype(np.int64)
    claim = mechanism.claim()
    return Release(
        mechanism.features,
        mechanism.name,
        claim,
        index,
        leaves[index],
        tables=published,
        secure=entropy.secure,
    )
