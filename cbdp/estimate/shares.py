"""Intervals of shares: which part of a whole's trips belongs to a group of it.

Both counts are told by the same measurements, so their errors are not independent. A share p fits what was measured if the part less p
times the whole is within its noise of zero (Fieller's construction): the noise of that difference is known for every p.
"""

from __future__ import annotations

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.estimate.combined import Combination, reach


def share_ends(part: Combination, whole: Combination, inside: Ints, risk: float) -> tuple[Floats, Floats]:
    """The least and the largest share that fits what was measured; 0 and 1 where any does.

    `inside` is the whole that each part belongs to. Both combinations have the same sources.
    """
    weight, all_, noise = whole.weight[:, inside], whole.value[inside], whole.noise[:, inside]
    # noise of the part is in the whole's sum of the same source too
    own, both, total = (
        (part.weight**2 * part.noise).sum(axis=0),
        (part.weight * weight * part.noise).sum(axis=0),
        (weight**2 * noise).sum(axis=0),
    )
    square = reach(np.minimum(part.equal_noises, whole.equal_noises[inside]), risk) ** 2
    a, b, c = all_**2 - square * total, part.value * all_ - square * both, part.value**2 - square * own
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        low, high = (b - root) / a, (b + root) / a
    told = part.told & whole.told[inside] & (a > 0) & (all_ > 0)
    return np.where(told, np.clip(low, 0, 1), 0.0), np.where(told, np.clip(high, 0, 1), 1.0)
