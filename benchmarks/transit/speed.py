"""How long F(D) takes: on 8–10 am's trips, and on 40,000 in four shapes of demand."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.harness.markdown import markdown
from benchmarks.harness.page import machine
from benchmarks.transit.city import Ints, demand, place, riders
from benchmarks.transit.jobs import LIMIT, PERIOD
from cbdp.datasets import ann_arbor
from cbdp.transit import Legs, Operations, SearchSizer, legs_of, spread

FEW, MANY = 5_000, 40_000
SECONDS = 120


def scaled(counts: Ints, trips: int) -> Ints:
    """So many trips in the proportions of the counts, by largest remainders.

    >>> scaled(np.array([3, 0, 1]), 8).tolist()
    [6, 0, 2]
    """
    share = counts * (trips / counts.sum())
    made: Ints = np.floor(share).astype(np.int64)
    late = np.argsort(made - share, kind="stable")[: trips - int(made.sum())]
    made[late] += 1
    return made


def diluted(counts: Ints, trips: int) -> Ints:
    """The counts and so many more that they are `trips`, each of any type: as Laplace noise makes them."""
    pick = np.random.Generator(np.random.PCG64(0)).integers(0, len(counts), trips - int(counts.sum()))
    made: Ints = counts + np.bincount(pick, minlength=len(counts))
    return made


def whole_day() -> Legs:
    """The weekday from 6 am to 8 pm, with 40,000 trips."""
    data = ann_arbor(seed=0)
    city, modes = place()
    counts = scaled(data.counts(), MANY)
    types = np.flatnonzero(counts)
    return legs_of(spread(data.universe, types, counts[types], city), modes)


def speed() -> str:
    """Seconds of the search with the limit for each half hour, compiled before; and CPU seconds, for a machine may be shared."""
    city, _ = place()
    real = demand("weekday")
    sets = {
        f"8–10 am, {FEW:,} trips": riders("weekday", scaled(real, FEW), 0),
        f"8–10 am, {MANY:,} trips on the same types": riders("weekday", scaled(real, MANY), 0),
        f"8–10 am, {MANY:,} trips, the added ones anywhere": riders("weekday", diluted(real, MANY), 0),
        f"6 am–8 pm, {MANY:,} trips": whole_day(),
    }
    SearchSizer(LIMIT, PERIOD).size(city, riders("weekend", demand("weekend"), 0), Operations())
    rows, slowest, busiest = [], 0.0, 0.0
    for name, legs in sets.items():
        begun, used = time.perf_counter(), time.process_time()
        sized = SearchSizer(LIMIT, PERIOD).size(city, legs, Operations())
        took, used = time.perf_counter() - begun, time.process_time() - used
        slowest, busiest = max(slowest, took), max(busiest, used)
        rows.append([name, f"{len(legs):,}", str(sized), f"{sized.runs}", f"{took:.1f}", f"{used:.1f}"])
    told = markdown(["trips", "legs", "fleet", "simulations", "seconds", "CPU seconds"], rows)
    said = [
        f"- every fleet in under {SECONDS} {unit} (slowest {most:.0f}): {'yes' if most < SECONDS else 'NO'}"
        for unit, most in (("seconds", slowest), ("CPU seconds", busiest))
    ]
    return "\n".join([told, "", f"- {machine()}", *said])
