"""What tests of the ledger share: opening one, tampering with one behind its triggers' back, processes to kill."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cbdp.ledger import Ledger, LedgerError

SHA = hashlib.sha256(b"a manifest").hexdigest()
Row = tuple[int, str, str, str]

# Charges and draws until it is killed; the second argument is the file that notes each draw.
WORK = """
import os, sys
from cbdp.ledger import Ledger
draws = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
while True:
    with Ledger.open(sys.argv[1], dataset="trips", cap=1000, create=True) as book:
        print("ready", flush=True)
        for i in range(20):
            charge = book.reserve("r", "0.001")
            os.write(draws, f"{charge.id}\\n".encode())
            os.fsync(draws)
            book.released(charge, "0" * 64, "out")
"""


def opened(folder: Path, **options: object) -> Ledger:
    return Ledger.open(folder / "l.sqlite", **({"dataset": "trips", "cap": 1, "create": True} | options))  # type: ignore[arg-type]


def sound_ledger(folder: Path) -> Path:
    """A ledger at rest with eight entries of every kind, the older ones included."""
    with opened(folder) as book:
        charges = [book.reserve(f"r{i}", "0.2", what="demand") for i in range(3)]
        book.released(charges[1], SHA, "out/1")
    file = folder / "l.sqlite"
    append(file, {"event": "abandoned", "charge": charges[0].id, "note": "lost"})
    with opened(folder) as book:
        book.reserve("r1", "0.05")
        book.released(charges[2], SHA, "out/2")
    return file


def rows_of(file: Path) -> list[Row]:
    with closing(sqlite3.connect(f"{file.as_uri()}?immutable=1", uri=True)) as raw:
        return raw.execute("SELECT * FROM entry ORDER BY sequence").fetchall()


def chained(rows: list[Row], entries: list[dict[str, object]]) -> list[Row]:
    """Rows with forged entries added, hashed as the ledger would."""
    rows = list(rows)
    for entry in entries:
        previous = rows[-1][3] if rows else "0" * 64
        text = json.dumps({"sequence": len(rows) + 1, **entry}, sort_keys=True, separators=(",", ":"))
        rows.append((len(rows) + 1, previous, text, hashlib.sha256((previous + text).encode()).hexdigest()))
    return rows


def append(file: Path, *entries: dict[str, object]) -> None:
    """Continue a ledger at rest by hand. Its triggers allow that."""
    before = rows_of(file)
    with closing(sqlite3.connect(file, isolation_level=None)) as raw:
        raw.executemany(
            "INSERT INTO entry VALUES (?, ?, ?, ?)", chained(before, list(entries))[len(before) :]
        )


def tampered(sound: Path, folder: Path, *statements: tuple[str, tuple[object, ...]]) -> Path:
    """A copy changed behind the triggers' back, which are put back afterwards."""
    file = folder / "tampered.sqlite"
    shutil.copy(sound, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as raw:
        triggers = raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            raw.execute(f"DROP TRIGGER {name}")
        for sql, values in statements:
            raw.execute(sql, values)
        for _, sql in triggers:
            raw.execute(sql)
    return file


def refuted(file: Path, message: str) -> None:
    """Both a reader's check and an attempt to charge are refused."""
    with Ledger.view(file) as view, pytest.raises(LedgerError, match=message):
        view.verify()
    with pytest.raises(LedgerError, match=message):
        Ledger.open(file, dataset="trips")


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    with process:
        process.kill()
