"""The convolution of a row of numbers with two-sided geometric noise: two recursions, from either side.

Equals `scipy.signal.lfilter([1], [1, −decay], …)` forwards plus backwards, less the number itself. Compiled here, because the filter of scipy.signal takes most of a second to import, in every process that estimates.
"""

from __future__ import annotations

import numpy as np

from cbdp.compiling import compiled_ahead, kernel


@compiled_ahead("f8[:,::1], f8")
@kernel
def convolved(rows, decay):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Each number of a row spread over its neighbours, by a factor `decay` less for every step.

    Rows take turns by four, since a number waits for the one before it; where fewer are left, the last is computed again.
    """
    many, wide = rows.shape
    out = np.empty((many, wide))
    for begin in range(0, many, 4):
        _filter_rows(
            rows,
            out,
            decay,
            begin,
            min(begin + 1, many - 1),
            min(begin + 2, many - 1),
            min(begin + 3, many - 1),
        )
    return out


@kernel
def _filter_rows(rows, out, decay, p, q, r, s):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    whole = (1.0 - decay) / (1.0 + decay)
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(rows.shape[1]):
        a, b, c, d = (
            rows[p, j] + decay * a,
            rows[q, j] + decay * b,
            rows[r, j] + decay * c,
            rows[s, j] + decay * d,
        )
        out[p, j], out[q, j], out[r, j], out[s, j] = a, b, c, d
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(rows.shape[1] - 1, -1, -1):
        w, x, y, z = out[p, j], out[q, j], out[r, j], out[s, j]
        a, b, c, d = (
            rows[p, j] + decay * a,
            rows[q, j] + decay * b,
            rows[r, j] + decay * c,
            rows[s, j] + decay * d,
        )
        out[p, j] = max((w + a - rows[p, j]) * whole, 0.0)
        out[q, j] = max((x + b - rows[q, j]) * whole, 0.0)
        out[r, j] = max((y + c - rows[r, j]) * whole, 0.0)
        out[s, j] = max((z + d - rows[s, j]) * whole, 0.0)
