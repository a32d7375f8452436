"""`cbdp ask`: counts of a release by any attributes, with intervals, as a table on the terminal or a CSV file."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cbdp.app.cli import COMMANDS
from cbdp.text import cell_of, spreadsheet_cell

MOST_ROWS = 200  # on a terminal
WHOLE = ("count", "low", "high")
ALL = "all"  # a share of all trips that meet the conditions


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    from cbdp.app.new_file import check_new, write_new
    from cbdp.mechanisms import load
    from cbdp.progress import in_quarters, watched

    path = Path(options.csv) if options.csv else None
    if path is not None:
        check_new(path, internal=False)
    quarter = in_quarters(_say)
    with watched(lambda stage, done: quarter(stage, done) if stage == "runs" else None):
        answer = load(options.release).ask(
            _names(options.by), options.where, options.confidence, _wholes(options.share_of), options.sharp
        )
    if path is None:
        print("\n".join(_lines(answer)))
    else:
        write_new(path, _csv(answer))
        print(path)
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
        default=None,
        help="narrower intervals where no table gives the answer, which take seconds to minutes; done unless told otherwise up to 524,288 trip types",
    )
    parser.add_argument("--csv", metavar="FILE", help="write the table to a new file")
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


def _lines(answer: dict[str, Any]) -> list[str]:
    from cbdp.app.printing import aligned

    names = list(answer)
    many = len(answer["count"])
    rows = [[_shown(name, answer[name][row]) for name in names] for row in range(min(many, MOST_ROWS))]
    first = names.index("count")
    lines = aligned([names, *rows], right=range(first, len(names)))
    if many > MOST_ROWS:
        lines.append(f"… {many - MOST_ROWS:,} more rows: write all with --csv FILE")
    return lines


def _shown(name: str, value: Any) -> str:
    if name in WHOLE:
        return f"{value:,}"
    if name == "estimate":
        return f"{value:,.1f}"
    return f"{100 * value:.1f} %" if name.startswith("share") else str(value)


def _csv(answer: dict[str, Any]) -> str:
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow(map(spreadsheet_cell, answer))
    columns = [c.tolist() if hasattr(c, "tolist") else map(cell_of, c) for c in answer.values()]
    write.writerows(zip(*columns, strict=True))
    return out.getvalue()
