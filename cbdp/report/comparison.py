"""The page of a comparison: what changed between releases in words, on a map, by group and in a table, and what noise can explain."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from cbdp.numbers import confidence_text, signed, signed_percent
from cbdp.release.comparison import CHANCE, CHANGED, NOISE, ReleaseComparison
from cbdp.report.rendering import Pill, Tile, render
from cbdp_features.places import Stops

MAX_ROWS_NAMED = 5  # rows that the head names
MAX_ROWS_LISTED = 3_000  # rows listed on a page
VERDICT_CLASSES = {CHANGED: "good", CHANCE: "fair", NOISE: "none"}
ROW_HEADINGS = ("Before", "After", "Change", "Interval", "Ratio", "Verdict")


def build(
    comparison: ReleaseComparison, places: Stops | None = None, whole: ReleaseComparison | None = None
) -> str:
    """The comparison as HTML, which opens offline and asks nothing of any server.

    `places` gives coordinates for the map; `whole` is the same comparison of all trips together, for the head.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> mechanism = cbdp.ConstraintBased(features, epsilon=1)
    >>> may, june = (mechanism.simulate({"stop": ["A"] * n, "time": ["am"] * n}, seed=n) for n in (300, 900))
    >>> build(cbdp.compare(may, june, by="time")).startswith("<!doctype html>")
    True
    """
    change, multiples, stems = (
        change_map(comparison, places),
        small_multiples(comparison),
        stem_plot(comparison),
    )
    sections = {
        "map": change and "Where it changed",
        "multiples": multiples and "Change by group",
        "stems": stems and "The clearest changes",
        "all": "Every row",
        "method": "How to read this",
    }
    changed = comparison.standing_out()[:MAX_ROWS_NAMED] if comparison.by else []
    return render(
        "report/comparison.html.jinja",
        style=["report/comparison.css"],
        script="report/comparison.js",
        data={},
        comparison=comparison,
        noun=comparison.noun,
        say=comparison.noun.say,
        confidence=confidence_text(comparison.confidence),
        sections={key: name for key, name in sections.items() if name},
        clearest=[f"{label_of(comparison, row)}: {change_text(comparison, row)}" for row in changed],
        head=_tiles(comparison, whole),
        map=change,
        multiples=multiples,
        size=PANEL,
        stems=stems,
        row_head=[*(comparison.by or ("",)), *ROW_HEADINGS],
        rows=[_table_row(comparison, row) for row in _order(comparison)[:MAX_ROWS_LISTED]],
    )


def _tiles(comparison: ReleaseComparison, whole: ReleaseComparison | None) -> list[Tile]:
    first, second = (
        sum(numbers_of(comparison, row)[side] for row in range(comparison.rows)) for side in (0, 1)
    )
    say, changed = comparison.noun.say, len(comparison.standing_out())
    sure = _certain_change(comparison if comparison.rows == 1 else whole)
    return [
        Tile(say("Published trips before"), f"{first:,}", comparison.names[0]),
        Tile(say("Published trips after"), f"{second:,}", comparison.names[1]),
        Tile("Change", signed(second - first), f"{signed_percent(first, second)}{sure}"),
        Tile("Rows that stand out", f"{changed:,}", f"of {comparison.rows:,}, after the correction for many rows"),
    ]  # fmt: skip


def _certain_change(whole: ReleaseComparison | None) -> str:
    if whole is None or whole.rows != 1:
        return ""
    if ends_of(whole, 0) is None:
        return "; no interval: no measured table adds up to it"
    return f"; {confidence_text(whole.confidence)} interval {range_of(whole, 0)}"


# The table of all rows: those that stand out first; a page lists so many, and says where the others are


@dataclass(frozen=True)
class TableRow:
    """A row: its labels, its numbers as text and to sort by, its verdict, and whether it stands out (1 or 0)."""

    labels: list[str]
    cells: list[tuple[str, float]]
    pill: Pill
    out: int


def _order(comparison: ReleaseComparison) -> list[int]:
    first, chance = comparison.standing_out(), _chances(comparison)
    return [*first, *sorted(set(range(comparison.rows)) - set(first), key=lambda row: (chance[row], row))]


def _table_row(comparison: ReleaseComparison, row: int) -> TableRow:
    first, second, change = numbers_of(comparison, row)
    ends, ratio = ends_of(comparison, row), _number(comparison, "ratio", row)
    verdict = str(comparison.columns["verdict"][row])
    labels = [str(comparison.columns[name][row]) for name in comparison.by]
    return TableRow(
        labels or [f"all {comparison.noun.many}"],
        [
            (f"{first:,}", first),
            (f"{second:,}", second),
            (signed(change), change),
            ("–", -1) if ends is None else (range_of(comparison, row), ends[1] - ends[0]),
            ("–", -1) if math.isnan(ratio) else (f"{ratio:.3g}", round(ratio, 6)),
        ],
        Pill(verdict, VERDICT_CLASSES.get(verdict, "none")),
        int(verdict == CHANGED),
    )


# The map: a disc for each stop or zone, or a line for each pair, as large as its change; grey where noise explains it

MAP_WIDTH, MAP_PADDING = 900, 46  # pixels
MAX_DISC_RADIUS = 26.0  # pixels: the radius of the largest change
MAX_LINE_WIDTH = 9.0  # pixels: the width of the largest change
MAX_LINES = 80  # lines drawn, the clearest changes
MAX_PLACES_NAMED = 24  # places that are named
Point = tuple[float, float]


@dataclass(frozen=True)
class Mark:
    """A row on the map: a disc of this radius, or a path of this width; as large as the change, grey where noise explains it."""

    size: str
    colour: str
    tip: str
    x: str = ""
    y: str = ""
    path: str = ""


@dataclass(frozen=True)
class ChangeMap:
    """The map: all stops, the marks on them, and the names of some, each with its place."""

    note: str
    label: str
    width: int
    height: str
    stops: list[tuple[str, str]]
    marks: list[Mark]
    names: list[tuple[str, str, str]]


def change_map(comparison: ReleaseComparison, places: Stops | None) -> ChangeMap | None:
    """None where the rows are no places, or nobody knows where they are."""
    if places is None or len(comparison.by) not in (1, 2):
        return None
    seats = [_positions(comparison, name, places) for name in comparison.by]
    if any(not s for s in seats):
        return None
    at, tall = _projected({k: p for s in seats for k, p in s.items()}, places)
    marks, names = _discs(comparison, at) if len(comparison.by) == 1 else _lines(comparison, at)
    lines = f"Lines bend to the right of their direction and are as wide as the change; the {min(MAX_LINES, comparison.rows)} clearest are drawn."
    return ChangeMap(
        "Discs are as large as the change." if len(comparison.by) == 1 else lines,
        f"Map of the change by {' and '.join(comparison.by)}",
        MAP_WIDTH,
        f"{tall:.0f}",
        [_text(at["stop", i]) for i in range(len(places)) if ("stop", i) in at],
        marks,
        names,
    )


def _text(point: Point) -> tuple[str, str]:
    return f"{point[0]:.1f}", f"{point[1]:.1f}"


def _positions(comparison: ReleaseComparison, name: str, places: Stops) -> dict[tuple[str, Hashable], Point]:
    """Longitude and latitude of each label of an attribute: a stop's, or the middle of a zone's stops."""
    labels = list(dict.fromkeys(comparison.columns[name]))
    coordinates = {
        str(stop): (float(x), float(y)) for stop, x, y in zip(places.ids, places.lon, places.lat, strict=True)
    }
    if not all(str(label) in coordinates for label in labels):
        coordinates = _zones(places)
    located = {("at", label): coordinates[str(label)] for label in labels if str(label) in coordinates}
    return {k: p for k, p in located.items() if not math.isnan(p[0])} if len(located) == len(labels) else {}


def _zones(places: Stops) -> dict[str, Point]:
    if places.zone is None:
        return {}
    points: dict[str, list[Point]] = {}
    for zone, x, y in zip(places.zone, places.lon.tolist(), places.lat.tolist(), strict=True):
        if not math.isnan(x):
            points.setdefault(str(zone), []).append((x, y))
    return {
        z: (float(np.mean([p[0] for p in ps])), float(np.mean([p[1] for p in ps])))
        for z, ps in points.items()
    }


def _projected(
    seats: Mapping[tuple[str, Hashable], Point], places: Stops
) -> tuple[dict[tuple[str, Hashable], Point], float]:
    """Places on the page, and how tall it is; stops that are in no row are there too."""
    stops: dict[tuple[str, Hashable], Point] = {
        ("stop", i): (float(x), float(y))
        for i, (x, y) in enumerate(zip(places.lon, places.lat, strict=True))
        if not math.isnan(x)
    }
    every: dict[tuple[str, Hashable], Point] = {**stops, **seats}
    xs, ys = zip(*every.values(), strict=True)
    shrink = math.cos(math.radians(sum(ys) / len(ys)))
    wide, tall = max((max(xs) - min(xs)) * shrink, 1e-6), max(max(ys) - min(ys), 1e-6)
    scale = min((MAP_WIDTH - 2 * MAP_PADDING) / wide, 640 / tall)
    height = tall * scale + 2 * MAP_PADDING
    left = (MAP_WIDTH - wide * scale) / 2
    projected = {
        k: (left + (x - min(xs)) * shrink * scale, height - MAP_PADDING - (y - min(ys)) * scale)
        for k, (x, y) in every.items()
    }
    return projected, height


def _discs(
    comparison: ReleaseComparison, at: Mapping[tuple[str, Hashable], Point]
) -> tuple[list[Mark], list[tuple[str, str, str]]]:
    most = max(1, *(abs(numbers_of(comparison, row)[2]) for row in range(comparison.rows)))
    order = sorted(range(comparison.rows), key=lambda row: -abs(numbers_of(comparison, row)[2]))
    marks, names = [], []
    for place, row in enumerate(order):
        x, y = at["at", comparison.columns[comparison.by[0]][row]]
        radius = max(2.0, MAX_DISC_RADIUS * math.sqrt(abs(numbers_of(comparison, row)[2]) / most))
        marks.append(
            Mark(f"{radius:.1f}", colour_of(comparison, row), tip_of(comparison, row), *_text((x, y)))
        )
        if place < MAX_PLACES_NAMED and (stands_out(comparison, row) or comparison.rows <= MAX_PLACES_NAMED):
            names.append((label_of(comparison, row), *_text((x, y - radius - 3))))
    return marks, names


def _lines(
    comparison: ReleaseComparison, at: Mapping[tuple[str, Hashable], Point]
) -> tuple[list[Mark], list[tuple[str, str, str]]]:
    chance = _chances(comparison)
    order = sorted(
        range(comparison.rows), key=lambda row: (not stands_out(comparison, row), chance[row], row)
    )[:MAX_LINES]
    most = max(1, *(abs(numbers_of(comparison, row)[2]) for row in order))
    marks: list[Mark] = []
    seen: dict[Hashable, Point] = {}
    for row in reversed(order):
        ends = [comparison.columns[name][row] for name in comparison.by]
        (x0, y0), (x1, y1) = (at["at", end] for end in ends)
        seen.update(zip(ends, ((x0, y0), (x1, y1)), strict=True))
        wide = max(1.0, MAX_LINE_WIDTH * math.sqrt(abs(numbers_of(comparison, row)[2]) / most))
        shown = colour_of(comparison, row), tip_of(comparison, row)
        if (x0, y0) == (x1, y1):
            marks.append(Mark(f"{6 + wide:.1f}", *shown, *_text((x0, y0))))
            continue
        bend = 0.14
        cx, cy = (x0 + x1) / 2 - (y1 - y0) * bend, (y0 + y1) / 2 + (x1 - x0) * bend
        path = f"M{x0:.1f},{y0:.1f} Q{cx:.1f},{cy:.1f} {x1:.1f},{y1:.1f}"
        marks.append(Mark(f"{wide:.1f}", *shown, path=path))
    named = list(seen.items())[-MAX_PLACES_NAMED:]
    return marks, [(str(label), *_text((x, y - 10))) for label, (x, y) in named]


# Small multiples: a little chart of the change over time for each group

MAX_PANELS = 24  # the groups with the largest changes
MAX_VALUES_ALONG = 100  # values along a chart
TIME_LABEL = re.compile(r"\d{1,2}:\d{2}|\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True)
class PanelSize:
    """Where things stand in a chart, in pixels; `middle` is no change."""

    width: int = 260
    height: int = 110
    left: int = 46
    right: int = 256
    top: int = 8
    base: int = 92
    middle: float = 50.0


PANEL = PanelSize()


@dataclass(frozen=True)
class Whisker:
    """An interval at a bar."""

    x: str
    high: str
    low: str


@dataclass(frozen=True)
class Bar:
    """A change along the chart."""

    x: str
    y: str
    width: str
    height: str
    colour: str
    tip: str
    whisker: Whisker | None


@dataclass(frozen=True)
class ChangePanel:
    """The chart of one group."""

    name: str
    label: str
    bars: list[Bar]


@dataclass(frozen=True)
class Multiples:
    """One chart for each group of the other attributes; all have the same scale, from `least` to `most`, and the same ends."""

    note: str
    panels: list[ChangePanel]
    least: str
    most: str
    first: str
    last: str


def small_multiples(comparison: ReleaseComparison) -> Multiples | None:
    """None where no attribute is a time."""
    along = time_attribute(comparison)
    if along is None:
        return None
    others = tuple(name for name in comparison.by if name != along)
    panels: dict[tuple[Hashable, ...], list[int]] = {}
    for row in range(comparison.rows):
        panels.setdefault(tuple(comparison.columns[name][row] for name in others), []).append(row)
    order = sorted(panels, key=lambda key: -max(abs(numbers_of(comparison, r)[2]) for r in panels[key]))[
        :MAX_PANELS
    ]
    shown = [r for key in order for r in panels[key]]
    most = max(
        1, *(abs(n) for r in shown for n in (numbers_of(comparison, r)[2], *(ends_of(comparison, r) or ())))
    )
    values = list(dict.fromkeys(comparison.columns[along]))
    panels_left = (
        f" The {MAX_PANELS} groups with the largest changes of {len(panels):,} are shown."
        if len(panels) > MAX_PANELS
        else ""
    )
    return Multiples(
        f"Bars are changes by {along}, lines their intervals, all on the same scale (up to {signed(most)}).{panels_left}",
        [_panel(comparison, key, panels[key], along, values, most) for key in order],
        signed(-most),
        signed(most),
        str(values[0]),
        str(values[-1]),
    )


def time_attribute(comparison: ReleaseComparison) -> str | None:
    """The attribute that is laid along the charts: one whose labels are times of day or dates."""
    for name in comparison.by:
        labels = list(dict.fromkeys(comparison.columns[name]))
        if 2 <= len(labels) <= MAX_VALUES_ALONG and all(TIME_LABEL.match(str(v)) for v in labels):
            return name
    return None


def _panel(
    comparison: ReleaseComparison,
    key: tuple[Hashable, ...],
    rows: list[int],
    along: str,
    values: list[Hashable],
    most: int,
) -> ChangePanel:
    step = (PANEL.right - PANEL.left) / len(values)
    place = {value: number for number, value in enumerate(values)}
    others = (name for name in comparison.by if name != along)
    name = (
        ", ".join(f"{other} {value}" for other, value in zip(others, key, strict=True))
        or f"all {comparison.noun.many}"
    )
    bars = [
        _bar(comparison, row, PANEL.left + step * place[comparison.columns[along][row]], step, most)
        for row in rows
    ]
    return ChangePanel(name, f"Change of {name} by {along}", bars)


def _bar(comparison: ReleaseComparison, row: int, x: float, step: float, most: int) -> Bar:
    unit = (PANEL.middle - PANEL.top) / most
    change, ends = numbers_of(comparison, row)[2], ends_of(comparison, row)
    wide = max(step - math.ceil(step / 8), 0.8)
    whisker = ends and Whisker(
        f"{x + wide / 2:.1f}", f"{PANEL.middle - ends[1] * unit:.1f}", f"{PANEL.middle - ends[0] * unit:.1f}"
    )
    return Bar(
        f"{x:.1f}",
        f"{PANEL.middle - max(change, 0) * unit:.1f}",
        f"{wide:.1f}",
        f"{max(abs(change) * unit, 0.6):.1f}",
        colour_of(comparison, row),
        tip_of(comparison, row),
        whisker,
    )


# The clearest changes one below the other: a dot for the change, a line for its interval, and zero between more and fewer

MAX_STEMS = 30  # rows, as many as one sees at once
STEM_ROW_HEIGHT, STEM_LETTER_WIDTH, STEM_WIDTH, STEM_RIGHT, STEM_TOP = 24, 8.8, 520, 80, 26  # pixels
MAX_LABEL_LETTERS = 34  # letters of a row's label


@dataclass(frozen=True)
class Stem:
    """A row: its dot, the line of its interval, its label and its change."""

    y: float
    x: str
    low: str
    high: str
    colour: str
    tip: str
    label: str
    change: str


@dataclass(frozen=True)
class StemPlot:
    """The clearest changes; `left` and `right` are the sides of what is drawn, `zero` where no change is."""

    width: int
    height: int
    top: int
    left: int
    right: int
    zero: str
    ticks: list[tuple[str, str]]
    rows: list[Stem]


def stem_plot(comparison: ReleaseComparison) -> StemPlot | None:
    """At most 30 rows, by how little chance explains them."""
    if comparison.rows < 2:
        return None
    chance = _chances(comparison)
    order = sorted(range(comparison.rows), key=lambda row: (chance[row], row))[:MAX_STEMS]
    shown = [n for row in order for n in (numbers_of(comparison, row)[2], *(ends_of(comparison, row) or ()))]
    low, high = min(0, *shown), max(0, *shown)
    span = max(high - low, 1)
    left = round(
        24 + STEM_LETTER_WIDTH * min(MAX_LABEL_LETTERS, max(len(label_of(comparison, row)) for row in order))
    )

    def at(value: float) -> str:
        return f"{left + (value - low) / span * STEM_WIDTH:.1f}"

    ends = [
        (signed(end), at(end)) for end in (low, high) if abs(end) > 0.12 * span
    ]  # those that do not overlap zero
    return StemPlot(
        left + STEM_WIDTH + STEM_RIGHT,
        STEM_TOP + STEM_ROW_HEIGHT * len(order) + 8,
        STEM_TOP - 4,
        left,
        left + STEM_WIDTH + 10,
        at(0),
        [("0", at(0)), *ends],
        [
            _stem(comparison, row, STEM_TOP + STEM_ROW_HEIGHT * place + STEM_ROW_HEIGHT / 2, at)
            for place, row in enumerate(order)
        ],
    )


def _stem(comparison: ReleaseComparison, row: int, y: float, at: Callable[[float], str]) -> Stem:
    change = numbers_of(comparison, row)[2]
    low, high = ends_of(comparison, row) or (change, change)
    text = label_of(comparison, row)
    short = text if len(text) <= MAX_LABEL_LETTERS else f"{text[: MAX_LABEL_LETTERS - 1]}…"
    return Stem(
        y, at(change), at(low), at(high), colour_of(comparison, row), tip_of(comparison, row), short, signed(change)
    )  # fmt: skip


# A row in words


def label_of(comparison: ReleaseComparison, row: int, by: tuple[str, ...] | None = None) -> str:
    """The labels of a row."""
    names = comparison.by if by is None else by
    arrow = len(names) == 2 and names[0].startswith("origin") and names[1].startswith("destination")
    return (" → " if arrow else ", ").join(
        str(comparison.columns[name][row]) for name in names
    ) or f"all {comparison.noun.many}"


def colour_of(comparison: ReleaseComparison, row: int) -> str:
    """The colour class of a change."""
    if not stands_out(comparison, row):
        return "quiet"
    return "up" if numbers_of(comparison, row)[2] > 0 else "down"


def _number(comparison: ReleaseComparison, column: str, row: int) -> float:
    return float(np.asarray(comparison.columns[column])[row])


def _chances(comparison: ReleaseComparison) -> list[float]:
    """How likely chance alone makes each row look changed."""
    chances: list[float] = np.asarray(comparison.columns["chance"], dtype=float).tolist()
    return chances


def numbers_of(comparison: ReleaseComparison, row: int) -> tuple[int, int, int]:
    """Before, after and change."""
    first, second, change = (
        int(np.asarray(comparison.columns[n])[row]) for n in ("first", "second", "change")
    )
    return first, second, change


def ends_of(comparison: ReleaseComparison, row: int) -> tuple[int, int] | None:
    """Both ends of the change's interval, where it has one."""
    low, high = (_number(comparison, n, row) for n in ("low", "high"))
    return None if math.isnan(low) else (int(low), int(high))


def range_of(comparison: ReleaseComparison, row: int) -> str:
    """The interval in words."""
    ends = ends_of(comparison, row)
    return "no interval" if ends is None else f"{signed(ends[0])} to {signed(ends[1])}"


def stands_out(comparison: ReleaseComparison, row: int) -> bool:
    """Whether a row stands out."""
    return bool(comparison.columns["verdict"][row] == CHANGED)


def change_text(comparison: ReleaseComparison, row: int) -> str:
    """A row's change in words."""
    first, second, change = numbers_of(comparison, row)
    return f"{first:,} → {second:,}, {signed(change)} ({signed_percent(first, second)}; {range_of(comparison, row)})"


def tip_of(comparison: ReleaseComparison, row: int) -> str:
    """What stands at a mark."""
    return (
        f"{label_of(comparison, row)}\n{change_text(comparison, row)}\n{comparison.columns['verdict'][row]}"
    )


__all__ = ["build"]
