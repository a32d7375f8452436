"""Running totals: right on average, as precise as stated, whole, never rewritten; days, weeks and months add up."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import cbdp
from cbdp.errors import InputError
from cbdp.estimation.continual import relative_deviation, running_total
from cbdp.mechanisms.continual import RunningTotals
from cbdp.privacy.continual import binary_tree, identity, square_root
from cbdp.privacy.entropy import InsecureSeededEntropy

UNIVERSE = cbdp.Universe(origin=["A", "B", "C"], time=["am", "pm"])
DAG = cbdp.FeatureDag(UNIVERSE, [cbdp.Feature("origin", by="origin")])
DAYS = 60
TRIPS = np.random.default_rng(4).poisson(80, (DAYS, UNIVERSE.size))
COUNTS = [cbdp.count(day, UNIVERSE) for day in TRIPS]
TRUTH = TRIPS.reshape(DAYS, 3, 2).sum(axis=2).cumsum(axis=0)


def _answers(running: RunningTotals, seed: int, days: int = DAYS) -> list[np.ndarray]:
    entropy = InsecureSeededEntropy(seed)
    return [running.measure(COUNTS[: day + 1], entropy) for day in range(days)]


def test_a_year_costs_three_deviations_of_a_day() -> None:
    """The goal: at most 3 where adding up days makes 19; the tree lies between."""
    root, tree, alone = (relative_deviation(s(365), 365) for s in (square_root, binary_tree, identity))
    assert max(relative_deviation(square_root(365), t) for t in (1, 7, 30, 90, 180, 364, 365)) <= 3.0
    assert root == pytest.approx(2.95, abs=0.01)
    assert alone == pytest.approx(365**0.5)
    assert 1.8 * root < tree < alone / 3


@pytest.mark.parametrize("law", ["gaussian", "geometric"])
def test_totals_are_right_on_average_and_as_precise_as_stated(law: str) -> None:
    """40 runs of 20 days: errors have mean zero and the stated deviation."""
    running = RunningTotals(DAG, "origin", Fraction(1, 8) if law == "gaussian" else 1, 32, law=law)
    days = 20
    off = np.array(
        [running_total(running.sums, _answers(running, seed, days)) - TRUTH[days - 1] for seed in range(40)]
    )
    stated = running.deviation(days)
    assert abs(off.mean()) < 3.5 * stated / off.size**0.5
    assert off.std() == pytest.approx(stated, rel=0.25)


def test_days_weeks_and_months_add_up_and_nothing_is_rewritten() -> None:
    """Whole totals; those of the first 30 days are the same whether 30 or 60 days are known."""
    running = RunningTotals(DAG, "origin", Fraction(1, 2), DAYS)
    answers = _answers(running, 1)
    totals = running.totals(answers)
    assert all(t.dtype == np.int64 for t in totals)
    for early, late in zip(running.totals(answers[:30]), totals, strict=False):
        assert early.tolist() == late.tolist()
    days = np.diff(np.array([np.zeros(3, np.int64), *totals]), axis=0)
    assert (days >= 0).all()
    weeks = days[:56].reshape(8, 7, 3).sum(axis=1)
    assert weeks.sum(axis=0).tolist() == totals[55].tolist()
    assert days.sum(axis=0).tolist() == totals[-1].tolist()
    assert np.abs(totals[-1] - TRUTH[-1]).max() < 5 * running.deviation(DAYS) + 1


def test_totals_beat_days_added_up_at_the_same_price() -> None:
    """Measured: over 60 days the error is less than a third."""
    off = {}
    for strategy in ("square root", "each alone"):
        running = RunningTotals(DAG, "origin", Fraction(1, 8), DAYS, strategy=strategy)
        assert running.price() <= Fraction(1, 8)
        errors = [running_total(running.sums, _answers(running, seed)) - TRUTH[-1] for seed in range(12)]
        off[strategy] = float(np.sqrt(np.mean(np.square(errors))))
    assert off["square root"] < off["each alone"] / 2.2


def test_the_price_is_the_one_asked_for_and_grows_with_the_days_of_a_person() -> None:
    """ρ of one day, of a week and of all days: more than one by one, less than as many squared."""
    for unit in ("trip", {"person": "card", "max_trips": 3}):
        running = RunningTotals(DAG, "origin", Fraction(1, 10), DAYS, unit=unit)
        assert Fraction(99, 1000) < running.price() <= Fraction(1, 10)
        assert 7 * running.price() < running.price(7) < 49 * running.price()
        assert running.price(7) < running.price(DAYS)
    pure = RunningTotals(DAG, "origin", 1, DAYS, law="geometric")
    assert pure.strategy == "binary tree"
    assert Fraction(999, 1000) < pure.price() <= 1
    assert pure.price(2) <= 2


def test_bad_input_is_one_clear_line() -> None:
    """Unknown tables and strategies, counts of another unit, more periods than were paid for."""
    for wrong, says in (
        ({"table": "orgin"}, "did you mean 'origin'"),
        ({"strategy": "cube root"}, "unknown strategy 'cube root'"),
        ({"amount": 0}, "0"),
        ({"periods": 0}, "a series of 0 periods"),
    ):
        given = {"table": "origin", "amount": 1, "periods": 5, **wrong}
        with pytest.raises(InputError, match=says):
            RunningTotals(DAG, **given)  # type: ignore[arg-type]
    running = RunningTotals(DAG, "origin", 1, 2)
    with pytest.raises(InputError, match="3 periods of a strategy for 2: start a new one"):
        running.measure(COUNTS[:3], InsecureSeededEntropy(1))
    with pytest.raises(InputError, match="running totals are of"):
        RunningTotals(DAG, "origin", 1, 2, unit={"person": "card", "max_trips": 2}).measure(COUNTS[:1])
