"""Findings that say: a number or a file is not what was released."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cbdp.audit.finding import Finding
from cbdp.release.layout import NUMBERS

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 3  # rows or fields that a finding names; it counts the others
CHANGED = "Whoever changed it makes readers believe a number that was never released, or hides one that was."
RESTORE = "Restore the folder from a copy whose manifest has the SHA-256 that the ledger notes."


def tampered(check: str, title: str, evidence: str, **figures: float | str) -> Finding:
    """The finding that something was changed after the release."""
    return Finding(check, "contradicts", title, evidence, CHANGED, RESTORE, figures)


def and_more(many: int) -> str:
    """How many further ones there are beside those shown."""
    return f" And {many - SHOWN:,} more." if many > SHOWN else ""


def row_words(table: pa.Table, row: int) -> str:
    """A row of a file by its keys."""
    keys = [n for n in table.column_names if n not in NUMBERS]
    return " · ".join(str(table[n][row].as_py()) for n in keys) or "the whole"
