"""Strategies for running totals: what one unit changes is what brute force finds, and the price follows from it exactly."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from cbdp.errors import InputError
from cbdp.privacy.continual import STRATEGIES, Strategy, binary_tree, square_root
from cbdp.privacy.noise import noise_distribution
from cbdp.privacy.unit import Person, Sensitivity, Trip, sensitivity

TABLE = 3  # counts of a tiny table


def _units(k: int) -> list[np.ndarray]:
    """Everything that a person with at most k trips can add to a table of three counts in one period."""
    return [np.array(v) for v in itertools.product(range(k + 1), repeat=TABLE) if 0 < sum(v) <= k]


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("periods", [1, 3, 6])
@pytest.mark.parametrize("k", [1, 2])
def test_one_unit_changes_no_more_than_is_said(name: str, periods: int, k: int) -> None:
    """Over all people and periods: the largest L1 and squared L2 change of all answers are exactly those."""
    rows = STRATEGIES[name](periods).rows
    said = STRATEGIES[name](periods).change(sensitivity(Person("card", k)))
    seen = [np.outer(rows[:, d], unit) for d in range(periods) for unit in _units(k)]
    assert max(int(np.abs(c).sum()) for c in seen) == said.l1
    assert max(int((c**2).sum()) for c in seen) == said.l2_squared
    assert max(int((c != 0).sum()) for c in seen) <= said.l0
    assert max(int(c.max()) for c in seen) == said.linf


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_person_of_several_periods(name: str) -> None:
    """Trips on three days in a row, other ones on each: no more than the window says, and it is reached."""
    strategy = STRATEGIES[name](5)
    said = strategy.change(sensitivity(Trip()), window=3)
    seen = []
    for first in range(3):
        for cells in itertools.product(range(TABLE), repeat=3):
            change = sum(
                np.outer(strategy.rows[:, first + d], np.eye(TABLE, dtype=int)[c])
                for d, c in enumerate(cells)
            )
            seen.append((int(change.sum()), int((change**2).sum())))
    assert max(seen) == (said.l1, max(s[1] for s in seen))
    assert max(s[1] for s in seen) == said.l2_squared


def test_a_replaced_trip_may_move_to_another_period() -> None:
    """Removed from one period and added to another: still within what is said of a replaced trip."""
    strategy = square_root(6)
    said = strategy.change(sensitivity(Trip("replace")))
    eye = np.eye(TABLE, dtype=int)
    for d, e in itertools.product(range(6), repeat=2):
        for a, b in itertools.product(range(TABLE), repeat=2):
            change = np.outer(strategy.rows[:, e], eye[b]) - np.outer(strategy.rows[:, d], eye[a])
            assert (change**2).sum() <= said.l2_squared
            assert np.abs(change).sum() <= said.l1


def test_the_price_is_that_of_every_answer_added_up() -> None:
    """Answer by answer, as they are published: ρ of each discrete Gaussian adds up to the price of the whole, as fractions."""
    strategy, one = square_root(8), Sensitivity(2, 4, 2, 2)
    noise = noise_distribution("gaussian", Fraction(300))
    whole = noise.cost(strategy.change(one))
    for period in range(8):
        parts = [
            noise.cost(Sensitivity(2 * c, 4 * c * c, 2, 2 * c))
            for c in strategy.rows[:, period].tolist()
            if c
        ]
        assert sum(parts) <= whole
    assert (
        sum(noise.cost(Sensitivity(2 * c, 4 * c * c, 2, 2 * c)) for c in strategy.rows[:, 0].tolist())
        == whole
    )


def test_rounding_the_factor_costs_next_to_nothing() -> None:
    """C · C over 64² is the matrix of running totals, to a few percent in every entry."""
    rows = square_root(60).rows
    off = np.abs((rows @ rows) / 64**2 - np.tril(np.ones((60, 60))))
    assert off.max() < 0.1


def test_the_tree_asks_each_period_at_every_level() -> None:
    """365 periods: at most nine levels."""
    tree = binary_tree(365)
    assert tree.rows.sum(axis=0).max() == 9
    assert (np.diff(tree.ends) >= 0).all()
    assert tree.rows_ending_in(7).sum(axis=1).tolist() == [1, 2, 4, 8]


@pytest.mark.parametrize("periods", [0, -1, 5000, 2.5, True])
def test_wrong_lengths_are_refused(periods: object) -> None:
    """A whole number of periods."""
    with pytest.raises(InputError, match="a series of"):
        square_root(periods)  # type: ignore[arg-type]


def test_wrong_strategies_are_refused() -> None:
    """Whole numbers, in the order of time."""
    with pytest.raises(InputError, match="whole numbers"):
        Strategy("halves", np.array([[0.5, 1.0]]))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="in the order of the periods"):
        Strategy("backwards", np.array([[0, 1], [1, 0]]))
    with pytest.raises(InputError, match="a window of 9 periods"):
        square_root(3).change(sensitivity(Trip()), window=9)
