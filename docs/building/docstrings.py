"""Examples in docstrings become blocks of code: Markdown would take `>>>` for a quotation."""

from __future__ import annotations

from typing import Any

import griffe

PROMPT = ">>> "


def with_blocks(text: str) -> str:
    r"""A docstring whose examples stand in fences.

    >>> with_blocks("Adds.\n\n>>> 1 + 1\n2\n\nEnd.")
    'Adds.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nEnd.'
    """
    made: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(PROMPT) and not inside:
            made += [*([""] if made and made[-1] else []), "```pycon"]
            inside = True
        elif inside and not line.strip():
            made.append("```")
            inside = False
        made.append(line)
    return "\n".join([*made, "```"] if inside else made)


class Examples(griffe.Extension):
    """Every docstring of the package, before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ARG002 - griffe's
        if obj.docstring is not None:
            obj.docstring.value = with_blocks(obj.docstring.value)
