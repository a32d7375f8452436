"""The benchmark of `ask`: what it compares is what it says."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import asked


def test_the_width_is_that_of_an_oracle_if_it_is_1645_times_the_error() -> None:
    """Two counts, of which one is off by 1 and the other by 3: half widths of 1.645 and 3 × 1.645 are the oracle's, and hold both."""
    truth, off = np.array([10.0, 20.0]), np.array([[1.0, -3.0], [-1.0, 3.0]])
    half = asked.NORMAL * np.array([1.0, 3.0])
    found = asked.Answers(truth + off - half, truth + off + half, truth + off)
    assert found.row(truth) == pytest.approx((1.0, 1.0))
    short = asked.Answers(truth + off - [0.5, 4], truth + off + [0.5, 4], truth + off)
    assert short.row(truth) == pytest.approx((0.5, 4.5 / (asked.NORMAL * 4)))


def test_corridors_hold_the_trips_between_their_stops() -> None:
    """The truth of each corridor, counted by hand."""
    features, trips = case = asked.case_of("night")
    universe = features.universe
    origin, destination, _ = (
        np.array(universe.dimensions[name].values)[codes]
        for name, codes in zip(
            universe.dimensions, universe.unrank_codes(np.arange(universe.size)), strict=True
        )
    )
    corridors = [q for q in asked.questions(case) if q.words == asked.ONE]
    assert len(corridors) == asked.CORRIDORS
    for question in corridors:
        assert question.where is not None
        (pairs,) = question.where.values()
        assert isinstance(pairs, list)
        stops = {a for a, _ in pairs}
        inside = np.isin(origin, list(stops)) & np.isin(destination, list(stops))
        assert question.truth(case).tolist() == [trips[inside].sum()]
