"""2^62 trip types: hits, releases and memory."""

from __future__ import annotations

import tracemalloc
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sparse_twin import ALPHA, LAW, SCALE, answer_of
from wide import widest

import cbdp
from cbdp.measuring.answers import SparseThresholdedAnswer
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.release.release import Release


def test_hits_among_2_to_the_62_types() -> None:
    """As many counts exceed a floor as the law says (and again in a band), evenly over the universe, and in order."""
    dag = widest()
    counts = cbdp.count({name: [] for name in dag.universe.dimensions}, dag.universe)
    answer = answer_of(SparseThresholdedAnswer, counts, dag, SCALE, InsecureSeededEntropy(31))
    seen = np.empty(0, dtype=np.int64)
    for floor in (72, 70):
        answer.lower(np.full(dag.cells.size, floor))
        expected = dag.universe.size * float(LAW.law.survival(floor))
        low, high = stats.poisson.ppf([ALPHA / 8, 1 - ALPHA / 8], expected)
        assert low <= len(answer.index) <= high
        assert (np.diff(answer.index) > 0).all()
        assert np.isin(seen, answer.index).all()
        assert answer.value.min() > floor
        assert stats.kstest(answer.index / dag.universe.size, "uniform").pvalue > ALPHA / 8
        seen = answer.index


class Frugal(SparseThresholdedAnswer):
    """Refuses to be asked for more than a million counts."""

    def lower(self, floor: np.ndarray) -> None:
        moved = np.minimum(floor, self.floor) < self.floor
        drawn = float((self._sizes * self.noise.survival(floor))[moved].sum())
        assert drawn < 1e6, f"floors down to {floor.min()} reveal {drawn:.0e} counts"
        super().lower(floor)


@cache
def travelled() -> cbdp.Counts:
    """2,000 trips anywhere."""
    rng = np.random.default_rng(7)
    codes = [rng.integers(0, len(d), 2000) for d in widest().universe.dimensions.values()]
    index = np.sort(widest().universe.rank_codes(codes))
    return cbdp.Counts(widest().universe, index, np.ones(2000, dtype=np.int64))


def in_the_widest(monkeypatch: pytest.MonkeyPatch, weights: str, epsilon: Any) -> Release:
    monkeypatch.setattr("cbdp.measuring.answers.SparseThresholdedAnswer", Frugal)
    return ConstraintBased(widest(), epsilon, weights=weights).simulate(travelled(), seed=1)


@pytest.mark.parametrize("weights", ["inverse-variance", "uniform", "size"])
def test_release_in_2_to_the_62_types(monkeypatch: pytest.MonkeyPatch, weights: str) -> None:
    """A release is certified, adds up, and stays near the truth in large."""
    assert widest().universe.size == 2**62
    release = in_the_widest(monkeypatch, weights, 4)
    assert release.estimate is not None
    assert release.estimate.solution.kkt_residual <= 1e-9
    assert release.counts("time").sum() == release.total == release.counts("mode").sum()
    assert abs(release.total - 2000) < 400
    assert (np.diff(release.index) > 0).all()


def test_memory_in_2_to_the_62_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release takes memory like its trips', whatever the universe."""
    travelled()
    tracemalloc.start()
    try:
        in_the_widest(monkeypatch, "inverse-variance", 4)
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
