"""The four tables of plug-ins: what they hold, and that another package adds to each by one short file."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from cbdp.errors import InputError
from cbdp.parts import Parts
from cbdp.transit import DESIGNERS, DISPATCHERS, MODE_CHOICES, SIZERS, plugins
from cbdp.transit.design import Demand
from cbdp.transit.plugins import check_plugin, conforms, example_city, example_legs
from cbdp.transit.simulator import Fleet, Operations

MOST_LINES = 40


@dataclass(frozen=True)
class Added:
    """A part that another package brings: the one file it takes."""

    kind: str
    table: Parts[Any]
    name: str
    text: str


ADDED = (
    Added("designer", DESIGNERS, "ring", """
        from dataclasses import dataclass
        from typing import ClassVar

        @dataclass(frozen=True)
        class Part:
            name: ClassVar[str] = "ring"
            about: ClassVar[str] = "one bus line around all hubs"

            def design(self, city, demand):
                hubs = city.hubs.tolist()
                return list(zip(hubs, hubs[1:] + hubs[:1]))
    """),
    Added("sizer", SIZERS, "one-each", """
        from dataclasses import dataclass
        from typing import ClassVar

        @dataclass(frozen=True)
        class Part:
            name: ClassVar[str] = "one-each"
            about: ClassVar[str] = "a shuttle for every leg"

            def size(self, city, legs, operations):
                return [int((legs.zone == z).sum()) for z in range(len(city.zones))]
    """),
    Added("dispatcher", DISPATCHERS, "queue", """
        from dataclasses import dataclass
        from typing import ClassVar

        from cbdp.transit import Decision
        from cbdp.transit.dispatching import due_times

        @dataclass(frozen=True)
        class Part:
            name: ClassVar[str] = "queue"
            about: ClassVar[str] = "each rider alone, after all riders that the shuttle already has"

            def dispatch(self, state, leg):
                rules, ways = state.operations, []
                for v, shuttle in enumerate(state.shuttles):
                    plan = (*shuttle.plan, (leg, False), (leg, True))
                    if shuttle.zone == state.legs[leg].zone and len(plan) <= rules.max_tasks:
                        ways.append((due_times(state, shuttle, plan)[-2] - state.now, v, plan))
                wait, v, plan = min(ways, default=(rules.patience + 1, -1, ()))
                return Decision(v, plan) if wait <= rules.patience else None
    """),
    Added("modes", MODE_CHOICES, "hikers", """
        from dataclasses import dataclass
        from typing import ClassVar

        from cbdp.transit import ModeRule

        @dataclass(frozen=True)
        class Part:
            name: ClassVar[str] = "hikers"
            about: ClassVar[str] = "whoever has less than two kilometres to go walks"

            def choose(self, city):
                return ModeRule(walk=2.0).choose(city)
    """),
)  # fmt: skip


def module(part: Added) -> str:
    return f"added_{part.kind}"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an installed package for each part: one module, and the metadata that declares its entry point."""
    for part in ADDED:
        (tmp_path / f"{module(part)}.py").write_text(dedent(part.text).lstrip())
        info = tmp_path / f"{module(part)}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module(part)}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{part.table.group}]\n{part.name} = {module(part)}:Part\n")
    monkeypatch.syspath_prepend(tmp_path)
    for part in ADDED:
        monkeypatch.delitem(sys.modules, module(part), raising=False)
    return tmp_path


@pytest.mark.parametrize("part", ADDED, ids=lambda part: part.kind)
def test_another_package_adds_a_part_by_one_short_file(part: Added, site: Path) -> None:
    """It is listed after ours before it is loaded, loads by its name, says what it is, and conforms."""
    assert len((site / f"{module(part)}.py").read_text().splitlines()) <= MOST_LINES
    assert part.table.names() == (*part.table.table, part.name)
    assert module(part) not in sys.modules
    loaded = plugins.get(part.kind, part.name)
    assert type(loaded).__module__ == module(part)
    assert (loaded.name, bool(loaded.about)) == (part.name, True)
    checks = check_plugin(part.kind, part.name)
    assert conforms(checks), "\n".join(map(str, checks))


def test_added_parts_do_their_work(site: Path) -> None:
    """By name: the ring is designed, every leg gets a shuttle, riders go one by one, and more of them walk."""
    city = example_city()
    legs = example_legs(city, 0)
    demand = Demand.of(*np.random.default_rng(0).integers(0, 12, (2, 50)), 12)
    assert plugins.design(city, demand, "ring").arcs == ((2, 6), (6, 2))
    fleet = plugins.size(city, legs, "one-each").fleet
    assert fleet == Fleet(tuple(np.bincount(legs.zone).tolist()))
    service = plugins.dispatch(city, Fleet((3, 3)), legs, "queue")
    straight = Operations().hop(city)[legs.origin, legs.destination]
    assert service.served.any()
    for shuttle in range(6):  # nobody shares a ride
        own = np.flatnonzero(service.served & (service.shuttle == shuttle))
        own = own[np.argsort(service.pickup[own])]
        assert (service.drop[own][:-1] <= service.pickup[own][1:]).all()
        assert (service.drop[own] - service.pickup[own]).tolist() == straight[own].tolist()
    walks = [
        (made.mode[0] == made.labels.index("walk")).sum()
        for made in (plugins.choose(city, name) for name in ("rule", "hikers"))
    ]
    assert walks[0] < walks[1]


@pytest.mark.parametrize("part", ADDED, ids=lambda part: part.kind)
def test_a_wrong_name_is_answered_with_the_right_one(part: Added, site: Path) -> None:
    """Names of other packages are known to the messages too."""
    with pytest.raises(
        InputError, match=rf"unknown {part.table.kind} '{part.name}s': did you mean '{part.name}'"
    ):
        part.table.get(f"{part.name}s")


@pytest.mark.parametrize("table", [DESIGNERS, SIZERS, DISPATCHERS, MODE_CHOICES], ids=lambda t: t.kind)
def test_our_parts_are_frozen_values_that_say_what_they_are(table: Parts[Any]) -> None:
    """Each built-in part has the name it is listed under, a line about itself, and equals another of its kind."""
    for name, part, broken in table.each():
        assert (part.name, broken) == (name, "")
        assert 20 < len(part.about) < 100
        assert part == table.get(name)
        assert hash(part) == hash(table.get(name))
