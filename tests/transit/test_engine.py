"""The checking engine: it agrees with the simulator, and names what a dispatcher does wrong."""

from __future__ import annotations

import pytest
from bad_dispatchers import GOOD, OverCapacity
from shuttle_cases import random_case

from cbdp.transit.dispatching import operate
from cbdp.transit.interfaces import PluginError
from cbdp.transit.plugins import example_city, example_legs
from cbdp.transit.simulator import Operations, simulate


@pytest.mark.parametrize("seed", range(15))
def test_built_in_dispatcher_in_the_engine_writes_the_simulators_log(seed: int) -> None:
    """The checking engine and the compiled simulator agree in every line and every figure."""
    city, fleet, legs, rules = random_case(seed)
    fast, slow = simulate(city, fleet, legs, rules, log=True), operate(city, fleet, legs, GOOD, rules)
    assert fast.log is not None
    assert slow.log is not None
    assert fast.log.tolist() == slow.log.tolist()
    for name in ("release", "pickup", "drop", "shuttle", "metres", "empty", "parked"):
        assert getattr(fast, name).tolist() == getattr(slow, name).tolist(), name


def test_a_violation_names_rule_shuttle_and_second() -> None:
    """Which rule, which shuttle, when."""
    city = example_city()
    loose = Operations(capacity=3, ride_slack=10**6, patience=10**6)
    with pytest.raises(PluginError, match=r"capacity, shuttle \d+, second \d+: 4 riders") as caught:
        operate(city, (1, 1), example_legs(city, 0), OverCapacity(), loose)
    assert caught.value.rule == "capacity"
    assert caught.value.shuttle in (0, 1)
    assert caught.value.second is not None
