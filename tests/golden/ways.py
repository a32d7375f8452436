"""The ways into the package that a golden configuration uses, each in one place."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import itertools
import os
import secrets
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from unittest import mock

from repeatable import noise_of

import cbdp

LEDGER_ID_BYTES = 16  # of the random identifiers of ledgers and charges; names of temporary files have fewer
CHANGED = 1_772_000_000  # when every input was last changed: a time in February 2026


@cache
def command_line() -> Callable[[Sequence[str]], int]:
    """The function behind the console script `cbdp`, as this checkout's pyproject.toml states it."""
    root = Path(cbdp.__file__).resolve().parents[1]
    scripts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    module, _, name = scripts["cbdp"].partition(":")
    main: Callable[[Sequence[str]], int] = getattr(importlib.import_module(module), name)
    return main


class Case:
    """The folder of one configuration, and seeded ways to run commands in it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self._steps, self._ids = itertools.count(1), itertools.count(1)
        folder.mkdir(parents=True)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8", newline="\n")
        os.utime(self.folder / name, (CHANGED, CHANGED))  # a request in the ledger is a hash of this, too

    def run(self, *argv: str, output: str = "", code: int | tuple[int, ...] = 0) -> None:
        """A command, in the folder; what it prints goes into the file `output`, if that is named."""
        printed, complaints = io.StringIO(), io.StringIO()
        streams = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints)
        with self.seeded(), contextlib.chdir(self.folder), streams[0], streams[1]:
            try:
                ended: object = command_line()(argv)
            except SystemExit as stopped:  # wrong usage
                ended = stopped.code
        if ended not in (code if isinstance(code, tuple) else (code,)):
            raise AssertionError(
                f"{self.name}: cbdp {' '.join(argv)} ended with {ended}, not {code}:\n{complaints.getvalue()}{printed.getvalue()}"
            )
        if output:
            self.write(output, printed.getvalue())

    @contextlib.contextmanager
    def seeded(self) -> Iterator[None]:
        """Noise and sampling keys from a seed of this step's name; identifiers of ledgers and charges from their number in this case."""
        real = secrets.token_hex

        def token_hex(nbytes: int | None = None) -> str:
            if nbytes != LEDGER_ID_BYTES:
                return real(nbytes)
            return hashlib.sha256(f"{self.name} {next(self._ids)}".encode()).hexdigest()[: 2 * nbytes]

        step = f"golden {self.name} {next(self._steps)}"
        with noise_of(step), mock.patch.object(secrets, "token_hex", token_hex):
            yield


@contextlib.contextmanager
def steady() -> Iterator[None]:
    """No settings of the machine's user reach what is written."""
    with mock.patch.dict(os.environ, {"TZ": "UTC", "COLUMNS": "100", "NO_COLOR": "1"}):
        yield
