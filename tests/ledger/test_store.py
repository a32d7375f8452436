"""The file of a ledger: append-only for everybody, and damage, other files and missing rights are one clear line."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledgers import opened, refuted, rows_of

from cbdp.errors import InputError
from cbdp.ledger import Ledger, LedgerError


def _no_sqlite(file: Path) -> None:
    file.write_text("origin,destination\n" * 100)


def _another_program(file: Path) -> None:
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("CREATE TABLE entry (sequence)")


def _newer(file: Path) -> None:
    Ledger.open(file, dataset="trips", cap=1, create=True).close()
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("PRAGMA user_version=5")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_no_sqlite, "not an SQLite file"),
        (_another_program, "of another program"),
        (_newer, "has format 5, this version of cbdp reads format 4"),
        (Path.mkdir, "is a folder"),
    ],
)
def test_what_is_no_ledger_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    """One clear line, and not a byte of the file changes."""
    file = tmp_path / "l.sqlite"
    make(file)
    before = file.read_bytes() if file.is_file() else None
    for create in (False, True):
        with pytest.raises(InputError, match=message):
            opened(tmp_path, create=create)
    with pytest.raises(InputError, match=message):
        Ledger.view(file)
    assert [p.name for p in tmp_path.iterdir()] == ["l.sqlite"]
    assert before == (file.read_bytes() if file.is_file() else None)


def test_a_held_ledger_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    """Another program's open transaction holds a charge back; after the timeout the error says so."""
    with (
        opened(tmp_path, timeout=0.05) as book,
        closing(sqlite3.connect(book.path, isolation_level=None)) as raw,
    ):
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="in use by another process"):
            book.reserve("r", "0.1")
        raw.execute("ROLLBACK")
        book.reserve("r", "0.1")


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE entry SET entry = 'x'",
        "UPDATE OR REPLACE entry SET sequence = 1 WHERE sequence = 2",
        "UPDATE OR IGNORE entry SET hash = 'x' WHERE sequence = 2",
        "DELETE FROM entry",
        "DELETE FROM entry WHERE sequence = 8",
        "REPLACE INTO entry VALUES (2, '', '', '')",
        "INSERT OR REPLACE INTO entry SELECT 2, previous, entry, hash FROM entry WHERE sequence = 1",
        "INSERT OR IGNORE INTO entry VALUES (3, '', '', '')",
        "INSERT INTO entry VALUES (3, '', '', '') ON CONFLICT (sequence) DO UPDATE SET entry = ''",
        "INSERT INTO entry VALUES (10, '', '', '')",
        "INSERT INTO entry VALUES (9, 'not the last hash', '', '')",
        "INSERT INTO entry (previous, entry, hash) VALUES ('', '', '')",
    ],
)
def test_triggers_refuse_all_but_appending(sound: Path, tmp_path: Path, sql: str) -> None:
    """Any SQLite shell is told that the ledger is append-only, and the rows stay as they were."""
    file = Path(shutil.copy(sound, tmp_path / "l.sqlite"))
    with closing(sqlite3.connect(file, isolation_level=None)) as raw:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            raw.execute(sql)
        assert raw.execute("SELECT * FROM entry ORDER BY sequence").fetchall() == rows_of(sound)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DROP TRIGGER no_delete", "'no_delete' of its schema is missing"),
        ("CREATE TRIGGER more AFTER INSERT ON entry BEGIN SELECT 1; END", "'more' of its schema is not as"),
        ("CREATE TABLE more (a)", "'more' of its schema is not as"),
    ],
)
def test_a_changed_schema_is_caught(sound: Path, tmp_path: Path, sql: str, message: str) -> None:
    """A ledger that lost its guards, or gained something, is not charged."""
    file = Path(shutil.copy(sound, tmp_path / "l.sqlite"))
    with closing(sqlite3.connect(file, isolation_level=None)) as raw:
        raw.execute(sql)
    refuted(file, message)


@pytest.mark.parametrize("damage", [b"CREATE TRIGGER \xeeppend", b"CREATE \xeeRIGGER append"])
def test_a_damaged_schema_is_one_clear_line(sound: Path, tmp_path: Path, damage: bytes) -> None:
    """SQLite quotes bytes in its message that are no text; ours stays readable."""
    file = tmp_path / "l.sqlite"
    content = sound.read_bytes()
    assert content.count(b"CREATE TRIGGER append") == 1
    file.write_bytes(content.replace(b"CREATE TRIGGER append", damage))
    for attempt in (lambda: Ledger.view(file), lambda: Ledger.open(file, dataset="trips")):
        with pytest.raises(LedgerError, match="is damaged"):
            attempt()


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_flipped_bit_is_caught_or_harmless(sound: Path, data: st.DataObject) -> None:
    """Any bit of the file: either an error of ours, or every entry reads as before."""
    content = bytearray(sound.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flipped.sqlite"
        file.write_bytes(content)
        try:
            with Ledger.view(file) as view:
                view.verify()
                seen = [(e.sequence, e.previous, e.hash) for e in view.entries()]
        except (LedgerError, InputError):
            return
        assert seen == [(row[0], row[1], row[3]) for row in rows_of(sound)]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EACCES, errno.ENOTSUP])
def test_a_folder_that_cannot_be_synchronised_is_let_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Some file systems cannot; a ledger is created there all the same."""
    monkeypatch.setattr(os, "fsync", _failing(code))
    opened(tmp_path).close()


def test_a_disk_that_fails_is_not_let_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An input/output error while the new file's name is made durable stops everything."""
    monkeypatch.setattr(os, "fsync", _failing(errno.EIO))
    with pytest.raises(InputError, match="cannot be used: "):
        opened(tmp_path)


def _failing(code: int) -> Callable[[int], None]:
    def fsync(_: int) -> None:
        raise OSError(code, os.strerror(code))

    return fsync
