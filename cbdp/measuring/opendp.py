"""OpenDP's samplers as an independent source of the same noise."""

from __future__ import annotations

import importlib.metadata
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.measuring.tables import CHUNK
from cbdp.privacy.laws import Law


def sample(law: Law, n: int) -> Ints:
    """Draw from OpenDP's sampler, which takes its scale as a float: the exact one or the next float above it."""
    dp = _import_opendp()
    scale, near = Fraction(law.scale), float(law.scale)
    above = near if Fraction(near) >= scale else math.nextafter(near, math.inf)
    counts = dp.vector_domain(dp.atom_domain(T="i64"))
    if law.name == "gaussian":
        noise = dp.m.make_gaussian(counts, dp.l2_distance(T=float), scale=above)
    elif law.name == "geometric":
        noise = dp.m.make_laplace(counts, dp.l1_distance(T="i64"), scale=above)
    else:
        raise InputError(f"OpenDP draws geometric or gaussian noise, not {law.name!r}: leave the backend out")
    parts = [noise([0] * min(CHUNK, n - start)) for start in range(0, n, CHUNK)]
    return np.concatenate([np.empty(0, dtype=np.int64), *(np.array(part, dtype=np.int64) for part in parts)])


def _import_opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise InputError("the noise backend 'opendp' is not installed: pip install 'cbdp[opendp]'") from None
    version = importlib.metadata.version("opendp")
    if tuple(map(int, re.findall(r"\d+", version)[:3])) < (0, 14, 2):
        raise InputError(
            f"opendp {version} samples wrongly at some scales; 0.14.2 is the first that does not: pip install 'cbdp[opendp]'"
        )
    dp.enable_features("contrib")
    return dp
