"""A small invented city: twelve stops in four zones, and a fortnight of trips, written in the ways agencies have them.

Drawn with `random.Random.random`, whose stream Python guarantees, so that inputs are the same on every machine.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from functools import cache
from random import Random
from typing import NamedTuple

FIRST = dt.date(2026, 3, 2)  # a Monday
DAYS, TRIPS_A_DAY, CARDS = 14, 110, 40
ZONES = ("centre", "north", "east", "south")
STOPS = tuple(f"S{n:02}" for n in range(1, 13))
TIMES = ("06:00", "07:00", "08:00", "09:00", "10:00", "11:00")


class Trip(NamedTuple):
    card: str
    start: dt.datetime
    end: dt.datetime
    origin: str
    destination: str


@cache
def trips() -> tuple[Trip, ...]:
    """Trips in the order in which they start; busy stops come first, and a few rows lie before or after the periods."""
    chance = Random(20260302)

    def one(values: int, lean: float = 1.0) -> int:
        return int(values * chance.random() ** lean)

    rows = []
    for day in range(DAYS):
        weekend = (FIRST + dt.timedelta(days=day)).weekday() >= 5
        for _ in range(TRIPS_A_DAY // (2 if weekend else 1)):
            start = dt.datetime.combine(FIRST, dt.time(5, 45)) + dt.timedelta(days=day, minutes=one(390, 1.3))
            origin, destination = STOPS[one(12, 1.6)], STOPS[one(12, 1.6)]
            card = f"C{one(CARDS, 1.2):03}"
            rows.append(Trip(card, start, start + dt.timedelta(minutes=4 + one(30)), origin, destination))
    return tuple(sorted(rows, key=lambda trip: (trip.start, trip)))


def stops_csv() -> str:
    rows = [
        f"{stop},stop {n},{42.2 + (n % 4) / 50:.4f},{-83.7 + (n // 4) / 40:.4f},{ZONES[n // 3]}"
        for n, stop in enumerate(STOPS)
    ]
    return "\n".join(["id,name,lat,lon,zone", *rows]) + "\n"


def trips_csv(days: int = DAYS) -> str:
    return _csv(
        "card,left_at,from_stop,to_stop",
        [f"{t.card},{t.start:%Y-%m-%d %H:%M},{t.origin},{t.destination}" for t in trips() if _day(t) < days],
    )


def taps_csv() -> str:
    """A row for tap-on and one for tap-off of every trip; every twentieth rider forgets to tap off."""
    rows = []
    for n, trip in enumerate(trips()):
        rows.append((trip.start, f"{trip.card},{trip.start:%Y-%m-%d %H:%M},{trip.origin},on"))
        if n % 20:
            rows.append((trip.end, f"{trip.card},{trip.end:%Y-%m-%d %H:%M},{trip.destination},off"))
    return _csv("card,time,stop,tap", [row for _, row in sorted(rows)])


def counts_csv() -> str:
    """How many trips there were by hour and pair of stops; some counts are missing."""
    counts = Counter((f"{t.start:%H}:00", t.origin, t.destination) for t in trips())
    rows = [
        f"{hour},{origin},{destination},{'<5' if (n % 40) == 7 else count}"
        for n, ((hour, origin, destination), count) in enumerate(sorted(counts.items()))
    ]
    return _csv("hour,from,to,count", rows)


def tap_counts_csv() -> str:
    """How many tap-ons and tap-offs there were by hour and stop."""
    counts = Counter((f"{t.start:%H}:00", t.origin, "on") for t in trips())
    counts.update((f"{t.end:%H}:00", t.destination, "off") for t in trips())
    return _csv("hour,stop,tap,count", [f"{','.join(key)},{n}" for key, n in sorted(counts.items())])


def boardings_csv() -> str:
    """Public weights of stops, as a prior."""
    return _csv("stop,weight", [f"{stop},{90 - 7 * n}" for n, stop in enumerate(STOPS)])


def columns(stops: int = 12) -> dict[str, list[str]]:
    """The trips as columns for the public API: origin, destination, time and card; of the first stops alone."""
    chosen = [t for t in trips() if 6 <= t.start.hour < 12 and {t.origin, t.destination} <= {*STOPS[:stops]}]
    return {
        "origin": [t.origin for t in chosen],
        "destination": [t.destination for t in chosen],
        "time": [f"{t.start:%H}:00" for t in chosen],
        "card": [t.card for t in chosen],
    }


def _day(trip: Trip) -> int:
    return (trip.start.date() - FIRST).days


def _csv(head: str, rows: list[str]) -> str:
    return "\n".join([head, *rows]) + "\n"
