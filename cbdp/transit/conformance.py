"""The conformance kit: does a plug-in keep the rules? Small fixed cases, and for each what was found, in words.

A dispatcher is also run twice, on legs that agree up to some second and differ after it. Its decisions up to that second must
agree: one that reads the future gives itself away, however it does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from cbdp.errors import CbdpError
from cbdp.transit import plugins
from cbdp.transit.city import City, Line, make_city
from cbdp.transit.demand import Legs, Trips, legs_of
from cbdp.transit.design import Costs, Demand
from cbdp.transit.interfaces import Command, PluginError
from cbdp.transit.modes import ModeRule
from cbdp.transit.simulator import Fleet, Operations, Service

RULES = Operations(capacity=3, patience=1800)


@dataclass(frozen=True)
class Check:
    """One check: what it was, whether it passed, and why not.

    >>> Check("answers in time", passed=False, reason="no answer within 60 s").reason
    'no answer within 60 s'
    """

    name: str
    passed: bool
    reason: str = ""

    def __str__(self) -> str:
        return f"{'pass' if self.passed else 'FAIL'}  {self.name}" + (
            f": {self.reason}" if self.reason else ""
        )


def check_plugin(kind: str, plugin: Any, *, seconds: float = 60.0) -> list[Check]:
    """All checks of a plug-in of a kind ("designer", "sizer", "dispatcher" or "modes"), with `seconds` for each answer.

    >>> from cbdp.transit import ModeRule
    >>> all(check.passed for check in check_plugin("modes", ModeRule()))
    True
    """
    checks: list[Check] = []
    for name, check in _checks_of_kind(kind, plugins.get(kind, plugin), seconds):
        try:
            reason = check()
        except CbdpError as failure:
            reason = str(failure)
            hangs = isinstance(failure, PluginError) and failure.rule == "time"
            checks.append(Check(name, passed=False, reason=reason))
            if hangs:  # it would hang in every other check too
                return checks
            continue
        checks.append(Check(name, not reason, reason))
    return checks


def conforms(checks: list[Check]) -> bool:
    return all(check.passed for check in checks)


def example_city() -> City:
    """Two zones of six stops, a hub in each, and a line between them."""
    x, y = [0, 1, 2, 0, 1, 2, 8, 9, 10, 8, 9, 10], [0, 0, 0, 2, 2, 2, 0, 0, 0, 2, 2, 2]
    names = [f"stop{i:02d}" for i in range(12)]
    bare = make_city(names, x, y, ["west"] * 6 + ["east"] * 6, [names[2], names[6]])
    return bare.with_lines([Line("west–east", (2, 6), 300, (480,))])


def example_legs(city: City, seed: int, riders: int = 60, *, hour: int = 3600) -> Legs:
    """Random riders of an hour, some at the same second."""
    rng = np.random.default_rng(seed)
    o, d = rng.integers(0, len(city), (2, riders))
    second = np.sort(rng.integers(0, hour // 5, riders) * 5)
    return legs_of(Trips(o, d, second, (0, hour)), ModeRule(walk=0.1).choose(city))


def _checks_of_kind(kind: str, plugin: Any, seconds: float) -> Iterator[tuple[str, Callable[[], str]]]:
    city = example_city()
    if kind == "dispatcher":
        yield from _check_dispatcher(city, plugin, seconds)
    elif kind == "sizer":
        for seed in (0, 1):
            legs = example_legs(city, seed)
            yield f"its fleet serves, case {seed}", partial(_check_sizer, city, legs, plugin, seconds)
        none = example_legs(city, 0, 0)
        yield "no riders", lambda: _check_sizer(city, none, plugin, seconds)
    elif kind == "designer":
        for seed in (0, 1):
            demand = _demand(city, seed)
            yield (
                f"its network can be run, case {seed}",
                partial(_check_designer, city, demand, plugin, seconds),
            )
    else:
        yield (
            "every itinerary leads to its destination, and a second call repeats it",
            lambda: _check_mode_choice(city, plugin, seconds),
        )
    yield "it has a name and a line about itself", lambda: _plugin_name(plugin)


def _plugin_name(plugin: Any) -> str:
    for word in ("name", "about"):
        text = getattr(plugin, word, None)
        if not isinstance(text, str) or not text:
            return f"its {word!r} is {text!r}: give it a text, as class data"
    return ""


def _check_dispatcher(city: City, plugin: Any, seconds: float) -> Iterator[tuple[str, Callable[[], str]]]:
    def run(fleet: tuple[int, int], legs: Legs, rules: Operations = RULES) -> Service:
        return plugins.dispatch(city, Fleet(fleet), legs, plugin, operations=rules, seconds=seconds)

    def quiet(seed: int) -> str:
        run((3, 3), example_legs(city, seed))
        return ""

    def full() -> str:
        run((2, 2), example_legs(city, 7, 120), replace(RULES, capacity=1))
        return ""

    def easy() -> str:
        service = run((12, 12), example_legs(city, 3, 12))
        lost = int((~service.served).sum())
        return f"{lost} riders are unserved although most shuttles are parked" if lost else ""

    for seed in range(3):
        yield f"rules are kept, case {seed}", partial(quiet, seed)
    yield "rules are kept, one seat and many riders", full
    yield "nobody is refused when shuttles are free", easy
    yield "riders at one second", lambda: _rush_hour(city, run)
    if not isinstance(plugin, Command):  # a command is given all legs at once
        yield "the future is not read", lambda: _check_causality(city, run)


def _rush_hour(city: City, run: Callable[..., Service]) -> str:
    """Ten riders of one second from one stop."""
    same = np.full(10, 5)
    run(
        (2, 1),
        legs_of(
            Trips(np.ones(10, dtype=np.int64), same, np.full(10, 60), (0, 3600)),
            ModeRule(walk=0.1).choose(city),
        ),
    )
    return ""


def _check_causality(city: City, run: Callable[..., Service]) -> str:
    """Run on two cases that differ only in riders who come late; up to then their logs must be the same."""
    for seed in range(3):
        legs = example_legs(city, 20 + seed, 50)
        until = 1500
        other = _other_future(city, legs, until, seed)
        logs = []
        for case in (legs, other):
            log = run((2, 2), case).log
            assert log is not None
            logs.append([row for row in log.tolist() if row[0] < until])
        if logs[0] != logs[1]:
            first = next(a or b for a, b in zip_longest(*logs) if a != b)  # one may just be longer
            return f"riders who come after second {until} changed what happened at second {first[0]}"
    return ""


def _other_future(city: City, legs: Legs, until: int, seed: int) -> Legs:
    """The same legs, but riders who set out later go elsewhere in their zone."""
    rng = np.random.default_rng(seed)
    later = np.flatnonzero((legs.release >= until) & (legs.follows < 0))
    origin, destination = legs.origin.copy(), legs.destination.copy()
    for leg in later:
        stops = np.flatnonzero(city.zone == legs.zone[leg])
        origin[leg], destination[leg] = rng.choice(stops, 2, replace=False)
    return replace(legs, origin=origin, destination=destination)


def _check_sizer(city: City, legs: Legs, plugin: Any, seconds: float) -> str:
    sizing = plugins.size(city, legs, plugin, seconds=seconds)
    return f"no fleet found: {sizing.reason}" if sizing.fleet is None else ""


def _demand(city: City, seed: int) -> Demand:
    rng = np.random.default_rng(seed)
    o, d = rng.integers(0, len(city), (2, 300))
    return Demand.of(o, d, len(city))


def _check_designer(city: City, demand: Demand, plugin: Any, seconds: float) -> str:
    plugins.design(city, demand, plugin, costs=Costs(), seconds=seconds)
    return ""


def _check_mode_choice(city: City, plugin: Any, seconds: float) -> str:
    plugins.choose(city, plugin, seconds=seconds)
    return ""
