"""Where an engine puts what does not fit in memory: a private folder that is removed in any case.

It is readable by its owner alone, and removed when the work ends or fails. What a killed process left behind is swept when the next
one starts: the folder's name holds the process id, and a lock that the system releases with the process tells the dead from the living.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

fcntl: Any  # absent on Windows, whose temporary folders are private to the user
try:
    import fcntl
except ImportError:
    fcntl = None

PREFIX, NEW, LOCK = "cbdp-spill-", "cbdp-new-", "lock"


@contextlib.contextmanager
def spill_folder() -> Iterator[Path]:
    """A private folder for the time of the work."""
    sweep()
    new = Path(tempfile.mkdtemp(prefix=NEW))  # mode 0700
    folder = new.with_name(f"{PREFIX}{os.getpid()}-{new.name.removeprefix(NEW)}")
    held = (new / LOCK).open("wb")
    try:
        _locked(held.fileno())
        new.rename(folder)  # it gets the name that others sweep only now that it is locked
        yield folder
    finally:
        held.close()
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove our folders whose process is gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if _own(folder) and _abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _own(folder: Path) -> bool:
    found = folder.lstat()  # a link is not followed
    return not folder.is_symlink() and folder.is_dir() and (os.name == "nt" or found.st_uid == os.getuid())


def _abandoned(folder: Path) -> bool:
    pid = folder.name.removeprefix(PREFIX).partition("-")[0]
    if pid == str(os.getpid()):
        return False
    if fcntl is None:
        return False
    try:
        with (folder / LOCK).open("rb+") as lock:
            return _locked(lock.fileno())
    except FileNotFoundError:  # half removed
        return not _alive(pid)


def _locked(file: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except OSError:
        return True
    return True
