"""What a column holds, in the few words that a counting plan needs. Engines say what their columns are in Arrow's types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cbdp.errors import InputError

TEXT, WHOLE, REAL, TRUTH = "text", "whole numbers", "numbers", "true or false"
DATE, TIME, STAMP = "dates", "times of day", "time stamps"
NOTHING, OTHER = "nothing", "other"


@dataclass(frozen=True)
class Kind:
    """One of the words above; for times also their unit and the zone that the column states."""

    name: str
    unit: str = ""  # "s", "ms", "us", "ns", or "D" for dates that are days
    zone: str | None = None
    free: bool = False  # text that may stand for a number, as in CSV


@dataclass(frozen=True)
class Schema:
    """Trips that are open but not yet read. All of it is public: no row has been looked at.

    >>> import cbdp
    >>> cbdp.trips.schema_of({"stop": ["A"], "time": ["am"]}).label
    'the trips'
    """

    label: str  # what messages call the trips
    kinds: Mapping[str, Any]  # column → Arrow type
    typed: bool = True  # False: text that stands for anything, as in CSV
    notes: tuple[str, ...] = ()  # what the curator should know of the files
    unequal: Mapping[str, str] = field(
        default_factory=dict
    )  # column → the engine's own type, where equal values may be written differently

    def kind(self, column: str) -> Kind:
        """The kind of a column."""
        found = kind_of(self.kinds[column])
        return replace(found, free=True) if found.name == TEXT and not self.typed else found


def kind_of(arrow: Any) -> Kind:
    """The kind of an Arrow type."""
    import pyarrow as pa

    is_a = pa.types
    arrow = plain_kind(arrow)
    if is_text(arrow):
        return Kind(TEXT)
    if is_a.is_timestamp(arrow):
        return Kind(STAMP, arrow.unit, arrow.tz)
    if is_a.is_date(arrow):
        return Kind(DATE, "D" if is_a.is_date32(arrow) else "ms")
    if is_a.is_time(arrow):
        return Kind(TIME, arrow.unit)
    if is_a.is_integer(arrow):
        return Kind(WHOLE)
    if is_a.is_floating(arrow) or is_a.is_decimal(arrow):
        return Kind(REAL)
    if is_a.is_boolean(arrow):
        return Kind(TRUTH)
    return Kind(NOTHING if is_a.is_null(arrow) else OTHER)


def plain_kind(arrow: Any) -> Any:
    """An Arrow type without what makes no difference to us: dictionaries, extensions, and how text is stored."""
    import pyarrow as pa

    while isinstance(arrow, pa.BaseExtensionType) or pa.types.is_dictionary(arrow):
        arrow = arrow.value_type if pa.types.is_dictionary(arrow) else arrow.storage_type
    return pa.string() if is_text(arrow) else arrow


def is_text(arrow: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow)
    )


# Checks by the schema alone, whatever the rows say


def check_column(schema: Schema, column: str) -> None:
    """Refuse a column that the trips do not have, or have twice."""
    check_names(list(schema.kinds), [column], quoted=schema.typed)


def check_names(
    names: Sequence[str], wanted: Sequence[str], *, quoted: bool = True, have: str = "the trips have"
) -> None:
    for name in wanted:
        if names.count(name) > 1:
            raise InputError(f"two columns are called {name!r}: rename one of them")
        if name not in names:  # a CSV without a header has private values in its first line
            there = (
                f"there are {', '.join(map(str, names))}"
                if quoted
                else "its first line must name it, with the same capitals and spaces"
            )
            raise InputError(f"{have} no column {name!r}: {there}")


def check_distinct(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            raise InputError(f"two columns are called {name!r} (capitals aside): rename one of them")
        seen.add(name.casefold())


def check_person(schema: Schema, column: str) -> None:
    """Refuse a column that cannot tell persons apart, or of which it is not known when two of its values are one. Proof: docs/proofs/bounding.md."""
    import pyarrow as pa

    check_column(schema, column)
    kind = schema.kinds[column]
    own = schema.unequal.get(column)
    if own is None and (kind_of(kind).name != OTHER or is_binary(plain_kind(kind))):
        return
    if own is None and pa.types.is_nested(plain_kind(kind)):
        raise InputError(f"column {column!r} holds {kind} values: a person needs text or a number")
    raise InputError(
        f"column {column!r} holds {own or kind} values, of which two may be equal and written differently: a person needs text or a "
        "number. Make a view or a query that casts the column to text, and count that"
    )


def is_binary(arrow: Any) -> bool:
    import pyarrow as pa

    found = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    return any(is_a(arrow) for is_a in found)
