"""What counts without noise leave open of hidden ones: against enumeration, with rounding, and where larger counts are hidden too."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cbdp.audit.differencing import feasibility_intervals
from cbdp.audit.tables import NO_NOISE_DISTRIBUTION, CountTable, PublishedTables


def tables(counts: np.ndarray, hidden: np.ndarray, rounding: int = 0, **said: object) -> PublishedTables:
    """By row and column with totals of both, some cells blank, all rounded to multiples of twice the rounding and one."""
    to = 2 * rounding + 1
    rows, columns = (axis.reshape(-1) for axis in np.indices(counts.shape))
    shown = np.where(hidden, np.nan, to * np.rint(counts / to)).reshape(-1)
    by_row, by_column = (to * np.rint(counts.sum(axis=a) / to) for a in (1, 0))
    given = {"noise": NO_NOISE_DISTRIBUTION, "rounding": float(rounding)}
    return PublishedTables(
        (
            CountTable("both", {"r": rows, "c": columns}, shown, threshold=5, **given, **said),  # type: ignore[arg-type]
            CountTable("rows", {"r": np.arange(len(by_row))}, by_row, **given),  # type: ignore[arg-type]
            CountTable("columns", {"c": np.arange(len(by_column))}, by_column, **given),  # type: ignore[arg-type]
        )
    )


def enumerated(counts: np.ndarray, hidden: np.ndarray, rounding: int = 0) -> dict[int, tuple[int, int]]:
    """The least and the largest value of each hidden cell over all whole counts from 0 to 4 that fit: by trying all."""
    places = np.argwhere(hidden)
    seen: dict[int, set[int]] = {int(r * counts.shape[1] + c): set() for r, c in places}
    rest = np.where(hidden, 0, counts)
    for guess in itertools.product(range(5 + rounding), repeat=len(places)):
        tried = rest.copy()
        tried[hidden] = guess
        if all((tried.sum(axis=a) == counts.sum(axis=a)).all() for a in (0, 1)):
            for (r, c), value in zip(places, guess, strict=True):
                seen[int(r * counts.shape[1] + c)].add(value)
    return {at: (min(values), max(values)) for at, values in seen.items()}


@pytest.mark.parametrize("seed", range(6))
def test_bounds_are_those_of_enumeration(seed: int) -> None:
    """Two-way tables are totally unimodular, so the programs' ends are those of whole counts: every one is compared."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(8, 40, (4, 4))
    hidden = np.zeros((4, 4), dtype=bool)
    hidden.reshape(-1)[rng.choice(16, 7, replace=False)] = True
    counts[hidden] = rng.integers(0, 5, 7)
    system, found = feasibility_intervals(tables(counts, hidden))
    assert system.tables[0].name == "both"
    assert {left.cell: (left.low, left.high) for left in found} == enumerated(counts, hidden)
    assert all(left.solved for left in found)


@pytest.mark.parametrize("seed", range(4))
def test_rounded_counts_bound_less_and_the_truth_is_inside(seed: int) -> None:
    """With counts rounded to multiples of 3 the truth is in every interval, and no interval is narrower than without rounding."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(8, 40, (5, 4))
    hidden = np.zeros((5, 4), dtype=bool)
    hidden.reshape(-1)[rng.choice(20, 6, replace=False)] = True
    counts[hidden] = rng.integers(0, 5, 6)
    exact = {left.cell: left for left in feasibility_intervals(tables(counts, hidden))[1]}
    for left in feasibility_intervals(tables(counts, hidden, 1))[1]:
        assert left.low <= counts.reshape(-1)[left.cell] <= left.high
        assert left.low <= exact[left.cell].low
        assert left.high >= exact[left.cell].high


def test_larger_counts_that_are_hidden_too() -> None:
    """Said or not, a hidden count above the threshold is bounded by its totals alone; the truth is inside."""
    counts = np.array([[3, 30, 20], [40, 25, 22], [33, 21, 28]])
    hidden = np.zeros((3, 3), dtype=bool)
    hidden[:2, :2] = True
    for said in (False, True):
        _, found = feasibility_intervals(tables(counts, hidden, complementary=said))
        assert {left.cell: (left.low, left.high) for left in found} == {
            0: (0, 33), 1: (0, 33), 3: (10, 43), 4: (22, 55),
        }  # fmt: skip


def test_few_programs_stand_for_many() -> None:
    """Where programs are solved for some cells only, those are marked, and single relations bound the others."""
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 5, (8, 8))
    _, found = feasibility_intervals(tables(counts, np.ones((8, 8), dtype=bool)), most=10)
    assert sum(left.solved for left in found) == 10
    assert all(left.low <= counts.reshape(-1)[left.cell] <= left.high for left in found)
