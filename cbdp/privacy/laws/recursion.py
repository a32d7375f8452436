"""What two-sided geometric noise makes of a row of numbers: two recursions, from either side.

Compiled here, because the filter of scipy.signal takes most of a second to import, in every process that estimates.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def blurred(rows, decay):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Each number of a row spread over its neighbours, by a factor less for every step."""
    many, wide = rows.shape
    made = np.empty((many, wide))
    whole = (1.0 - decay) / (1.0 + decay)
    for i in range(many):
        up = 0.0
        for j in range(wide):
            up = rows[i, j] + decay * up
            made[i, j] = up
        down = 0.0
        for j in range(wide - 1, -1, -1):
            down = rows[i, j] + decay * down
            made[i, j] = max((made[i, j] + down - rows[i, j]) * whole, 0.0)
    return made
