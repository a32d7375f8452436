"""Many rows at once: among a hundred rows without any change, ten lie outside their own 90 % interval.

Rows of one comparison are about different trips, and every noisy count belongs to at most one of them. So their errors are independent,
and Benjamini and Hochberg's procedure holds as it stands: among the rows that it picks, the expected share without any change is at
most the risk.
"""

from __future__ import annotations

import numpy as np

from cbdp.arrays import Floats

METHOD = "Benjamini–Hochberg"


def adjusted(chance: Floats) -> Floats:
    """The least risk at which each row is picked.

    >>> adjusted(np.array([0.01, 0.8, 0.02, 0.04])).round(4).tolist()
    [0.04, 0.8, 0.04, 0.0533]
    """
    many = len(chance)
    order = np.argsort(-chance, kind="stable")
    ranked = chance[order] * many / np.arange(many, 0, -1)
    made = np.empty(many)
    made[order] = np.minimum(np.minimum.accumulate(ranked), 1.0)
    return made
