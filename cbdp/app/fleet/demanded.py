"""What a release says about the demand that a fleet is sized on: published trips by zone, with their intervals. Nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from cbdp.app.fleet.counted import CountedTrips, wanted_times, wanted_values
from cbdp.app.fleet.rules import FleetRules
from cbdp.errors import InputError
from cbdp.release import Release
from cbdp.transit.city import City
from cbdp.transit.modes import codes_of
from cbdp.transit.page import TOTAL, ZoneDemand

CONFIDENCE = 0.9
NUMBERS = ("count", "low", "high")
Where = Mapping[str, list[Any]]


def demand_of(trips: CountedTrips, city: City, rules: FleetRules) -> dict[str, ZoneDemand]:
    """The trips that begin in each zone and in all, of the chosen day and hours; none where no release answers."""
    if trips.release is None or trips.release.tables:
        return {}
    chosen: dict[str, list[Any]] = {n: [v] for n, v in wanted_values(trips.universe, rules).items()}
    if rules.hours is not None:
        chosen["time"] = wanted_times(trips.universe, rules)
    try:
        return {TOTAL: _asked(trips, chosen)} | _by_zone(trips, city, chosen)
    except InputError as why:
        print(f"demand is stated without intervals: {why}")
        return {}


def _by_zone(trips: CountedTrips, city: City, chosen: Where) -> dict[str, ZoneDemand]:
    """One question where the zones are those that trips are counted by; else one for each."""
    zones = _zones(trips, city)
    held = trips.universe.attributes.get("origin.zone")
    if held is None or held.of != ("origin",):
        return {zone: _asked(trips, {**chosen, "origin": stops}) for zone, stops in zones.items()}
    stops = trips.universe.dimension("origin").values
    named = {stop: str(held.labels[c]) for stop, c in zip(stops, held.codes.tolist(), strict=True)}
    if any(named[stop] != zone for zone, own in zones.items() for stop in own):
        return {zone: _asked(trips, {**chosen, "origin": own}) for zone, own in zones.items()}
    answer: dict[str, Any] = dict(_release(trips).ask("origin.zone", dict(chosen) or None, CONFIDENCE))
    return {str(zone): _row(answer, row) for row, zone in enumerate(answer["origin.zone"])}


def _asked(trips: CountedTrips, where: Where) -> ZoneDemand:
    answer: dict[str, Any] = dict(_release(trips).ask(where=dict(where) or None, confidence=CONFIDENCE))
    return _row(answer, 0)


def _row(answer: Mapping[str, Any], row: int) -> ZoneDemand:
    count, low, high = (float(answer[name][row]) for name in NUMBERS)
    return ZoneDemand(int(count), *(None if math.isnan(end) else int(end) for end in (low, high)))


def _release(trips: CountedTrips) -> Release:
    if trips.release is None:
        raise InputError(f"{trips.name} are no release")
    return trips.release


def _zones(trips: CountedTrips, city: City) -> dict[str, list[Hashable]]:
    """The stops of every zone that trips can begin in."""
    zone = city.zone[codes_of(city, trips.universe, "origin")].tolist()
    found: dict[str, list[Hashable]] = {}
    for stop, z in zip(trips.universe.dimension("origin").values, zone, strict=True):
        found.setdefault(city.zones[z], []).append(stop)
    return found


def in_words(asked: ZoneDemand) -> str:
    """A count with what it may be.

    >>> in_words(ZoneDemand(566, 541, 592))
    '566 published trips; the true number is between 541 and 592 (90 % confidence)'
    """
    if asked.low is None or asked.high is None:
        return f"{asked.count:,} published trips; no interval tells how far the true number may be from that"
    return (
        f"{asked.count:,} published trips; the true number is between {asked.low:,} and {asked.high:,} "
        f"({CONFIDENCE:.0%} confidence)"
    ).replace("%", " %", 1)
