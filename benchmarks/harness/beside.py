"""Result pages stay short: one table stands on the page, every further one is a CSV file beside it, which the page links.

python -m benchmarks.harness.beside FILE     the same for a page that was written by hand
"""

from __future__ import annotations

import csv
import io
import re
import sys
from pathlib import Path

TABLE = re.compile(r"(?:^\|.*\|[ \t]*\n?){3,}", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MAX_ROWS = 20  # rows that fit on a screen
TITLE_COLUMNS = 4  # columns that a link names


def tables_beside(text: str, page: Path, *, kept: int = 1) -> str:
    """The page's text with its first tables that fit on a screen; all others are written as CSV into the folder of the page's name.

    Links to files that are there already stay as they are, so that tables of a page may be written anew one by one.
    """
    names: set[str] = set()
    shown = 0

    def shorter(match: re.Match[str]) -> str:
        nonlocal shown
        header, *rows = cells(match.group(0))
        if shown < kept and len(rows) <= MAX_ROWS:
            shown += 1
            return match.group(0)
        headings = [*HEADING.finditer(text, 0, match.start())]
        name = unused(slug(headings[-1].group(1) if headings else page.stem), names)
        return link(header, rows, page, name) + "\n"

    return re.sub(r"\n{3,}", "\n\n", TABLE.sub(shorter, text))


def link(header: list[str], rows: list[list[str]], page: Path, name: str) -> str:
    """Write a table as `PAGE/NAME.csv`, and the line that links it."""
    file = page.with_suffix("") / f"{name}.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    file.write_text(text.getvalue(), encoding="utf-8")
    columns = [column for column in header if column]
    title = ", ".join(columns[:TITLE_COLUMNS]) + (", …" if len(columns) > TITLE_COLUMNS else "")
    return f"- [{title.replace('[', '(').replace(']', ')')}]({page.stem}/{name}.csv): {len(rows)} rows"


def cells(table: str) -> list[list[str]]:
    """Header and rows of a Markdown table, without marks of emphasis, code and thousands.

    >>> cells("| a | `b` |\\n|---|---:|\\n| **1** | 2,345 ± 10 |\\n")
    [['a', 'b'], ['1', '2345 ± 10']]
    """
    lines = [line.strip().strip("|") for line in table.strip().splitlines()]
    rows = [
        [re.sub(r"\*\*|`|(?<=\d),(?=\d{3}\b)", "", cell).strip() for cell in line.split("|")]
        for line in lines
    ]
    return [rows[0], *rows[2:]]


def slug(heading: str) -> str:
    """A heading as the name of a file.

    >>> slug("Trips that noise invents (§6)")
    'trips-that-noise-invents-6'
    """
    return "-".join(re.findall(r"[a-z0-9]+", heading.lower())) or "table"


def unused(name: str, names: set[str]) -> str:
    """The name, with a number where it is taken."""
    number, free = 1, name
    while free in names:
        number += 1
        free = f"{name}-{number}"
    names.add(free)
    return free


def main(pages: list[str]) -> int:
    for page in map(Path, pages):
        page.write_text(tables_beside(page.read_text("utf-8"), page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
