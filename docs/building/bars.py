"""Bar charts of tables: a mark on a page names columns and rows of one of its tables, and the chart is drawn from them.

    <!-- bars: {"table": 1, "rows": {"bus": "buses", "train": "trains"}, "columns": ["before", "after"], "title": "…"} -->

So a chart cannot differ from the table. `table` counts from 1 over the tables of the page; `file` names a CSV file beside the page instead. `rows` says how rows are labelled; a row is named by its
first column, or by the first `key` columns with " · " between.
"""

from __future__ import annotations

import csv
import html
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MARK = re.compile(r"^<!-- bars: (\{.*\}) -->$", re.MULTILINE)
TABLE = re.compile(r"(?:^ {0,4}\|.*\|[ \t]*\n?){3,}", re.MULTILINE)
LEFT, RIGHT, BAR, GAP = 190, 440, 13, 12  # of a chart 700 wide
COLOURS = ("#00897b", "#8e8e8e", "#e08a00", "#5c6bc0", "#c2185b")


@dataclass(frozen=True)
class Chart:
    """What is drawn: a group of bars for each row."""

    title: str
    unit: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]
    log: bool = False


def drawn(text: str, folder: Path = Path()) -> str:
    """A page in a folder, with charts where it has marks."""
    tables = [_read(match.group(0)) for match in TABLE.finditer(text)]

    def picture(mark: re.Match[str]) -> str:
        asked = json.loads(mark.group(1))
        return svg(
            chart(asked, _file(folder / asked["file"]) if "file" in asked else tables[asked["table"] - 1])
        )

    return MARK.sub(picture, text)


def _file(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as rows:
        return list(csv.reader(rows))


def _read(table: str) -> list[list[str]]:
    lines = [line.strip().strip("|") for line in table.strip().splitlines()]
    return [[c.strip() for c in line.split("|")] for n, line in enumerate(lines) if n != 1]


def number(cell: str) -> float:
    """The first number in a cell.

    >>> number("1,339 ± 12"), number("−2 %"), number("**0.5**")
    (1339.0, -2.0, 0.5)
    """
    found = re.search(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", cell.replace("−", "-"))
    return float(found.group(0).replace(",", "")) if found else math.nan


def chart(asked: dict[str, Any], table: Sequence[Sequence[str]]) -> Chart:
    """The chart that a mark asks for; a name that its table does not have stops the build."""
    head, *body = table
    known = {" · ".join(row[: asked.get("key", 1)]): row for row in body}
    columns, rows = asked["columns"], asked["rows"]
    missing = [name for name in columns if name not in head] + [name for name in rows if name not in known]
    if missing:
        raise LookupError(f"the table has no {missing}: mend the mark {asked}")
    places = [head.index(c) for c in columns]
    made = tuple((label, tuple(number(known[r][p]) for p in places)) for r, label in rows.items())
    shown = tuple(asked.get("names", columns))
    return Chart(asked["title"], asked.get("unit", ""), shown, made, asked.get("log", False))


def svg(made: Chart) -> str:
    """The chart as a picture that takes the text's colour."""
    group = BAR * len(made.columns) + GAP
    legend, lines = _legend(made.columns) if len(made.columns) > 1 else ([], 0)
    top = 4 + 20 * lines
    height = top + group * len(made.rows) + 4
    parts = [*legend, *_bars(made, top, group)]
    said = html.escape(made.title, quote=True)
    picture = f'<svg viewBox="0 0 700 {height}" role="img" aria-label="{said}" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    return f'<figure class="bars">{picture}<figcaption>{html.escape(made.title)}</figcaption></figure>'


def _legend(names: Sequence[str]) -> tuple[list[str], int]:
    """What each colour is, and on how many lines."""
    parts, x, line = [], LEFT, 1
    for colour, name in zip(COLOURS, names, strict=False):
        wide = 32 + 7 * len(name)
        if x > LEFT and x + wide > LEFT + RIGHT:
            x, line = LEFT, line + 1
        y = 20 * line - 15
        parts.append(f'<rect x="{x}" y="{y}" width="11" height="11" fill="{colour}"/>')
        parts.append(f'<text x="{x + 15}" y="{y + 10}">{html.escape(name)}</text>')
        x += wide
    return parts, line


def _bars(made: Chart, top: int, group: int) -> Iterator[str]:
    values = [v for _, row in made.rows for v in row if math.isfinite(v)]
    most, least = max(values), min(v for v in values if v > 0)
    for n, (label, row) in enumerate(made.rows):
        y = top + n * group
        middle = y + BAR * len(row) / 2 + 4
        yield f'<text x="{LEFT - 8}" y="{middle:.0f}" text-anchor="end">{html.escape(label)}</text>'
        for m, value in enumerate(row):
            if math.isfinite(value):
                width = RIGHT * _share(value, least, most, log=made.log)
                yield f'<rect x="{LEFT}" y="{y + m * BAR}" width="{width:.1f}" height="{BAR - 2}" fill="{COLOURS[m]}"/>'
                yield f'<text x="{LEFT + width + 4:.1f}" y="{y + m * BAR + 10}" class="value">{_figure(value)}{made.unit}</text>'


def _share(value: float, least: float, most: float, *, log: bool) -> float:
    """How far a bar reaches, of the longest."""
    if not log:
        return max(0.0, value) / most
    return max(0.02, math.log(10 * value / least) / math.log(10 * most / least)) if value > 0 else 0.0


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"
