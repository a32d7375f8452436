"""Plans made ahead: replayed, measured, and refused by the name of the broken rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from shuttle_cases import random_case

from cbdp.transit.dispatching import Visit, replay, visits_of
from cbdp.transit.interfaces import PluginError
from cbdp.transit.modes import ModeRule, Trips, legs_of
from cbdp.transit.plugins import example_city, example_legs
from cbdp.transit.simulator import Fleet, Operations, simulate


@pytest.mark.parametrize("seed", range(10))
def test_a_runs_visits_replay_to_the_same_figures(seed: int) -> None:
    """A simulated run, handed back as a plan, passes all checks and gives the same service."""
    city, fleet, legs, rules = random_case(seed)
    fast = simulate(city, fleet, legs, rules, log=True)
    again = replay(city, Fleet(fleet), legs, visits_of(fast), rules)
    for name in ("pickup", "drop", "shuttle", "metres", "empty"):
        assert getattr(fast, name).tolist() == getattr(again, name).tolist(), name
    assert fast.wait.tolist() == again.wait.tolist()


def test_bad_visits_are_refused() -> None:
    """A plan that teleports, overfills, anticipates, forgets or mixes up riders is refused by the rule's name."""
    city = example_city()
    legs, rules, fleet = example_legs(city, 2), Operations(capacity=3), Fleet((3, 3))
    visits = visits_of(simulate(city, fleet, legs, rules, log=True))
    picks = next(i for i, v in enumerate(visits) if v.pick and v.second > 300)
    cases = {
        "movement": [
            replace(v, second=v.second // 4) if i == len(visits) - 1 else v for i, v in enumerate(visits)
        ],
        "capacity": None,
        "never dropped off": visits[: picks + 1],
        "not on board": [replace(v, pick=()) if i == picks else v for i, v in enumerate(visits)],
        "no stop": [replace(visits[0], stop=99)],
        "no shuttle": [replace(visits[0], shuttle=99)],
        "no leg": [replace(visits[0], pick=(999,))],
    }
    with pytest.raises(PluginError, match="capacity"):
        replay(city, fleet, legs, visits, replace(rules, capacity=1))
    for word, plan in cases.items():
        if plan is not None:
            with pytest.raises(PluginError, match=word):
                replay(city, fleet, legs, plan, rules)
    first = int(np.flatnonzero(legs.release > 1000)[0])
    depot = int(fleet.starts(city)[0])
    start = int(legs.origin[first])
    early = [Visit(0, int(rules.hop(city)[depot, start]), start, (), (first,))]
    with pytest.raises(PluginError, match=r"too early|zone"):
        replay(city, fleet, legs, early, rules)


@pytest.mark.parametrize(
    ("visits", "word"),
    [
        ([(0, 500, 1, [], [0]), (0, 900, 4, [], [])], "movement.*begins at"),
        ([(1, 2000, 0, [], [0])], "zone"),
        ([(0, 500, 0, [], [0]), (0, 600, 0, [], [0])], "second time"),
        ([(0, 300, 0, [], [0])], "released at 400"),
        ([(0, 2400, 0, [], [0])], "waited longer"),
        ([(0, 500, 0, [], [0]), (0, 900, 4, [0], [])], "movement.*ends at"),
        ([(0, 500, 0, [], [0]), (0, 3000, 5, [0], [])], "ride"),
        ([(0, 500, 0, [], [0]), (0, 501, 5, [0], [])], "movement.*it takes"),
    ],
)
def test_each_rule_of_a_plan(visits: list[tuple[int, int, int, list[int], list[int]]], word: str) -> None:
    """One leg from stop 0 to stop 5, released at 400: each way to serve it wrongly is named by its rule."""
    city = example_city()
    trips = Trips(np.array([0]), np.array([5]), np.array([400]), (0, 3600))
    legs = legs_of(trips, ModeRule(walk=0.1).choose(city))
    rules = Operations(patience=1800)
    plan = [Visit(v, second, stop, tuple(drop), tuple(pick)) for v, second, stop, drop, pick in visits]
    with pytest.raises(PluginError, match=word):
        replay(city, Fleet((1, 1)), legs, plan, rules)
    fine = [Visit(0, 500, 0, (), (0,)), Visit(0, 900, 5, (0,), ())]
    assert replay(city, Fleet((1, 1)), legs, fine, rules).wait.tolist() == [100]
