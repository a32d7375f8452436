"""Columns of labels and numbers as people see them: aligned text for a terminal, a table for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cbdp.text import html_text, printable

MOST = 12  # rows that are shown; of longer tables the first and the last half of them
GAP = "…"


def shown_rows(size: int) -> list[int | None]:
    """The rows that are shown; None stands for those left out.

    >>> shown_rows(3)
    [0, 1, 2]
    >>> shown_rows(100)[5:8]
    [5, None, 94]
    """
    if size <= MOST:
        return list(range(size))
    half = MOST // 2
    return [*range(half), None, *range(size - half, size)]


def as_text(
    head: str, columns: Mapping[str, Sequence[Any]], numbers: Sequence[str], rows: Sequence[Any]
) -> str:
    """Columns below each other, numbers to the right. `rows` are the rows shown, None for a gap.

    >>> print(as_text("start: 2 counts", {"origin": ["A", "B"], "count": [7, 1200]}, ["count"], [0, 1]))
    start: 2 counts
    origin  count
    A           7
    B       1,200
    """
    lines = [[printable(name) for name in columns], *_lines(columns, numbers, rows)]
    wide = [max(len(line[c]) for line in lines) for c in range(len(columns))]
    right = [name in numbers for name in columns]
    made = [
        "  ".join(
            cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, wide, right, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join([printable(head), *made])


def as_html(
    head: str,
    columns: Mapping[str, Sequence[Any]],
    numbers: Sequence[str],
    rows: Sequence[Any],
    note: str = "",
) -> str:
    """A table that a notebook shows, in its own colours; whatever a label holds is text."""
    top = "".join(f'<th style="text-align:{_side(n, numbers)}">{html_text(n)}</th>' for n in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{_side(name, numbers)}">{html_text(cell)}</td>'
            for name, cell in zip(columns, line, strict=True)
        )
        + "</tr>"
        for line in _lines(columns, numbers, rows)
    )
    said = f'<div style="opacity:.75">{html_text(note)}</div>' if note else ""
    return f"<div><b>{html_text(head)}</b>{said}<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def _side(name: str, numbers: Sequence[str]) -> str:
    return "right" if name in numbers else "left"


def _lines(
    columns: Mapping[str, Sequence[Any]], numbers: Sequence[str], rows: Sequence[Any]
) -> list[list[str]]:
    return [
        [GAP] * len(columns)
        if row is None
        else [_cell(held[row], name in numbers) for name, held in columns.items()]
        for row in rows
    ]


def _cell(value: Any, number: bool) -> str:
    if value is None:
        return ""
    return f"{value:,}" if number else printable(str(value))
