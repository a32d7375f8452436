"""The ledger: never over the cap, never noise without a charge, never a silent change; whoever races, dies or tampers."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cbdp import errors
from cbdp.errors import InputError
from cbdp.privacy import ledger
from cbdp.privacy.ledger import Amount, BudgetError, Charge, Finished, Ledger, LedgerError

SHA = hashlib.sha256(b"a manifest").hexdigest()
KILLS = int(os.environ.get("CBDP_KILLS", "25"))  # CBDP_KILLS=200 pytest tests/test_ledger.py -k killed
TRIGGERS = [sql for sql in ledger._SCHEMA.values() if sql.startswith("CREATE TRIGGER")]
Row = tuple[int, str, str, str]


def _open(folder: Path, **options: object) -> Ledger:
    return Ledger.open(folder / "l.sqlite", **({"dataset": "trips", "cap": 1, "create": True} | options))  # type: ignore[arg-type]


def _start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _kill(process: subprocess.Popen[str]) -> None:
    with process:
        process.kill()


# What is charged


def test_a_charge_goes_from_reserved_to_released(tmp_path: Path) -> None:
    """What was reserved is spent, what was released is found again by its request."""
    with _open(tmp_path) as book:
        assert (book.dataset, book.cap, book.spent, book.finished("r")) == (
            "trips",
            Amount(10**9),
            Amount(),
            None,
        )
        charge = book.reserve("r", Fraction(1, 4), what="demand of May")
        assert (charge.epsilon, charge.delta, charge.what) == (Fraction(1, 4), 0, "demand of May")
        assert book.unfinished("r") == [charge]
        assert book.finished("r") is None
        done = book.released(charge, SHA, tmp_path / "out")
        assert done == book.finished("r") == Finished(charge, SHA, str(tmp_path / "out"))
        assert book.unfinished() == []
    with _open(tmp_path, create=False, cap=None) as book:
        assert book.finished("r") == done
        assert (book.spent.epsilon, book.left.epsilon) == (Fraction(1, 4), Fraction(3, 4))
        assert [e.event for e in book.entries()] == ["opened", "reserved", "released"]
        assert book.entries()[1].hash == charge.head
        assert book.entries()[2].hash == book.head
        book.verify()


def test_over_the_cap_nothing_is_written(tmp_path: Path) -> None:
    """The error states what is left, is both a budget and an input error, and leaves no entry."""
    with _open(tmp_path) as book:
        book.reserve("r", "0.9")
        head = book.head
        with pytest.raises(
            BudgetError, match=r"charge of 0\.100000001 does not fit: 0\.1 of the cap 1 is left"
        ) as caught:
            book.reserve("s", "0.100000001")
        assert isinstance(caught.value, errors.BudgetError)
        assert isinstance(caught.value, InputError)
        assert book.head == head
        book.reserve("s", 0.1)
        assert book.left == Amount()


def test_delta_has_a_cap_of_its_own(tmp_path: Path) -> None:
    """δ that was not allowed at creation is refused, and so is δ above what was."""
    with _open(tmp_path) as book, pytest.raises(BudgetError, match=r"δ 0\.000001"):
        book.reserve("r", "0.1", "1e-6")
    (tmp_path / "l.sqlite").unlink()
    with _open(tmp_path, cap_delta="1e-6") as book:
        for _ in range(2):
            book.reserve("r", "0.1", "5e-7")
        assert book.left == Amount(8 * 10**8, 0)
        with pytest.raises(BudgetError):
            book.reserve("r", "0.1", "1/1000000000000000000")


def test_an_abandoned_charge_stays_spent(tmp_path: Path) -> None:
    """Noise may have been seen, so giving up gives nothing back, and nothing can be released on it."""
    with _open(tmp_path) as book:
        charge = book.reserve("r", 1)
        book.abandoned(charge, "the disk was full")
        assert book.spent == book.cap
        assert book.unfinished("r") == []
        with pytest.raises(InputError, match="was abandoned"):
            book.released(charge, SHA, "out")
        book.verify()


def test_a_charge_is_released_once(tmp_path: Path) -> None:
    """The second time, a charge of another ledger, and what is no SHA-256 are refused."""
    with _open(tmp_path) as book:
        charge = book.reserve("r", "0.1")
        with pytest.raises(InputError, match="sha256 is 'ABC'"):
            book.released(charge, "ABC", "out")
        book.released(charge, SHA, "out")
        with pytest.raises(InputError, match="released already, to 'out'"):
            book.released(charge, SHA, "elsewhere")
        with pytest.raises(InputError, match="is not of the ledger"):
            book.released(Charge("0" * 32, "r", Amount(1), "", SHA), SHA, "out")
        assert len(book.entries()) == 3


def test_ten_tenths_fit_and_three_thirds_do_not(tmp_path: Path) -> None:
    """Rounding up means that 1/3 costs 0.333333334, so that a third one is 0.000000002 over; 1 at once fits."""
    with _open(tmp_path) as book:
        for _ in range(10):
            book.reserve("r", Fraction(1, 10))
        assert book.left == Amount()
    (tmp_path / "l.sqlite").unlink()
    with _open(tmp_path) as book:
        for _ in range(2):
            book.reserve("r", Fraction(1, 3))
        assert book.left == Amount(333_333_332)
        with pytest.raises(BudgetError, match="rounds up"):
            book.reserve("r", Fraction(1, 3))
    with _open(tmp_path / ".." / tmp_path.name, cap="1.0000000009"):
        pass  # rounds down to the same cap


@given(st.lists(st.fractions("1/10000000000", 10), min_size=1, max_size=20), st.fractions("1/1000000000", 10))
def test_rounding_never_favours_the_spender(charges: list[Fraction], cap: Fraction) -> None:
    """If rounded charges fit the rounded cap, the exact ones fit the exact cap; each costs less than a unit too much."""
    rounded = [Amount.charge(c) for c in charges]
    assert all(0 <= r.epsilon - c < Fraction(1, 10**9) for r, c in zip(rounded, charges, strict=True))
    assert 0 <= cap - Amount.limit(cap).epsilon < Fraction(1, 10**9)
    if sum(rounded, Amount()).within(Amount.limit(cap)):
        assert sum(charges) <= cap


# What is refused


@pytest.mark.parametrize("bad", [0, -1, "-0.5", float("nan"), float("inf"), None, True])
def test_bad_epsilon_writes_nothing(tmp_path: Path, bad: object) -> None:
    """Neither a charge nor a cap may be anything but a number above 0."""
    with _open(tmp_path) as book:
        with pytest.raises(InputError, match="epsilon is"):
            book.reserve("r", bad)  # type: ignore[arg-type]
        assert len(book.entries()) == 1
    with pytest.raises(InputError, match="cap"):
        Ledger.open(tmp_path / "new.sqlite", dataset="d", cap=bad, create=True)  # type: ignore[arg-type]
    assert not (tmp_path / "new.sqlite").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "taps"}, "is of data set 'trips', not 'taps'"),
        ({"cap": 2}, "is 1, not 2: it is fixed"),
        ({"cap_delta": "1e-9"}, r"is 1, not \(1, δ 0.000000001\)"),
        ({"cap": None, "cap_delta": 0}, "without a cap"),
        ({"dataset": ""}, "dataset is ''"),
    ],
)
def test_another_data_set_or_cap_is_refused(tmp_path: Path, options: dict[str, object], message: str) -> None:
    """The error names both what the ledger has and what was asked for."""
    _open(tmp_path).close()
    with pytest.raises(InputError, match=message):
        _open(tmp_path, **options)
    with pytest.raises(InputError, match="'trips', not 'taps'"):
        Ledger.view(tmp_path / "l.sqlite", dataset="taps")


def _no_sqlite(file: Path) -> None:
    file.write_text("origin,destination\n" * 100)


def _another_program(file: Path) -> None:
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("CREATE TABLE entry (sequence)")


def _newer(file: Path) -> None:
    Ledger.open(file, dataset="trips", cap=1, create=True).close()
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("PRAGMA user_version=2")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_no_sqlite, "no SQLite file"),
        (_another_program, "of another program"),
        (_newer, "schema 2 and this version of cbdp knows 1"),
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
            _open(tmp_path, create=create)
    with pytest.raises(InputError, match=message):
        Ledger.view(file)
    assert [p.name for p in tmp_path.iterdir()] == ["l.sqlite"]
    assert before == (file.read_bytes() if file.is_file() else None)


def test_a_ledger_is_created_only_when_asked(tmp_path: Path) -> None:
    """A wrong path does not start a fresh budget; an empty file counts as none."""
    with pytest.raises(InputError, match="create=True"):
        _open(tmp_path, create=False)
    with pytest.raises(InputError, match="needs a cap"):
        _open(tmp_path, cap=None)
    with pytest.raises(InputError, match="there is no folder"):
        _open(tmp_path / "nowhere")
    with pytest.raises(InputError, match="there is no ledger"):
        Ledger.view(tmp_path / "l.sqlite")
    with pytest.raises(InputError, match="cannot be reached"):
        Ledger.view("nul\0")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "l.sqlite").touch()
    for attempt in (lambda: _open(tmp_path, create=False), lambda: Ledger.view(tmp_path / "l.sqlite")):
        with pytest.raises(InputError, match="is empty"):
            attempt()
    _open(tmp_path).close()


def test_a_held_ledger_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    """Another program's open transaction holds a charge back; after the timeout the error says so."""
    with (
        _open(tmp_path, timeout=0.05) as book,
        closing(sqlite3.connect(book.path, isolation_level=None)) as raw,
    ):
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="held by another process"):
            book.reserve("r", "0.1")
        raw.execute("ROLLBACK")
        book.reserve("r", "0.1")


def test_odd_names_survive(tmp_path: Path) -> None:
    """Quotes, emoji, line breaks, and file names that are no UTF-8 come back as they were."""
    folder = tmp_path / "a?b#c%20 'ü"
    folder.mkdir()
    odd = "r'\";\0\n–🚌\udc80"
    with _open(folder, dataset=odd) as book:
        charge = book.reserve(odd, "0.1", what=odd)
        book.released(charge, SHA, os.fsdecode(b"out\xff"))
        with book.lock(odd):
            pass
    with Ledger.view(folder / "l.sqlite", dataset=odd) as view:
        view.verify()
        assert view.finished(odd) == Finished(charge, SHA, "out\udcff")
    assert [p.name for p in folder.iterdir()] == ["l.sqlite"]


# Reading


def test_a_view_writes_nothing(tmp_path: Path) -> None:
    """Beside a live ledger and one at rest it creates no file, sees all that is committed, and cannot charge."""
    with _open(tmp_path) as book:
        charge = book.reserve("r", "0.1")
        names = sorted(p.name for p in tmp_path.iterdir())
        with Ledger.view(book.path) as view:
            view.verify()
            assert view.unfinished() == [charge]
            for attempt in (lambda: view.reserve("r", "0.1"), lambda: view.released(charge, SHA, "out")):
                with pytest.raises(InputError, match="reading only"):
                    attempt()
            with pytest.raises(InputError, match="reading only"), view.lock("r"):
                pass
        assert names == sorted(p.name for p in tmp_path.iterdir())
        book.released(charge, SHA, "out")
    before = (tmp_path / "l.sqlite").read_bytes()
    with Ledger.view(tmp_path / "l.sqlite") as view:
        assert view.finished("r")
    assert [p.name for p in tmp_path.iterdir()] == ["l.sqlite"]
    assert before == (tmp_path / "l.sqlite").read_bytes()


DIE = """
import os, sys
from cbdp.privacy.ledger import Ledger
book = Ledger.open(sys.argv[1], dataset="trips", cap=1, create=True)
print(book.reserve("r", "0.1").head, flush=True)
os.kill(os.getpid(), 9)
"""
LOOK = """
import os, sys, tempfile
from cbdp.errors import InputError
from cbdp.privacy.ledger import Ledger
tempfile.gettempdir()
if os.geteuid() == 0:
    os.setuid(65534)
try:
    Ledger.open(sys.argv[1], dataset="trips", cap=1, create=True).close()
    print("opened")
except InputError as error:
    print(error)
with Ledger.view(sys.argv[1]) as view:
    view.verify()
    print(view.head)
"""


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that any user can enter, which pytest's are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("kept", [("-wal", "-shm"), ("-wal",), ()])
def test_a_view_needs_no_right_to_write(public_folder: Path, kept: tuple[str, ...]) -> None:
    """Read-only files in a read-only folder, left by a crash, copied with the log, or at rest, are read in full."""
    file = public_folder / "l.sqlite"
    with _start(DIE, file) as process:
        head = process.stdout.read().strip()  # type: ignore[union-attr]
    if not kept:
        _open(public_folder, create=False).close()  # takes the log in
    for path in public_folder.iterdir():
        path.chmod(0o444)
        if path.name.removeprefix("l.sqlite") not in ("", *kept):
            path.unlink()
    public_folder.chmod(0o555)
    before = {p.name: p.read_bytes() for p in public_folder.iterdir()}
    assert set(before) == {"l.sqlite", *(f"l.sqlite{s}" for s in kept)}
    with _start(LOOK, file) as process:
        refused, seen = process.stdout.read().splitlines()  # type: ignore[union-attr]
    assert "check the permissions" in refused
    assert seen == head
    assert before == {p.name: p.read_bytes() for p in public_folder.iterdir()}


def test_an_unreadable_file_is_refused(public_folder: Path) -> None:
    """Without the right to read, the error says so in one line."""
    _open(public_folder).close()
    (public_folder / "l.sqlite").chmod(0)
    script = LOOK.partition("with Ledger.view")[0].replace(
        "Ledger.open(sys.argv[1]", "Ledger.view(sys.argv[1]"
    )
    script = script.replace(', dataset="trips", cap=1, create=True', "")
    with _start(script, public_folder / "l.sqlite") as process:
        assert "cannot be opened: check the permissions" in process.stdout.read()  # type: ignore[union-attr]


def test_a_lost_log_shows_by_the_head(tmp_path: Path) -> None:
    """A file whose write-ahead log was deleted is a sound but shorter chain; the head of a manifest tells."""
    file = tmp_path / "l.sqlite"
    with _start(DIE, file) as process:
        head = process.stdout.read().strip()  # type: ignore[union-attr]
    with Ledger.view(file) as view:
        assert view.contains(head)
    for suffix in ("-wal", "-shm"):
        Path(f"{file}{suffix}").unlink()
    with Ledger.view(file) as view:
        view.verify()
        assert not view.contains(head)


# Tampering


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger at rest with every kind of entry."""
    folder = tmp_path_factory.mktemp("sound")
    with _open(folder) as book:
        charges = [book.reserve(f"r{i}", "0.2", what="demand") for i in range(3)]
        book.released(charges[1], SHA, "out/1")
        book.abandoned(charges[0], "lost")
        book.reserve("r1", "0.05")
        book.released(charges[2], SHA, "out/2")
    return folder / "l.sqlite"


def _rows(file: Path) -> list[Row]:
    with closing(sqlite3.connect(f"{file.as_uri()}?immutable=1", uri=True)) as raw:
        return raw.execute("SELECT * FROM entry ORDER BY sequence").fetchall()


def _tampered(sound: Path, folder: Path, *statements: tuple[str, tuple[object, ...]]) -> Path:
    """A copy changed behind the triggers' back, which are put back afterwards."""
    file = folder / "tampered.sqlite"
    shutil.copy(sound, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as raw:
        for trigger in ("append", "no_update", "no_delete"):
            raw.execute(f"DROP TRIGGER {trigger}")
        for sql, values in statements:
            raw.execute(sql, values)
        for sql in TRIGGERS:
            raw.execute(sql)
    return file


def _refuted(file: Path, message: str) -> None:
    """Both a reader's check and an attempt to charge are refused."""
    with Ledger.view(file) as view, pytest.raises(LedgerError, match=message):
        view.verify()
    with pytest.raises(LedgerError, match=message):
        Ledger.open(file, dataset="trips")


def _chained(rows: list[Row], entries: list[dict[str, object]]) -> list[Row]:
    """Rows with forged entries added, hashed as the ledger would."""
    rows = list(rows)
    for entry in entries:
        previous = rows[-1][3] if rows else "0" * 64
        text = json.dumps({"sequence": len(rows) + 1, **entry}, sort_keys=True, separators=(",", ":"))
        rows.append((len(rows) + 1, previous, text, hashlib.sha256((previous + text).encode()).hexdigest()))
    return rows


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
        assert raw.execute("SELECT * FROM entry ORDER BY sequence").fetchall() == _rows(sound)


@settings(max_examples=100, deadline=None)
@given(
    row=st.integers(1, 8),
    edit=st.one_of(
        st.tuples(st.just("sequence"), st.integers(-(2**63), 2**63 - 1)),
        st.tuples(
            st.sampled_from(["previous", "entry", "hash"]), st.text() | st.binary() | st.integers(0, 9)
        ),
        st.tuples(
            st.just("entry"),
            st.tuples(st.integers(0, 60), st.sampled_from('0123456789abz"{}: é')),
        ),
    ),
)
def test_every_edit_of_a_column_is_caught(sound: Path, row: int, edit: tuple[str, object]) -> None:
    """Whatever is put into whichever column of whichever row, in whole or one character, verify names an entry."""
    column, value = edit
    rows = _rows(sound)
    if isinstance(value, tuple):
        text, (at, character) = rows[row - 1][2], value
        value = text[:at] + character + text[at + 1 :]
    assume(column != "sequence" or value not in range(1, 9))
    with tempfile.TemporaryDirectory() as folder:
        file = _tampered(
            sound,
            Path(folder),
            (f"UPDATE entry SET {column} = ? WHERE sequence = ?", (value, row)),  # noqa: S608
        )
        assume(_rows(file) != rows)
        _refuted(file, r"entry \d of the ledger .* is broken")


@pytest.mark.parametrize("row", range(1, 8))
def test_a_deleted_row_is_caught(sound: Path, tmp_path: Path, row: int) -> None:
    """The gap is named; closing it by new numbers does not help."""
    delete = ("DELETE FROM entry WHERE sequence = ?", (row,))
    _refuted(_tampered(sound, tmp_path, delete), f"entry {row} .* it is missing, the next there is {row + 1}")
    move = [("UPDATE entry SET sequence = ? WHERE sequence = ?", (n - 1, n)) for n in range(row + 1, 9)]
    _refuted(_tampered(sound, tmp_path, delete, *move), f"entry {row} .* does not follow")


def test_a_cut_tail_is_caught_by_the_head(sound: Path, tmp_path: Path) -> None:
    """The chain alone cannot miss its end; the head in a manifest does, and an open ledger notices by itself."""
    rows = _rows(sound)
    for row in range(2, 9):
        file = _tampered(sound, tmp_path, ("DELETE FROM entry WHERE sequence >= ?", (row,)))
        with Ledger.view(file) as view:
            view.verify()
            assert [view.contains(r[3]) for r in rows] == [n < row for n in range(1, 9)]
    file = _tampered(sound, tmp_path)
    with Ledger.open(file, dataset="trips") as book, closing(sqlite3.connect(file)) as raw:
        raw.execute("DROP TRIGGER no_delete")
        raw.execute("DELETE FROM entry WHERE sequence = 8")
        raw.commit()
        with pytest.raises(LedgerError, match=r"entry 8 .* was removed while it was open"):
            book.reserve("r", "0.1")


@pytest.mark.parametrize(("one", "other"), [(1, 2), (2, 3), (3, 8), (7, 8)])
def test_reordered_rows_are_caught(sound: Path, tmp_path: Path, one: int, other: int) -> None:
    """Two rows that change places, with or without the hashes they name."""
    rows = _rows(sound)
    for columns in ("previous, entry, hash", "entry, hash", "entry"):
        start = 4 - len(columns.split(", "))
        sql = f"UPDATE entry SET ({columns}, sequence) = ({'?, ' * (4 - start)}sequence) WHERE sequence = ?"  # noqa: S608
        swap = [(sql, (*rows[b - 1][start:], a)) for a, b in ((one, other), (other, one))]
        _refuted(_tampered(sound, tmp_path, *swap), f"entry {one} ")


def test_an_inserted_row_is_caught(sound: Path, tmp_path: Path) -> None:
    """A row put between others, before the first, or at the end without its hash."""
    forged = (rows := _rows(sound))[1][1:]
    insert = "INSERT INTO entry VALUES (?, ?, ?, ?)"
    shift = [("UPDATE entry SET sequence = ? WHERE sequence = ?", (n + 1, n)) for n in range(8, 2, -1)]
    _refuted(_tampered(sound, tmp_path, *shift, (insert, (3, *forged))), "entry 3 .* does not follow")
    _refuted(_tampered(sound, tmp_path, (insert, (0, *forged))), "entry 1 .* is missing, the next there is 0")
    _refuted(
        _tampered(sound, tmp_path, (insert, (9, rows[-1][3], forged[1], "f" * 64))), "entry 9 .* its hash"
    )


CHARGE = {"event": "reserved", "charge": "c", "request": "r", "nano": 1, "atto": 0, "what": ""}
RELEASE = {"event": "released", "charge": "c", "sha256": SHA, "path": "out"}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([CHARGE | {"nano": 350_000_001}], "entry 9 .* sum of charges 1.000000001 is over the cap 1"),
        ([CHARGE | {"atto": 1}], "entry 9 .* over the cap"),
        ([CHARGE | {"nano": -5}], "entry 9 .* a charge of -0.000000005 is none"),
        ([CHARGE, CHARGE], "entry 10 .* was reserved before"),
        ([RELEASE], "entry 9 .* released without being reserved"),
        ([CHARGE, RELEASE, RELEASE], "entry 11 .* released after being released"),
        (
            [CHARGE, {"event": "abandoned", "charge": "c", "note": ""}, RELEASE],
            "entry 11 .* after being abandoned",
        ),
        (
            [{"event": "opened", "ledger": "l", "dataset": "d", "cap_nano": 10**12, "cap_atto": 0}],
            "opened once",
        ),
        ([CHARGE | {"event": "refunded"}], "entry 9 .* not an entry that a ledger writes"),
        ([CHARGE | {"nano": 1.0}], "entry 9 .* not an entry"),
        ([CHARGE | {"nano": True}], "entry 9 .* not an entry"),
        ([CHARGE | {"extra": 1}], "entry 9 .* not an entry"),
        ([CHARGE | {"sequence": 8}], "entry 9 .* not an entry"),
        ([CHARGE | {"event": []}], "entry 9 .* not an entry"),
    ],
)
def test_a_forger_who_knows_the_hash_must_keep_the_rules(
    sound: Path, tmp_path: Path, entries: list[dict[str, object]], message: str
) -> None:
    """Entries with the right hash that no ledger would write are named."""
    added = _chained(_rows(sound), entries)[8:]
    _refuted(
        _tampered(sound, tmp_path, *(("INSERT INTO entry VALUES (?, ?, ?, ?)", row) for row in added)),
        message,
    )


def test_a_history_written_anew_is_caught_by_the_head(sound: Path, tmp_path: Path) -> None:
    """A whole chain forged with smaller charges is sound in itself, but holds no head that was published."""
    rows = _rows(sound)
    entries = [json.loads(row[2]) for row in rows]
    forged = _chained([], [e | {"nano": 1} if e["event"] == "reserved" else e for e in entries])
    insert = [("INSERT INTO entry VALUES (?, ?, ?, ?)", row) for row in forged]
    with Ledger.view(_tampered(sound, tmp_path, ("DELETE FROM entry", ()), *insert)) as view:
        view.verify()
        assert view.spent == Amount(4)
        assert [view.contains(row[3]) for row in rows] == [True] + [False] * 7


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
    _refuted(file, message)


def test_an_emptied_ledger_is_caught(sound: Path, tmp_path: Path) -> None:
    """Without its first entry it has no cap."""
    _refuted(_tampered(sound, tmp_path, ("DELETE FROM entry", ())), "entry 1 is missing")


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
        assert seen == [(row[0], row[1], row[3]) for row in _rows(sound)]


# Racing and dying

RACE = """
import sys
from cbdp.privacy.ledger import BudgetError, Ledger
sys.stdin.readline()
granted = 0
with Ledger.open(sys.argv[1], dataset="trips", cap="0.0000001", create=True) as book:
    for i in range(60):
        try:
            book.reserve(f"{sys.argv[2]}-{i}", "1e-9")
            granted += 1
        except BudgetError:
            pass
print(granted)
"""


def test_eight_processes_share_one_cap(tmp_path: Path) -> None:
    """480 requests of one unit each race for a cap of 100, from creation on: exactly 100 are granted."""
    file = tmp_path / "l.sqlite"
    processes = [_start(RACE, file, i) for i in range(8)]
    for process in processes:
        process.stdin.write("go\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
    granted = [int(process.communicate()[0]) for process in processes]
    assert sum(granted) == 100
    with Ledger.view(file) as view:
        view.verify()
        assert view.left == Amount()
        assert len(view.entries()) == 101
        per_process = Counter(c.request.split("-")[0] for c in view.unfinished())
    assert [per_process[str(i)] for i in range(8)] == granted


WORK = """
import os, sys
from cbdp.privacy.ledger import Ledger
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


def test_killed_at_any_time_no_draw_lacks_its_charge(tmp_path: Path) -> None:
    """Workers killed at random instants, from before creation on: the chain holds, every draw was paid for, once."""
    file, draws = tmp_path / "l.sqlite", tmp_path / "draws"
    chance = random.Random(7)
    interrupted = 0
    for _ in range(KILLS):
        process = _start(WORK, file, draws)
        process.stdout.readline()  # type: ignore[union-attr]
        time.sleep(chance.uniform(0, 0.06))
        _kill(process)
        with Ledger.view(file) as view:
            view.verify()
            reserved = {e.fields["charge"] for e in view.entries() if e.event == "reserved"}
            open_charges = {c.id for c in view.unfinished()}
            assert view.spent.epsilon == Fraction(len(reserved), 1000)
        drawn = draws.read_text().splitlines() if draws.exists() else []
        assert len(drawn) == len(set(drawn))
        assert reserved - open_charges <= set(drawn) <= reserved
        interrupted = len(open_charges)
    assert interrupted >= KILLS / 20  # else the kills did not fall inside a charge and show little


LINES = """
import os, sys
from pathlib import Path
from cbdp.privacy import ledger
folder, stride = Path(sys.argv[1]), int(sys.argv[2])

def work(path):
    with ledger.Ledger.open(path, dataset="trips", cap=1, create=True) as book, book.lock("r"):
        charge = book.reserve("r", "0.1")
        (path.with_suffix(".draw")).write_text(charge.id)
        book.released(charge, "0" * 64, "out")

def die_after(lines):
    def trace(frame, event, argument):
        nonlocal lines
        if frame.f_code.co_filename != ledger.__file__:
            return None
        lines -= event == "line"
        if lines < 0:
            os.kill(os.getpid(), 9)
        return trace
    return trace

lines, status = 0, 9
while status == 9:
    child = os.fork()
    if child == 0:
        sys.settrace(die_after(lines))
        work(folder / f"{lines}.sqlite")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    lines += stride
print(lines, status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_every_line_the_ledger_recovers(tmp_path: Path) -> None:
    """A process that dies before the n-th line of the ledger's code, n = 0, 5, 10, …: what is left can be used at once."""
    with _start(LINES, tmp_path, 5) as process:
        lines, status = map(int, process.stdout.read().split())  # type: ignore[union-attr]
    assert status == 0
    spent: Counter[tuple[Fraction, bool, bool]] = Counter()
    for n in range(0, lines, 5):
        draw = tmp_path / f"{n}.draw"
        with (
            Ledger.open(tmp_path / f"{n}.sqlite", dataset="trips", cap=1, create=True) as book,
            book.lock("r"),
        ):
            charges = [e.fields["charge"] for e in book.entries() if e.event == "reserved"]
            assert not draw.exists() or charges == [draw.read_text()]
            assert book.spent.epsilon == Fraction(len(charges), 10)
            assert draw.exists() or not book.finished("r")
            spent[book.spent.epsilon, draw.exists(), bool(book.finished("r"))] += 1
    tenth = Fraction(1, 10)
    assert set(spent) == {
        (Fraction(0), False, False),
        (tenth, False, False),
        (tenth, True, False),
        (tenth, True, True),
    }


LOCK = """
import sys, time
from cbdp.privacy import ledger
ledger._FLOCK = sys.argv[2] == "flock"
with ledger.Ledger.open(sys.argv[1], dataset="trips", cap=1, create=True) as book:
    for request in ("a", "b", "c"):
        with book.lock(request):
            if book.finished(request) is None:
                charge = book.reserve(request, "0.1")
                time.sleep(0.02)
                book.released(charge, "0" * 64, "out")
"""
HOLD = """
import sys, time
from cbdp.privacy import ledger
ledger._FLOCK = sys.argv[2] == "flock"
with ledger.Ledger.open(sys.argv[1], dataset="trips", cap=1, create=True) as book, book.lock("a"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("kind", ["flock", "sqlite"])
def test_identical_requests_pay_once(tmp_path: Path, kind: str) -> None:
    """Of five processes with the same three requests, one pays for each; a killed holder holds nobody up."""
    file = tmp_path / "l.sqlite"
    holder = _start(HOLD, file, kind)
    assert holder.stdout.readline() == "held\n"  # type: ignore[union-attr]
    processes = [_start(LOCK, file, kind) for _ in range(5)]
    with pytest.raises(subprocess.TimeoutExpired):
        processes[0].wait(timeout=0.5)
    with Ledger.view(file) as view:
        assert len(view.entries()) == 1
    _kill(holder)
    assert [process.communicate()[0] for process in processes] == [""] * 5
    with Ledger.view(file) as view:
        view.verify()
        assert Counter(e.fields.get("request") for e in view.entries() if e.event == "reserved") == Counter(
            "abc"
        )
    if kind == "flock":
        assert [p.name for p in tmp_path.iterdir()] == ["l.sqlite"]


def test_views_are_whole_while_others_write(tmp_path: Path) -> None:
    """Looking again and again while workers open, charge and close: every look is a sound chain, longer than the last."""
    file = tmp_path / "l.sqlite"
    process = _start(WORK, file, tmp_path / "draws")
    process.stdout.readline()  # type: ignore[union-attr]
    heads: list[str] = []
    for _ in range(30):
        with Ledger.view(file) as view:
            view.verify()
            assert all(view.contains(head) for head in heads)
            heads.append(view.head)
    _kill(process)
    assert len(set(heads)) > 1
