"""The features of the case studies."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from budget_cases import UNIVERSE as ZONED
from listed import U, city

from cbdp.errors import InputError
from cbdp.features import Universe, odmts, opal, periods


def test_odmts_has_the_paper_sizes():
    """130 stops, 4 zones, 12 modes and 4 periods make the case study's features of 1, 4, 64, 48 and 67,600 elements."""
    universe, zones, modes = city()
    dag = odmts(universe, zones, modes)
    assert dag.sizes == {"total": 1, "time": 4, "zone": 64, "mode": 48, "singleton": 67_600}
    assert set(dag.edges) == {
        ("time", "total"), ("zone", "time"), ("mode", "time"), ("singleton", "zone"), ("singleton", "mode"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("level", "names"),
    [(3, ["total", "time", "singleton"]), (4, ["total", "time", "zone", "singleton"]),
     (5, ["total", "time", "zone", "mode", "singleton"])],
)  # fmt: skip
def test_odmts_levels(level, names):
    """Levels 3, 4 and 5 are the paper's O3, O4 and O5, each with one more feature."""
    universe, zones, modes = city(stops=12)
    assert list(odmts(universe, zones, modes, level=level)) == names


class Fares:
    def of_pair(self, o, d):
        return o == d

    def __call__(self, o, d, t):
        return (o == d, t)


PAIRS = {(o, d): o == d for o in "AB" for d in "AB"}
TRIPLES = {(o, d, t): (o == d, t) for o in "AB" for d in "AB" for t in "xy"}
MODES = {
    "a mapping of pairs": (PAIRS, 2),
    "a mapping of triples": (TRIPLES, 3),
    "a function of pairs": (lambda o, d: o == d, 2),
    "a function of triples": (lambda o, d, t: (o == d, t), 3),
    "a partial function": (functools.partial(lambda k, o, d: (o == d) + k, 1), 2),
    "a bound method": (Fares().of_pair, 2),
    "a callable object": (Fares(), 3),
    "an array of pairs": (np.eye(2), 2),
    "an array of triples": (np.stack([np.eye(2), 2 + np.eye(2)], axis=-1), 3),
    "lists of pairs": ([[1, 0], [0, 1]], 2),
    "lists of triples": ([[[1, 3], [0, 2]], [[0, 2], [1, 3]]], 3),
}


@pytest.mark.parametrize("kind", MODES)
def test_odmts_reads_modes_of_any_kind(kind):
    """Modes given in any form are of the pair or of the triple as they are given, and label alike."""
    modes, width = MODES[kind]
    universe = Universe(origin=list("AB"), destination=list("AB"), time=list("xy"))
    dag = odmts(universe, {"A": "n", "B": "s"}, modes)
    assert len(dag.universe.attribute("mode").of) == width
    assert dag.sizes["mode"] == 4
    assert {len(set(s)) for s in [dag.universe.count_types(["mode", "time"])]} == {1}


def test_opal_tables():
    """Opal's tables are taps by kind, by kind and time, by kind and location, and all three."""
    dag = opal(Universe(tap=["on", "off"], time=periods("04:00", "24:00", "15min"), location=range(300)))
    assert dag.sizes == {"total": 1, "tap": 2, "time": 160, "location": 600, "singleton": 48_000}
    assert set(dag.edges) == {
        ("tap", "total"), ("time", "tap"), ("location", "tap"), ("singleton", "time"), ("singleton", "location"),
    }  # fmt: skip


def test_days_and_further_dimensions_get_tables() -> None:
    """Days by themselves and with the time, others by themselves; a dimension of one value needs none."""
    universe, zones, modes = city(stops=12)
    names = list(odmts(universe, zones, modes))
    ends = {"origin": universe.dimensions["origin"], "destination": universe.dimensions["destination"]}
    week = Universe(**ends, time=range(4), day=["weekday", "saturday", "sunday"], fare=["full", "half"])
    made = odmts(week, zones, modes)
    assert list(made) == [*names[:-1], "day", "day-time", "fare", "singleton"]
    assert made.features["day-time"].by == ("day", "time")
    assert made.sizes["day-time"] == 12
    assert list(odmts(Universe(**ends, time=range(4), day=["monday"]), zones, modes)) == names
    named = Universe(origin=["A"], destination=["B"], time=[1, 2], total=["x", "y"])
    assert odmts(named, level=3).features["by-total"].by == ("total",)


def test_opal_with_days() -> None:
    """Each kind of tap has its days, and its days by time."""
    dag = opal(Universe(tap=["on", "off"], day=range(3), time=range(4), location=range(5)))
    assert dag.sizes == {
        "total": 1, "tap": 2, "time": 8, "location": 10, "day": 6, "day-time": 24, "singleton": 120,
    }  # fmt: skip


def test_extra_features_of_the_case_study() -> None:
    """They group by stops and times; an unknown one is told."""
    made = odmts(ZONED, level=4, extra=["origin", "destination-time", "origin-destination"])
    assert made.sizes["origin"] == 12
    assert made.sizes["destination-time"] == 72
    assert made.sizes["origin-destination"] == 144
    with pytest.raises(InputError, match="unknown extra feature 'origins': there are origin, "):
        odmts(ZONED, level=3, extra=["origins"])
    with pytest.raises(InputError, match="give a list"):
        odmts(ZONED, level=3, extra="origin")


BAD = {
    "odmts level": (lambda: odmts(U, level=2), "2"),
    "odmts without zones": (lambda: odmts(U, level=4), "destination.zone"),
    "odmts without modes": (lambda: odmts(Universe(origin=["A"], destination=["A"], time=[1]), {"A": 1}, {}), "mode"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_definitions_are_refused(what):
    """Each wrong definition is an InputError that names the wrong value."""
    make, message = BAD[what]
    with pytest.raises(InputError, match=message):
        make()
