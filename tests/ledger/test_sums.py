"""Charges that pay sums over days: what a person with trips on many days pays, against every person there can be in a tiny series."""

from __future__ import annotations

import datetime as dt
import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cbdp.errors import InputError
from cbdp.ledger import Amount, Charge, ChargeScope, Ledger
from cbdp.ledger.charges import NANO_UNITS
from cbdp.ledger.windows import privacy_statement, relative_cost_of_days, window_sums
from cbdp.measuring.answers import measure_sums
from cbdp.privacy.continual import STRATEGIES
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import noise_distribution
from cbdp.privacy.unit import Person, Sensitivity, sensitivity

FIRST = dt.date(2026, 3, 1)
DAYS, COUNTS, MOST = (
    4,
    2,
    2,
)  # of a tiny series: its days, the counts of its table, the trips of a person that count on a day
PERSON = Person("card", MOST, "day")


def spanning(strategy: str, amount: Fraction, currency: str = "rho") -> Charge:
    covers = ChargeScope.of(PERSON, FIRST, FIRST + dt.timedelta(days=DAYS - 1))
    covers = ChargeScope(covers.unit, "day", MOST, covers.first, covers.last, strategy=strategy, periods=DAYS)
    made = Amount.charge_rho(amount) if currency == "rho" else Amount.charge(amount)
    return Charge("c", "r", made, "running totals", "", "", covers)


def everybody() -> list[np.ndarray]:
    """All that one person can do on the days of the series: a row for each day, a column for each count."""
    day = [v for v in itertools.product(range(MOST + 1), repeat=COUNTS) if sum(v) <= MOST]
    return [np.array(days) for days in itertools.product(day, repeat=DAYS)]


def answers(strategy: str, tables: np.ndarray, law_name: str, scale: int) -> np.ndarray:
    """The sums of the whole series through the real measurement, from one seed: two of them differ by what the data differ."""
    entropy = InsecureSeededEntropy(1)
    sums, law = STRATEGIES[strategy](DAYS), noise_distribution(law_name, Fraction(scale))
    every = list(tables.astype(np.int64))
    return np.concatenate([measure_sums(sums, every[: n + 1], law, entropy) for n in range(DAYS)])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("law", "currency"), [("gaussian", "rho"), ("geometric", "epsilon")])
def test_the_statement_holds_for_everybody_and_is_reached(strategy: str, law: str, currency: str) -> None:
    """Over all persons and all windows of 1 to 4 days: the cost of taking a person's trips in the window away is at most what the ledger says."""
    noise = noise_distribution(law, Fraction(50))
    amount = Fraction(noise.cost(STRATEGIES[strategy](DAYS).change(sensitivity(PERSON))))
    charge = spanning(strategy, amount, currency)
    base = answers(strategy, np.full((DAYS, COUNTS), 7), law, 50)
    unseen = {days: window_sums([charge], days).worst()[0].nano for days in range(1, DAYS + 1)}
    worst = dict.fromkeys(unseen, Fraction(0))
    for person in everybody():
        change = answers(strategy, person + 7, law, 50) - base
        touched = np.flatnonzero(person.any(axis=1))
        if len(touched):
            cost = _cost(change, currency, 50)
            window = int(touched[-1] - touched[0] + 1)
            worst[window] = max(worst[window], cost)
    for days, cost in worst.items():
        assert cost * NANO_UNITS <= unseen[days]
        assert unseen[days] <= cost * NANO_UNITS + days**2 + 1  # and no more than rounding above it


def _cost(change: np.ndarray, currency: str, scale: int) -> Fraction:
    """ρ of discrete Gaussian noise, or ε of geometric noise, for this very change of all answers."""
    if currency == "rho":
        return Fraction(int((change**2).sum()), 2 * scale**2)
    return Fraction(int(np.abs(change).sum()), scale)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("periods", [1, 2, 5, 9])
def test_days_in_a_row_cost_what_the_strategy_says(strategy: str, periods: int) -> None:
    """All windows at once, from products of columns, as one by one; never less for more days, never more than for any group."""
    made = STRATEGIES[strategy](periods)
    for currency, part in (("rho", "l2_squared"), ("epsilon", "l1")):
        whole = [getattr(made.change(Sensitivity(1, 1, 1, 1), window=d), part) for d in range(1, periods + 1)]
        found = [relative_cost_of_days(strategy, periods, d, currency) for d in range(1, periods + 1)]  # type: ignore[arg-type]
        assert found == [Fraction(w, whole[0]) for w in whole]
        assert found == sorted(found)
        assert all(f <= (d * d if currency == "rho" else d) for d, f in enumerate(found, 1))
        assert relative_cost_of_days(strategy, periods, periods + 7, currency) == found[-1]  # type: ignore[arg-type]


def test_a_ledger_holds_such_a_charge_and_limits_windows_by_it(tmp_path: Path) -> None:
    """Seven days cost 36.25 times a day, not 49 times; a cap between the two lets it pass, one below refuses it."""
    covers = ChargeScope(
        "person", "day", 2, FIRST, FIRST + dt.timedelta(days=364), strategy="square root", periods=365
    )
    for cap, fits in ((37, True), (36, False)):
        path = tmp_path / f"{cap}.sqlite"
        with Ledger.open(path, dataset="d", cap={"per_7_days": cap}, currency="rho", create=True) as ledger:
            if not fits:
                with pytest.raises(Exception, match="for 7 days is left there"):
                    ledger.reserve("span", rho=1, covers=covers)
                continue
            ledger.reserve("span", rho=1, covers=covers)
        with Ledger.view(path) as again:
            again.verify()
            assert again.charges()[0].covers == covers
            week = privacy_statement(again.charges()).window(7)
            assert 36.25 < float(week.amount.rho) < 36.26


@pytest.mark.parametrize(
    "wrong",
    [
        {"strategy": "cube root", "periods": 5},
        {"strategy": "square root"},
        {"periods": 5},
        {"strategy": "square root", "periods": 5, "disjoint_periods": True},
        {"strategy": "square root", "periods": 5, "per": "week"},
    ],
)
def test_what_is_no_price_of_days_is_refused(wrong: dict[str, object]) -> None:
    """Sums that nobody knows, no number of days, or a unit of longer periods, which a window could cut."""
    stated = {"unit": "person", "per": "day", "max_trips": 2, "first": FIRST, "last": FIRST} | wrong
    with pytest.raises(InputError):
        ChargeScope(**stated)  # type: ignore[arg-type]


def test_sums_that_do_not_fit_are_refused_without_a_number() -> None:
    """How large the counts are is private, and an error is read by others."""
    huge = np.full(2, 2**62)
    with pytest.raises(InputError) as refused:
        measure_sums(
            STRATEGIES["square root"](2), [huge], noise_distribution("geometric", 1), InsecureSeededEntropy(0)
        )
    assert str(refused.value) == "the sums do not fit in 64 bits: count shorter periods"
