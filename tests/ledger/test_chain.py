"""The chain: whoever edits, cuts, reorders or forges entries is caught, by the chain or by a published head."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ledgers import SHA, append, chained, opened, refuted, rows_of, tampered

from cbdp.errors import InputError
from cbdp.ledger import Amount, Ledger, LedgerError


@pytest.mark.slow
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
    rows = rows_of(sound)
    if isinstance(value, tuple):
        text, (at, character) = rows[row - 1][2], value
        value = text[:at] + character + text[at + 1 :]
    assume(column != "sequence" or value not in range(1, 9))
    with tempfile.TemporaryDirectory() as folder:
        file = tampered(
            sound,
            Path(folder),
            (f"UPDATE entry SET {column} = ? WHERE sequence = ?", (value, row)),  # noqa: S608
        )
        assume(rows_of(file) != rows)
        refuted(file, r"entry \d of the ledger .* is broken")


@pytest.mark.parametrize("row", range(1, 8))
def test_a_deleted_row_is_caught(sound: Path, tmp_path: Path, row: int) -> None:
    """The gap is named; closing it by new numbers does not help."""
    delete = ("DELETE FROM entry WHERE sequence = ?", (row,))
    refuted(
        tampered(sound, tmp_path, delete),
        f"entry {row} .* it is missing \\(the next one found is entry {row + 1}\\)",
    )
    move = [("UPDATE entry SET sequence = ? WHERE sequence = ?", (n - 1, n)) for n in range(row + 1, 9)]
    refuted(tampered(sound, tmp_path, delete, *move), f"entry {row} .* does not follow")


def test_a_cut_tail_is_caught_by_the_head(sound: Path, tmp_path: Path) -> None:
    """The chain alone cannot miss its end; the head in a manifest does, and an open ledger notices by itself."""
    rows = rows_of(sound)
    for row in range(2, 9):
        file = tampered(sound, tmp_path, ("DELETE FROM entry WHERE sequence >= ?", (row,)))
        with Ledger.view(file) as view:
            view.verify()
            assert [view.contains(r[3]) for r in rows] == [n < row for n in range(1, 9)]
    file = tampered(sound, tmp_path)
    with Ledger.open(file, dataset="trips") as book, closing(sqlite3.connect(file)) as raw:
        raw.execute("DROP TRIGGER no_delete")
        raw.execute("DELETE FROM entry WHERE sequence = 8")
        raw.commit()
        with pytest.raises(LedgerError, match=r"entry 8 .* was removed while it was open"):
            book.reserve("r", "0.1")


@pytest.mark.parametrize(("one", "other"), [(1, 2), (2, 3), (3, 8), (7, 8)])
def test_reordered_rows_are_caught(sound: Path, tmp_path: Path, one: int, other: int) -> None:
    """Two rows that change places, with or without the hashes they name."""
    rows = rows_of(sound)
    for columns in ("previous, entry, hash", "entry, hash", "entry"):
        start = 4 - len(columns.split(", "))
        sql = f"UPDATE entry SET ({columns}, sequence) = ({'?, ' * (4 - start)}sequence) WHERE sequence = ?"  # noqa: S608
        swap = [(sql, (*rows[b - 1][start:], a)) for a, b in ((one, other), (other, one))]
        refuted(tampered(sound, tmp_path, *swap), f"entry {one} ")


def test_an_inserted_row_is_caught(sound: Path, tmp_path: Path) -> None:
    """A row put between others, before the first, or at the end without its hash."""
    forged = (rows := rows_of(sound))[1][1:]
    insert = "INSERT INTO entry VALUES (?, ?, ?, ?)"
    shift = [("UPDATE entry SET sequence = ? WHERE sequence = ?", (n + 1, n)) for n in range(8, 2, -1)]
    refuted(tampered(sound, tmp_path, *shift, (insert, (3, *forged))), "entry 3 .* does not follow")
    refuted(
        tampered(sound, tmp_path, (insert, (0, *forged))),
        "entry 1 .* is missing \\(the next one found is entry 0\\)",
    )
    refuted(tampered(sound, tmp_path, (insert, (9, rows[-1][3], forged[1], "f" * 64))), "entry 9 .* its hash")


CHARGE = {"event": "reserved", "charge": "c", "request": "r", "nano": 1, "atto": 0, "what": ""}
RELEASE = {"event": "released", "charge": "c", "sha256": SHA, "path": "out"}
OPENING = {"event": "opened", "ledger": "l", "dataset": "trips", "cap_nano": 10**9, "cap_atto": 0}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            [CHARGE | {"nano": 350_000_001}],
            "entry 9 .* the charges add up to 1\\.000000001, more than the cap 1;",
        ),
        (
            [CHARGE | {"atto": 1}],
            "entry 9 .* add up to \\(0\\.650000001, δ 0\\.000000000000000001\\), more than the cap 1;",
        ),
        ([CHARGE | {"nano": -5}], "entry 9 .* invalid charge -0\\.000000005: ε must be positive"),
        ([CHARGE, CHARGE], "entry 10 .* its charge was already reserved"),
        ([RELEASE], "entry 9 .* its charge was never reserved"),
        ([CHARGE, RELEASE, RELEASE], "entry 11 .* its charge was already released to 'out'"),
        (
            [CHARGE, {"event": "abandoned", "charge": "c", "note": ""}, RELEASE],
            "entry 11 .* its charge was already abandoned",
        ),
        ([OPENING], "entry 9 .* opened once, by entry 1"),
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
    added = chained(rows_of(sound), entries)[8:]
    refuted(
        tampered(sound, tmp_path, *(("INSERT INTO entry VALUES (?, ?, ?, ?)", row) for row in added)),
        message,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cap_nano": 0}, "entry 1 .* invalid cap 0: ε must be positive"),
        ({"cap_nano": -1}, r"entry 1 .* invalid cap -0\.000000001: ε must be positive"),
        ({"cap_atto": 10**18}, r"entry 1 .* invalid cap \(1, δ 1\): .* δ at least 0 and below 1"),
        ({"cap_atto": -1}, "entry 1 .* invalid cap .*δ -0.000000000000000001"),
        ({"event": "started"}, "entry 1 .* not an entry"),
    ],
)
def test_a_forged_opening_is_caught(
    sound: Path, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    """A cap that no ledger would be opened with, in decimals as people write it."""
    [row] = chained([], [OPENING | change])
    insert = ("INSERT INTO entry VALUES (?, ?, ?, ?)", row)
    file = tampered(sound, tmp_path, ("DELETE FROM entry", ()), insert)
    refuted(file, message)
    with Ledger.view(file) as view, pytest.raises(LedgerError) as caught:
        view.verify()
    assert not any(word in str(caught.value) for word in ("nano", "atto"))


def test_an_abandoned_charge_of_an_older_ledger_stays_spent(tmp_path: Path) -> None:
    """Older versions noted charges that were given up: they verify, cost what they cost, and cannot be released."""
    with opened(tmp_path) as book:
        charge, other = book.reserve("r", "0.75"), book.reserve("r", "0.125")
    append(book.path, {"event": "abandoned", "charge": charge.id, "note": "the disk was full"})
    with opened(tmp_path) as book:
        assert [e.event for e in book.entries()] == ["opened", "reserved", "reserved", "abandoned"]
        assert book.entries()[3].shown == {"charge": charge.id, "note": "the disk was full"}
        assert book.left == Amount(125_000_000)
        assert book.unfinished("r") == [other]
        with pytest.raises(InputError, match="was already abandoned: reserve a new one"):
            book.released(charge, SHA, "out")
        book.released(other, SHA, "out")
        book.verify()
    assert not hasattr(Ledger, "abandoned")


def test_an_abandoned_charge_must_have_been_reserved(sound: Path, tmp_path: Path) -> None:
    """What older ledgers may hold is checked like everything else."""
    gone = {"event": "abandoned", "charge": "c", "note": ""}
    for entries, message in (
        ([gone], "entry 9 .* its charge was never reserved"),
        ([CHARGE, gone, gone], "entry 11 .* its charge was already abandoned"),
        ([CHARGE, RELEASE, gone], "entry 11 .* its charge was already released to 'out'"),
    ):
        file = Path(shutil.copy(sound, tmp_path / "l.sqlite"))
        append(file, *entries)
        refuted(file, message)


def test_entries_are_shown_in_decimals(sound: Path) -> None:
    """What people read of an entry has ε and δ as numbers, not units of the file."""
    with Ledger.view(sound) as view:
        entries = view.entries()
    assert entries[0].shown | {"ledger": ""} == {"cap": "1", "ledger": "", "dataset": "trips"}
    assert entries[1].shown["ε"] == "0.2"
    assert [e.amount for e in entries] == [Amount(n * 10**7) for n in (100, 20, 20, 20, 0, 0, 5, 0)]
    assert not {"nano", "atto", "cap_nano", "cap_atto"} & {name for e in entries for name in e.shown}


def test_a_history_written_anew_is_caught_by_the_head(sound: Path, tmp_path: Path) -> None:
    """A whole chain forged with smaller charges is sound in itself, but holds no head that was published."""
    rows = rows_of(sound)
    entries = [json.loads(row[2]) for row in rows]
    forged = chained([], [e | {"nano": 1} if e["event"] == "reserved" else e for e in entries])
    insert = [("INSERT INTO entry VALUES (?, ?, ?, ?)", row) for row in forged]
    with Ledger.view(tampered(sound, tmp_path, ("DELETE FROM entry", ()), *insert)) as view:
        view.verify()
        assert view.spent == Amount(4)
        assert [view.contains(row[3]) for row in rows] == [True] + [False] * 7


def test_an_emptied_ledger_is_caught(sound: Path, tmp_path: Path) -> None:
    """Without its first entry it has no cap."""
    refuted(tampered(sound, tmp_path, ("DELETE FROM entry", ())), "entry 1 is missing")
