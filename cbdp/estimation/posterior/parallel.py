"""Work on threads: compiled loops and numpy's let others run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MIN_LEAVES_FOR_THREADS = 2**14  # leaves from which threads are worth their start
MAX_THREADS = 4
LEAF_PARTS = 4  # of the leaves, for work that goes by them


def map_items(work: Callable[[Item], Result], items: Iterable[Item], leaves: int) -> list[Result]:
    """The work on each item, in their order; on threads where there are leaves enough.

    The calling thread does its share. Once something fails, or the user interrupts, no further item is begun.
    """
    tasks = list(items)
    threads = min(MAX_THREADS, os.cpu_count() or 1, len(tasks)) if leaves >= MIN_LEAVES_FOR_THREADS else 1
    if threads <= 1:
        return [work(item) for item in tasks]
    results: list[Any] = [None] * len(tasks)
    waiting, failed = SimpleQueue[int](), list[BaseException]()
    for place in range(len(tasks)):
        waiting.put(place)

    def run() -> None:
        try:
            while not failed and (place := _next_or_none(waiting)) is not None:
                results[place] = work(tasks[place])
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
    return results


def map_parts(work: Callable[[int, int], Result], leaves: int) -> list[Result]:
    """The work on the leaves from one place to another, by parts that are the same whatever the threads."""
    edges = [leaves * part // LEAF_PARTS for part in range(LEAF_PARTS + 1)]
    return map_items(lambda part: work(edges[part], edges[part + 1]), range(LEAF_PARTS), leaves)


def _next_or_none(waiting: SimpleQueue[int]) -> int | None:
    try:
        return waiting.get_nowait()
    except Empty:
        return None
