"""The conformance kit against good and bad plug-ins."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from bad_dispatchers import (
    Crashing,
    DroppingRiders,
    Hanging,
    NamingTheFuture,
    OverCapacity,
    ReadingTheFuture,
    Refusing,
    Teleporting,
    Turning,
)

from cbdp.transit import plugins
from cbdp.transit.modes import Itineraries, Legs, ModeRule
from cbdp.transit.plugins import _check_causality, check_plugin, conforms, example_city
from cbdp.transit.simulator import Fleet, Service, simulate


@pytest.mark.parametrize("kind", list(plugins.PLUGIN_TABLES))
def test_built_in_plugins_conform(kind: str) -> None:
    """The kit passes what the package brings along."""
    checks = check_plugin(kind, None)
    assert checks
    assert conforms(checks), "\n".join(map(str, checks))


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (Teleporting, "movement"),
        (Turning, "movement"),
        (OverCapacity, "capacity"),
        (DroppingRiders, "leaves out"),
        (Hanging, "hangs"),
        (ReadingTheFuture, "riders who come after"),
        (NamingTheFuture, "future"),
        (Refusing, "unserved"),
        (Crashing, "ZeroDivisionError: by zero"),
    ],
)
def test_bad_dispatchers_fail(bad: type, word: str) -> None:
    """Each bad dispatcher fails the kit, for the reason that is bad about it."""
    checks = check_plugin("dispatcher", bad(), seconds=2.0 if bad is Hanging else 120.0)
    assert not conforms(checks)
    assert any(word in check.reason for check in checks), "\n".join(map(str, checks))


def test_a_log_that_only_ends_sooner_is_another_log() -> None:
    """Where riders who come later end what is done before, the first thing that was not done is named."""
    city, logs = example_city(), []

    def run(fleet: tuple[int, int], legs: Legs) -> Service:
        service = simulate(city, Fleet(fleet), legs, log=True)
        if not logs:
            logs.append(service.log)
            return service
        return replace(service, log=logs[0][:40])

    assert _check_causality(city, run) == (
        f"riders who come after second 1500 changed what happened at second {logs[0][40][0]}"
    )


def test_a_part_without_a_name_does_not_conform() -> None:
    """What cannot be listed fails the kit by that check alone; a subclass that says what it is passes all."""

    class Nameless:
        def choose(self, city: object) -> Itineraries:
            return ModeRule(walk=0.1).choose(city)  # type: ignore[arg-type]

    class Named(Nameless):
        name, about = "near", "walks of at most 100 m"

    failed = [check for check in check_plugin("modes", Nameless()) if not check.passed]
    assert [check.reason for check in failed] == ["its 'name' is None: give it a text, as class data"]
    assert conforms(check_plugin("modes", Named()))


@dataclass
class Changing:
    """Modes that differ from call to call."""

    calls: list[int] = field(default_factory=list)

    def choose(self, city: object) -> Itineraries:
        self.calls.append(1)
        return ModeRule(walk=len(self.calls)).choose(city)  # type: ignore[arg-type]


@dataclass
class Broken:
    """Modes whose shuttles end where no bus leaves."""

    def choose(self, city: object) -> Itineraries:
        made = ModeRule(walk=0.1).choose(city)  # type: ignore[arg-type]
        return replace(made, access=np.where(made.path >= 0, 0, made.access))


def test_bad_modes_designs_and_sizes_fail() -> None:
    """Modes that change or lead nowhere, networks whose buses pile up, fleets that do not serve."""
    assert "determinism" in check_plugin("modes", Changing())[0].reason
    assert "movement" in check_plugin("modes", Broken())[0].reason

    class OneWay:
        def design(self, city: object, demand: object) -> list[tuple[int, int]]:
            return [(2, 6)]

    assert "connectivity" in check_plugin("designer", OneWay())[0].reason

    class Stingy:
        def size(self, city: object, legs: object, operations: object) -> tuple[int, int]:
            return 1, 0

    assert any("service" in check.reason for check in check_plugin("sizer", Stingy()))
