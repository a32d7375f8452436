"""The ledger: never over the cap, every charge released once, nothing written when something is refused."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest
from ledgers import SHA, opened

import cbdp
from cbdp import ledger
from cbdp.errors import BudgetError, InputError
from cbdp.ledger import AccountOwner, Amount, Charge, FinishedCharge, Ledger


def test_a_charge_goes_from_reserved_to_released(tmp_path: Path) -> None:
    """What was reserved is spent, what was released is found again by its request."""
    with opened(tmp_path) as book:
        assert (book.owner, book.cap, book.spent, book.finished("r")) == (
            AccountOwner("trips"),
            Amount(10**9),
            Amount(),
            None,
        )
        charge = book.reserve("r", Fraction(1, 4), what="demand of May")
        assert (charge.epsilon, charge.delta, charge.what) == (Fraction(1, 4), 0, "demand of May")
        assert book.unfinished("r") == [charge]
        assert book.finished("r") is None
        done = book.released(charge, SHA, tmp_path / "out")
        assert done == book.finished("r") == FinishedCharge(charge, SHA, str(tmp_path / "out"))
        assert book.unfinished() == []
    with opened(tmp_path, create=False, cap=None) as book:
        assert book.finished("r") == done
        assert (book.spent.epsilon, book.left.epsilon) == (Fraction(1, 4), Fraction(3, 4))
        assert [e.event for e in book.entries()] == ["opened", "reserved", "released"]
        assert book.entries()[1].hash == charge.head
        assert book.entries()[2].hash == book.head
        book.verify()


def test_over_the_cap_nothing_is_written(tmp_path: Path) -> None:
    """The error states what is left, is both a budget and an input error, and leaves no entry."""
    with opened(tmp_path) as book:
        book.reserve("r", "0.9")
        head = book.head
        with pytest.raises(
            BudgetError, match=r"charge of 0\.100000001 does not fit: 0\.1 of the cap 1 is left"
        ) as caught:
            book.reserve("s", "0.100000001")
        assert isinstance(caught.value, InputError)
        assert type(caught.value) is cbdp.BudgetError is ledger.BudgetError
        assert book.head == head
        book.reserve("s", 0.1)
        assert book.left == Amount()


def test_delta_has_a_cap_of_its_own(tmp_path: Path) -> None:
    """δ that was not allowed at creation is refused, and so is δ above what was."""
    with opened(tmp_path) as book, pytest.raises(BudgetError, match=r"δ 0\.000001"):
        book.reserve("r", "0.1", "1e-6")
    (tmp_path / "l.sqlite").unlink()
    with opened(tmp_path, cap_delta="1e-6") as book:
        for _ in range(2):
            book.reserve("r", "0.1", "5e-7")
        assert book.left == Amount(8 * 10**8, 0)
        with pytest.raises(BudgetError):
            book.reserve("r", "0.1", "1/1000000000000000000")


def test_a_charge_is_released_once(tmp_path: Path) -> None:
    """The second time, a charge of another ledger, and what is no SHA-256 are refused."""
    with opened(tmp_path) as book:
        charge = book.reserve("r", "0.1")
        with pytest.raises(InputError, match="sha256 is 'ABC'"):
            book.released(charge, "ABC", "out")
        book.released(charge, SHA, "out")
        with pytest.raises(InputError, match="was already released to 'out'"):
            book.released(charge, SHA, "elsewhere")
        with pytest.raises(InputError, match="is not in the ledger"):
            book.released(Charge("0" * 32, "r", Amount(1), "", SHA), SHA, "out")
        assert len(book.entries()) == 3


@pytest.mark.parametrize("bad", [0, -1, "-0.5", float("nan"), float("inf"), None, True])
def test_bad_epsilon_writes_nothing(tmp_path: Path, bad: object) -> None:
    """Neither a charge nor a cap may be anything but a number above 0."""
    with opened(tmp_path) as book:
        with pytest.raises(InputError, match="epsilon is"):
            book.reserve("r", bad)  # type: ignore[arg-type]
        assert len(book.entries()) == 1
    with pytest.raises(InputError, match="cap"):
        Ledger.open(tmp_path / "new.sqlite", dataset="d", cap=bad, create=True)  # type: ignore[arg-type]
    assert not (tmp_path / "new.sqlite").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "taps"}, "belongs to data set 'trips', not to data set 'taps': name another ledger, or"),
        ({"riders": "all"}, "belongs to data set 'trips', not to the riders 'all': name another ledger"),
        ({"cap": 2}, "is 1, not 2: it was fixed"),
        ({"cap_delta": "1e-9"}, r"is 1, not \(1, δ 0.000000001\)"),
        ({"cap": None, "cap_delta": 0}, "without a cap"),
        ({"dataset": ""}, "dataset is ''"),
        ({"riders": ""}, "riders is ''"),
    ],
)
def test_another_data_set_or_cap_is_refused(tmp_path: Path, options: dict[str, object], message: str) -> None:
    """The error names both what the ledger has and what was asked for."""
    opened(tmp_path).close()
    with pytest.raises(InputError, match=message):
        opened(tmp_path, **options)
    with pytest.raises(InputError, match="'trips', not to data set 'taps'"):
        Ledger.view(tmp_path / "l.sqlite", dataset="taps")


def test_a_ledger_is_created_only_when_asked(tmp_path: Path) -> None:
    """A wrong path does not start a fresh budget; an empty file counts as none."""
    with pytest.raises(InputError, match="create=True"):
        opened(tmp_path, create=False)
    with pytest.raises(InputError, match="needs a cap"):
        opened(tmp_path, cap=None)
    with pytest.raises(InputError, match="there is no folder"):
        opened(tmp_path / "nowhere")
    with pytest.raises(InputError, match="there is no ledger"):
        Ledger.view(tmp_path / "l.sqlite")
    with pytest.raises(InputError, match="cannot be reached"):
        Ledger.view("nul\0")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "l.sqlite").touch()
    for attempt in (lambda: opened(tmp_path, create=False), lambda: Ledger.view(tmp_path / "l.sqlite")):
        with pytest.raises(InputError, match="is empty"):
            attempt()
    opened(tmp_path).close()


def test_odd_names_survive(tmp_path: Path) -> None:
    """Quotes, emoji, line breaks, and file names that are no UTF-8 come back as they were."""
    folder = tmp_path / "a?b#c%20 'ü"
    folder.mkdir()
    odd = "r'\";\0\n–🚌\udc80"
    with opened(folder, dataset=odd) as book:
        charge = book.reserve(odd, "0.1", what=odd)
        book.released(charge, SHA, os.fsdecode(b"out\xff"))
        with book.lock(odd):
            pass
    with Ledger.view(folder / "l.sqlite", dataset=odd) as view:
        view.verify()
        assert view.finished(odd) == FinishedCharge(charge, SHA, "out\udcff")
    assert [p.name for p in folder.iterdir()] == ["l.sqlite"]
