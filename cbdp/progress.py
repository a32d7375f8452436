"""Progress callbacks; no-op when unset.

Progress says how far the work is, never what it found: shares are of steps whose number is public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watcher = Callable[[str, float], None]
Say = Callable[[str], None]

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


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


def silent(_: str) -> None:
    """For work that nobody watches."""


def tell(stage: str, done: float = 0.0) -> None:
    """To be called by long work where a stage begins, and now and then within it."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(stage, done)


def in_quarters(say: Callable[[str], None]) -> Watcher:
    """A watcher that says where a stage begins, and each quarter of it."""
    last = ("", 0)

    def watcher(stage: str, done: float) -> None:
        nonlocal last
        here = (stage, int(4 * done))
        if here != last and here[1] < 4:
            say(f"  {stage} …" if not here[1] else f"  {stage}: {25 * here[1]} %")
        last = here

    return watcher
