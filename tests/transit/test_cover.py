"""The reference without shared rides: matchings and path covers against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shuttle_cases import busy_hour

from cbdp.errors import InputError
from cbdp.transit.fleet_sizing import maximum_matching, path_cover
from cbdp.transit.simulator import Operations, simulate


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_matching_is_maximum(seed: int) -> None:
    """As many edges as networkx matches, each an edge of the graph, no end used twice."""
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 25, 2)
    table = rng.random((left, right)) < rng.choice([0.03, 0.1, 0.4])
    start = np.concatenate([[0], np.cumsum(table.sum(axis=1))]).astype(np.int64)
    match = maximum_matching(start, np.nonzero(table)[1].astype(np.int32), int(right))
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
    city, legs = busy_hour(4, 2, 120)
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
