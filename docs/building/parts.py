"""The page of the parts that come with the package, from the tables that hold them."""

from __future__ import annotations

from collections.abc import Iterator

from building.markdown import sentence, table
from cbdp.app.cli import PART_KINDS

PAGE = "reference/parts.md"
HEAD = """# Parts

Every kind of part has a table, and you can add to each: give yours as an object, as `"package.module:name"`, or register it in the entry-point
group of its kind. [Architecture](../explanation/architecture.md#parts-that-you-can-add) says how; `cbdp parts` also lists what installed packages bring.

This page is made from the tables."""


def page() -> str:
    """The page."""
    made = [HEAD]
    for kind, known in PART_KINDS.items():
        parts = known.table()
        made += [f"## {kind.capitalize()}", f"Entry-point group `{parts.group}`."]
        made.append(
            table(["name", "about"], [(f"`{n}`", told) for n, told in abouts(kind) if n in parts.table])
        )
    return "\n\n".join(made) + "\n"


def abouts(kind: str) -> list[tuple[str, str]]:
    """Each part's name and its line about itself, without the hint where a part is not installed here."""
    return [(row[0], sentence(row[-1].partition(" — ")[0])) for row in PART_KINDS[kind].rows()[1:]]


def pages() -> Iterator[tuple[str, str]]:
    yield PAGE, page()
