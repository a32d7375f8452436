"""Markdown tables, the form every benchmark prints its figures in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers.

    >>> print(markdown(["row", "ε = 1"], [["O5", "0.91"]]))
    | row | ε = 1 |
    |:---|---:|
    | O5 | 0.91 |
    """
    rule = "|".join(["", ":---", *["---:"] * (len(header) - 1), ""])
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join(["| " + " | ".join(header) + " |", rule, *lines])


def figure(value: float) -> str:
    """A number with three significant digits, or whole with commas from a thousand on.

    >>> figure(0.9123), figure(56.6), figure(839150.4), figure(float("nan"))
    ('0.912', '56.6', '839,150', '–')
    """
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    digits = 2 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 3)}f}"


def figures(values: Iterable[float]) -> str:
    """Several numbers in one cell.

    >>> figures([5.11, 56.6, 715])
    '5.11 / 56.6 / 715'
    """
    return " / ".join(map(figure, values))


def percent(part: float) -> str:
    """A share as a signed percentage.

    >>> percent(0.0631)
    '+6.3 %'
    """
    return f"{100 * part:+.1f} %"
