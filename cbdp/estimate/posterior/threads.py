"""Work on threads: compiled loops and numpy's let others run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

THREADED = 2**14  # leaves from which threads are worth their start
MOST = 4
PARTS = 4  # of the leaves, for work that goes by them


def each(work: Callable[[Item], Made], items: Iterable[Item], leaves: int) -> list[Made]:
    """The work on each item, in their order; on threads where there are leaves enough.

    The calling thread does its share. Once something fails, or the user interrupts, no further item is begun.
    """
    given = list(items)
    threads = min(MOST, os.cpu_count() or 1, len(given)) if leaves >= THREADED else 1
    if threads <= 1:
        return [work(item) for item in given]
    made: list[Any] = [None] * len(given)
    waiting, failed = SimpleQueue[int](), list[BaseException]()
    for place in range(len(given)):
        waiting.put(place)

    def run() -> None:
        try:
            while not failed and (place := _next(waiting)) is not None:
                made[place] = work(given[place])
        except BaseException as wrong:  # noqa: BLE001 - raised again by the calling thread
            failed.append(wrong)

    others = [Thread(target=run) for _ in range(threads - 1)]
    for other in others:
        other.start()
    run()
    for other in others:
        other.join()
    if failed:
        raise failed[0]
    return made


def in_parts(work: Callable[[int, int], Made], leaves: int) -> list[Made]:
    """The work on the leaves from one place to another, by parts that are the same whatever the threads."""
    edges = [leaves * part // PARTS for part in range(PARTS + 1)]
    return each(lambda part: work(edges[part], edges[part + 1]), range(PARTS), leaves)


def _next(waiting: SimpleQueue[int]) -> int | None:
    try:
        return waiting.get_nowait()
    except Empty:
        return None
