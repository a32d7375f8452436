"""The loops of `lattice.mixtures`, compiled: log-normal means dealt to a row of means; and what such mixtures say of noisy counts.

The part that a mean gets is a second difference of expected excesses E[(λ − a)⁺]; where these are large, of E[(a − λ)⁺]. Of each row of means only
the excesses that are used are asked for: those below for the means up to the centre, and those above from the last of these on.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NEXT_TO_NONE = 1e-300  # of a mixture: smaller numbers would only be slow to multiply


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


@njit(cache=True, nogil=True)
def mixed_laws(mixed, law):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Mixtures × columns: the laws of all means, mixed.

    A product of matrices, but each number is made in the same way wherever it stands, and nothing runs on threads of its own.
    """
    made = np.zeros((len(mixed), law.shape[1]))
    for i in range(len(mixed)):
        _mix(made[i], mixed[i], law)
    return made


@njit(cache=True, nogil=True)
def log_likelihoods(mixed, law, often, tiny):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Of each mixture, the log-likelihood of what was seen so often in each column."""
    here = np.flatnonzero(often)
    part, times = np.empty((len(law), len(here))), np.empty(len(here))
    for k in range(len(here)):
        times[k] = often[here[k]]
    for m in range(len(law)):
        for k in range(len(here)):
            part[m, k] = law[m, here[k]]
    made, chance = np.zeros(len(mixed)), np.empty(len(here))
    for i in range(len(mixed)):
        chance[:] = 0.0
        _mix(chance, mixed[i], part)
        for k in range(len(here)):
            made[i] += times[k] * np.log(max(chance[k], tiny))
    return made


@njit(cache=True, nogil=True, fastmath={"contract"})
def _mix(into, mixed, law):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add up the laws of the means, as many times as they are mixed in, four at a time; what is next to none is left out."""
    rest = len(mixed) % 4
    for m in range(rest):
        for k in range(len(into)):
            into[k] += mixed[m] * law[m, k]
    for m in range(rest, len(mixed), 4):
        a, b, c, d = mixed[m], mixed[m + 1], mixed[m + 2], mixed[m + 3]
        if max(a, b, c, d) > NEXT_TO_NONE:
            for k in range(len(into)):
                into[k] += (a * law[m, k] + b * law[m + 1, k]) + (c * law[m + 2, k] + d * law[m + 3, k])
