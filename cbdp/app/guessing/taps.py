"""Taps: rows with one place instead of an origin and a destination, by the names of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cbdp.app.guessing.names import score, words_of
from cbdp.trips import Schema

STOP, ACTION = "stop", "action"
PLACE = dict.fromkeys(
    ("stop", "station", "location", "loc", "place", "site", "gate", "terminal", "haltestelle", "parada", "gare", "bahnhof"), 4
) | {"id": 2, "code": 2, "name": -1}  # fmt: skip
NO_PLACE = dict.fromkeys(
    ("lat", "lon", "lng", "latitude", "longitude", "x", "y", "type", "kind", "count"), -20
)
DONE = dict.fromkeys(("tap", "action", "onoff", "inout"), 4)
BOTH = ({"on", "off"}, {"in", "out"}, {"entry", "exit"}, {"enter", "exit"}, {"board", "alight"})
WITH_CARDS = dict.fromkeys(("direction", "io"), 4) | dict.fromkeys(
    ("event", "transaction", "type", "kind", "validation"), 2
)
NO_DEED = dict.fromkeys(("time", "id", "date", "count", "stop", "station", "location", "loc", "number"), -20)


def tap_columns(source: Schema, taken: Mapping[str, str]) -> dict[str, str]:
    """The column of the one place, and of what was done there if there is one; nothing where no place is named.

    `taken` are the roles that are found already. Without a time or a date among them, the first line of a file may as well be a private row.
    """
    place = _best(source, taken, _place) if {"time", "day"} & set(taken) else None
    if place is None:
        return {}
    action = _best(source, {**taken, STOP: place}, _deed)
    if action is None and "person" in taken:  # of cards, other names can hardly mean anything else
        action = _best(source, {**taken, STOP: place}, _likely_deed)
    return {STOP: place} if action is None else {STOP: place, ACTION: action}


def _best(source: Schema, taken: Mapping[str, str], fits: Any) -> str | None:
    free = [name for name in source.kinds if name not in taken.values()]
    best = max(free, key=lambda name: fits(name, source.kinds[name]), default=None)
    return best if best is not None and fits(best, source.kinds[best]) > 0 else None


def _place(name: str, kind: Any) -> int:
    import pyarrow as pa

    named = bool(set(words_of(name)) & {word for word, points in PLACE.items() if points == 4})
    return score(name, PLACE, NO_PLACE) if named and not pa.types.is_temporal(kind) else 0


def _likely_deed(name: str, kind: Any) -> int:
    import pyarrow as pa

    unfit = pa.types.is_temporal(kind) or pa.types.is_floating(kind)
    return 0 if unfit else score(name, WITH_CARDS, NO_DEED)


def _deed(name: str, kind: Any) -> int:
    import pyarrow as pa

    if pa.types.is_temporal(kind) or pa.types.is_floating(kind):
        return 0
    words = set(words_of(name))
    return score(name, DONE, NO_DEED) + 4 * any(both <= words for both in BOTH)
