"""Small random cities and demands for tests of shuttles."""

from __future__ import annotations

import numpy as np

from cbdp.transit.city import City, Driving, Line, make_city
from cbdp.transit.modes import Legs, ModeRule, Trips, legs_of
from cbdp.transit.simulator import Operations


def small_city(rng: np.random.Generator, zones: int = 2, stops: int = 5, *, grid: bool = False) -> City:
    """A few stops in each of some zones side by side, a hub in each, and a line through all hubs.

    On a grid all times are multiples of half a minute, so that limits are met exactly and costs tie.
    """
    x = np.concatenate([rng.uniform(8 * z, 8 * z + 5, stops) for z in range(zones)])
    y = rng.uniform(0, 5, zones * stops)
    if grid:
        x, y = np.rint(x), np.rint(y)
    names = [f"s{i}" for i in range(zones * stops)]
    hubs = [f"s{z * stops}" for z in range(zones)]
    blocks = 30 * np.maximum(1, abs(x[:, None] - x) + abs(y[:, None] - y)) if grid else None
    labels = [f"z{i // stops}" for i in range(zones * stops)]
    bare = make_city(names, x, y, labels, hubs, driving=Driving(36, 1.2), seconds=blocks)
    if zones == 1:
        return bare
    codes = tuple(z * stops for z in range(zones))
    run = tuple(int(rng.integers(60, 400)) for _ in codes[1:])
    return bare.with_lines(
        [Line("bus", codes, int(rng.integers(30, 500)), run, offset=int(rng.integers(0, 50)))]
    )


def busy_hour(seed: int, zones: int, riders: int) -> tuple[City, Legs]:
    """Random riders of an hour in a small city."""
    rng = np.random.default_rng(seed)
    city = small_city(rng, zones, 6)
    o, d = rng.integers(0, len(city), riders), rng.integers(0, len(city), riders)
    trips = Trips(o, d, np.sort(rng.integers(0, 3600, riders)), (0, 3600))
    return city, legs_of(trips, ModeRule().choose(city))


def random_case(seed: int) -> tuple[City, tuple[int, ...], Legs, Operations]:
    rng = np.random.default_rng(seed)
    zones = int(rng.integers(1, 4))
    grid = bool(rng.random() < 0.5)
    city = small_city(rng, zones, int(rng.integers(2, 6)), grid=grid)
    riders, n = int(rng.integers(1, 45)), len(city)
    busy = int(rng.integers(10, 1500))
    o, d = rng.integers(0, n, riders), rng.integers(0, n, riders)
    second = np.sort(rng.integers(120, 120 + busy, riders))
    trips = Trips(o, d, second // 30 * 30 if grid else second, (120, 120 + busy))
    legs = legs_of(trips, ModeRule(walk=0.2, border=1.0, long=3.0).choose(city))
    fleet = tuple(int(v) for v in rng.integers(0 if rng.random() < 0.1 else 1, 4, zones))
    rules = Operations(
        capacity=int(rng.integers(1, 5)),
        stop_seconds=30 * int(rng.integers(0, 2)) if grid else int(rng.integers(0, 40)),
        ride_percent=100 if grid else int(rng.integers(100, 200)),
        ride_slack=int(rng.choice([0, 60, 300])),
        patience=int(rng.choice([120, 240, 600, 3600])),
        max_tasks=int(rng.choice([2, 4, 8, 64])),
        drive_weight=int(rng.integers(0, 3)),
        wait_weight=int(rng.integers(0, 3)),
        ride_weight=int(rng.integers(0, 3)),
    )
    return city, fleet, legs, rules
