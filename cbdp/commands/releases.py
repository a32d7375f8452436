"""`cbdp ask`, `cbdp compare`, `cbdp export`: what a release says, as text, CSV, JSON, a page, or in the format of another program.

All of it is post-processing of published files: no trip is read and nothing is spent. Whatever is slow is imported by the command that needs it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbdp.commands.program import (
    FILE,
    FOLDER,
    argument,
    check_new,
    command,
    name_of,
    option,
    release_argument,
    say,
    write_new,
)
from cbdp.errors import InputError
from cbdp.progress import shown, silent
from cbdp.text import aligned, cell_of, spreadsheet_cell

if TYPE_CHECKING:
    from cbdp.release import Release
    from cbdp.release.comparison import ReleaseComparison
    from cbdp_features.places import Stops
    from cbdp_features.tables import LabelledTable


# `cbdp ask`: any question about one release


WHOLE_TOTAL = "all"  # a share of all trips that meet the conditions
format_option = option(
    "--format", "form", type=click.Choice(("text", "csv", "json")), default="text", about="default: text"
)
out_option = option("--out", metavar="FILE", type=FILE, about="write it to a new file")


@command("ask")
@release_argument
@option("--by", default="", metavar="ATTRIBUTES", about="for example origin.zone,destination.zone")
@option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    about="'time<10:00', 'origin=A,B', 'day!=sunday' or 'origin+destination=A+B,B+C'; may be given several times",
)
@option(
    "--share-of",
    metavar="ATTRIBUTES",
    about=f"some of --by, or {WHOLE_TOTAL}: also tell which share of the trips with the same values each count is",
)
@option("--confidence", type=float, default=0.9, about="of the intervals (default: 0.9)")
@option(
    "--sharp/--no-sharp",
    about="intervals about the estimate where these are narrower; they hold fewer of the largest counts, and take seconds to minutes",
)
@format_option
@out_option
@option("--csv", "csv_file", metavar="FILE", type=FILE, about="short for --format csv --out FILE")
def ask(
    release: str,
    by: str,
    where: tuple[str, ...],
    share_of: str | None,
    confidence: float,
    sharp: bool,
    form: str,
    out: str | None,
    csv_file: str | None,
) -> int:
    """Answer any question about a release, with intervals and shares; spends nothing."""
    from cbdp.release import load

    if csv_file and (out or form != "text"):
        raise InputError("--csv FILE is short for --format csv --out FILE: give one of both")
    form, place = ("csv", csv_file) if csv_file else (form, out)
    if place is not None:
        check_new(Path(place), internal=False)
    whole = None if share_of is None else () if share_of.strip() == WHOLE_TOTAL else _names(share_of)
    with shown(say if sys.stderr.isatty() else silent, only=("runs",)):
        answer = load(release).ask(_names(by), where, confidence, whole, sharp)
    text = {"text": answer_text, "csv": answer_csv, "json": answer_json}[form](answer)
    if place is not None:
        write_new(Path(place), text)
        print(place)
    else:
        sys.stdout.write(text)
    if form == "csv":  # a table has no room for sentences
        for note in answer.notes:
            print(note, file=sys.stderr)
    return 0


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(",") if name.strip())


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


@dataclass(frozen=True)
class AskedComparison:
    """What is compared, and where that is written."""

    by: str
    where: tuple[str, ...]
    confidence: float
    form: str
    out: str | None
    page: str | None

    def __post_init__(self) -> None:
        """Places that are taken are refused before the work begins."""
        for path in filter(None, (self.out, self.page)):
            check_new(Path(path), internal=False)

    def of(self, first: Sequence[Release], second: Sequence[Release]) -> int:
        from cbdp.release.comparison import compare

        with shown(say, only=("runs",)):
            changes = compare(first, second, _names(self.by), self.where or None, self.confidence)
        text = {"text": change_text, "csv": change_csv, "json": change_json}[self.form](changes)
        if self.page:
            write_new(Path(self.page), change_page(changes, (first, second), self.where or None))
            print(self.page)
        if self.out:
            write_new(Path(self.out), text)
            print(self.out)
        elif not self.page:
            sys.stdout.write(text)
        return 0


def comparison_options(command: Callable[..., int]) -> Callable[..., int]:
    """What is asked of two sides, and where the answer goes."""
    for decorated in (
        option("--page", metavar="FILE", type=FILE, about="write a page for people to a new HTML file"),
        out_option,
        format_option,
        option("--confidence", type=float, default=0.9, about="of intervals and verdicts (default: 0.9)"),
        option(
            "--where",
            multiple=True,
            metavar="CONDITION",
            about="as in cbdp ask: 'time<10:00', 'origin=A,B'; may be given several times",
        ),
        option("--by", default="", metavar="ATTRIBUTES", about="for example origin.zone,time"),
    ):
        command = decorated(command)
    return command


several = "folder of a release; several, joined by commas, are added up"


@command("compare")
@argument("first", several, metavar="RELEASE", type=FOLDER)
@argument("second", "the later one, likewise", metavar="RELEASE", type=FOLDER)
@comparison_options
def compare(first: str, second: str, **asked: Any) -> int:
    """Say how counts changed between releases, and what noise can explain; spends nothing."""
    comparison = AskedComparison(**asked)
    return comparison.of(_side(first), _side(second))


def _side(argument: str) -> list[Release]:
    from cbdp.release import load

    places = [argument] if Path(argument).exists() else [p.strip() for p in argument.split(",") if p.strip()]
    if not places:
        raise InputError(f"{argument!r} names no release: give its folder")
    return [load(place) for place in places]


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


# `cbdp export`: a release in the format of another program


EXPORT_CONFIDENCE = 0.9  # of intervals that are exported
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
FILE_OPTIONS = ("zones", "places", "network", "edges")


def export_options(command: Callable[..., int]) -> Callable[..., int]:
    for name, about in reversed(EXPORT_OPTIONS.items()):
        taken: Mapping[str, Any] = {"metavar": "FILE", "type": FILE} if name in FILE_OPTIONS else {}
        command = option(f"--{name}", about=about, **taken)(command)
    return command


def _export_formats() -> list[str]:
    from cbdp.release.export import FORMATS

    return list(FORMATS.names())


@command("export")
@release_argument
@option(
    "--format",
    "form",
    type=name_of(_export_formats),
    metavar="FORMAT",
    about=lambda: (
        f"{', '.join(_export_formats())} (default: what the ending of --out says, for example .omx)"
    ),
)
@option(
    "--out", required=True, type=FILE, about="where to write it: a file or a folder that does not exist yet"
)
@option(
    "--intervals",
    type=float,
    is_flag=False,
    flag_value=EXPORT_CONFIDENCE,
    metavar="CONFIDENCE",
    about=f"also low and high of every count, at this confidence (default: {EXPORT_CONFIDENCE})",
)
@export_options
def export(release: str, form: str | None, out: str, **options: Any) -> int:
    """Write a release in the format of another program; spends nothing."""
    from cbdp.release import load
    from cbdp.release.export import FORMATS, ending_format
    from cbdp.release.export import export as written

    chosen = FORMATS.get(form or ending_format(out))
    settings = {name: value for name, value in options.items() if value is not None}
    chosen.check_options(settings)
    published = load(release)
    if "places" in settings:
        settings["places"] = _stops(published, settings["places"], settings.get("origin"))
    print(written(published, out, chosen, **settings))
    return 0


def _stops(release: Release, path: str, origin: str | None) -> Stops:
    from cbdp.release.views import ends_of
    from cbdp_features.places import stops

    dimensions = release.features.universe.dimensions
    origin = origin or (ends_of(release.features.universe) or ("origin",))[0]
    whole = origin in dimensions and all(isinstance(v, int) for v in dimensions[origin].values)
    return stops(Path(path), ids=int if whole else str)
