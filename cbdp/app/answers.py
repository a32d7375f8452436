"""What a release says, asked or compared (`cbdp ask`, `cbdp compare`): as text, CSV, JSON or a page.

All of it is post-processing of published files: no trip is read and nothing is spent.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cbdp.text import aligned, cell_of, spreadsheet_cell

if TYPE_CHECKING:
    from cbdp.release import Release
    from cbdp.release.comparison import ReleaseComparison
    from cbdp_features.tables import LabelledTable


MAX_ANSWER_ROWS = 200  # rows on a terminal; files hold all
ANSWER_COUNTS = ("count", "low", "high")


def answer_text(answer: LabelledTable) -> str:
    """The rows, then what a reader must know of them."""
    names, columns = list(answer.keys()), [list(column) for column in answer.values()]
    many = len(answer["count"])
    rows = [
        [_answer_cell(name, column[row]) for name, column in zip(names, columns, strict=True)]
        for row in range(min(many, MAX_ANSWER_ROWS))
    ]
    first = names.index("count")
    lines = aligned([names, *rows], right=range(first, len(names)))
    if many > MAX_ANSWER_ROWS:
        lines.append(f"… {many - MAX_ANSWER_ROWS:,} more rows: write all with --csv FILE")
    return "\n".join([*lines, *answer.notes]) + "\n"


def _answer_cell(name: str, value: Any) -> str:
    if _answer_number(name, value) is None:
        return "–"
    if name in ANSWER_COUNTS:
        return f"{int(value):,}"
    if name == "estimate":
        return f"{value:,.1f}"
    return f"{100 * value:.1f} %" if name.startswith("share") else str(value)


def _answer_number(name: str, value: Any) -> Any:
    """None where there is no number, such as the end of an interval; whole numbers as such."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return int(value) if name in ANSWER_COUNTS else value


def _answer_rows(answer: LabelledTable) -> list[list[Any]]:
    names = list(answer.keys())
    columns: list[list[Any]] = [c.tolist() if hasattr(c, "tolist") else list(c) for c in answer.values()]
    return [
        [_answer_number(name, value) for name, value in zip(names, row, strict=True)]
        for row in zip(*columns, strict=True)
    ]


def answer_csv(answer: LabelledTable) -> str:
    """A row for each group; the ends of an interval that there is not are empty."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow(map(spreadsheet_cell, answer.keys()))
    write.writerows([["" if v is None else cell_of(v) for v in row] for row in _answer_rows(answer)])
    return out.getvalue()


def answer_json(answer: LabelledTable) -> str:
    """Everything: the confidence, the notes, and a row for each group; null where there is no interval."""
    names = list(answer.keys())
    document = {
        "confidence": answer.confidence,
        "notes": list(answer.notes),
        "rows": [dict(zip(names, map(_plain, row), strict=True)) for row in _answer_rows(answer)],
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


# `cbdp compare`: how counts changed between two releases, or two sets of releases


MAX_CHANGE_ROWS = 100  # rows on a terminal; files hold all
CHANGE_COUNTS = ("first", "second", "change", "low", "high")
RATIO_COLUMNS = ("ratio", "ratio_low", "ratio_high")
CHANGE_COLUMNS = (
    *CHANGE_COUNTS,
    *RATIO_COLUMNS,
    "chance_adjusted",
    "verdict",
)  # on a terminal, beside the attributes


def change_page(
    comparison: ReleaseComparison, sides: Sequence[Sequence[Release]], where: Sequence[str] | None
) -> str:
    from cbdp.release.comparison import compare
    from cbdp.report.comparison import build

    published_apart = any(r.tables for side in sides for r in side)  # tables that do not add up have no total
    whole = None if published_apart else compare(sides[0], sides[1], (), where, comparison.confidence)
    return build(comparison, sides[1][-1].places or sides[0][-1].places, whole)


def change_text(comparison: ReleaseComparison) -> str:
    """Sentences first, then the rows: those that stand out, and the others by how little chance explains them."""
    chance = comparison.columns["chance"]
    first = comparison.standing_out()
    rest = sorted(set(range(comparison.rows)) - set(first), key=lambda row: (chance[row], row))
    order = [*first, *rest][:MAX_CHANGE_ROWS]
    names = [*comparison.by, *CHANGE_COLUMNS]
    rows = [[_change_cell(name, comparison.columns[name][row]) for name in names] for row in order]
    lines = [
        f"From {comparison.names[0]} to {comparison.names[1]}.",
        *comparison.headline,
        *comparison.notes,
        "",
    ]
    many = len(comparison.by)
    lines += aligned([names, *rows], right=range(many, len(names) - 1))
    if comparison.rows > MAX_CHANGE_ROWS:
        lines.append(
            f"… {comparison.rows - MAX_CHANGE_ROWS:,} more rows: write all with --format csv --out FILE"
        )
    return "\n".join(lines) + "\n"


def _change_cell(name: str, value: Any) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "–"
    if name == "change":
        return f"{value:+,}"
    if name in CHANGE_COUNTS:
        return f"{int(value):,}"
    if name in RATIO_COLUMNS:
        return f"{value:.3g}" if math.isfinite(value) else "–"
    return _chance(value) if name.startswith("chance") else str(value)


def _chance(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def change_csv(comparison: ReleaseComparison) -> str:
    """A row for each group; a ratio without an end is left empty."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow(map(spreadsheet_cell, comparison.columns))
    write.writerows([["" if v is None else cell_of(v) for v in row] for row in _change_rows(comparison)])
    return out.getvalue()


def change_json(comparison: ReleaseComparison) -> str:
    """Everything: names, sentences, and a row for each group."""
    names = list(comparison.columns)
    document = {
        "first": comparison.names[0],
        "second": comparison.names[1],
        "by": list(comparison.by),
        "confidence": comparison.confidence,
        "correction": "Benjamini–Hochberg",
        "headline": list(comparison.headline),
        "notes": list(comparison.notes),
        "rows": [dict(zip(names, map(_plain, row), strict=True)) for row in _change_rows(comparison)],
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _change_rows(comparison: ReleaseComparison) -> list[list[Any]]:
    columns = [c.tolist() if hasattr(c, "tolist") else list(c) for c in comparison.columns.values()]
    names = list(comparison.columns)
    return [
        [_change_number(name, v) for name, v in zip(names, row, strict=True)]
        for row in zip(*columns, strict=True)
    ]


def _change_number(name: str, value: Any) -> Any:
    """None where there is no number; whole numbers as such."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return int(value) if name in CHANGE_COUNTS else value
