"""What is charged is rounded up, what may be spent is rounded down, and sums are exact."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledgers import opened

from cbdp.errors import BudgetError, InputError
from cbdp.ledger import Amount


def test_ten_tenths_fit_and_three_thirds_do_not(tmp_path: Path) -> None:
    """Rounding up means that 1/3 costs 0.333333334, so that a third one is 0.000000002 over; 1 at once fits."""
    with opened(tmp_path) as book:
        for _ in range(10):
            book.reserve("r", Fraction(1, 10))
        assert book.left == Amount()
    (tmp_path / "l.sqlite").unlink()
    with opened(tmp_path) as book:
        for _ in range(2):
            book.reserve("r", Fraction(1, 3))
        assert book.left == Amount(333_333_332)
        with pytest.raises(BudgetError, match="rounds up"):
            book.reserve("r", Fraction(1, 3))
    with opened(tmp_path / ".." / tmp_path.name, cap="1.0000000009"):
        pass  # rounds down to the same cap


@given(st.lists(st.fractions("1/10000000000", 10), min_size=1, max_size=20), st.fractions("1/1000000000", 10))
def test_rounding_never_favours_the_spender(charges: list[Fraction], cap: Fraction) -> None:
    """If rounded charges fit the rounded cap, the exact ones fit the exact cap; each costs less than a unit too much."""
    rounded = [Amount.charge(c) for c in charges]
    assert all(0 <= r.epsilon - c < Fraction(1, 10**9) for r, c in zip(rounded, charges, strict=True))
    assert 0 <= cap - Amount.limit(cap).epsilon < Fraction(1, 10**9)
    if sum(rounded, Amount()).within(Amount.limit(cap)):
        assert sum(charges) <= cap


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Amount(), "0"),
        (Amount(10**10), "10"),
        (Amount(1), "0.000000001"),
        (Amount(-1_500_000_000), "-1.5"),
        (Amount(10**9, 10**12), "(1, δ 0.000001)"),
    ],
)
def test_amounts_are_printed_in_decimals(amount: Amount, text: str) -> None:
    """Neither units of the file nor exponents, and no digit that says nothing."""
    assert str(amount) == text


def test_a_cap_below_a_unit_is_refused() -> None:
    """It would round down to nothing; the error names it and the least that is possible."""
    with pytest.raises(InputError, match=r"invalid cap 1e-10: give an ε of at least 0\.000000001"):
        Amount.limit("1e-10")
