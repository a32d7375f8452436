"""Whether the first line of a CSV file names columns. If not, it is a private row, and nothing of it may be repeated."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cbdp.app.guessing.names import Columns
from cbdp.errors import InputError

_VALUES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"[\W\d_]+",  # no letter at all: numbers, "289.0", "12:30"
        r".*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*",  # a date
        r".*\d{1,2}:\d{2}.*",  # a time
        r".*\b(am|pm)\b.*",
        r"[a-z]{0,3}[-_ ]?\d+[a-z]?",  # an id: S1, A17, ST-04
        r"(?=.*\d)[0-9a-f]{8,}",  # a hash
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        r".*@.*",
        r"true|false|null|none|nan|n/?a|yes|no",
        r".{61,}",
    )
]


def looks_like_a_value(cell: str) -> bool:
    """Whether a cell of a first line is rather a value than a column's name.

    >>> [looks_like_a_value(c) for c in ("289.0", "S1", "01/03/2020 00:14", "Start Date", "Bike #", "")]
    [True, True, True, False, False, False]
    """
    text = cell.strip()
    digits, letters = sum(c.isdigit() for c in text), sum(c.isalpha() for c in text)
    return bool(text) and (digits > max(letters, 3) or any(p.fullmatch(text) for p in _VALUES))


def check_header(source: Columns, public: Iterable[str] = ()) -> None:
    """Refuse a CSV file whose first line may be a private row: nothing of it may be repeated, not even here.

    It may be one if any cell looks like a value, or is the id or the name of a stop.
    """
    if source.typed:
        return
    names, stops = list(source.kinds), set(public)
    for place, name in enumerate(names, 1):
        if looks_like_a_value(name) or name.strip() in stops:
            raise InputError(
                f"the first line of {source.label} does not look like column names (field {place} looks like a value): "
                "add a line with the names, or give that column a name in words"
            )
