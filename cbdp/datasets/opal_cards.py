"""Who holds which card, for the synthetic taps in the shape of Opal's: the same people travel on many days (`tap_rows`).

Opal's rows were trips with a card. The synthetic trips of `opal_taps` are drawn trip by trip; here each is given to a card, so that a series can be told
what it costs one person. It is invented, and made of habits: the k-th trip before noon from A to B, the k-th after noon from B to A, and those of
every other day, are one person's. One habit in five belongs to somebody who has another habit too, often with another mode.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from cbdp.arrays import Ints
from cbdp.datasets.dataset import Columns
from cbdp.datasets.draws import generator, shuffled
from cbdp.datasets.opal_taps import LOCATIONS, TIMES, OpalTaps

NOON = len(TIMES) // 2
MOST_PAIRS = max(len(places) for places in LOCATIONS.values()) ** 2
TWO_HABITS = 5  # one habit in so many


def cards(taps: OpalTaps, seed: int = 0) -> dict[tuple[str, str], Ints]:
    """For each day and mode, the card of every trip."""
    habits = []
    for (_, mode), part in taps.parts.items():
        back = part["on_time"] >= NOON
        home = np.where(back, part["off_location"], part["on_location"])
        work = np.where(back, part["on_location"], part["off_location"])
        places = len(LOCATIONS[mode])
        pair = home * places + work
        habits.append((_turn(pair, back) * len(taps.modes) + taps.modes.index(mode)) * MOST_PAIRS + pair)
    found, habit = np.unique(np.concatenate(habits), return_inverse=True)
    card = _held(len(found), seed)[habit]
    ends = np.cumsum([len(h) for h in habits])[:-1]
    return dict(zip(taps.parts, np.split(card, ends), strict=True))


def _turn(pair: Ints, back: Any) -> Ints:
    """The how manieth each trip is of its pair and half of the day."""
    key = 2 * pair + back
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    first = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    turn = np.empty(len(key), dtype=np.int64)
    turn[order] = np.arange(len(key)) - np.repeat(first, np.diff(np.r_[first, len(key)]))
    return turn


def _held(habits: int, seed: int) -> Ints:
    """Whose each habit is: its own holder's, or for one in five that of another."""
    order = shuffled(generator(seed), habits)
    holder = np.arange(habits)
    many = habits // TWO_HABITS
    holder[order[:many]] = order[many : 2 * many]
    return holder


def tap_rows(taps: OpalTaps, seed: int = 0) -> Any:
    """Every tap as a row, with its trip and card: a table of two rows for each trip.

    >>> from cbdp.datasets import opal_taps
    >>> tap_rows(opal_taps()).column_names
    ['day', 'tap', 'time', 'location', 'trip', 'card']
    """
    import pyarrow as pa

    held, made, first = cards(taps, seed), [], 0
    for (day, mode), part in taps.parts.items():
        trip = np.arange(first, first + len(part["on_time"]))
        date = dt.datetime.strptime(day, "%Y%m%d").date()  # noqa: DTZ007 - a date alone
        made += [_rows(date, kind, mode, part, trip, held[day, mode]) for kind in ("on", "off")]
        first += len(trip)
    return pa.concat_tables(made)


def _rows(day: dt.date, kind: str, mode: str, part: Columns, trip: Ints, card: Ints) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            "day": pa.array([day] * len(trip)),
            "tap": pa.array([kind] * len(trip)),
            "time": _taken(TIMES.values, part[f"{kind}_time"]),
            "location": _taken(LOCATIONS[mode], part[f"{kind}_location"]),
            "trip": trip,
            "card": card,
        }
    )


def _taken(names: Any, codes: Ints) -> Any:
    import pyarrow as pa

    return pa.array(list(names)).take(pa.array(codes))
