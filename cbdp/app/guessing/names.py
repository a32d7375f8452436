"""The words of a column's name, and what they say. Names are public; no value is looked at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# words that make a name mean a number of trips, words that may stand beside them, and words that add nothing
MANY = {"count", "counts", "trips", "journeys", "rides", "ridership", "flow", "volume", "demand"}
MANY |= {"boardings", "alightings", "ons", "offs", "entries", "exits", "taps", "validations"}
MANY |= {"anzahl", "fahrten", "viajes", "trajets", "einsteiger", "aussteiger"}
ONE = {"trip", "journey", "ride", "od"}
FILLER = {"n", "num", "no", "number", "of", "total", "sum", "all"}
# words that mean it only where rows are sums: a taxi ride has passengers, too
SUMS = {"passengers", "passenger", "pax", "riders", "rider", "travellers", "persons"}


def words_of(name: str) -> list[str]:
    """The words of a column's name.

    >>> words_of("startStation_ID"), words_of("PULocationID")
    (['start', 'station', 'id'], ['pu', 'location', 'id'])
    """
    return [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def score(name: str, *tables: Mapping[str, int]) -> int:
    words = set(words_of(name))
    return sum(table.get(word, 0) for table in tables for word in words)


def count_like(name: str, kind: Any, *, aggregated: bool = False) -> bool:
    """Whether a column seems to hold numbers of trips, by its name and type."""
    import pyarrow as pa

    if pa.types.is_temporal(kind) or pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        return False
    words = words_of(name)
    rest = {w for w in words if w not in FILLER}
    if not rest:
        return words in (["n"], ["num"]) or (aggregated and words == ["total"])
    known = MANY | ONE | (SUMS if aggregated else set())
    return rest <= known and bool(rest & (MANY | (SUMS if aggregated else set())))
