"""`cbdp compare`: how counts changed between two releases, or two sets of releases, as text, CSV, JSON or a page."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbdp.app.cli import COMMANDS
from cbdp.errors import InputError
from cbdp.text import cell_of, spreadsheet_cell

if TYPE_CHECKING:
    from cbdp.release import Release
    from cbdp.release.change import Compared

MOST_ROWS = 100  # on a terminal
WHOLE = ("first", "second", "change", "low", "high")
RATIOS = ("ratio", "ratio_low", "ratio_high")
SHOWN = (*WHOLE, *RATIOS, "chance_adjusted", "verdict")  # on a terminal, beside the attributes
FORMATS = ("text", "csv", "json")


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    check_places(options)
    return compare_sides([_side(given) for given in (options.first, options.second)], options)


def check_places(options: argparse.Namespace) -> None:
    """Refuse places that are taken, before the work begins."""
    from cbdp.app.new_file import check_new

    for path in filter(None, (options.out, options.page)):
        check_new(Path(path), internal=False)


def compare_sides(sides: Sequence[Sequence[Release]], options: argparse.Namespace) -> int:
    """Compare, and write it where and how the options say."""
    from cbdp.app.new_file import write_new
    from cbdp.progress import in_quarters, watched
    from cbdp.release.change import compare

    quarter = in_quarters(_say)
    with watched(lambda stage, done: quarter(stage, done) if stage == "runs" else None):
        made = compare(sides[0], sides[1], _names(options.by), options.where or None, options.confidence)
    text = {"text": as_text, "csv": as_csv, "json": as_json}[options.format](made)
    if options.page:
        write_new(Path(options.page), _page(made, sides, options.where or None))
        print(options.page)
    if options.out:
        write_new(Path(options.out), text)
        print(options.out)
    elif not options.page:
        sys.stdout.write(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cbdp compare", description=COMMANDS["compare"][1])
    several = "folder of a release; several, joined by commas, are added up"
    parser.add_argument("first", metavar="RELEASE", help=several)
    parser.add_argument("second", metavar="RELEASE", help="the later one, likewise")
    add_question(parser)
    return parser


def add_question(parser: argparse.ArgumentParser) -> None:
    """What is asked, and where the answer goes."""
    parser.add_argument("--by", default="", metavar="ATTRIBUTES", help="for example origin.zone,time")
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help="as in cbdp ask: 'time<10:00', 'origin=A,B'; may be given several times",
    )
    parser.add_argument(
        "--confidence", type=float, default=0.9, help="of intervals and verdicts (default: 0.9)"
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("--out", metavar="FILE", help="write it to a new file")
    parser.add_argument("--page", metavar="FILE", help="write a page for people to a new HTML file")


def _side(given: str) -> list[Release]:
    from cbdp.mechanisms import load

    places = [given] if Path(given).exists() else [p.strip() for p in given.split(",") if p.strip()]
    if not places:
        raise InputError(f"{given!r} names no release: give its folder")
    return [load(place) for place in places]


def _page(made: Compared, sides: Sequence[Sequence[Release]], where: Sequence[str] | None) -> str:
    from cbdp.release.change import compare
    from cbdp.report.change import build

    published_apart = any(r.tables for side in sides for r in side)  # tables that do not add up have no total
    whole = None if published_apart else compare(sides[0], sides[1], (), where, made.confidence)
    return build(made, sides[1][-1].places or sides[0][-1].places, whole)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _names(given: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",") if name.strip())


def as_text(made: Compared) -> str:
    """Sentences first, then the rows: those that stand out, and the others by how little chance explains them."""
    from cbdp.app.printing import aligned

    chance = made.columns["chance"]
    first = made.standing_out()
    rest = sorted(set(range(made.rows)) - set(first), key=lambda row: (chance[row], row))
    order = [*first, *rest][:MOST_ROWS]
    names = [*made.by, *SHOWN]
    rows = [[_shown(name, made.columns[name][row]) for name in names] for row in order]
    lines = [f"From {made.names[0]} to {made.names[1]}.", *made.headline, *made.notes, ""]
    many = len(made.by)
    lines += aligned([names, *rows], right=range(many, len(names) - 1))
    if made.rows > MOST_ROWS:
        lines.append(f"… {made.rows - MOST_ROWS:,} more rows: write all with --format csv --out FILE")
    return "\n".join(lines) + "\n"


def _shown(name: str, value: Any) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "–"
    if name == "change":
        return f"{value:+,}"
    if name in WHOLE:
        return f"{int(value):,}"
    if name in RATIOS:
        return f"{value:.3g}" if math.isfinite(value) else "–"
    return _chance(value) if name.startswith("chance") else str(value)


def _chance(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def as_csv(made: Compared) -> str:
    """A row for each group; a ratio without an end is left empty."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow(map(spreadsheet_cell, made.columns))
    write.writerows([["" if v is None else cell_of(v) for v in row] for row in _rows(made)])
    return out.getvalue()


def as_json(made: Compared) -> str:
    """Everything: names, sentences, and a row for each group."""
    names = list(made.columns)
    said = {
        "first": made.names[0],
        "second": made.names[1],
        "by": list(made.by),
        "confidence": made.confidence,
        "correction": "Benjamini–Hochberg",
        "headline": list(made.headline),
        "notes": list(made.notes),
        "rows": [dict(zip(names, map(_plain, row), strict=True)) for row in _rows(made)],
    }
    return json.dumps(said, ensure_ascii=False, indent=1) + "\n"


def _rows(made: Compared) -> list[list[Any]]:
    columns = [c.tolist() if hasattr(c, "tolist") else list(c) for c in made.columns.values()]
    names = list(made.columns)
    return [
        [_number(name, v) for name, v in zip(names, row, strict=True)] for row in zip(*columns, strict=True)
    ]


def _number(name: str, value: Any) -> Any:
    """None where there is no number; whole numbers as such."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return int(value) if name in WHOLE else value


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
