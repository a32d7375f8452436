"""The mechanism of a plan: its settings, δ and target, and that all it needs is installed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from small_city import plan_of

from cbdp.errors import CbdpError, InputError
from cbdp.mechanisms import Laplace
from cbdp.parts import setting


def test_delta_is_that_of_the_whole_release(city: Path) -> None:
    """A mechanism that needs δ for each table shares the one stated for all."""
    plan = plan_of(
        city, ('"constraint-based"', '"stability-histogram"'), ("cap = 2.0", "cap = 2.0\ndelta = 1e-6")
    )
    assert plan.mechanism.claim().cost.delta == Fraction(1, 10**6)
    assert plan.account.charge.delta == Fraction(1, 10**6)


def test_a_target_that_names_a_further_feature_adds_it(city: Path) -> None:
    """With the preset `odmts`, tables of single stops are there when the target asks for them; a declared one stays."""
    plan = plan_of(city, ("cap = 2.0", "cap = 2.0\ntarget = { origin-time = 1, singleton = 1 }"))
    assert plan.features.features["origin-time"].by == ("origin", "time")
    own = ("[privacy]", '[[feature]]\nname = "origin-time"\nby = ["time", "origin.zone"]\n[privacy]')
    declared = plan_of(city, own, ("cap = 2.0", "cap = 2.0\ntarget = { origin-time = 1 }"))
    assert declared.features.features["origin-time"].by == ("time", "origin.zone")


@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        ("cbdp_solvers.piqp.Piqp", ('"constraint-based"', '"constraint-based"\nsolver = "piqp"'), ":22: the solver 'piqp'"),
        ("cbdp.release.export.omx.Omx", ('"release"', '"release"\nexport = ["omx"]'), ":25: the format 'omx'"),
    ],
    ids=["solver", "format"],
)  # fmt: skip
def test_a_part_that_is_not_installed_is_told_before_anything_is_spent(
    city: Path, part: str, change: tuple[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its line, and how to get it."""
    plan_of(city, change)
    monkeypatch.setattr(f"{part}.package", "no_such_package")
    with pytest.raises(CbdpError, match=f"{said} is not installed: .*install"):
        plan_of(city, change)


@dataclass(frozen=True)
class Stranger(Laplace):
    """A mechanism of another package: a setting of each sort that a plan looks at."""

    name: ClassVar[str] = "stranger"
    volume: int = setting("how strange", "whole", default=1)
    looks_at: Any = setting("some features", "names")
    liked: Any = setting("public weights", "file", repr=False)
    liked_source: Any = None


def test_a_mechanism_of_another_package_is_planned_with_its_settings(
    city: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Features are checked, files become weights of trip types, and the request depends on all of it."""
    module = ModuleType("strangers")
    module.__dict__.update(Stranger=Stranger)
    monkeypatch.setitem(sys.modules, "strangers", module)
    (city / "w.csv").write_text("time,weight\n06:00,2\n")
    written = '"strangers:Stranger"\nvolume = 11\nlooks_at = ["zone"]\nliked = "w.csv"'
    made: Any = plan_of(city, ('"constraint-based"', written)).mechanism
    assert (made.volume, made.looks_at, made.liked.sum()) == (11, ("zone",), 2 * 36)
    assert made.liked_source["file"] == "w.csv"
    changes = {"11": "12", '"zone"': '"time"', '"w.csv"': '"v.csv"'}
    (city / "v.csv").write_text("time,weight\n07:00,2\n")
    requests = {
        plan_of(city, ('"constraint-based"', written.replace(a, b))).request for a, b in changes.items()
    }
    assert len({*requests, plan_of(city, ('"constraint-based"', written)).request}) == 4
    with pytest.raises(InputError, match=r":23: mechanism\.looks_at names 'zon', which is not a feature"):
        plan_of(city, ('"constraint-based"', written.replace('"zone"', '"zon"')))
