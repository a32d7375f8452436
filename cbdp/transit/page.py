"""A picture of a service: one page with the map, the shuttles on their way over time, and the figures of every zone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.numbers import count_text
from cbdp.report.rendering import Table, Tile, render
from cbdp.transit.city import City
from cbdp.transit.simulator import ARRIVES, DROPPED_OFF, PICKED_UP, Operations, Service, figures
from cbdp_features.calendar import clock_time

MAX_HOPS = 120_000  # about 14 bytes each, so that the page stays below 3 MB
MAX_WAYS = 600  # pairs of stops that are drawn as often driven: more would hide the map
SECONDS_PER_MINUTE = 60
COLUMNS = {
    "shuttles": "Shuttles", "legs": "Rides", "unserved": "Unserved", "wait": "Mean wait", "wait95": "95 % wait at most",
    "ride": "Mean ride", "idle": "Empty, per shuttle", "parked": "Parked, per shuttle", "occupancy": "Riders on board", "km": "Driven",
}  # fmt: skip
UNITS = {"wait": " s", "wait95": " s", "ride": " s", "idle": " min", "parked": " min", "km": " km"}
TOTAL = "total"
Hop = tuple[int, int, int, int]  # departs, arrives, stop, riders on board


@dataclass(frozen=True)
class ZoneDemand:
    """A published count, and the ends of its interval where it has one."""

    count: int
    low: int | None
    high: int | None


def build(
    city: City,
    service: Service,
    *,
    about: str = "",
    demand: Mapping[str, ZoneDemand] | None = None,
    internal: bool = False,
    operations: Operations | None = None,
) -> str:
    """The page of a run that has a log, as HTML that opens offline and sends no request.

    `demand` are the published trips that begin in each zone and in "total", with 90 % intervals: stated beside the service.
    `internal` puts a banner on top, for runs with real riders. Of a large run some shuttles are shown, and the page says so.
    """
    if service.log is None:
        raise InputError("the run has no log to draw: simulate with log=True")
    by_zone = figures(service, city)
    data = picture(city, service, hops(city, service, operations or Operations()))
    return render(
        "transit/fleet.html.jinja",
        style=["transit/page.css"],
        script="transit/page.js",
        data=data,
        internal=internal,
        about=about,
        shuttles=service.fleet.total,
        rides=len(service.legs),
        hours=[clock_time(s, seconds=False) for s in service.legs.hours],
        head=_tiles(by_zone[TOTAL]),
        zones=dict(enumerate(city.zones)),
        drawn=data,
        figures=_table(city, by_zone, demand or {}),
        has_demand=bool(demand),
    )


# What is drawn


def hops(city: City, service: Service, operations: Operations) -> list[list[Hop]]:
    """The drives of every shuttle in order, from the log."""
    takes, at = operations.hop(city), service.fleet.starts(city).tolist()
    load = [0] * len(at)
    drives: list[list[Hop]] = [[] for _ in at]
    rows: list[list[int]] = [] if service.log is None else service.log.tolist()
    for second, kind, shuttle, _, stop in rows:
        if kind == ARRIVES:
            drives[shuttle].append((second - int(takes[at[shuttle], stop]), second, stop, load[shuttle]))
            at[shuttle] = stop
        elif kind == PICKED_UP:
            load[shuttle] += 1
        elif kind == DROPPED_OFF:
            load[shuttle] -= 1
    return drives


def picture(city: City, service: Service, drives: list[list[Hop]]) -> dict[str, Any]:
    """All that the page's script draws. Hops count seconds since the hop before: they are many, and this takes less space."""
    zone = np.repeat(np.arange(len(city.zones)), service.fleet.shuttles).tolist()
    starts = service.fleet.starts(city).tolist()
    begin = min([service.legs.hours[0], *(h[0][0] for h in drives if h)])
    end = max([service.legs.hours[1], *(h[-1][1] for h in drives if h)])
    every = max(1, math.ceil(sum(map(len, drives)) / MAX_HOPS))
    riders = _riders(service, begin, end)
    inside = riders["aboard"][: 1 + (service.legs.hours[1] - begin) // SECONDS_PER_MINUTE]
    return {
        "begin": begin,
        "end": end,
        "start": begin
        + SECONDS_PER_MINUTE
        * int(np.argmax(inside)),  # where the page opens: the busiest minute of the hours
        "stops": [
            [n, round(float(x), 3), round(float(y), 3), int(z), int(h)]
            for n, x, y, z, h in zip(city.names, city.x, city.y, city.zone, city.hub, strict=True)
        ],
        "zones": [[name, hull(city, z)] for z, name in enumerate(city.zones)],
        "lines": [[line.name, list(line.stops), line.headway] for line in city.lines],
        "every": every,
        "shuttles": [
            [v, zone[v], starts[v], _delta_encoded(drives[v], begin)] for v in range(0, len(drives), every)
        ],
        "ways": _ways(drives, starts),
        "riders": riders,
    }


def _delta_encoded(drives: list[Hop], begin: int) -> list[int]:
    encoded, since = [], begin
    for departs, arrives, stop, load in drives:
        encoded += [departs - since, arrives - departs, stop, load]
        since = arrives
    return encoded


def _ways(fleet_drives: list[list[Hop]], starts: list[int]) -> list[list[int]]:
    """The pairs of stops between which shuttles drove most often, in either direction, and how often."""
    often: Counter[tuple[int, int]] = Counter()
    for drives, start in zip(fleet_drives, starts, strict=True):
        at = start
        for _, _, stop, _ in drives:
            often[min(at, stop), max(at, stop)] += 1
            at = stop
    ranked = sorted(often.items(), key=lambda item: (-item[1], item[0]))
    return [[a, b, n] for (a, b), n in ranked[:MAX_WAYS]]


def _riders(service: Service, begin: int, end: int) -> dict[str, list[int]]:
    """The riders who wait and the riders on board, minute by minute."""
    minute = np.arange(begin, end + SECONDS_PER_MINUTE, SECONDS_PER_MINUTE)
    done = service.served
    release, pickup, drop = (v[done] for v in (service.release, service.pickup, service.drop))

    def by(seconds: Ints) -> Ints:
        return np.searchsorted(np.sort(seconds), minute, side="right")

    came, boarded, left = by(release), by(pickup), by(drop)
    return {"waiting": (came - boarded).tolist(), "aboard": (boarded - left).tolist()}


def hull(city: City, zone: int) -> list[list[float]]:
    """The corners of the convex hull of a zone's stops (Andrew's monotone chain, 1979)."""
    stops = np.flatnonzero(city.zone == zone)
    points = sorted({(round(float(city.x[s]), 3), round(float(city.y[s]), 3)) for s in stops})
    if len(points) < 3:
        return [list(p) for p in points]
    return [list(p) for p in (*_half_hull(points)[:-1], *_half_hull(points[::-1])[:-1])]


def _half_hull(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    chain: list[tuple[float, float]] = []
    for x, y in points:
        while len(chain) > 1:
            (ax, ay), (bx, by) = chain[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                break
            chain.pop()
        chain.append((x, y))
    return chain


# What is written


def _tiles(total: Mapping[str, float]) -> list[Tile]:
    text = {name: _figure_text(name, total) for name in total}
    return [
        Tile("Shuttles", text["shuttles"], f"{text['km']} in all"),
        Tile("Mean wait", text["wait"], f"95 % wait {text['wait95']} at most"),
        Tile("Unserved", text["unserved"], f"of {text['legs']} rides"),
        Tile("Riders on board", text["occupancy"], "in a shuttle that has any"),
    ]


def _figure_text(name: str, row: Mapping[str, float]) -> str:
    value, unit = row[name], UNITS.get(name, "")
    if not math.isfinite(value):
        return "–"
    return (
        f"{value:,.1f}"
        if name == "occupancy"
        else f"{count_text(value / 60 if unit == ' min' else value)}{unit}"
    )


def _table(city: City, by_zone: Mapping[str, Mapping[str, float]], demand: Mapping[str, ZoneDemand]) -> Table:
    return Table(
        ["Zone", *(["Trips from here", "90 % interval"] if demand else []), *COLUMNS.values()],
        [
            [zone, *(_demand_cells(demand.get(zone)) if demand else []), *(_figure_text(name, by_zone[zone]) for name in COLUMNS)]
            for zone in (*city.zones, TOTAL)
        ],
    )  # fmt: skip


def _demand_cells(asked: ZoneDemand | None) -> list[str]:
    if asked is None:
        return ["–", "–"]
    none = asked.low is None or asked.high is None
    return [f"{asked.count:,}", "no interval" if none else f"{asked.low:,} – {asked.high:,}"]
