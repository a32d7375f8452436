"""The readings of the word "error": every number that Table 2 may have meant by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Levels = list[Floats]


def root_mean_square(values: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=float))))


PER_TYPE = "RMS per type"  # what our own Table 2 prints
METRICS: Mapping[str, Callable[[Levels, Levels], float]] = {
    # exact errors by level, and errors of the published integers by level
    PER_TYPE: lambda _, whole: root_mean_square(whole[-1]),
    "RMS per type, real-valued leaves": lambda real, _: root_mean_square(real[-1]),
    "mean absolute per type": lambda _, whole: float(np.abs(whole[-1]).mean()),
    "L2 norm over types": lambda _, whole: float(np.linalg.norm(whole[-1])),
    "RMS over all counting queries": lambda real, _: root_mean_square(np.concatenate(real)),
    "mean absolute over all counting queries": lambda real, _: float(np.abs(np.concatenate(real)).mean()),
    "mean absolute over all queries, integers": lambda _, whole: float(np.abs(np.concatenate(whole)).mean()),
    "mean over features of RMS": lambda real, _: float(np.mean([root_mean_square(e) for e in real])),
    "weighted norm of the objective": lambda real, _: math.sqrt(sum(root_mean_square(e) ** 2 for e in real)),
}
