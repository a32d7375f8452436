"""Sets beyond two families: the network's sets stay exact, the others are brought back, as well as a mixed-integer program can."""

from __future__ import annotations

import time

import numpy as np
import pytest
from crossing import beyond, instance, split

from cbdp.progress import watched
from cbdp.rounding.bounds import CellProblem
from cbdp.rounding.crossing import least_violation, round_crossing, second_family
from cbdp.rounding.crossing import repair as repaired
from cbdp.rounding.network import min_cost_flow, network_of

MORE = 1  # by how many trips in all prices and repairs may break more than the optimum: none was met that breaks two more


def _by_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cbdp.rounding.crossing.MAX_INTEGER_PROGRAM_CELLS", 0)


@pytest.mark.parametrize(
    "labels", [(4, 5, 6), (9, 3, 12, 7), (15, 14, 13), (6, 6, 6, 6, 6), (20, 3, 3, 3)], ids=str
)
@pytest.mark.parametrize("seed", range(6))
def test_as_good_as_a_mixed_integer_program(
    seed: int, labels: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 45 cells, where the optimum can be had: exact features are exact, and the others are off by at most MORE trips more."""
    problem = instance(seed, 45, labels)
    crossing, soft = split(problem)
    best = least_violation(problem, soft)
    assert best is not None
    _by_repair(monkeypatch)
    up = round_crossing(problem, crossing, soft)
    off = beyond(problem, up)
    assert not off[~soft].any()
    assert off.sum() <= beyond(problem, best).sum() + MORE


@pytest.mark.parametrize("labels", [(300, 200, 100), (900, 80, 40, 20, 10), (40, 40, 40, 40, 40)], ids=str)
def test_many_cells_leave_nothing_out_of_bounds(labels: tuple[int, ...]) -> None:
    """Where cells outnumber sets, every count of every feature is kept; the same way again."""
    problem = instance(1, 6000, labels)
    crossing, soft = split(problem)
    assert soft.any()
    up = round_crossing(problem, crossing, soft)
    assert not beyond(problem, up).any()
    assert (round_crossing(problem, crossing, soft) == up).all()


def test_the_distance_is_near_to_the_least_there_is() -> None:
    """Within a tenth of what no rounding can fall below: that of the network alone."""
    problem = instance(2, 6000, (300, 200, 100))
    crossing, soft = split(problem)
    network = network_of(problem, soft, second_family(crossing, soft))
    fraction = (problem.unit - problem.cost) / (2 * problem.unit)
    alone, all_kept = (
        float((fraction**2).sum() + problem.cost[up].sum() / problem.unit)
        for up in (min_cost_flow(network, problem.cost).up, round_crossing(problem, crossing, soft))
    )
    assert alone <= all_kept <= 1.1 * alone


def test_repairs_never_add_violation_and_are_told() -> None:
    """From any flow: exact sets stay exact, and progress only rises, within 0 … 1."""
    problem = instance(4, 3000, (200, 90, 50))
    crossing, soft = split(problem)
    network = network_of(problem, soft, second_family(crossing, soft))
    first = min_cost_flow(network, problem.cost)
    told: list[float] = []
    with watched(lambda _, done: told.append(done)):
        up = repaired(problem, soft, network, first)
    before, after = beyond(problem, first.up), beyond(problem, up)
    assert before.sum() > 50
    assert after.sum() == 0
    assert told == sorted(told)
    assert 0.5 <= min(told) <= max(told) <= 1


def test_the_work_for_one_set_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """With next to no work allowed, sets stay out of bounds, but exact ones are exact and nothing gets worse."""
    problem = instance(4, 3000, (200, 90, 50))
    crossing, soft = split(problem)
    network = network_of(problem, soft, second_family(crossing, soft))
    first = min_cost_flow(network, problem.cost)
    monkeypatch.setattr("cbdp.rounding.crossing.MAX_ARCS_PER_SET", 1)
    monkeypatch.setattr("cbdp.rounding.crossing.MAX_ROUNDS", 1)
    off = beyond(problem, repaired(problem, soft, network, first))
    assert not off[~soft].any()
    assert off.sum() <= beyond(problem, first.up).sum()


def test_a_cell_whose_set_has_no_other_choice() -> None:
    """Three features that each pair two of three half cells: one trip is out of bounds whatever is tried, and the search ends."""
    member = np.array([[0, 1, 1], [2, 3, 2], [4, 4, 5]])
    low, high = np.array([0, 1, 1, 0, 1, 0]), np.array([1, 1, 1, 1, 1, 1])
    problem = CellProblem(2, np.arange(3), np.zeros(3, dtype=np.int64), ("a", "b", "c"), member, low, high)
    crossing, soft = split(problem)
    network = network_of(problem, soft, second_family(crossing, soft))
    up = repaired(problem, soft, network, min_cost_flow(network, problem.cost))
    assert beyond(problem, up).sum() == 1
    assert not beyond(problem, up)[~soft].any()


@pytest.mark.slow
def test_a_week_of_crossing_tables_takes_seconds() -> None:
    """As many cells and counts as a week of bikes has with seven tables: nothing is out of bounds after ten seconds of work."""
    round_crossing(*_with_split(instance(0, 500, (20, 20, 20))))  # compiles
    problem = instance(1, 80_000, (490, 168, 96, 600, 24, 7))
    begun = time.thread_time()
    up = round_crossing(*_with_split(problem))
    assert time.thread_time() - begun < 10
    assert not beyond(problem, up).any()


def _with_split(problem: CellProblem) -> tuple[CellProblem, np.ndarray, np.ndarray]:
    return (problem, *split(problem))
