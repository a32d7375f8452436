"""Labels in columns: any value that names something public, written so that it comes back as it was."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cbdp.arrays import Ints
from cbdp.errors import InputError

ENCODED_KIND = "encoded"  # labels of mixed kinds, or of kinds that no column holds: JSON text
PLAIN_KINDS: dict[type, tuple[str, Any]] = {
    str: ("text", pa.string()),
    int: ("integer", pa.int64()),
    float: ("number", pa.float64()),
    bool: ("boolean", pa.bool_()),
    bytes: ("bytes", pa.binary()),
    dt.date: ("date", pa.date32()),
    dt.datetime: ("moment", pa.timestamp("us")),
    dt.time: ("time", pa.time64("us")),
}
LABEL_KINDS = (*(kind for kind, _ in PLAIN_KINDS.values()), ENCODED_KIND)
TAGGED_TYPES: dict[type, tuple[str, Any, Any]] = {
    dt.datetime: ("datetime", dt.datetime.isoformat, dt.datetime.fromisoformat),
    dt.date: ("date", dt.date.isoformat, dt.date.fromisoformat),
    dt.time: ("time", dt.time.isoformat, dt.time.fromisoformat),
    bytes: ("bytes", bytes.hex, bytes.fromhex),
}
TAG_READERS = {tag: read for tag, _, read in TAGGED_TYPES.values()}


def kind_of(labels: Sequence[Hashable]) -> str:
    """How a column holds these labels.

    >>> kind_of(["A", "B"]), kind_of([1, 2]), kind_of([1, "B"])
    ('text', 'integer', 'encoded')
    """
    kinds = {type(label) for label in labels}
    only = kinds.pop() if len(kinds) == 1 else None
    if only is None or only not in PLAIN_KINDS:
        return ENCODED_KIND
    return PLAIN_KINDS[only][0] if _fits(only, labels) else ENCODED_KIND


def _fits(kind: type, labels: Sequence[Any]) -> bool:
    """Whether a column of this kind holds all of them: no huge integers, no broken text, no time zones."""
    if kind is str:
        try:
            "".join(labels).encode()
        except UnicodeEncodeError:
            return False
    if kind is int:
        return bool(min(labels) >= -(2**63) and max(labels) < 2**63)
    return kind not in (dt.datetime, dt.time) or all(v.tzinfo is None for v in labels)


def column(labels: Sequence[Hashable]) -> pa.Array:
    """The labels as an Arrow array of their kind."""
    kind = kind_of(labels)
    if kind == ENCODED_KIND:
        return pa.array([encoded(label) for label in labels], pa.string())
    return pa.array(
        list(labels), next(arrow_type for name, arrow_type in PLAIN_KINDS.values() if name == kind)
    )


def labels_of(array: pa.Array | pa.ChunkedArray, kind: str) -> list[Any]:
    """The labels that a column of this kind holds."""
    listed = array.to_pylist()
    return [decoded(text) for text in listed] if kind == ENCODED_KIND else list(listed)


def take_labels(column: pa.Array, codes: Ints) -> pa.Array:
    """The labels with these codes. Text is not repeated: codes into a list of the labels that occur."""
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return column.take(pa.array(codes))
    used = np.zeros(len(column), dtype=bool)
    used[codes] = True
    place = np.cumsum(used, dtype=np.int32) - 1
    values = column.filter(pa.array(used))
    return pa.DictionaryArray.from_arrays(pa.array(place[codes], pa.int32()), values)


def codes_of_column(values: pa.Array, column: pa.ChunkedArray) -> Ints:
    """The place of each label of a column among the values; −1 for one that is not there."""
    codes = pc.index_in(column, value_set=values.cast(column.type)).fill_null(-1)
    return np.asarray(codes.to_numpy(), dtype=np.int64)


def encoded(label: Hashable) -> str:
    """Any label as JSON text: tuples are lists, and dates, times and bytes are objects that say what they are.

    >>> encoded(("A", 1)), encoded(2.0)
    ('["A",1]', '2.0')
    """
    return json.dumps(_json(label), separators=(",", ":"), allow_nan=True)


def _json(label: Any) -> Any:
    if label is None or type(label) in (str, int, float, bool):
        return label
    if type(label) is tuple:
        return [_json(part) for part in label]
    if type(label) in TAGGED_TYPES:
        tag, write, _ = TAGGED_TYPES[type(label)]
        return {tag: write(label)}
    raise InputError(
        f"the label {label!r} is of type {type(label).__name__}, which files cannot hold: "
        "use text, numbers, dates, times, or tuples of them"
    )


def decoded(text: str) -> Any:
    """The label of JSON text.

    >>> decoded('[{"date":"2026-03-02"},1.5]')
    (datetime.date(2026, 3, 2), 1.5)
    """
    try:
        return _label(json.loads(text))
    except InputError:
        raise
    except (ValueError, TypeError, RecursionError):
        raise InputError(f"{str(text)[:40]!r} is not a label: it is not the JSON of one") from None


def _label(content: Any) -> Any:
    if isinstance(content, list):
        return tuple(_label(part) for part in content)
    if isinstance(content, dict):
        if len(content) != 1 or not content.keys() <= TAG_READERS.keys():
            kinds = ", ".join(TAG_READERS)
            raise InputError(f"the label {json.dumps(content)} is of no known kind: there are {kinds}")
        ((tag, text),) = content.items()
        return TAG_READERS[tag](text)
    return content


def text_of(label: Any) -> str:
    """A label as people and other programs read it.

    >>> text_of("A"), text_of(7), text_of(("A", 1))
    ('A', '7', '["A",1]')
    """
    if type(label) is str:
        return label
    if isinstance(label, dt.date | dt.time):
        return label.isoformat()
    return encoded(label)
