"""Tables in a page of prose: each stands between two marks, as a link to its CSV file, and is written anew where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.harness.beside import tables_beside
from cbdp.errors import InputError

BEGIN, END = "<!-- transit: {} -->", "<!-- end -->"


def filled(text: str, tables: Mapping[str, str]) -> str:
    """The text with these tables between their marks; others stay as they are.

    >>> filled("a\\n<!-- transit: x -->\\nold\\n<!-- end -->\\nb", {"x": "new"})
    'a\\n<!-- transit: x -->\\nnew\\n<!-- end -->\\nb'
    """
    for name, table in tables.items():
        begin = BEGIN.format(name)
        if begin not in text:
            raise InputError(
                f"the page has no place for {name!r}: put {begin!r} and {END!r} where it belongs"
            )
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{table}\n{END}{rest.partition(END)[2]}"
    return text


def fill(path: Path, tables: Mapping[str, str]) -> None:
    """Write tables into a page."""
    if not path.is_file():
        raise InputError(f"{str(path)!r} is not there: give the path of the page")
    text = filled(path.read_text(encoding="utf-8"), tables)
    path.write_text(tables_beside(text, path), encoding="utf-8")
