"""The search for whole parts with the least worst value: against every split there is, and where the answer is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbdp.privacy.budget import lexicographic_minimax

WEIGHTS = st.lists(st.floats(0.1, 10), min_size=1, max_size=4)


def _none(many: int) -> np.ndarray:
    return np.zeros(many, dtype=np.int64)


@settings(max_examples=25, deadline=None)
@given(WEIGHTS)
def test_parts_are_in_proportion_where_each_serves_itself(weights: list[float]) -> None:
    """The worst of weight / part is least when parts are in proportion to the weights."""
    log = np.log(weights)
    found = lexicographic_minimax(
        lambda parts: log - np.log(np.maximum(parts, 0.5)), 1000, _none(len(weights))
    )
    assert found.sum() == 1000
    np.testing.assert_allclose(
        found, 1000 * np.array(weights) / sum(weights), atol=3
    )  # small parts are rounded up


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_no_split_at_all_is_better(seed: int) -> None:
    """Of all splits in twenty-fourths among four, with values that several of them help as precisions do, none is better."""
    helps = np.random.default_rng(seed).random((4, 4)) ** 3 + np.eye(4)

    def judged(parts: np.ndarray) -> np.ndarray:
        return np.asarray(-0.5 * np.log((parts**2.0) @ helps + 1e-9))

    every = 40 * np.array([p for p in itertools.product(range(25), repeat=4) if sum(p) == 24])
    least = judged(every).max(axis=1).min()
    assert judged(lexicographic_minimax(judged, 960, _none(4))[None]).max() <= least + np.log(1.005)


@pytest.mark.parametrize("least", [[0, 0, 0], [10, 0, 300], [400, 300, 300]])
def test_nobody_gets_less_than_is_promised(least: list[int]) -> None:
    """Whatever else would be better."""
    found = lexicographic_minimax(lambda parts: -np.log(parts[:, :1] + 1.0), 1000, np.array(least))
    assert found.tolist() == [1000 - least[1] - least[2], least[1], least[2]]


def test_the_second_worst_counts_when_the_worst_cannot_be_helped() -> None:
    """A value that nothing moves leaves all parts to the others."""
    found = lexicographic_minimax(
        lambda parts: np.column_stack([np.full(len(parts), 9.0), -np.log(parts[:, 1:] + 1.0)]), 600, _none(3)
    )
    assert found.tolist() == [0, 300, 300]


def test_another_valley_is_found() -> None:
    """Three tables are best bought with the one that adds up to all of them, though each alone would take some more first."""

    def judged(parts: np.ndarray) -> np.ndarray:
        own = np.square(parts / 1000.0)
        return np.asarray(-0.5 * np.log(own[:, :3] + own[:, 3:] / 2 + 1e-9))

    found = lexicographic_minimax(judged, 1000, _none(4))
    assert found.tolist() == [0, 0, 0, 1000]
