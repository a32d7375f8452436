"""Runs a piece of work in a process of its own, so that one that explodes is a line in a table and not the end of it."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
ENOUGH = 5.0  # seconds after which work is not repeated: it is slow enough to be timed by one run
SHARE_OF_MEMORY = 0.75  # what one run may take of the machine's


@dataclass(frozen=True)
class Measured:
    """The best time of the runs, their peak memory above what was there before, and what the work returned."""

    seconds: float = float("nan")
    extra_bytes: int = 0
    value: Any = None
    failure: str | None = None


def measure(
    prepare: Callable[..., Callable[[], Any]],
    *args: Any,
    limit: float,
    repeats: int = 1,
    enough: float = ENOUGH,
) -> Measured:
    """`prepare(*args)` returns the work to measure; both happen in a fresh process that has `limit` seconds.

    Memory is the resident set's high-water mark (VmHWM, reset before the work) less what was resident before: it sees
    every library's allocations, compiled code's too, which tracemalloc does not.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, prepare, args, repeats, enough), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(limit):
            return Measured(failure=f"not done in {limit:.0f} s")
        found: Measured = ours.recv()
    except EOFError:
        process.join(10)
        return Measured(failure=f"died (exit code {process.exitcode})")
    else:
        return found
    finally:
        process.kill()
        process.join()


def _child(
    answer: Connection,
    prepare: Callable[..., Callable[[], Any]],
    args: tuple[Any, ...],
    repeats: int,
    enough: float,
) -> None:
    most = int(SHARE_OF_MEMORY * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    try:
        answer.send(_run(prepare(*args), repeats, enough))
    except Exception as failure:  # noqa: BLE001 - whatever it is, it is what the table shall say
        answer.send(Measured(failure=f"{type(failure).__name__}: {failure}"))


def _run(work: Callable[[], Any], repeats: int, enough: float) -> Measured:
    before = reset_peak()
    best, value = float("inf"), None
    begun = time.perf_counter()
    for run in range(repeats):
        if run and time.perf_counter() - begun > enough:
            break
        value = None  # so that two answers are never held at once
        start = time.perf_counter()
        value = work()
        best = min(best, time.perf_counter() - start)
    return Measured(best, max(0, peak() - before), value)


def reset_peak() -> int:
    """Start the high-water mark afresh; what is resident now."""
    gc.collect()
    if not CLEAR.exists():
        return peak()  # not Linux: no reset, so memory that preparing took hides some of the work's
    # glibc keeps freed blocks of up to 32 MB resident, and the work would reuse them unseen
    getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)(0)
    CLEAR.write_text("5")
    return kilobytes("VmRSS") * 1024


def peak() -> int:
    if not STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return kilobytes("VmHWM") * 1024


def kilobytes(field: str) -> int:
    line = next(text for text in STATUS.read_text().splitlines() if text.startswith(field + ":"))
    return int(line.split()[1])
