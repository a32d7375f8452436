"""Work on threads: compiled loops and numpy's let others run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

THREADED = 2**14  # leaves from which threads are worth their start
MOST = 4


def each(work: Callable[[Item], Made], items: Iterable[Item], leaves: int) -> list[Made]:
    """The work on each item, in their order; on threads where there are leaves enough."""
    if leaves < THREADED:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(MOST, os.cpu_count() or 1)) as pool:
        return list(pool.map(work, items))
