"""Whether a column holds numbers of trips, by its name and type. Names are public; no value is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from cbdp.app.guessing.vocabulary import FILLER, MANY, ONE, SUMS, words_of


class Columns(Protocol):
    """Names and types of the columns of a file or table; no row."""

    @property
    def kinds(self) -> Mapping[str, Any]: ...
    @property
    def typed(self) -> bool: ...
    @property
    def label(self) -> str: ...


def is_text(kind: Any) -> bool:
    """Whether a column of this Arrow type holds text, however it is stored."""
    import pyarrow as pa

    while isinstance(kind, pa.BaseExtensionType) or pa.types.is_dictionary(kind):
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind.storage_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


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
