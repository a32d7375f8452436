"""`cbdp ask`: counts of a release by any attributes, with intervals, as text, CSV or JSON."""

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
    from cbdp.release.ask import Answer

MOST_ROWS = 200  # on a terminal
WHOLE = ("count", "low", "high")
FORMATS = ("text", "csv", "json")
ALL = "all"  # a share of all trips that meet the conditions


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    from cbdp.app.new_file import check_new, write_new
    from cbdp.mechanisms import load
    from cbdp.progress import in_quarters, watched

    if options.csv and (options.out or options.format != "text"):
        raise InputError("--csv FILE is short for --format csv --out FILE: give one of both")
    form, path = ("csv", options.csv) if options.csv else (options.format, options.out)
    if path is not None:
        check_new(Path(path), internal=False)
    quarter = in_quarters(_say)
    with watched(lambda stage, done: quarter(stage, done) if stage == "runs" else None):
        answer = load(options.release).ask(
            _names(options.by), options.where, options.confidence, _wholes(options.share_of), options.sharp
        )
    text = {"text": as_text, "csv": as_csv, "json": as_json}[form](answer)
    if path is not None:
        write_new(Path(path), text)
        print(path)
    else:
        sys.stdout.write(text)
    if form == "csv":  # a table has no room for sentences
        for note in answer.notes:
            print(note, file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cbdp ask", description=COMMANDS["ask"][1])
    parser.add_argument("release", help="folder of a release")
    parser.add_argument(
        "--by", default="", metavar="ATTRIBUTES", help="for example origin.zone,destination.zone"
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help="'time<10:00', 'origin=A,B', 'day!=sunday' or 'origin+destination=A+B,B+C'; may be given several times",
    )
    parser.add_argument(
        "--share-of",
        metavar="ATTRIBUTES",
        help=f"some of --by, or {ALL}: also tell which share of the trips with the same values each count is",
    )
    parser.add_argument("--confidence", type=float, default=0.9, help="of the intervals (default: 0.9)")
    parser.add_argument(
        "--sharp",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="intervals about the estimate where these are narrower; they hold fewer of the largest counts, and take seconds to minutes",
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("--out", metavar="FILE", help="write it to a new file")
    parser.add_argument("--csv", metavar="FILE", help="short for --format csv --out FILE")
    return parser


def _say(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


def _names(given: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",") if name.strip())


def _wholes(given: str | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    return () if given.strip() == ALL else _names(given)


def as_text(answer: Answer) -> str:
    """The rows, then what a reader must know of them."""
    from cbdp.app.printing import aligned

    names, columns = list(answer), [list(column) for column in answer.values()]
    many = len(answer["count"])
    rows = [
        [_shown(name, column[row]) for name, column in zip(names, columns, strict=True)]
        for row in range(min(many, MOST_ROWS))
    ]
    first = names.index("count")
    lines = aligned([names, *rows], right=range(first, len(names)))
    if many > MOST_ROWS:
        lines.append(f"… {many - MOST_ROWS:,} more rows: write all with --csv FILE")
    return "\n".join([*lines, *answer.notes]) + "\n"


def _shown(name: str, value: Any) -> str:
    if _number(name, value) is None:
        return "–"
    if name in WHOLE:
        return f"{int(value):,}"
    if name == "estimate":
        return f"{value:,.1f}"
    return f"{100 * value:.1f} %" if name.startswith("share") else str(value)


def _number(name: str, value: Any) -> Any:
    """None where there is no number, such as the end of an interval; whole numbers as such."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return int(value) if name in WHOLE else value


def _rows(answer: Answer) -> list[list[Any]]:
    names: list[str] = list(answer)
    columns: list[list[Any]] = [c.tolist() if hasattr(c, "tolist") else list(c) for c in answer.values()]
    return [
        [_number(name, value) for name, value in zip(names, row, strict=True)]
        for row in zip(*columns, strict=True)
    ]


def as_csv(answer: Answer) -> str:
    """A row for each group; the ends of an interval that there is not are empty."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow(map(spreadsheet_cell, answer))
    write.writerows([["" if v is None else cell_of(v) for v in row] for row in _rows(answer)])
    return out.getvalue()


def as_json(answer: Answer) -> str:
    """Everything: the confidence, the notes, and a row for each group; null where there is no interval."""
    names = list(answer)
    said = {
        "confidence": answer.confidence,
        "notes": list(answer.notes),
        "rows": [dict(zip(names, map(_plain, row), strict=True)) for row in _rows(answer)],
    }
    return json.dumps(said, ensure_ascii=False, indent=1) + "\n"


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
