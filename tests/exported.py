"""Releases of trips that are known, to be exported and read back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.privacy.accounting import DPCost, PrivacyGuarantee
from cbdp.release.release import Release
from cbdp.release.serialization import Recipe
from cbdp_features.places import Stops

STOPS: tuple[Any, ...] = (30, 7, 1001, 12)  # numbers that are no places in a list, and not in order


ZONES = {30: "north", 7: "north & east", 1001: "south", 12: "south"}


MODES = {30: "walk", 7: "bus", 1001: "rail", 12: "bus"}


PLACES = Stops(
    STOPS, ("a", "b", "c", "d"), np.array([42.1, 42.2, 42.3, 42.4]), np.array([-83.4, -83.3, -83.2, -83.1])
)


Key = tuple[Any, ...]


def released_trips(universe: cbdp.Universe, trips: dict[Key, int], **fields: Any) -> Release:
    """A release of exactly these trips."""
    dag = cbdp.FeatureDag(universe, fields.pop("features", []))
    index = np.array([int(universe.rank(*key)) for key in trips], dtype=np.int64)
    assert (index >= 0).all()
    order = np.argsort(index)
    value = np.array(list(trips.values()), dtype=np.int64)
    claim = PrivacyGuarantee(cbdp.Trip(), DPCost("all", Fraction(1)))
    return Release(dag, Recipe("by hand"), claim, index[order], value[order], **fields)


def city_release(stops: tuple[Any, ...] = STOPS, **fields: Any) -> tuple[Release, dict[Key, int]]:
    """Trips that are not the same in both directions, nor in both periods, nor in the order of the stops' ids."""
    dim = cbdp.Dimension(stops, zone=[ZONES.get(s, str(s)) for s in stops])
    universe = cbdp.Universe(origin=dim, destination=dim, time=cbdp.periods("06:00", "08:00", "1h"))
    universe = universe.without_equal("origin", "destination")
    modes = [[MODES.get(d, "bus") for d in stops] for _ in stops]
    universe = universe.with_attribute("mode", ["origin", "destination"], modes)
    a, b, c, d = stops
    trips = {
        (a, b, "06:00"): 5,
        (b, a, "06:00"): 1,
        (c, a, "06:00"): 2,
        (a, b, "07:00"): 3,
        (d, c, "07:00"): 70_000 if fields.pop("large", False) else 7,
        (d, a, "07:00"): 1,
    }
    features = [
        cbdp.Feature("time", by="time"),
        cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"]),
    ]
    return released_trips(universe, trips, features=features, **fields), trips


def zone_trips(trips: dict[Key, int]) -> dict[Key, int]:
    found: Counter[Key] = Counter()
    for (o, d, t), count in trips.items():
        found[ZONES[o], ZONES[d], t] += count
    return dict(found)


def read_sumo(path: Path) -> list[tuple[str, str, str, list[tuple[str, str, int]]]]:
    """The vehicle type, begin and end of every interval, and its relations."""
    sumolib = pytest.importorskip("sumolib", reason="sumolib is not installed")
    return [
        (i.id, i.begin, i.end, [(r.attr_from, r.to, int(r.count)) for r in i.tazRelation or []])
        for i in sumolib.xml.parse(str(path), "interval")
    ]


def mechanism_release(**fields: Any) -> Release:
    """A simulated release of a mechanism, which can tell intervals, of the same stops as `city_release`."""
    made, trips = city_release()
    rows = [key for key, count in trips.items() for _ in range(20 * count)]
    columns = dict(zip(("origin", "destination", "time"), map(list, zip(*rows, strict=True)), strict=True))
    return replace(
        cbdp.ConstraintBased(made.features, epsilon=1).simulate(columns, 3), places=PLACES, **fields
    )
