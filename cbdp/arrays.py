"""Names for the types of arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Indices = NDArray[np.int32] | NDArray[np.int64]  # 32 bits where they suffice
Numbers = NDArray[np.int64] | NDArray[np.float64]
