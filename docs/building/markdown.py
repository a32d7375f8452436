"""Pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cell(text: object) -> str:
    r"""Text as it may stand in a table.

    >>> cell("a | b\nc")
    'a \\| b c'
    """
    return " ".join(str(text).split()).replace("|", "\\|")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table.

    >>> print(table(["key", "value"], [["a", 1]]))
    | key | value |
    |---|---|
    | a | 1 |
    """
    lines = [header, ["---"] * len(header), *rows]
    head, rule, *body = ("| " + " | ".join(cell(c) for c in line) + " |" for line in lines)
    return "\n".join([head, rule.replace(" ", ""), *body])


def fenced(text: str, language: str = "") -> str:
    """A block of code.

    >>> print(fenced("a = 1", "toml"))
    ```toml
    a = 1
    ```
    """
    return f"```{language}\n{text.strip()}\n```"


def sentence(text: str) -> str:
    """A phrase as a sentence of its own: capital letter, full stop.

    >>> sentence("the folder of the release")
    'The folder of the release.'
    """
    said = text.strip()
    said = said[:1].upper() + said[1:]
    return said if not said or said.endswith((".", "?", "!")) else f"{said}."
