"""Folders for the time of some work, and the sweeping of those that a killed process left behind.

A folder's name holds the computer and the process that it belongs to, and the folder itself is locked (`flock`) as long as that process
lives: the system releases the lock with the process, so a process id that was given out again confuses nobody. A folder gets the
name that others sweep only once it is locked.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

fcntl: Any  # absent on Windows, where nothing is swept
try:
    import fcntl
except ImportError:
    fcntl = None

PARTIAL_SUFFIX = ".partial"  # the end of the names of folders beside what is being written
SPILL_PREFIX = "cbdp-spill-"  # the start of the names of folders for what does not fit in an engine's memory
UNLOCKED_SUFFIX = ".new"  # of those that are not locked yet: for an instant
OWNER_PATTERN = r"(?P<computer>[0-9a-f]{8})-(?P<pid>[0-9]{1,10})-[0-9a-f]{8}"
MAX_UNLOCKED_SECONDS = (
    24 * 3600
)  # after which a folder goes whose owner this computer cannot ask, if it is not locked


def owned(stem: str, end: str = "") -> str:
    """A name for a folder of this process that no other has."""
    return f"{stem}{_computer()}-{os.getpid()}-{secrets.token_hex(4)}{end}"


def partial_name(target: str) -> str:
    """The name of a folder beside a target that is being written, until it is whole."""
    return owned(f".{target}.", PARTIAL_SUFFIX)


@contextlib.contextmanager
def locked_folder(folder: Path, mode: int = 0o777) -> Iterator[Path]:
    """A new folder with a name of `owned`, locked for the time of the work; removed afterwards if it is still there."""
    new = folder.with_name(folder.name + UNLOCKED_SUFFIX)
    new.mkdir(mode)
    lock = None
    try:
        lock = _open_folder(new)
        if lock is not None:
            _try_lock(lock)
        new.rename(folder)
        yield folder
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def sweep(parent: Path, stem: str = r"\..+\.", end: str = PARTIAL_SUFFIX) -> None:
    """Remove the folders of dead processes in a folder: those whose names begin with the pattern `stem` and go on as `owned` writes them."""
    for folder in abandoned(parent, stem, end):
        shutil.rmtree(folder, ignore_errors=True)


def abandoned(parent: Path, stem: str = r"\..+\.", end: str = PARTIAL_SUFFIX) -> list[Path]:
    """The folders of dead processes in a folder."""
    owners = re.compile(
        f"{stem}(?:{OWNER_PATTERN}|[0-9a-f]{{16}}){re.escape(end)}(?P<new>{re.escape(UNLOCKED_SUFFIX)})?",
        re.DOTALL,
    )
    left = []
    with contextlib.suppress(OSError):
        matches = filter(None, (owners.fullmatch(inner.name) for inner in parent.iterdir()))
        for owner in sorted(matches, key=lambda match: match[0]):
            folder = parent / owner[0]
            with contextlib.suppress(OSError):
                if _is_own(folder) and _is_abandoned(folder, owner):
                    left.append(folder)
    return left


def _is_abandoned(folder: Path, owner: re.Match[str]) -> bool:
    if fcntl is None:
        return False
    lock = _open_folder(folder)
    try:
        free = None if lock is None else _try_lock(lock)
    finally:
        if lock is not None:
            os.close(lock)
    if free is False:
        return False
    asked = owner["computer"] == _computer()  # None: of version 0.2, whose names held no owner
    if asked and not _is_alive(int(owner["pid"])):
        return True
    if asked and free and owner["new"] is None:
        return True  # the process id was given to another
    return time.time() - _last_change(folder) > MAX_UNLOCKED_SECONDS


def _is_own(folder: Path) -> bool:
    status = folder.lstat()  # a link is not followed
    return not folder.is_symlink() and folder.is_dir() and (os.name == "nt" or status.st_uid == os.getuid())


@functools.cache
def _computer() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _open_folder(folder: Path) -> int | None:
    return None if fcntl is None else os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))


def _try_lock(lock: int) -> bool | None:
    """Whether the lock could be taken; None where the file system has no locks of folders."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _last_change(folder: Path) -> float:
    return max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))
