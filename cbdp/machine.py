"""How much memory this process may use: that of the machine, less where a container or a batch system grants less."""

from __future__ import annotations

import os
from pathlib import Path

from cbdp.errors import InputError

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
