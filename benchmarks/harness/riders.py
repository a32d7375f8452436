"""A generated population whose riders commute: most of their trips repeat, day after day, in the same time periods."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import cbdp
from cbdp.features import Dimension, Feature, FeatureDag, Universe, days

Ints = NDArray[np.int64]

FIRST = dt.date(2026, 3, 2)  # a Monday
HOURS = ("05:00", "23:00")
COMMUTERS, TRAVELS, OTHERS = (
    0.7,
    0.85,
    0.6,
)  # share of riders; chance of a working day's commute; mean of other trips a day


@dataclass(frozen=True, eq=False)
class Population:
    """Trips of riders over some days, and the features that they are counted by."""

    trips: Any  # origin, destination, when, card
    features: FeatureDag
    columns: dict[str, str]

    @property
    def truth(self) -> Ints:
        """How many trips each type has, nobody bounded."""
        return cbdp.count(self.trips, self.features.universe, columns=self.columns).dense()


def population(
    *, stops: int = 40, riders: int = 3000, many_days: int = 20, seed: int = 0, by_day: bool = False
) -> Population:
    """Riders with a home and a work place near the centre, who commute on most weekdays; the others travel now and then.

    Commutes leave within an hour of a rider's own habit, and go back in the evening. Days are pooled unless `by_day` says otherwise.
    """
    rng = np.random.default_rng(seed)
    place = rng.normal(0, 3, (stops, 2))
    near = np.exp(-np.linalg.norm(place, axis=1) / 2)
    home = rng.choice(stops, riders, p=near / near.sum())
    work = rng.choice(stops, riders, p=near**2 / (near**2).sum())
    work = np.where(work == home, (work + 1) % stops, work)
    commutes = rng.random(riders) < COMMUTERS
    leaves = rng.normal(7.8, 0.7, riders)
    rows = [_day(rng, d, home, work, commutes, leaves, near / near.sum()) for d in range(many_days)]
    origin, destination, minute, card = (np.concatenate(column) for column in zip(*rows, strict=True))
    start = np.datetime64(FIRST, "s")
    trips = pa.table(
        {
            "origin": origin,
            "destination": destination,
            "when": start + (60 * minute).astype("m8[s]"),
            "card": card,
        }
    )
    zone = (np.argsort(np.argsort(place[:, 0])) * 8 // stops).tolist()
    return Population(trips, _features(stops, zone, many_days if by_day else None), _columns(by_day=by_day))


def _day(
    rng: np.random.Generator, day: int, home: Ints, work: Ints, commutes: Any, leaves: Any, near: Any
) -> tuple[Ints, Ints, Ints, Ints]:
    """One day's trips: origin, destination, minute since the first day, card."""
    date = FIRST + dt.timedelta(days=day)
    goes = np.flatnonzero(commutes & (rng.random(len(home)) < (TRAVELS if date.weekday() < 5 else 0.05)))
    out = leaves[goes] + rng.normal(0, 0.2, len(goes))
    back = out + rng.normal(9, 0.6, len(goes))
    others = np.repeat(np.arange(len(home)), rng.poisson(OTHERS, len(home)))
    to = rng.choice(len(near), len(others), p=near)
    to = np.where(to == home[others], (to + 1) % len(near), to)
    at = rng.normal(14, 3.5, len(others))
    origin = np.concatenate([home[goes], work[goes], home[others]])
    destination = np.concatenate([work[goes], home[goes], to])
    hour = np.clip(np.concatenate([out, back, at]), 5, 22.99)
    card = np.concatenate([goes, goes, others])
    return origin, destination, (day * 1440 + hour * 60).astype(np.int64), card


def _features(stops: int, zone: list[int], many_days: int | None) -> FeatureDag:
    named = Dimension(range(stops), zone=zone)
    dims: dict[str, Any] = {"origin": named, "destination": named, "time": cbdp.periods(*HOURS, "1h")}
    more = []
    if many_days is not None:
        dims["day"] = days(FIRST, FIRST + dt.timedelta(days=many_days - 1))
        more = ["day"]
    universe = Universe(**dims).without_equal("origin", "destination")
    zones = ["origin.zone", "destination.zone"]
    return FeatureDag(
        universe,
        [
            Feature("time", by=["time", *more]),
            Feature("origin", by=["origin", *more]),
            Feature("zones", by=[*zones, *more]),
            Feature("zone", by=[*zones, "time", *more]),
        ],
    )


def _columns(*, by_day: bool) -> dict[str, str]:
    return {"time": "when", "day": "when"} if by_day else {"time": "when"}
