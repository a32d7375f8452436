"""Calling code that is not ours: in a thread of its own, with a time limit, and every failure as a `PluginError`."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cbdp.errors import CbdpError

T = TypeVar("T")


class PluginError(CbdpError):
    """A plug-in crashed, hung or broke a rule: which rule and, where known, which shuttle and which second.

    >>> try:
    ...     raise PluginError("capacity", "9 riders in a shuttle for 8", shuttle=2, second=3600)
    ... except PluginError as error:
    ...     print(error.rule, error.shuttle)
    capacity 2
    """

    def __init__(
        self, rule: str, message: str, *, shuttle: int | None = None, second: int | None = None
    ) -> None:
        where = "".join(
            f", {name} {value}"
            for name, value in (("shuttle", shuttle), ("second", second))
            if value is not None
        )
        super().__init__(f"{rule}{where}: {message}")
        self.rule, self.shuttle, self.second = rule, shuttle, second


class Caller:
    """Calls a plug-in in one thread and gives up after `seconds`; a thread that hangs is left behind."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.work.put(None)

    def __call__(self, what: str, function: Callable[..., T], *args: Any) -> T:
        self.work.put((function, args))
        try:
            value, failure = self.done.get(timeout=self.seconds)
        except queue.Empty:
            raise PluginError("time", f"{what} hangs: no answer within {self.seconds:g} s") from None
        if isinstance(failure, PluginError):
            raise failure
        if failure is not None:
            raise PluginError("crash", f"{what} failed: {type(failure).__name__}: {failure}") from failure
        answer: T = value
        return answer

    def _serve(self) -> None:
        while (item := self.work.get()) is not None:
            function, args = item
            try:
                self.done.put((function(*args), None))
            except BaseException as failure:  # noqa: BLE001 - whatever foreign code raises is its failure, not ours
                self.done.put((None, failure))


def call(what: str, seconds: float, function: Callable[..., Any], *args: Any) -> Any:
    """One call of a plug-in."""
    with Caller(seconds) as caller:
        return caller(what, function, *args)


def attempt(tasks: Mapping[str, Callable[[], T]]) -> dict[str, T | CbdpError]:
    """Every task's result or its error: one bad plug-in does not stop the evaluation of the others.

    >>> attempt({"one": lambda: 1})
    {'one': 1}
    """
    found: dict[str, T | CbdpError] = {}
    for name, task in tasks.items():
        try:
            found[name] = task()
        except CbdpError as failure:
            found[name] = failure
    return found
