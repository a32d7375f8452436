"""How loops over leaves are compiled: by numba (Lam, Pitrou and Seibert 2015), once for each machine, and kept beside the source.

What compiling costs is hardly the optimiser: it is numba's own Python, so much for every function, every kind of argument and every library call
within. So a kernel is a few plain loops over arrays that come from outside, parts of it are `inlined`, wrappers that nobody calls are left out, and
where an array is filled or summed along an axis NumPy does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from numba import njit

R = TypeVar("R")

_OPTIONS = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}


def kernel(function: Callable[..., R]) -> Callable[..., R]:
    """Compiled when it is first called, for the kinds of its arguments; threads may run it side by side.

    ```python
    @kernel
    def total(values):
        total = 0.0
        for value in values:
            total += value
        return total
    ```
    """
    compiled: Callable[..., R] = njit(**_OPTIONS)(function)
    return compiled


def fast_kernel(function: Callable[..., R]) -> Callable[..., R]:
    """A kernel whose sums may be made in any order, and in which no number is infinite or missing."""
    compiled: Callable[..., R] = njit(**_OPTIONS, fastmath=True)(function)
    return compiled


def inlined(function: Callable[..., R]) -> Callable[..., R]:
    """A part of kernels of its module, put in where it is called: it costs next to nothing by itself."""
    compiled: Callable[..., R] = njit(**_OPTIONS, no_cpython_wrapper=True, inline="always")(function)
    return compiled
