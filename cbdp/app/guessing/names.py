"""Whether a column holds numbers of trips, by its name and type. Names are public; no value is looked at."""

from __future__ import annotations

from typing import Any

from cbdp.app.guessing.vocabulary import FILLER, MANY, ONE, SUMS, words_of


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
