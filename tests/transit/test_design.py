"""Network design against brute force over all arc sets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from cbdp.errors import InputError
from cbdp.transit.city import City, make_city
from cbdp.transit.design import (
    Costs,
    Demand,
    PathDesigner,
    arc_cost,
    bus_seconds,
    design_network,
    is_balanced,
    network_cost,
)
from cbdp.transit.modes import ModeRule


def town(seed: int, hubs: int) -> tuple[City, Demand]:
    rng = np.random.default_rng(seed)
    n = 4 * hubs
    x, y = rng.uniform(0, 20, n), rng.uniform(0, 20, n)
    names = [f"s{i}" for i in range(n)]
    city = make_city(names, x, y, [f"z{i % hubs}" for i in range(n)], names[:hubs])
    o, d = rng.integers(0, n, 150), rng.integers(0, n, 150)
    return city, Demand.of(o, d, n)


def brute_force(city: City, demand: Demand, costs: Costs) -> float:
    """The cheapest weakly connected arc set of all, each trip's way found by listing every chain of hubs."""
    hubs = [int(h) for h in city.hubs]
    n = len(hubs)
    arcs = [(a, b) for a in range(n) for b in range(n) if a != b]
    price = {
        (a, b): (costs.headway / 2 + bus_seconds(city, costs, hubs[a], hubs[b])) * costs.value_of_time
        for a, b in arcs
    }
    shuttle = city.seconds * costs.value_of_time + city.metres / 1000 * costs.shuttle_km
    best = np.inf
    for mask in range(1 << len(arcs)):
        chosen = [arc for k, arc in enumerate(arcs) if mask >> k & 1]
        if not is_balanced(chosen):
            continue
        way = np.full((n, n), np.inf)
        for a, b in chosen:
            way[a, b] = price[a, b]
        for via in range(n):  # Floyd and Warshall: any number of rides
            way = np.minimum(way, way[:, via, None] + way[via])
        total = sum(arc_cost(city, costs, hubs[a], hubs[b]) for a, b in chosen)
        to, of = shuttle[demand.origin][:, hubs], shuttle[hubs][:, demand.destination].T
        ways = (to[:, :, None] + way[None] + of[:, None, :]).reshape(len(demand.trips), -1).min(axis=1)
        total += float(demand.trips @ np.minimum(shuttle[demand.origin, demand.destination], ways))
        best = min(best, total)
    return best


@pytest.mark.parametrize("seed", range(5))
def test_four_hubs_equal_brute_force(seed: int) -> None:
    """The program's network costs what the cheapest of all 4,096 arc sets does, and its bound says so."""
    city, demand = town(seed, 4)
    costs = Costs(bus_km=[0.02, 0.05, 0.1, 0.2, 0.4][seed])
    found = design_network(city, demand, costs)
    assert found.status == "optimal"
    assert found.cost == pytest.approx(brute_force(city, demand, costs), rel=1e-9)
    assert found.gap <= 1e-6
    assert found.arcs or seed == 4


def test_open_arcs_can_be_driven_round() -> None:
    """As many buses leave a hub as reach it."""
    city, demand = town(7, 6)
    found = design_network(city, demand, Costs(bus_km=0.05))
    assert found.arcs
    assert is_balanced(found.arcs)


def test_a_design_makes_bus_lines_that_modes_use() -> None:
    """Lines of a design that joins all hubs serve trips between zones."""
    city, demand = town(1, 4)
    costs = Costs(bus_km=0.001)
    lines = PathDesigner(costs).design(city, demand).lines(city, costs)
    modes = ModeRule().choose(city.with_lines(lines))
    assert any("bus" in label for label in modes.labels)


def test_a_time_limit_is_reported_with_the_gap() -> None:
    """A search that is stopped says so, and its bound is below its cost and below the optimum's cost."""
    city, demand = town(3, 7)
    costs = Costs(bus_km=0.05)
    best = design_network(city, demand, costs)
    stopped = design_network(city, demand, costs, time_limit=1e-3)
    assert stopped.bound <= best.cost + 1e-6
    assert stopped.cost >= best.cost - 1e-6
    assert stopped.status != "optimal" or stopped.cost == pytest.approx(best.cost)


def test_more_arcs_never_make_trips_dearer() -> None:
    """Opening every arc costs its buses and saves trips something or nothing."""
    city, demand = town(2, 3)
    arcs = [(a, b) for a in range(3) for b in range(3) if a != b]
    for few in combinations(arcs, 2):
        opened = sum(
            arc_cost(city, Costs(), int(city.hubs[a]), int(city.hubs[b]))
            for a, b in arcs
            if (a, b) not in few
        )
        assert network_cost(city, demand, arcs) - opened <= network_cost(city, demand, few) + 1e-9


def test_a_design_costs_what_its_own_arcs_cost() -> None:
    """Arcs are stops everywhere: the cost of a design's arcs is the design's cost, also where hubs are not the first stops."""
    city = make_city(list("abcd"), [0, 1, 8, 9], [0] * 4, list("wwee"), ["b", "d"])
    demand = Demand(np.array([0, 2]), np.array([2, 0]), np.array([4000, 4000]))
    found = design_network(city, demand)
    assert found.arcs == ((1, 3), (3, 1))
    assert network_cost(city, demand, found.arcs) == found.cost
    assert network_cost(city, demand, [*found.arcs, *found.arcs]) == found.cost
    with pytest.raises(InputError, match="the arc 0–1 does not join two hubs"):
        network_cost(city, demand, [(0, 1), (1, 0)])


def test_too_many_hubs_are_refused_before_their_paths_are_listed() -> None:
    """Forty hubs have millions of paths, which no time limit covers."""
    city = make_city(
        [f"s{i}" for i in range(40)], range(40), [0] * 40, ["z"] * 40, [f"s{i}" for i in range(40)]
    )
    demand = Demand(np.array([0]), np.array([39]), np.array([10]))
    with pytest.raises(InputError, match=r"40 hubs have 2,254,200 paths of at most 3 rides"):
        design_network(city, demand, time_limit=1.0)
    assert design_network(city, demand, Costs(most_rides=1), time_limit=20.0).cost > 0


def test_bad_designs_are_refused() -> None:
    """One hub joins nothing, and costs must make sense."""
    city = make_city(["a", "b"], [0, 1], [0, 0], ["z", "z"], ["a"])
    with pytest.raises(InputError, match="1 hubs"):
        design_network(city, Demand.of(np.array([0]), np.array([1]), 2))
    with pytest.raises(InputError, match="cannot be negative"):
        Costs(bus_km=-1)
