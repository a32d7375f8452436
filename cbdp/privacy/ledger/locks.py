"""A lock between processes that the system drops when its holder ends, however it ends."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from cbdp.errors import InputError
from cbdp.privacy.ledger.store import PRIVATE, create_private, is_busy


def held(file: Path, mode: int = PRIVATE) -> AbstractContextManager[None]:
    """Hold this lock file, waiting for whoever holds it now. Not re-entrant. It is made with these permissions, which are those of the ledger."""
    return _by_flock(file, mode) if find_spec("fcntl") else _by_sqlite(file)


@contextmanager
def _by_flock(file: Path, mode: int) -> Iterator[None]:
    try:
        handle = _locked(file, mode)
    except OSError as error:
        raise _unusable(file, error.strerror) from None
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()  # while it is held: whoever waits for it sees that it is gone and starts anew
        os.close(handle)


def _locked(file: Path, mode: int) -> int:
    import fcntl

    while True:
        handle = create_private(file, mode)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if file.exists() and os.path.samestat(os.fstat(handle), file.stat()):
                return handle
        except FileNotFoundError:
            pass  # removed by its last holder between the two looks
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


@contextmanager
def _by_sqlite(file: Path) -> Iterator[None]:
    """For systems without flock: a transaction held open on a file that stays empty and stays there."""
    try:
        connection = _exclusive(file)
    except sqlite3.Error as error:
        raise _unusable(file, error) from None
    with closing(connection):
        yield


def _exclusive(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None, timeout=1.0)
    try:
        while not connection.in_transaction:
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error as error:
                if not is_busy(error):
                    raise
    except BaseException:
        connection.close()
        raise
    return connection


def _unusable(file: Path, why: object) -> InputError:
    return InputError(f"cannot use the lock file {file}: {why}; check the permissions of its folder")
