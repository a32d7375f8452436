"""One ledger for several data sets of the same riders: charges name their data set, and add up under one cap."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from ledgers import SHA, append, chained, opened, refuted, rows_of, tampered

from cbdp.errors import BudgetError, InputError
from cbdp.ledger import AccountOwner, Amount, Ledger, TotalSpent

CARDS = {"riders": "oyster cards", "cap": 1}
MONTHS = ("january", "february", "march")


def test_months_of_the_same_riders_share_one_cap(tmp_path: Path) -> None:
    """Each month is charged under its own name; the one that no longer fits is refused and leaves no entry."""
    for month in MONTHS:
        with opened(tmp_path, dataset=month, **CARDS) as book:
            assert book.owner == AccountOwner("oyster cards", riders=True)
            book.released(book.reserve("r", "0.3"), SHA, month)
    with opened(tmp_path, dataset="april", **CARDS) as book:
        with pytest.raises(BudgetError, match=r"0\.1 of the cap 1 is left for the riders 'oyster cards'"):
            book.reserve("r", "0.3")
        assert list(book.spending()) == list(MONTHS)
        assert {s.spent.epsilon for s in book.spending().values()} == {Fraction(3, 10)}
        assert (book.spent.epsilon, len(book.entries())) == (Fraction(9, 10), 7)
    with Ledger.view(tmp_path / "l.sqlite", dataset="may", riders="oyster cards") as view:
        view.verify()
        assert [e.fields["dataset"] for e in view.entries() if e.event == "reserved"] == list(MONTHS)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"dataset": "january"}, "not to data set 'january': if .* write riders = \"oyster cards\""),
        ({"dataset": "oyster cards"}, "belongs to the riders 'oyster cards', not to data set 'oyster cards'"),
        ({"dataset": "january", "riders": "paper tickets"}, "not to the riders 'paper tickets'"),
    ],
)
def test_a_ledger_of_riders_is_for_no_one_else(
    tmp_path: Path, asked: dict[str, object], message: str
) -> None:
    """A data set that does not name the riders, or names others, is refused with what to write."""
    opened(tmp_path, dataset="january", **CARDS).close()
    with pytest.raises(InputError, match=message):
        Ledger.open(tmp_path / "l.sqlite", **asked)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        Ledger.view(tmp_path / "l.sqlite", **asked)  # type: ignore[arg-type]


def test_what_was_never_published_is_told_apart(tmp_path: Path) -> None:
    """By data set and in all: a charge without a noted release, and one that an older version gave up."""
    with opened(tmp_path, dataset="january", **CARDS) as book:
        lost = book.reserve("r", "0.25")
        book.released(book.reserve("r", "0.25"), SHA, "out")
        assert book.unpublished.epsilon == Fraction(1, 4)
    with opened(tmp_path, dataset="february", **CARDS) as book:
        book.reserve("s", "0.125")
        quarter, eighth = Amount(25 * 10**7), Amount(125 * 10**6)
        january, february = TotalSpent(quarter + quarter, quarter, 1), TotalSpent(eighth, eighth, 0)
        assert book.spending() == {"january": january, "february": february}
        assert book.unpublished == quarter + eighth
    append(book.path, {"event": "abandoned", "charge": lost.id, "note": ""})
    with Ledger.view(book.path) as view:
        assert view.unpublished == quarter + eighth


def test_a_statement_names_the_ledger_its_owner_and_the_charge(tmp_path: Path) -> None:
    """What goes into a manifest. No two ledgers have the same id."""
    ids = set()
    for name, options, owner in (
        ("a", {"dataset": "may"}, {"dataset": "may"}),
        ("b", {"dataset": "may", **CARDS}, {"riders": "oyster cards"}),
    ):
        (tmp_path / name).mkdir()
        with opened(tmp_path / name, **options) as book:
            charge = book.reserve("r", "0.1")
            assert book.statement(charge) == {"head": charge.head, "id": book.id, "owner": owner}
            assert charge.dataset == "may"
            ids.add(book.id)
    assert len(ids) == 2


def _as_first_written(file: Path) -> None:
    """A ledger in the form before charges named their data set."""
    forms = [json.loads(row[2]) for row in rows_of(file)]
    old = [{k: v for k, v in form.items() if form["event"] != "reserved" or k != "dataset"} for form in forms]
    with closing(sqlite3.connect(file, isolation_level=None)) as raw:
        triggers = raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            raw.execute(f"DROP TRIGGER {name}")
        raw.execute("DELETE FROM entry")
        raw.executemany("INSERT INTO entry VALUES (?, ?, ?, ?)", chained([], old))
        for _, sql in triggers:
            raw.execute(sql)
        raw.execute("PRAGMA user_version=1")


def test_a_ledger_of_the_first_format_goes_on(tmp_path: Path) -> None:
    """Its entries verify and count for its data set; the next charge names it, and marks the file as of the new format."""
    with opened(tmp_path) as book:
        book.released(book.reserve("r", "0.25"), SHA, "out")
    _as_first_written(book.path)
    with Ledger.view(book.path) as view:
        view.verify()
        assert "dataset" not in view.entries()[1].fields
        assert list(view.spending()) == ["trips"]
    with opened(tmp_path) as book:
        book.reserve("r", "0.25")
        assert book.spending()["trips"].spent.epsilon == Fraction(1, 2)
        assert book.entries()[3].fields["dataset"] == "trips"
        book.verify()
    with closing(sqlite3.connect(book.path)) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (4,)


CHARGE = {"event": "reserved", "charge": "c", "request": "r", "nano": 1, "atto": 0, "what": ""}


def test_forged_charges_must_fit_the_owner(sound: Path, tmp_path: Path) -> None:
    """Another data set in a data set's ledger, and a charge to riders that names none, are named."""
    insert = "INSERT INTO entry VALUES (?, ?, ?, ?)"
    added = chained(rows_of(sound), [CHARGE | {"dataset": "taps"}])[8:]
    refuted(
        tampered(sound, tmp_path, *((insert, row) for row in added)),
        "entry 9 .* it charges data set 'taps', and the ledger is of data set 'trips'",
    )
    opened(tmp_path, dataset="january", **CARDS).close()
    for charge in (CHARGE, CHARGE | {"dataset": ""}):
        rows = chained(rows_of(tmp_path / "l.sqlite"), [charge])
        file = tampered(tmp_path / "l.sqlite", tmp_path, (insert, rows[1]))
        refuted(file, "entry 2 .* must name its data set")
