"""Fleet sizing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shuttle_cases import busy_hour, small_city

from cbdp.errors import InputError
from cbdp.transit.fleet_sizing import SearchSizer, size_fleet, smallest_feasible_size, zones_within_limit
from cbdp.transit.modes import ModeRule, Trips, legs_of
from cbdp.transit.simulator import Fleet, Operations, legs_subset, simulate, simulate_within_budget


@given(st.sets(st.integers(1, 40)), st.integers(1, 60), st.integers(1, 9))
@settings(deadline=None)
def test_search_finds_a_good_size_below_which_a_window_fails(bad: set[int], start: int, step: int) -> None:
    """Whatever the pattern of sizes that fail, the answer is good, and the window below it is not."""
    found = smallest_feasible_size(lambda n: n not in bad, start, 100, 3, step=step)
    assert found is not None
    assert found not in bad
    assert all(n in bad for n in range(max(1, found - 3), found))
    assert smallest_feasible_size(lambda n: n not in bad, start, 100, None, step=step) == min(
        set(range(1, 101)) - bad
    )


def test_no_size_is_reported_as_none() -> None:
    """A search that meets no good size says so instead of guessing."""
    assert smallest_feasible_size(lambda n: False, 3, 50, 3) is None


@pytest.mark.parametrize("seed", range(4))
def test_one_zone_equals_trying_every_size(seed: int) -> None:
    """With all smaller sizes tried, the fleet is the first of 1, 2, 3, … that serves."""
    city, legs = busy_hour(seed, 1, 150)
    rules = Operations()
    sized = size_fleet(city, legs, rules, SearchSizer(window=None))
    first = next(n for n in range(1, 200) if zones_within_limit(simulate(city, (n,), legs, rules), 1, 180)[0])
    assert sized.fleet == Fleet((first,))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("period", [None, 900])
def test_the_fleet_serves_and_no_zone_can_spare_a_shuttle(seed: int, period: int | None) -> None:
    """All zones together keep the limit; with 1 to 3 fewer, a zone fails by itself or together."""
    city, legs = busy_hour(seed, 3, 400)
    rules, sizer = Operations(), SearchSizer(period=period)
    sized = sizer.size(city, legs, rules)
    assert sized.fleet is not None
    together = simulate(city, sized.fleet, legs, rules)
    assert all(zones_within_limit(together, 3, 180, period))
    for zone, has in enumerate(sized.fleet.shuttles):
        for fewer in range(max(1, has - 3), has):
            less = Fleet(tuple(fewer if z == zone else n for z, n in enumerate(sized.fleet.shuttles)))
            alone = Fleet(tuple(fewer if z == zone else 0 for z in range(3)))
            mine = legs_subset(legs, legs.zone == zone, together.release)
            by_itself = zones_within_limit(simulate_within_budget(city, alone, mine, rules), 3, 180, period)[
                zone
            ]
            assert not (
                by_itself and all(zones_within_limit(simulate(city, less, legs, rules), 3, 180, period))
            )


def test_a_zone_by_itself_runs_as_it_does_together() -> None:
    """Given the releases of a run of all zones, a zone's own run is the same: sizes that repeat are proven."""
    city, legs = busy_hour(3, 3, 300)
    together = simulate(city, (3, 4, 3), legs)
    for zone, n in enumerate((3, 4, 3)):
        keep = legs.zone == zone
        alone = simulate_within_budget(
            city,
            Fleet(tuple(n if z == zone else 0 for z in range(3))),
            legs_subset(legs, keep, together.release),
            Operations(),
        )
        assert alone.pickup.tolist() == together.pickup[keep].tolist()
        assert alone.drop.tolist() == together.drop[keep].tolist()


def test_sizing_is_repeatable() -> None:
    """Threads do not change the answer."""
    city, legs = busy_hour(9, 3, 300)
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
        (SearchSizer(time_limit=0), "did not end within 0 s"),
    ],
)
def test_limits_are_reported(sizer: SearchSizer, reason: str) -> None:
    """A search that meets a limit finds no fleet and says which limit."""
    city, legs = busy_hour(0, 2, 100)
    sized = size_fleet(city, legs, sizer=sizer)
    assert sized.fleet is None
    assert reason in sized.reason
    assert str(sized).startswith("no fleet found")


def test_bad_settings_are_refused() -> None:
    """Limits, windows and periods must make sense."""
    for change, message in (
        ({"limit": -1}, "-1 s"),
        ({"window": 0}, "window 0"),
        ({"period": 0}, "period of 0"),
    ):
        with pytest.raises(InputError, match=message):
            SearchSizer(**change)
