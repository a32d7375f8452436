"""A likely mistake, and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """A likely cause of rows that do not count, or count for something else.

    `what` and `cure` quote no cell of any row, so that a release that stops may say them on a terminal; `shown` and `line`, what to
    write, do. Private, all of it.
    """

    rows: int  # that it may explain
    what: str
    cure: str
    shown: tuple[str, ...] = ()
    line: str = ""


def quoted(examples: Sequence[tuple[str, int]], most: int = 5) -> tuple[str, ...]:
    """Values of rows with how often they stand there."""
    more = len(examples) - most
    listed = [f"{value!r} in {counted(rows, 'row')}" for value, rows in examples[:most]]
    return (*listed, *([f"and {more} more"] if more > 0 else []))


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {what}{'s' * (number != 1)}"


def toml(value: str | Sequence[str]) -> str:
    """A text, or a list of them, as a configuration has it."""
    if not isinstance(value, str) and len(value) == 1:
        value = value[0]
    return (
        json.dumps(value, ensure_ascii=False)
        if isinstance(value, str)
        else "[" + ", ".join(json.dumps(v, ensure_ascii=False) for v in value) + "]"
    )
