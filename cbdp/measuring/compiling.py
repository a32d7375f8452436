"""Functions that numba compiles when they are first needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    from numba import njit  # slow to import, and reading a release needs no noise

    compiled: Callable[..., Any] = njit(cache=True, nogil=True)(function)
    return compiled
