"""The cheapest flow through two families: exact against an independent linear program, repeatable, and never long without a word."""

from __future__ import annotations

import numpy as np
import pytest
from crossing import beyond, instance, split
from scipy.optimize import linprog

from cbdp.errors import SolverError
from cbdp.progress import watched
from cbdp.rounding import network as simplex
from cbdp.rounding.bounds import CellProblem
from cbdp.rounding.crossing import second_family
from cbdp.rounding.network import Network, network_of


def _network(problem: CellProblem) -> Network:
    crossing, soft = split(problem)
    assert not soft.any()
    return network_of(problem, soft, second_family(crossing, soft))


def _bound(problem: CellProblem, cost: np.ndarray) -> float:
    """The least price of any fractions of cells, by HiGHS."""
    rows = np.zeros((len(problem.low), len(cost)))
    for row in problem.set_of_cell:
        rows[row, np.arange(len(cost))] = 1
    found = linprog(
        cost / problem.unit,
        np.vstack([rows, -rows]),
        np.concatenate([problem.high, -problem.low]),
        bounds=(0, 1),
    )
    return float(found.fun)


@pytest.mark.parametrize("labels", [(1,), (5, 7), (40, 3), (60, 50), (200, 2), (300, 300)], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_the_flow_is_the_cheapest(seed: int, labels: tuple[int, ...]) -> None:
    """All bounds are kept, and no fractions of cells cost less; with the cells' own prices, with equal and with large ones."""
    problem = instance(seed, 300, labels)
    rng = np.random.default_rng(seed)
    prices = (problem.cost, np.ones_like(problem.cost), rng.integers(-(2**50), 2**50, 300))
    for cost in prices:
        flow = simplex.min_cost_flow(_network(problem), cost)
        up = flow.up
        assert (flow.reduced[up] <= 0).all()
        assert (flow.reduced[~up] >= 0).all()
        assert not beyond(problem, up).any()
        assert cost[up].sum() / problem.unit == pytest.approx(_bound(problem, cost), rel=1e-7, abs=1e-6)


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same flow whether pivots come one by one or all at once, and a word between any two batches."""
    problem = instance(3, 2000, (80, 60))
    network, said = _network(problem), []
    whole = simplex.min_cost_flow(network, problem.cost).up
    monkeypatch.setattr(simplex, "PIVOTS_PER_BATCH", 1)
    with watched(lambda stage, done: said.append((stage, done))):
        assert (simplex.min_cost_flow(network, problem.cost).up == whole).all()
    assert len(said) > 100
    assert {stage for stage, _ in said} == {"rounding"}


def test_an_interruption_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever watches may stop the work."""
    problem = instance(3, 2000, (80, 60))
    monkeypatch.setattr(simplex, "PIVOTS_PER_BATCH", 10)

    def stop(_: str, __: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watched(stop):
        simplex.min_cost_flow(_network(problem), problem.cost)


def test_prices_beyond_64_bits_are_made_coarser() -> None:
    """Potentials are sums of prices: where these could overflow, the last bits go, and the order of prices stays."""
    cost = np.array([-(2**59), 5, 2**59])
    scaled = cost >> simplex._cost_shift(cost, 10)
    assert (np.diff(scaled) > 0).all()
    assert int(np.abs(scaled).max()) * 12 <= simplex.MAX_POTENTIAL
    assert simplex._cost_shift(np.array([-7, 9]), 10) == 0


def test_bounds_that_contradict_each_other_are_a_bug() -> None:
    """Real counts satisfy all bounds, so this cannot happen; if it does, it is said."""
    network = Network(
        tail=np.array([1]), head=np.array([2]), parent=np.array([-1, 0, 0]), second=np.array([False, False, True]),
        low=np.array([0, 1, 0]), high=np.array([0, 1, 0]),
    )  # fmt: skip
    with pytest.raises(SolverError, match="report this as a bug"):
        simplex.min_cost_flow(network, np.array([0]))
