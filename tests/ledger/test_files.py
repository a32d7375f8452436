"""The ledger's files: one name, in one place, for their owner alone; a charge outlives a kill whatever happens to names."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import cbdp
from cbdp.errors import InputError
from cbdp.ledger import Ledger, store

CHARGE = """
import os, signal, sys
import cbdp
book = cbdp.Ledger.open(sys.argv[1], dataset="trips")
with book.lock("r"):
    book.reserve("r", "1/2")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def created(folder: Path) -> Path:
    file = folder / "l.sqlite"
    Ledger.open(file, dataset="trips", cap=1, create=True).close()
    return file


def killed_after_charge(file: Path) -> None:
    done = subprocess.run([sys.executable, "-c", CHARGE, str(file)], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL


def test_a_ledger_of_two_names_is_refused(tmp_path: Path) -> None:
    """Under either name, to write and to read; with the cure, after which it is one again."""
    file = created(tmp_path)
    os.link(file, tmp_path / "second")
    for name in (file, tmp_path / "second"):
        with pytest.raises(InputError, match=r"has 2 names \(hard links\).* cp -p .* delete its other names"):
            Ledger.open(name, dataset="trips")
        with pytest.raises(InputError, match="hard links"):
            Ledger.view(name)
    one = tmp_path / "l.sqlite.one"
    shutil.copy2(file, one)
    one.replace(file)
    with Ledger.open(file, dataset="trips") as book:
        book.reserve("r", "1/2")


def test_a_second_name_while_it_is_open_stops_the_next_charge(tmp_path: Path) -> None:
    file = created(tmp_path)
    with Ledger.open(file, dataset="trips") as book:
        os.link(file, tmp_path / "second")
        with pytest.raises(InputError, match="hard links"):
            book.reserve("r", "1/2")
        (tmp_path / "second").unlink()
        book.reserve("r", "1/2")


def test_a_ledger_that_is_moved_while_it_is_open_takes_no_charge(tmp_path: Path) -> None:
    file = created(tmp_path)
    with Ledger.open(file, dataset="trips") as book:
        file.rename(tmp_path / "away")
        with pytest.raises(InputError, match="moved or replaced while it was open"):
            book.reserve("r", "1/2")
        shutil.copy2(tmp_path / "away", file)
        with pytest.raises(InputError, match="moved or replaced while it was open"):
            book.reserve("r", "1/2")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
def test_what_is_no_file_is_no_ledger(tmp_path: Path) -> None:
    """A pipe would be waited for, and links that lead to one another end nowhere."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    for name, wrong in (("loop", "cannot be reached"), ("pipe", "a pipe or a device")):
        with pytest.raises(InputError, match=wrong):
            Ledger.open(tmp_path / name, dataset="trips", cap=1, create=True)
        with pytest.raises(InputError, match=wrong):
            Ledger.view(tmp_path / name)


@pytest.mark.parametrize("how", ["hard link", "symbolic link", "moved", "copied", "log lost"])
def test_a_charge_before_a_kill_is_there_under_any_name(tmp_path: Path, how: str) -> None:
    """A process dies at once after its charge, and then only the file itself is found again, under another name."""
    file = created(tmp_path)
    other = tmp_path / "elsewhere" / "book.sqlite"
    other.parent.mkdir()
    if how == "symbolic link":
        other.symlink_to(file)
        killed_after_charge(other)
    else:
        killed_after_charge(file)
    if how == "hard link":
        os.link(file, other)
        file.unlink()
    elif how == "moved":
        file.rename(other)
    elif how == "copied":
        shutil.copyfile(file, other)
    elif how == "log lost":
        for suffix in ("-wal", "-shm"):
            Path(f"{file}{suffix}").unlink(missing_ok=True)
        other = file
    with Ledger.open(other, dataset="trips") as book:
        assert str(book.spent) == "0.5"
        assert len(book.unfinished("r")) == 1


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_files_are_for_their_owner_alone(tmp_path: Path, mask: int) -> None:
    """The ledger, its log, its memory and its locks, whatever the umask."""
    with umask(mask):
        file = created(tmp_path)
        with Ledger.open(file, dataset="trips") as book, book.lock("r"):
            book.reserve("r", "1/2")
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert {"l.sqlite", "l.sqlite-wal", "l.sqlite-shm"} < modes.keys()
    assert len(modes) == 4
    assert {*modes.values()} == {0o600}


def test_a_ledger_that_its_owner_shares_has_locks_that_are_shared(tmp_path: Path) -> None:
    file = created(tmp_path)
    file.chmod(0o660)
    with Ledger.open(file, dataset="trips") as book, book.lock("r"):
        [lock] = tmp_path.glob("*-lock-*")
        assert stat.S_IMODE(lock.stat().st_mode) == 0o660


def test_a_single_file_that_is_mounted_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernel's list of mounts, in which blanks are written as numbers."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    file = created(folder)
    real = Path.read_bytes
    line = f"700 600 8:1 /srv/l.sqlite {str(file).replace(' ', chr(92) + '040')} rw,relatime - ext4 /dev/sda rw\n"
    monkeypatch.setattr(
        Path, "read_bytes", lambda self: line.encode() if str(self) == "/proc/self/mountinfo" else real(self)
    )
    assert store._is_mount_point(file)
    assert not store._is_mount_point(folder)
    with pytest.raises(InputError, match=r"mounted as a single file.*mount the folder"):
        cbdp.Ledger.open(file, dataset="trips")
