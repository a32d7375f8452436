"""One currency per ledger: ε as always, or ρ; and ledgers that earlier versions made."""

from __future__ import annotations

import datetime as dt
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledgers import SHA, append, opened, refuted

from cbdp.errors import BudgetError, InputError
from cbdp.ledger import Amount, ChargeScope, Ledger, SeriesPart

OLD = (
    Path(__file__).parent / "data" / "ledger_format_2.sql"
)  # made by version 2 of the format, before currencies


def old_ledger(folder: Path) -> Path:
    file = folder / "old.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as raw:
        raw.executescript(OLD.read_text("utf-8"))
    return file


def test_a_ledger_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """It is read, charged in ε with days and without, and every old head is still in it."""
    file = old_ledger(tmp_path)
    with Ledger.view(file) as view:
        view.verify()
        assert (view.currency, str(view.cap), str(view.spent)) == (
            "epsilon",
            "(1, δ 0.000001)",
            "(0.75, δ 0.0000001)",
        )
        heads = [entry.hash for entry in view.entries()]
        assert [charge.covers for charge in view.charges()] == [None, None]
    covers = ChargeScope("trip", first=dt.date(2026, 1, 1), last=dt.date(2026, 1, 1))
    with Ledger.open(file, dataset="trips", cap=1) as book:
        book.reserve("r3", "0.125")
        charge = book.reserve(
            "r4", "0.125", covers=covers, part=SeriesPart("s", 1, "2026-01-01", "final", SHA)
        )
        book.released(charge, SHA, "out")
        book.verify()
        assert all(book.contains(head) for head in heads)
        assert book.charges()[-1] == charge
        assert charge.covers == covers
        assert book.finished("r1").path == "out/1"  # type: ignore[union-attr]
        with pytest.raises(BudgetError, match=r"of the cap .* is left for data set"):
            book.reserve("r5", "0.1")
    with pytest.raises(
        InputError, match=r"counts ε, not ρ: .* write currency = \"epsilon\", or name another ledger"
    ):
        Ledger.open(file, dataset="trips", currency="rho")


def test_an_epsilon_ledger_is_written_as_before(tmp_path: Path) -> None:
    """Its entries have no field that earlier versions did not write, so that heads stay comparable."""
    with opened(tmp_path) as book:
        book.reserve("r", "0.1")
        opening, charge = book.entries()
    assert set(opening.fields) == {"ledger", "dataset", "cap_nano", "cap_atto"}
    assert set(charge.fields) == {"charge", "request", "dataset", "nano", "atto", "what"}


def test_a_rho_ledger_takes_both(tmp_path: Path) -> None:
    """ρ as it is, ε as ε²/2, each rounded up; the amounts say what they are."""
    with opened(tmp_path, currency="rho", cap=1) as book:
        assert (book.currency, str(book.cap)) == ("rho", "ρ 1")
        first = book.reserve("r", rho="1/3")
        assert (first.amount.rho, str(first.amount)) == (Fraction(333_333_334, 10**9), "ρ 0.333333334")
        second = book.reserve("r", "1/3")
        assert second.amount.nano == 55_555_556  # ⌈10⁹ / 18⌉
        assert str(book.spent) == "ρ 0.38888889"
        with pytest.raises(
            BudgetError, match=r"a charge of ρ 0.62 does not fit: ρ 0.61111111 of the cap ρ 1 is left"
        ):
            book.reserve("r", rho="0.62")
        with pytest.raises(InputError, match="is an amount of ρ, not of ε"):
            first.epsilon  # noqa: B018
        with pytest.raises(
            InputError, match=r"delta is 1e-06 with rho = 0\.1: charge ε and δ, or ρ without a δ"
        ):
            book.reserve("r", rho="0.1", delta=1e-6)
        book.released(first, SHA, "out")
        book.verify()
        assert book.entries()[1].shown["charge of"] == "ρ 0.333333334"
    opened(tmp_path, currency="rho", cap=1).close()
    opened(tmp_path, cap=None, create=False).close()


def test_rho_cannot_be_charged_to_an_epsilon_ledger(tmp_path: Path) -> None:
    """The line says what to do, and nothing is spent."""
    with opened(tmp_path) as book:
        with pytest.raises(
            InputError,
            match=r"counts ε and cannot hold a charge of ρ = 1/2: create a ledger with the currency rho",
        ):
            book.reserve("r", rho="1/2")
        for both in ({"epsilon": 1, "rho": 1}, {}):
            with pytest.raises(InputError, match="a charge is of one of them"):
                book.reserve("r", **both)  # type: ignore[arg-type]
        assert book.spent == Amount()
    with pytest.raises(InputError, match="counts ε, not ρ"):
        opened(tmp_path, currency="rho")
    with pytest.raises(InputError, match="unknown currency 'sigma'"):
        opened(tmp_path, currency="sigma")


@given(epsilon=st.fractions(Fraction(1, 10**12), 100))
def test_epsilon_in_rho_is_never_less_than_half_its_square(epsilon: Fraction) -> None:
    """And less than one unit more."""
    assert 0 <= Amount.charge(epsilon, currency="rho").rho - epsilon**2 / 2 < Fraction(1, 10**9)


def test_amounts_of_two_currencies_do_not_add_up() -> None:
    """But nothing is nothing in either."""
    one, other = Amount(1), Amount(1, 0, "rho")
    for attempt in (lambda: one + other, lambda: other - one, lambda: one.within(other)):
        with pytest.raises(InputError, match="different currencies"):
            attempt()
    assert Amount() + other == other == other + Amount()


def test_a_forged_currency_is_caught(tmp_path: Path) -> None:
    """A charge in another currency than the ledger's, and a currency that there is not."""
    with opened(tmp_path, currency="rho") as book:
        book.reserve("r", rho="0.1")
    charge = {"event": "reserved", "charge": "c", "request": "r", "nano": 1, "atto": 0, "what": ""}
    append(book.path, charge)
    refuted(book.path, "entry 3 .* not in the currency of the ledger")
    with opened(_made(tmp_path / "e")) as book:
        pass
    append(book.path, charge | {"currency": "rho"})
    refuted(book.path, "entry 2 .* not in the currency of the ledger")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
