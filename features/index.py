"""Ascending lists of trip types: which are in them, and what is in any of several."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints


def among(index: Ints, ordered: Ints) -> NDArray[np.bool_]:
    """Which of these are found in an ascending list."""
    if not len(ordered):
        return np.zeros(len(index), dtype=bool)
    place = np.minimum(np.searchsorted(ordered, index), len(ordered) - 1)
    return np.asarray(ordered[place] == index)


def merged(*ascending: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers that are in any of some ascending lists, ascending."""
    every = np.sort(np.concatenate(ascending), kind="stable")  # which merges runs
    return every[np.concatenate([[True], every[1:] != every[:-1]])] if len(every) else every
