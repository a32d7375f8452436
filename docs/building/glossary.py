"""The glossary: the report's own terms, and the words that the project uses in one sense."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cbdp.report.page import GLOSSARY_TERMS

PAGE = "reference/glossary.md"


def words(architecture: str) -> dict[str, str]:
    """The table of words on the page of the architecture."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", architecture.partition("## Words")[2], re.MULTILINE)
    return {term.strip(): meaning.strip() for term, meaning in rows if term.strip("- ") and term != "word"}


def page(architecture: str) -> str:
    """The page: what the report explains, then the words of the documentation."""
    report = {term: str(meaning) for term, meaning in GLOSSARY_TERMS.items()}
    rest = {t: m for t, m in words(architecture).items() if t.lower() not in {r.lower() for r in report}}
    made = [
        "# Glossary",
        (
            "The first list is the one that every report carries; the second has the other words that this documentation uses, each in "
            "one sense."
        ),
        "## Words of a report",
        _list(report),
        "## Words of the documentation",
        _list(rest),
    ]
    return "\n\n".join(made) + "\n"


def _list(terms: dict[str, str]) -> str:
    return "\n\n".join(f"{term}\n:   {meaning}" for term, meaning in terms.items())


def pages(architecture: str) -> Iterator[tuple[str, str]]:
    yield PAGE, page(architecture)
