"""Taps: rows with one place instead of an origin and a destination, by the names of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cbdp.app.guessing import vocabulary
from cbdp.app.guessing.names import Columns
from cbdp.app.guessing.vocabulary import points, score, words_of

STOP, ACTION = "stop", "action"
PLACE = (
    points(vocabulary.SPOT, 4) | points(vocabulary.NAME, -1) | {"id": 2, "code": 2, "codigo": 2, "kode": 2}
)
NO_PLACE = points(vocabulary.COORDINATE | {"type", "kind", "count", "tipo", "typ", "jenis"}, -20)
DONE = points(vocabulary.TAP, 4)
WITH_CARDS = points(vocabulary.TAP_WITH_CARDS, 2) | {
    "direction": 4,
    "io": 4,
    "sentido": 4,
    "sens": 4,
    "richtung": 4,
    "arah": 4,
}
NO_DEED = points(
    vocabulary.SPOT
    | vocabulary.MOMENT
    | vocabulary.HOUR
    | vocabulary.DATE
    | {"id", "count", "number", "numero", "nummer"},
    -20,
)


def tap_columns(source: Columns, taken: Mapping[str, str]) -> dict[str, str]:
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


def _best(source: Columns, taken: Mapping[str, str], fits: Any) -> str | None:
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
    return score(name, DONE, NO_DEED) + 4 * any(both <= words for both in vocabulary.TAP_PAIRS)
