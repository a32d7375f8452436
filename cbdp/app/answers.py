"""`cbdp ask`, `cbdp compare` and `cbdp export`: what a release says, as text, CSV, JSON, a page, or in the format of another program.

All of it is post-processing of published files: no trip is read and nothing is spent.
"""

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
    from cbdp.release.comparison import ReleaseComparison
    from cbdp_features.places import Stops
    from cbdp_features.tables import LabelledTable


MAX_ANSWER_ROWS = 200  # rows on a terminal; files hold all
ANSWER_COUNTS = ("count", "low", "high")
FORMATS = ("text", "csv", "json")
WHOLE_TOTAL = "all"  # a share of all trips that meet the conditions


def ask_main(argv: Sequence[str]) -> int:
    options = _ask_parser().parse_args(argv)
    from cbdp.app.new_file import check_new, write_new
    from cbdp.progress import in_quarters, watched
    from cbdp.release import load

    if options.csv and (options.out or options.format != "text"):
        raise InputError("--csv FILE is short for --format csv --out FILE: give one of both")
    form, path = ("csv", options.csv) if options.csv else (options.format, options.out)
    if path is not None:
        check_new(Path(path), internal=False)
    quarter = in_quarters(_ask_note)
    with watched(lambda stage, done: quarter(stage, done) if stage == "runs" else None):
        answer = load(options.release).ask(
            _names(options.by), options.where, options.confidence, _wholes(options.share_of), options.sharp
        )
    text = {"text": answer_text, "csv": answer_csv, "json": answer_json}[form](answer)
    if path is not None:
        write_new(Path(path), text)
        print(path)
    else:
        sys.stdout.write(text)
    if form == "csv":  # a table has no room for sentences
        for note in answer.notes:
            print(note, file=sys.stderr)
    return 0


def _ask_parser() -> argparse.ArgumentParser:
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
        help=f"some of --by, or {WHOLE_TOTAL}: also tell which share of the trips with the same values each count is",
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


def _ask_note(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(",") if name.strip())


def _wholes(listed: str | None) -> tuple[str, ...] | None:
    if listed is None:
        return None
    return () if listed.strip() == WHOLE_TOTAL else _names(listed)


def answer_text(answer: LabelledTable) -> str:
    """The rows, then what a reader must know of them."""
    from cbdp.text import aligned

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
CHANGE_FORMATS = ("text", "csv", "json")


def compare_main(argv: Sequence[str]) -> int:
    options = _compare_parser().parse_args(argv)
    check_places(options)
    return compare_sides([_side(argument) for argument in (options.first, options.second)], options)


def check_places(options: argparse.Namespace) -> None:
    """Refuse places that are taken, before the work begins."""
    from cbdp.app.new_file import check_new

    for path in filter(None, (options.out, options.page)):
        check_new(Path(path), internal=False)


def compare_sides(sides: Sequence[Sequence[Release]], options: argparse.Namespace) -> int:
    """Compare, and write it where and how the options say."""
    from cbdp.app.new_file import write_new
    from cbdp.progress import in_quarters, watched
    from cbdp.release.comparison import compare

    quarter = in_quarters(_compare_note)
    with watched(lambda stage, done: quarter(stage, done) if stage == "runs" else None):
        comparison = compare(
            sides[0], sides[1], _names(options.by), options.where or None, options.confidence
        )
    text = {"text": change_text, "csv": change_csv, "json": change_json}[options.format](comparison)
    if options.page:
        write_new(Path(options.page), _page(comparison, sides, options.where or None))
        print(options.page)
    if options.out:
        write_new(Path(options.out), text)
        print(options.out)
    elif not options.page:
        sys.stdout.write(text)
    return 0


def _compare_parser() -> argparse.ArgumentParser:
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
    parser.add_argument("--format", choices=CHANGE_FORMATS, default="text", help="default: text")
    parser.add_argument("--out", metavar="FILE", help="write it to a new file")
    parser.add_argument("--page", metavar="FILE", help="write a page for people to a new HTML file")


def _side(argument: str) -> list[Release]:
    from cbdp.release import load

    places = [argument] if Path(argument).exists() else [p.strip() for p in argument.split(",") if p.strip()]
    if not places:
        raise InputError(f"{argument!r} names no release: give its folder")
    return [load(place) for place in places]


def _page(
    comparison: ReleaseComparison, sides: Sequence[Sequence[Release]], where: Sequence[str] | None
) -> str:
    from cbdp.release.comparison import compare
    from cbdp.report.comparison import build

    published_apart = any(r.tables for side in sides for r in side)  # tables that do not add up have no total
    whole = None if published_apart else compare(sides[0], sides[1], (), where, comparison.confidence)
    return build(comparison, sides[1][-1].places or sides[0][-1].places, whole)


def _compare_note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def change_text(comparison: ReleaseComparison) -> str:
    """Sentences first, then the rows: those that stand out, and the others by how little chance explains them."""
    from cbdp.text import aligned

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


# `cbdp export`: a release in the format of another program


DEFAULT_CONFIDENCE = 0.9  # of intervals that are exported
EXPORT_OPTIONS = {
    "level": "add stops up to this attribute, for example zone",
    "zones": "omx: a file with the zones of another program, one on each line or in the column zone: matrices get their order, "
    "and those without trips",
    "places": "stops with coordinates (CSV, GTFS or GeoJSON), where the release has none",
    "network": "sumo: a network (.net.xml); writes a folder that od2trips and duarouter run on",
    "edges": "sumo: the streets of each place (CSV: place, edge) instead of those nearest to its stops",
    "mode": "matsim: the mode of all trips, where the release has none",
    "crs": "matsim: the coordinate system of x and y, for example EPSG:32617 (metres); by default longitude and latitude",
    "origin": "the dimension with the origins, if it is not called origin",
    "destination": "the dimension with the destinations, if it is not called destination",
}
FILE_OPTIONS = ("zones", "network", "edges")


def export_main(argv: Sequence[str]) -> int:
    """`cbdp export` with these arguments."""
    options = vars(_export_parser().parse_args(argv))
    from cbdp.release import load
    from cbdp.release.export import FORMATS, export

    chosen = FORMATS.get(options["format"] or _named(options["out"]))
    settings: dict[str, Any] = {
        name: options[name] for name in (*EXPORT_OPTIONS, "intervals") if options[name] is not None
    }
    chosen.check_options(settings)
    release = load(options["release"])
    if "places" in settings:
        settings["places"] = _places(release, settings["places"], settings.get("origin", "origin"))
    print(export(release, options["out"], chosen, **settings))
    return 0


def _named(out: str) -> str:
    """The format that the ending of a file's name says."""
    from cbdp.release.export import FORMATS

    endings = {FORMATS.get(name).ending: name for name in FORMATS.table if FORMATS.get(name).ending}
    ending = max((e for e in endings if out.lower().endswith(e)), key=len, default=None)
    if ending is None:
        raise InputError(
            f"--out {out}: its ending names no format (known are {', '.join(endings)}): say which with --format"
        )
    return endings[ending]


def _export_parser() -> argparse.ArgumentParser:
    from cbdp.release.export import FORMATS

    parser = argparse.ArgumentParser(
        prog="cbdp export", description="Write a release in the format of another program; spends nothing."
    )
    parser.add_argument("release", help="folder of a release")
    parser.add_argument(
        "--format",
        help=f"{', '.join(FORMATS.names())} (default: what the ending of --out says, for example .omx)",
    )
    parser.add_argument(
        "--out", required=True, help="where to write it: a file or a folder that does not exist yet"
    )
    parser.add_argument(
        "--intervals",
        type=float,
        nargs="?",
        const=DEFAULT_CONFIDENCE,
        metavar="CONFIDENCE",
        help=f"also low and high of every count, at this confidence (default: {DEFAULT_CONFIDENCE})",
    )
    for name, about in EXPORT_OPTIONS.items():
        parser.add_argument(
            f"--{name}", metavar="FILE" if name in (*FILE_OPTIONS, "places") else None, help=about
        )
    return parser


def _places(release: Release, path: str, origin: str) -> Stops:
    from cbdp_features.places import stops

    dimensions = release.features.universe.dimensions
    whole = origin in dimensions and all(isinstance(v, int) for v in dimensions[origin].values)
    return stops(Path(path), ids=int if whole else str)
