"""How far long work is, for who waits: bars on a terminal, lines in a log, nothing where nobody watches.

Progress says how far the work is, never what it found: shares are of steps whose number is public.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

Watcher = Callable[[str, float], None]
Say = Callable[[str], None]

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_terminal: ContextVar[TextIO | None] = ContextVar("terminal", default=None)


def silent(_: str) -> None:
    """For work that nobody watches."""


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Inside, `watcher` is called with the name of each stage and the share of it that is done.

    >>> with watched(lambda stage, done: print(stage, done)):
    ...     tell("rounding")
    rounding 0.0
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def tell(stage: str, done: float = 0.0) -> None:
    """To be called by long work where a stage begins, and now and then within it."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(stage, done)


def in_quarters(say: Say) -> Watcher:
    """A watcher that says where a stage begins, and each quarter of it."""
    last = ("", 0)

    def watcher(stage: str, done: float) -> None:
        nonlocal last
        here = (stage, int(4 * done))
        if here != last and here[1] < 4:
            say(f"  {stage} …" if not here[1] else f"  {stage}: {25 * here[1]} %")
        last = here

    return watcher


@contextmanager
def on_terminal(out: TextIO | None) -> Iterator[None]:
    """Inside, what is shown to somebody is drawn to `out`, if that is a terminal that can draw."""
    drawn = out is not None and out.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    token = _terminal.set(out if drawn else None)
    try:
        yield
    finally:
        _terminal.reset(token)


@contextmanager
def shown(say: Say, only: Collection[str] = ()) -> Iterator[None]:
    """Stages of the work inside, or these stages only: a bar for each on a terminal, else a line for each quarter."""
    out = None if say is silent else _terminal.get()
    with (
        nullcontext(in_quarters(say)) if out is None else _bars(out) as watcher,
        watched(lambda stage, done: watcher(stage, done) if not only or stage in only else None),
    ):
        yield


@contextmanager
def _bars(out: TextIO) -> Iterator[Watcher]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    class Screen(Console):
        def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002
            return False  # it stays: an interrupted process is ended at once, and could not bring it back

    columns = (TextColumn("  {task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())  # fmt: skip
    # what is printed meanwhile goes where it did: past the program's own guard of names and passwords it must not
    with Progress(*columns, console=Screen(file=out), redirect_stdout=False, redirect_stderr=False) as bars:
        yield _drawn(bars)
        for task in bars.task_ids:
            bars.update(task, total=1.0, completed=1.0)


def _drawn(bars: Progress) -> Watcher:
    """A watcher that draws a bar for each stage. One of which no share is told moves until the next begins."""
    last = ""

    def watcher(stage: str, done: float) -> None:
        nonlocal last
        if stage != last:
            if bars.task_ids:
                bars.update(bars.task_ids[-1], total=1.0, completed=1.0)
            bars.add_task(stage, total=None)
        last = stage
        if done:
            bars.update(bars.task_ids[-1], total=1.0, completed=done)

    return watcher
