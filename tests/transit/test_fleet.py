"""Fleet sizing and the no-pooling reference."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shuttle_cases import small_city

from cbdp.errors import InputError
from cbdp.transit.city import City
from cbdp.transit.cover import matching, path_cover
from cbdp.transit.demand import Legs, Trips, legs_of
from cbdp.transit.fleet import SearchSizer, fewest, serves, size_fleet
from cbdp.transit.modes import ModeRule
from cbdp.transit.simulator import Fleet, Operations, restarted, run, simulate


def busy(seed: int, zones: int, riders: int) -> tuple[City, Legs]:
    rng = np.random.default_rng(seed)
    city = small_city(rng, zones, 6)
    o, d = rng.integers(0, len(city), riders), rng.integers(0, len(city), riders)
    trips = Trips(o, d, np.sort(rng.integers(0, 3600, riders)), (0, 3600))
    return city, legs_of(trips, ModeRule().choose(city))


@given(st.sets(st.integers(1, 40)), st.integers(1, 60), st.integers(1, 9))
@settings(deadline=None)
def test_search_finds_a_good_size_below_which_a_window_fails(bad: set[int], start: int, step: int) -> None:
    """Whatever the pattern of sizes that fail, the answer is good, and the window below it is not."""
    found = fewest(lambda n: n not in bad, start, 100, 3, step=step)
    assert found is not None
    assert found not in bad
    assert all(n in bad for n in range(max(1, found - 3), found))
    assert fewest(lambda n: n not in bad, start, 100, None, step=step) == min(set(range(1, 101)) - bad)


def test_no_size_is_reported_as_none() -> None:
    """A search that meets no good size says so instead of guessing."""
    assert fewest(lambda n: False, 3, 50, 3) is None


@pytest.mark.parametrize("seed", range(4))
def test_one_zone_equals_trying_every_size(seed: int) -> None:
    """With all smaller sizes tried, the fleet is the first of 1, 2, 3, … that serves."""
    city, legs = busy(seed, 1, 150)
    rules = Operations()
    sized = size_fleet(city, legs, rules, SearchSizer(window=None))
    first = next(n for n in range(1, 200) if serves(simulate(city, (n,), legs, rules), 1, 180)[0])
    assert sized.fleet == Fleet((first,))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("period", [None, 900])
def test_the_fleet_serves_and_no_zone_can_spare_a_shuttle(seed: int, period: int | None) -> None:
    """All zones together keep the limit; with 1 to 3 fewer, a zone fails by itself or together."""
    city, legs = busy(seed, 3, 400)
    rules, sizer = Operations(), SearchSizer(period=period)
    sized = sizer.size(city, legs, rules)
    assert sized.fleet is not None
    together = simulate(city, sized.fleet, legs, rules)
    assert all(serves(together, 3, 180, period))
    for zone, has in enumerate(sized.fleet.shuttles):
        for fewer in range(max(1, has - 3), has):
            less = Fleet(tuple(fewer if z == zone else n for z, n in enumerate(sized.fleet.shuttles)))
            alone = Fleet(tuple(fewer if z == zone else 0 for z in range(3)))
            mine = restarted(legs, legs.zone == zone, together.release)
            by_itself = serves(run(city, alone, mine, rules), 3, 180, period)[zone]
            assert not (by_itself and all(serves(simulate(city, less, legs, rules), 3, 180, period)))


def test_a_zone_by_itself_runs_as_it_does_together() -> None:
    """Given the releases of a run of all zones, a zone's own run is the same: sizes that repeat are proven."""
    city, legs = busy(3, 3, 300)
    together = simulate(city, (3, 4, 3), legs)
    for zone, n in enumerate((3, 4, 3)):
        keep = legs.zone == zone
        alone = run(
            city,
            Fleet(tuple(n if z == zone else 0 for z in range(3))),
            restarted(legs, keep, together.release),
            Operations(),
        )
        assert alone.pickup.tolist() == together.pickup[keep].tolist()
        assert alone.drop.tolist() == together.drop[keep].tolist()


def test_sizing_is_repeatable() -> None:
    """Threads do not change the answer."""
    city, legs = busy(9, 3, 300)
    fleets = {size_fleet(city, legs, sizer=SearchSizer(threads=t)).fleet for t in (1, 2, 2)}
    assert len(fleets) == 1


def test_no_demand_needs_no_shuttle() -> None:
    """A zone without riders gets none."""
    city = small_city(np.random.default_rng(0), 2, 4)
    none = np.zeros(0, dtype=np.int64)
    assert size_fleet(
        city, legs_of(Trips(none, none, none, (0, 60)), ModeRule().choose(city))
    ).fleet == Fleet((0, 0))
    trips = Trips(np.array([1]), np.array([2]), np.array([5]), (0, 60))
    sized = size_fleet(city, legs_of(trips, ModeRule(walk=0).choose(city)), sizer=SearchSizer(limit=900))
    assert sized.fleet == Fleet((1, 0))


@pytest.mark.parametrize(
    ("sizer", "reason"),
    [
        (SearchSizer(most_legs=10), "more than 10"),
        (SearchSizer(limit=0, most_shuttles=5), "not served by 5 shuttles"),
        (SearchSizer(time_limit=0), "not done in 0 s"),
    ],
)
def test_limits_are_reported(sizer: SearchSizer, reason: str) -> None:
    """A search that meets a limit finds no fleet and says which limit."""
    city, legs = busy(0, 2, 100)
    sized = size_fleet(city, legs, sizer=sizer)
    assert sized.fleet is None
    assert reason in sized.reason
    assert str(sized).startswith("no fleet found")


def test_bad_settings_are_refused() -> None:
    """Limits, windows and periods must make sense."""
    for change, message in (
        ({"limit": -1}, "-1 s"),
        ({"window": 0}, "window 0"),
        ({"period": 0}, "periods of 0"),
    ):
        with pytest.raises(InputError, match=message):
            SearchSizer(**change)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_matching_is_maximum(seed: int) -> None:
    """As many edges as networkx matches, each an edge of the graph, no end used twice."""
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 25, 2)
    table = rng.random((left, right)) < rng.choice([0.03, 0.1, 0.4])
    start = np.concatenate([[0], np.cumsum(table.sum(axis=1))]).astype(np.int64)
    match = matching(start, np.nonzero(table)[1].astype(np.int32), int(right))
    graph = nx.Graph()
    graph.add_nodes_from(range(left))
    graph.add_edges_from((int(i), 1000 + int(j)) for i, j in np.argwhere(table))
    best = nx.bipartite.hopcroft_karp_matching(graph, range(left))
    used = match[match >= 0]
    assert len(used) == len(best) // 2
    assert len(set(used.tolist())) == len(used)
    assert all(table[i, j] for i, j in enumerate(match) if j >= 0)


@pytest.mark.parametrize("wait", [0, 180])
def test_path_cover_is_the_fewest_chains(wait: int) -> None:
    """The cover is as small as networkx's matching allows, and its chains can be driven."""
    city, legs = busy(4, 2, 120)
    release = simulate(city, (8, 8), legs).release
    rules = Operations()
    cover = path_cover(city, legs, release, rules, wait=wait)
    hop = rules.hop(city)
    for zone in range(2):
        own = np.flatnonzero(legs.zone == zone)
        graph = nx.Graph()
        graph.add_nodes_from((int(i), "out") for i in own)
        for i in own:
            for j in own:
                earlier = (release[i], i) < (release[j], j)
                reached = (
                    release[i]
                    + hop[legs.origin[i], legs.destination[i]]
                    + hop[legs.destination[i], legs.origin[j]]
                )
                if earlier and reached <= release[j] + wait:
                    graph.add_edge((int(i), "out"), (int(j), "in"))
        pairs = nx.bipartite.maximum_matching(graph, [(int(i), "out") for i in own])
        assert cover.shuttles[zone] == len(own) - len(pairs) // 2
    taken = cover.follower[cover.follower >= 0]
    assert len(set(taken.tolist())) == len(taken)
    with pytest.raises(InputError, match="second of release"):
        path_cover(city, legs, legs.release, rules)
