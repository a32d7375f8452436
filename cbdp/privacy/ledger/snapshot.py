"""Reading a ledger without a trace: a copy in memory, made so that no file appears beside the original."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from cbdp.errors import InputError
from cbdp.privacy.ledger.store import Store, clear_errors

_TRIES = 50


def snapshot(file: Path) -> Store:
    """A copy of the ledger in memory.

    Reading a file with a write-ahead log would create files beside it where there are none. So SQLite's locks are used
    only if its shared-memory file is there, as it is while anyone has the ledger open and after a crash. Without it the
    file is at rest and is read as it is, again if someone began to write meanwhile.
    """
    with clear_errors(file):
        memory = _copied(file)
    return Store(file, memory, writable=False)


def _copied(file: Path) -> sqlite3.Connection:
    for _ in range(_TRIES):
        before = _stamp(file)
        try:
            memory = _in_memory(file, before)
        except (sqlite3.Error, OSError):
            if _stamp(file) == before:
                raise
        else:
            if before["-shm"] or _stamp(file) == before:
                return memory
            memory.close()
        time.sleep(0.01)
    raise InputError(f"the ledger {file} changes too fast to be read: try again")


_Stamp = dict[str, tuple[int, int, int] | None]  # size, time and identity of the files; None: not there


def _stamp(file: Path) -> _Stamp:
    stamps: _Stamp = {}
    for suffix in ("", "-wal", "-shm"):
        try:
            about = Path(f"{file}{suffix}").stat()
        except OSError:
            stamps[suffix] = None
        else:
            stamps[suffix] = (about.st_size, about.st_mtime_ns, about.st_ino)
    return stamps


def _in_memory(file: Path, found: _Stamp) -> sqlite3.Connection:
    if found["-shm"]:
        return _backup(f"{file.as_uri()}?mode=ro")
    if not found["-wal"] or found["-wal"][0] == 0:
        return _backup(f"{file.as_uri()}?immutable=1")
    # SQLite must replay the log somewhere: on a copy of file and log
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "ledger"
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{file}{suffix}", f"{copy}{suffix}")
        return _backup(f"{copy.as_uri()}?mode=rw")


def _backup(uri: str) -> sqlite3.Connection:
    memory = sqlite3.connect(":memory:", isolation_level=None)
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=60.0)) as source:
            source.backup(memory)
    except BaseException:
        memory.close()
        raise
    return memory
