"""Counts that are public already: how they are read, what is refused, and that estimates meet them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from cbdp import Dimension, Feature, FeatureDag, Measurement, Universe, post_process
from cbdp.errors import InputError
from cbdp.estimation.invariants import exact_answers, public_total, read_public_counts

STOPS = Dimension(["A", "B", "C", "D"], zone=["n", "n", "s", "s"])
UNIVERSE = Universe(origin=STOPS, destination=STOPS, time=["am", "pm"])
DAG = FeatureDag(
    UNIVERSE,
    [
        Feature("time", by="time"),
        Feature("from", by=["origin.zone", "time"]),
        Feature("to", by=["destination.zone"]),
    ],
)


def test_a_number_a_list_and_a_table_say_the_same() -> None:
    """Rows may be in any order; what a table adds up to is public with it, coarse tables first."""
    wanted = {"total": (37,), "time": (7, 30)}
    table = {"time": ["pm", "am"], "count": [30, 7]}
    for time in ([7, 30], np.array([7.0, 30.0]), table, pd.DataFrame(table)):
        assert read_public_counts(DAG, {"time": time}) == wanted
        assert list(read_public_counts(DAG, {"time": time, "total": 37}) or {}) == ["total", "time"]
    assert read_public_counts(DAG, {"total": 37}) == {"total": (37,)}
    assert read_public_counts(DAG, {"to": [0, 0]}) == {"total": (0,), "to": (0, 0)}
    assert read_public_counts(DAG, None) is None
    assert read_public_counts(DAG, {}) is None


WRONG: dict[str, tuple[Any, str]] = {
    "no mapping": ([37], r"public is \[37\]: give a mapping"),
    "no feature": ({"totals": 1}, "'totals', which is not a feature: did you mean 'total'"),
    "every trip type": ({"singleton": [1] * 32}, "nothing left to release"),
    "negative": ({"total": -1}, "the public count of 'total' is -1: give a whole number of at least 0"),
    "not whole": ({"time": [1, 1.5]}, r"the public count of 'time' \(pm\) is 1.5: give a whole number"),
    "text": ({"total": "37"}, "is '37': give a whole number"),
    "a truth": ({"total": True}, "is True: give a whole number"),
    "infinite": ({"total": np.inf}, "is inf: give a whole number"),
    "not a number": ({"total": float("nan")}, "is nan: give a whole number"),
    "too few": ({"time": [1]}, "public counts of 'time': 1 for 2 elements: give one for each"),
    "partial": (
        {"time": {"time": ["am"], "count": [1]}},
        r"has 1 of 2 rows: 'time' \(pm\) is missing. Give every row",
    ),
    "twice": (
        {"time": {"time": ["am", "am"], "count": [1, 1]}},
        "has a second row for time = am: keep one",
    ),
    "unknown": ({"time": {"time": ["am", "noon"], "count": [1, 1]}}, "a row for time = noon, which is not in the universe"),
    "no counts": ({"time": {"time": ["am", "pm"], "n": [1, 1]}}, "has no column 'count': it needs time, count"),
    "no keys": ({"time": {"count": [1, 1]}}, "has no column 'time'"),
    "total and table": (
        {"total": 9, "time": [4, 4]},
        "'total' and 'time' contradict each other: 'total' adds up to 9 trips, 'time' to 8; correct one",
    ),
    "crossing tables": (
        {"from": [1, 2, 3, 4], "to": [5, 6]},
        "'from' and 'to' contradict each other: 'from' adds up to 10 trips, 'to' to 11",
    ),
    "part of a table": (
        {"from": [1, 2, 3, 4], "time": [5, 5]},
        r"'from' adds up to 4 trips for 'time' \(am\), 'time' to 5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named(what: str) -> None:
    """The table, the row and the value, with the cure; of two tables that disagree, both."""
    given, said = WRONG[what]
    with pytest.raises(InputError, match=said):
        read_public_counts(DAG, given)


def test_tables_that_agree_in_sums_may_be_impossible_together() -> None:
    """With structural zeros no trips can have both: nothing leads from north to south, yet all leave one and reach the other."""
    zero = np.zeros((4, 4), dtype=bool)
    zero[:2, 2:] = True
    dag = FeatureDag(
        Universe(origin=STOPS, destination=STOPS).without(("origin", "destination"), zero),
        [Feature("from", by="origin.zone"), Feature("to", by="destination.zone")],
    )
    assert read_public_counts(dag, {"from": [5, 5], "to": [5, 5]})
    with pytest.raises(InputError, match="no trips can have all the public counts of 'from', 'to'"):
        read_public_counts(dag, {"from": [10, 0], "to": [0, 10]})


def test_tables_that_cross_in_three_ways_are_refused() -> None:
    """Two families can be met by whole trips, whatever they are; a third may not."""
    dag = FeatureDag(
        UNIVERSE,
        [Feature("a", by=["origin"]), Feature("b", by=["destination"]), Feature("c", by=["time"])],
    )
    assert read_public_counts(dag, {"a": [1, 1, 1, 1], "b": [4, 0, 0, 0]})
    with pytest.raises(InputError, match="'a', 'b', 'c' cross each other in more than two ways"):
        read_public_counts(dag, {"a": [1, 1, 1, 1], "b": [4, 0, 0, 0], "c": [2, 2]})


@pytest.mark.parametrize("estimator", ["posterior", "projection"])
@pytest.mark.parametrize(
    "public", [{"total": 400}, {"from": [100, 50, 20, 200]}, {"time": [0, 90], "to": [30, 60]}]
)
def test_estimates_meet_public_counts(estimator: str, public: dict[str, Any]) -> None:
    """However far the noisy answers are off, and also where a public count is zero."""
    noisy = np.random.default_rng(1).integers(-5, 20, UNIVERSE.size)
    known = read_public_counts(DAG, public)
    answers = [Measurement("singleton", noisy, scale=2), *exact_answers(known)]
    estimate = post_process(DAG, answers, estimator=estimator)
    for name, counts in (known or {}).items():
        np.testing.assert_allclose(estimate.counts(name), counts, rtol=1e-9, atol=1e-6)
    assert estimate.counts("singleton").min() >= 0
    assert public_total(known) == sum(np.ravel(next(iter(public.values()))))


def test_a_feature_is_exact_or_noisy() -> None:
    """Not both: what is public needs no noisy answer."""
    answers = [
        Measurement("singleton", np.ones(UNIVERSE.size), scale=1),
        Measurement("total", [30], scale=1),
        *exact_answers({"total": (32,)}),
    ]
    with pytest.raises(
        InputError, match="'total' is given 2 times, and once as exact: leave the noisy answers out"
    ):
        post_process(DAG, answers, estimator="projection")
