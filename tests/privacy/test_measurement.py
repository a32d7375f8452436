"""Measurements: what crosses the wall, and what may be asked back across it."""

from __future__ import annotations

import numpy as np
import pytest

from cbdp import Measurement
from cbdp.errors import InputError
from cbdp.privacy.measurement import PublishedThresholdedAnswer, tables_and_leaves
from cbdp.privacy.noise import DiscreteLaplace, RoundedLaplace

ABOVE = Measurement("singleton", [5, 9], scale=2, elements=np.array([1, 4]), floor=np.array([3, 7]))
TABLE = Measurement("time", [1, 2], scale=1, law="rounded")


def test_noise_is_the_law_of_that_scale() -> None:
    """By the law's name; unknown without a scale, whatever the variance."""
    assert ABOVE.noise == DiscreteLaplace(2)
    assert TABLE.noise == RoundedLaplace(1)
    assert TABLE.variance.tolist() == [RoundedLaplace(1).variance()] * 2
    assert Measurement("time", [1, 2], variance=2.0).noise is None
    with pytest.raises(InputError, match="unknown noise law 'gauss'"):
        Measurement("time", [1, 2], scale=1, law="gauss")


def test_what_was_published_reveals_no_more() -> None:
    """Lowered floors change nothing of counts above floors that were published."""
    leaves = PublishedThresholdedAnswer(ABOVE)
    leaves.lower(np.array([-100, -100]))
    assert leaves.floor.tolist() == [3, 7]
    assert leaves.measurement() is ABOVE
    assert leaves.noise == DiscreteLaplace(2)
    for wrong in (TABLE, Measurement("singleton", [5], elements=np.array([1]), floor=np.array([3, 7]))):
        with pytest.raises(InputError, match="no floors, or no noise scale"):
            PublishedThresholdedAnswer(wrong)


def test_leaves_are_told_from_tables() -> None:
    """Counts above floors, or an answer that reveals them, come apart; a whole measurement of leaves is a table."""
    tables, leaves = tables_and_leaves([TABLE, ABOVE])
    assert tables == [TABLE]
    assert isinstance(leaves, PublishedThresholdedAnswer)
    revealing = PublishedThresholdedAnswer(ABOVE)
    assert tables_and_leaves([revealing, TABLE]) == ([TABLE], revealing)
    whole = Measurement("singleton", [1, 2, 3], scale=1)
    assert tables_and_leaves([whole]) == ([whole], None)
