"""Ctrl-C, SIGTERM and a closed terminal during a release: before the charge they stop it, after the charge they wait for it.

Before the charge nothing is spent, so whoever stops the run shall be rid of it within two seconds, also while an engine or
compiled code is busy. After the charge a stop would throw away what was paid for: the run goes on to its end, and says so.

The system writes the number of a signal to a socket, whatever the main thread does. A thread that listens there tells the
user, and ends the process if the main thread does not get to it. One lock decides between the two: either the process is
ended and nothing was charged, or the charge comes first and the signal only leads to a note.

Only commands use this. A library must not take over the signals of the program that uses it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from cbdp.machine import SPILL_PREFIX, UNLOCKED_SUFFIX, locked_folder

GRACE_SECONDS = 1.5  # seconds that the main thread has to stop by itself
TIDY_SECONDS = 0.4  # seconds to tidy up when it has not
INTERRUPTED_EXIT_CODE = 130  # the exit code that shells expect after Ctrl-C
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

STOPPED = "stopped before the charge: nothing was spent, nothing was published"
LATE = (
    "interrupted after the charge, which stays spent: run the command again, it looks for what was published"
)


class Interrupts:
    """Whether a run may be stopped. A context manager: only inside it are signals caught, and only in the main thread."""

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        self._say = say
        self.stopped = STOPPED  # what is said of a run that is stopped before the charge
        self._deciding = threading.Lock()
        self.heard = False  # a signal came, whether or not it could stop the run
        self._asked = False  # somebody wants the run to stop
        self._raised = False  # and the main thread was told
        self._charged = False  # nothing stops it any more
        self._stages = 0  # that are left after the charge
        self._folders: set[Path] = set()  # to be removed if the process is ended
        self._over = threading.Event()
        self._before: dict[int, Any] = {}

    # What a run tells

    def no_return(self, stages: int) -> None:
        """To be called right before the charge. Raises `KeyboardInterrupt` if somebody was faster; later nothing stops the run."""
        for number in self._before:
            signal.signal(number, self._heard)  # an engine may have put its own in our place, as Spark does
        with self._deciding:
            if self._asked:
                raise KeyboardInterrupt
            self._charged, self._stages = True, stages
        for number in self._before:
            _restart_calls(number)

    def stage_done(self) -> None:
        self._stages = max(0, self._stages - 1)

    @contextmanager
    def temporary(self, folder: Path) -> Iterator[Path]:
        """A folder for the time of some work, which is removed however that ends."""
        names = {folder, folder.with_name(folder.name + UNLOCKED_SUFFIX)}
        self._folders |= names
        with locked_folder(folder):
            yield folder
        self._folders -= names  # otherwise they stay listed: a signal may have interrupted their removal

    # Signals

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for folder in self._folders:  # whose removal was interrupted
            shutil.rmtree(folder, ignore_errors=True)
        if self._before:
            self._end()
        if error is not None and (self._asked or isinstance(error, KeyboardInterrupt)):
            # an engine that is interrupted may raise anything
            if not self._charged:
                raise KeyboardInterrupt(self.stopped) from None
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(LATE) from None

    def _listen(self) -> None:
        self._here, self._there = socket.socketpair()
        self._there.setblocking(False)
        self._fd = signal.set_wakeup_fd(self._there.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._watch, name="signals", daemon=True).start()
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks for
                self._before[number] = signal.signal(number, self._heard)

    def _end(self) -> None:
        """Signals are as before; but where the run was stopped, or charged, none shall change any more how it ends."""
        for number, before in self._before.items():
            _unheard.setdefault(
                number, before
            )  # of several runs in a process, who heard them before the first
        for number in self._before:
            signal.signal(number, _ignore)
        signal.set_wakeup_fd(self._fd)
        self._there.close()
        if not self._asked and not self._charged:
            hear_again()

    def _heard(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """In the main thread, as soon as it runs Python again."""
        if not self._charged and not self._raised:
            self._asked = self._raised = True
            raise KeyboardInterrupt

    def _watch(self) -> None:
        """In a thread of its own, at once."""
        with self._here:
            while number := self._here.recv(1):
                if number[0] not in self._before:
                    continue
                self.heard = True
                if not self._charged:
                    self._asked = True
                    self._over.wait(GRACE_SECONDS)
                    self._end_unless_charged()
                if self._charged and not self._over.is_set():
                    self._say(self._note())

    def _end_unless_charged(self) -> None:
        with self._deciding:
            if self._charged or self._over.is_set():
                return
            threading.Timer(
                TIDY_SECONDS, os._exit, (INTERRUPTED_EXIT_CODE,)
            ).start()  # what follows may hang too
            try:
                self._say(f"cbdp: {self.stopped}")
                for folder in (*self._folders, *_spilled()):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os._exit(INTERRUPTED_EXIT_CODE)

    def _note(self) -> str:
        left = f", {self._stages} stage{'s' * (self._stages > 1)} left" if self._stages else ""
        return f"charged: finishing{left}; the release will be complete"


_unheard: dict[int, Any] = {}  # signals that are ignored until the process ends, and who heard them before


def hear_again() -> None:
    """For a program that goes on after a command: signals are handled as before it."""
    while _unheard:
        signal.signal(*_unheard.popitem())


def _ignore(number: int, frame: FrameType | None) -> None:
    """Not SIG_IGN, which programs that are started from here would inherit."""


def _spilled() -> list[Path]:
    """Private folders in which this process's engine keeps what does not fit in memory."""
    return sorted(Path(tempfile.gettempdir()).glob(f"{SPILL_PREFIX}*-{os.getpid()}-*"))


def _restart_calls(number: int) -> None:
    """Let the system go on with a call that a signal interrupts: libraries need not expect that it fails."""
    if hasattr(signal, "siginterrupt"):
        signal.siginterrupt(number, False)
