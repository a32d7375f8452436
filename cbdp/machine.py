"""What of the machine this process may use: memory, and folders for the time of some work.

Memory is that of the machine, less where a container or a batch system grants less. A folder's name holds the computer and the process that it
belongs to, and the folder itself is locked (`flock`) as long as that process lives: the system releases the lock with the process, so a process id
that was given out again confuses nobody. A folder gets the name that others sweep only once it is locked.
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

from cbdp.errors import InputError

# Memory


DEFAULT_MEMORY_BYTES = 2**33  # 8 GiB: where the system does not say how much it has
ENGINE_SHARE = 0.5  # of the memory that a counting engine may hold before it spills; the rest is for what counts are kept in
MIN_ENGINE_MB = 250  # megabytes that an engine is given at least, however small the machine
SETTING = "CBDP_MEMORY_MB"  # the environment variable that sets the engine's limit


def memory_bytes(root: Path = Path("/")) -> int:
    """The machine's memory, or the least limit of the control groups that this process is in."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        machine = DEFAULT_MEMORY_BYTES
    return min([machine, *_group_limits(root)])


def _group_limits(root: Path) -> list[int]:
    """Limits of this process's control groups and of those around them (Linux; versions 1 and 2)."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    limits = []
    for line in lines:
        controllers, _, group = line.partition(":")[2].partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        mount, name = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        top = root / "sys/fs/cgroup" / mount
        inner = top / group.lstrip("/")
        for folder in [inner, *inner.parents]:
            try:
                text = (folder / name).read_text().strip()
            except (OSError, UnicodeDecodeError):  # within a container the names of outer groups lead nowhere
                text = ""
            if text.isdigit():
                limits.append(int(text))
            if folder == top:
                break
    return limits


def engine_memory_mb() -> int:
    """Megabytes that a counting engine may hold before it spills to disk.

    >>> engine_memory_mb() >= MIN_ENGINE_MB
    True
    """
    setting = os.environ.get(SETTING, "").strip()
    if not setting:
        return max(MIN_ENGINE_MB, int(ENGINE_SHARE * memory_bytes()) // 10**6)
    if not (setting.isascii() and setting.isdigit() and int(setting[:10]) > 0 and len(setting) <= 9):
        raise InputError(
            f"the environment variable {SETTING} is {setting!r}: give the megabytes that counting may hold in memory, like 4000"
        )
    return int(setting)


# Folders for the time of some work


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
