"""Tables as text, for terminals."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cbdp.text import printable


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """The lines of a table: every column as wide as its widest cell, those in `right` set to the right. Cells are shown as data.

    >>> for line in aligned([["zone", "trips"], ["north", "7"]], right=[1]):
    ...     print(line)
    zone   trips
    north      7
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(w) if column in right else cell.ljust(w)
            for column, (cell, w) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in rows
    ]
