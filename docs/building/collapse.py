"""Long tables of result pages fold away: a reader sees what was found, and opens what they want to check."""

from __future__ import annotations

import re

SHORTEST = 9  # rows below the head from which on a table is folded
TABLE = re.compile(r"(?:^\|.*\|[ \t]*\n?){3,}", re.MULTILINE)


def folded(text: str) -> str:
    r"""A page with its long tables in blocks that open.

    >>> long = "| run | error |\n|---|---|\n" + "| 1 | 2 |\n" * 12
    >>> print(folded("Before.\n\n" + long)[:48])
    Before.
    <BLANKLINE>
    ??? note "Table of 12 rows: run, error"
    """
    return TABLE.sub(_block, text)


def _block(found: re.Match[str]) -> str:
    lines = found.group(0).strip().splitlines()
    rows = len(lines) - 2
    if rows < SHORTEST:
        return found.group(0)
    indented = "\n".join(f"    {line}" for line in lines)
    return f'??? note "Table of {rows} rows: {_title(lines[0])}"\n\n{indented}\n'


def _title(head: str) -> str:
    """The first columns of a table, as text that may stand in quotes."""
    names = [re.sub(r"[*`\"]", "", c).strip() for c in head.strip("|").split("|")]
    shown = [n for n in names if n]
    return ", ".join(shown[:6]) + (", …" if len(shown) > 6 else "")
