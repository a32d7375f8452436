"""The loops of `lattice.mixtures`, compiled: log-normal means dealt to a row of means.

The part that a mean gets is a second difference of expected excesses E[(λ − a)⁺]; where these are large, of E[(a − λ)⁺]. Of each row of means only
the excesses that are used are asked for: those below for the means up to the centre, and those above from the last of these on.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def asked(centre, log_centre, positive, log_positive, spread):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """How many means are not above each centre, and where the normal law is wanted, all in one row: by mean, and half a spread further."""
    rows, shapes = centre.shape
    many = len(positive)
    below = np.empty((rows, shapes), dtype=np.int64)
    size = 0
    for i in range(rows):
        for s in range(shapes):
            k = np.searchsorted(positive, centre[i, s], side="right")
            below[i, s] = k
            size += many + (1 if 0 < k < many else 0)
    near, far = np.empty(size), np.empty(size)
    at = 0
    for i in range(rows):
        for s in range(shapes):
            k, half = below[i, s], spread[s] / 2
            for j in range(k):
                x = (log_centre[i, s] - log_positive[j]) / spread[s]
                near[at], far[at] = -(x + half), -(x - half)
                at += 1
            for j in range(max(k - 1, 0) if k < many else many, many):
                x = (log_centre[i, s] - log_positive[j]) / spread[s]
                near[at], far[at] = x + half, x - half
                at += 1
    return below, near, far


@njit(cache=True, nogil=True)
def dealt(below, near, far, centre, positive, step, empty):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """What each mean gets; `near` and `far` are now the values of the normal law, and `step` the gaps between means."""
    rows, shapes = centre.shape
    many = len(positive)
    made = np.empty((rows, shapes, many + 1))
    at = 0
    for i in range(rows):
        for s in range(shapes):
            k, c, filled = below[i, s], centre[i, s], 1 - empty[s]
            slope, last = -1.0, 0.0  # minus the chance to lie above, on average between two means
            for j in range(k):
                under = positive[j] * far[at] - c * near[at]
                now = (under - last) / step[j] - 1
                made[i, s, j] = max(now - slope, 0.0) * filled
                slope, last = now, under
                at += 1
            last = c
            if 0 < k < many:
                last = c * near[at] - positive[k - 1] * far[at]
                at += 1
            for j in range(k, many):
                over = c * near[at] - positive[j] * far[at]
                now = (over - last) / step[j]
                made[i, s, j] = max(now - slope, 0.0) * filled
                slope, last = now, over
                at += 1
            made[i, s, many] = max(0.0 - slope, 0.0) * filled
            made[i, s, 0] += empty[s]
    return made
