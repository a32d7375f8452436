"""How loops over leaves are compiled: by numba (Lam, Pitrou and Seibert 2015), once for each machine, and kept beside the source.

What compiling costs is mostly numba's own Python, so much for every function, every kind of argument and every library call
within. So a kernel is a few plain loops over arrays that come from outside, parts of it are `inlined`, wrappers that nobody calls are left out, and
where an array is filled or summed along an axis NumPy does it. Above all no array is assigned to a slice: for the message about shapes that
differ, numba compiles its strings, which takes seconds.

A kernel is compiled when it is first called. Those that every release of a kind needs are `compiled_ahead`, on all processors (`prepare`).
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, cast

import numpy as np
from numba import from_dtype, njit, types

R = TypeVar("R")

_OPTIONS = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
PYTHON_NAMES = ("python", "pypy")  # how the names of interpreters begin
MAX_PROCESSES = 4  # that compile at a time: more would have too little each to be worth their start


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


# Kernels with stated kinds of arguments are compiled before they are called: numba compiles one at a time in a process, so by several.


class _Dispatcher(Protocol):
    """What of numba's compiled function is used here."""

    __module__: str
    stats: object

    def compile(self, sig: tuple[types.Type, ...]) -> object: ...


@dataclass(frozen=True, eq=False)
class _Stated:
    """A kernel, and what it is compiled for: `f8[:,::1], i4[::1], i8` in numba's words."""

    kernel: _Dispatcher
    signature: str
    records: dict[str, np.dtype[np.void]]

    def compile(self) -> None:
        """Load it if it was compiled before, else compile it."""
        names = vars(types) | {name: from_dtype(record) for name, record in self.records.items()}
        self.kernel.compile(eval(f"({self.signature},)", {"__builtins__": {}}, names))  # noqa: S307 - literals of this package


_stated: dict[str, list[_Stated]] = {}  # by module


def compiled_ahead(
    *signatures: str, **records: np.dtype[np.void]
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """A kernel that `prepare` compiles for these kinds of arguments (for others when it is first called with them).

    ```python
    @compiled_ahead("f8[::1], f8")
    @kernel
    def scale(values, factor):
        for u in range(len(values)):
            values[u] *= factor
    ```
    """

    def state(function: Callable[..., R]) -> Callable[..., R]:
        dispatcher = cast("_Dispatcher", function)
        of_module = _stated.setdefault(function.__module__, [])
        of_module += [_Stated(dispatcher, signature, records) for signature in signatures]
        return function

    return state


def prepare(modules: Sequence[str]) -> None:
    """Load the kernels of these (imported) modules whose arguments are stated, or compile them, in a process for each processor."""
    kernels = _stated_kernels(modules)
    helpers: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="cbdp-compiling-") as claims, _without_garbage_collection():
        try:
            for place, stated in enumerate(kernels):
                if _claim(claims, place):
                    stated.compile()
                    if not helpers and getattr(stated.kernel.stats, "cache_misses", None):
                        helpers = _helpers(claims, modules)
            for helper in helpers:
                helper.wait()
        finally:
            for helper in helpers:
                helper.terminate()  # no harm to one that has ended
                helper.communicate()
        # what the others have compiled is loaded; what they failed at is compiled here
        for stated in kernels:
            stated.compile()


def help_prepare(claims: str, modules: Sequence[str]) -> None:
    """The work of another process: to compile what nobody has claimed."""
    with _without_garbage_collection():
        for place, stated in enumerate(_stated_kernels(modules)):
            if _claim(claims, place):
                stated.compile()


def end_with_parent(claims: str) -> None:
    """In another process: end it as soon as the one that asked for help has ended, however that came (standard input is a pipe from it)."""

    def watch() -> None:
        os.read(0, 1)  # returns when the other end is closed
        shutil.rmtree(claims, ignore_errors=True)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _stated_kernels(modules: Sequence[str]) -> list[_Stated]:
    return [stated for module in modules for stated in _stated.get(module, [])]


def _claim(claims: str, place: int) -> bool:
    """Whether this process is the first to want the kernel at this place."""
    try:
        (Path(claims) / str(place)).touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:  # the folder is gone: whoever asked for help has ended
        return False
    return True


def _helpers(claims: str, modules: Sequence[str]) -> list[subprocess.Popen[bytes]]:
    """Processes that compile the same kernels; none where they cannot be started."""
    if getattr(sys, "frozen", False) or not Path(sys.executable or "").name.lower().startswith(PYTHON_NAMES):
        return []  # a program that has Python inside would be started once more
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; import cbdp.compiling as c; c.end_with_parent({claims!r}); "
        f"import {', '.join(modules)}; c.help_prepare({claims!r}, {list(modules)!r})"
    )
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    helpers: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(min(available, MAX_PROCESSES) - 1):
            helpers.append(  # noqa: PERF401 - those that were started are kept when another cannot be
                subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
    except OSError:
        pass
    return helpers


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Compiling makes millions of small objects that live on: looking through them is a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
