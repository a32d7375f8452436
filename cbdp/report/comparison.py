"""The page of a comparison: what changed between releases in words, on a map, by group and in a table, and what noise can explain."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from cbdp.release.comparison import CHANCE, CHANGED, NOISE, ReleaseComparison
from cbdp.report.markup import Html, join, page, tag
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
    sections = [
        ("map", "Where it changed", change_map(comparison, places)),
        ("multiples", "Change by group", small_multiples(comparison)),
        ("stems", "The clearest changes", stem_plot(comparison)),
        ("all", "Every row", rows_table(comparison)),
        ("method", "How to read this", _method(comparison)),
    ]
    shown = [(key, name, inside) for key, name, inside in sections if inside is not None]
    body = join(
        _page_head(comparison, whole),
        tag("nav", [tag("a", name, href=f"#{key}") for key, name, _ in shown], aria_label="Contents"),
        tag("main", [tag("section", tag("h2", name), inside, id=key) for key, name, inside in shown]),
        tag(
            "footer", tag("p", "Made by cbdp from published values only. Opening this page sends no request.")
        ),
    )
    return page(f"Change from {comparison.names[0]} to {comparison.names[1]}", body, {}, name="comparison")


def _page_head(comparison: ReleaseComparison, whole: ReleaseComparison | None) -> Html:
    lead = [tag("p", sentence.replace(" %", "\u00a0%"), class_="lead") for sentence in comparison.headline]
    notes = [tag("p", note, class_="note") for note in comparison.notes]
    return tag(
        "header",
        tag("p", f"{comparison.names[0]} → {comparison.names[1]}", class_="where"),
        tag("h1", comparison.noun.say("How trips changed")),
        lead,
        _clearest_changes(comparison),
        _tiles(comparison, whole),
        notes,
    )


def _clearest_changes(comparison: ReleaseComparison) -> Html | None:
    changed = comparison.standing_out()[:MAX_ROWS_NAMED] if comparison.by else []
    return (
        tag(
            "ul",
            [tag("li", f"{label_of(comparison, row)}: {change_text(comparison, row)}") for row in changed],
        )
        if changed
        else None
    )


def _tiles(comparison: ReleaseComparison, whole: ReleaseComparison | None) -> Html:
    first, second = (int(comparison.columns[side].sum()) for side in ("first", "second"))  # type: ignore[union-attr]
    tiles = [
        (comparison.noun.say("Published trips before"), f"{first:,}", comparison.names[0]),
        (comparison.noun.say("Published trips after"), f"{second:,}", comparison.names[1]),
        (
            "Change",
            signed(second - first),
            f"{percent_of(first, second)}{_certain_changes(comparison if comparison.rows == 1 else whole)}",
        ),
        (
            "Rows that stand out",
            f"{len(comparison.standing_out()):,}",
            f"of {comparison.rows:,}, after the correction for many rows",
        ),
    ]
    return tag("div", [_headline_tile(*tile) for tile in tiles], class_="tiles")


def _certain_changes(whole: ReleaseComparison | None) -> str:
    if whole is None or whole.rows != 1:
        return ""
    if ends_of(whole, 0) is None:
        return "; no interval: no measured table adds up to it"
    return f"; {100 * whole.confidence:g} % interval {range_of(whole, 0)}"


def _headline_tile(head: str, value: str, about: str) -> Html:
    return tag(
        "div",
        tag("span", head, class_="head"),
        tag("span", value, class_="value"),
        tag("span", about, class_="about"),
        class_="tile",
    )


def _method(comparison: ReleaseComparison) -> Html:
    percent = f"{100 * comparison.confidence:g} %"
    return join(
        tag(
            "p",
            "Both releases carry random noise that protects people. So two releases differ even where nothing changed. ",
            f"The interval of a change holds the true change with {percent} confidence, each row on its own.",
        ),
        tag(
            "p",
            "“More than noise can explain”: the interval leaves zero out, and it still does so after the Benjamini–Hochberg "
            "correction for looking at many rows at once. “Could be chance among so many rows”: on its own the row looks changed, but "
            "so would some rows without any change. “Within noise”: no change can be told from none, which does not prove that there is none. "
            "“Cannot tell”: no measured table adds up to the row, so it has no interval.",
        ),
        tag(
            "p",
            "Verdicts are about noise only. Whether a change comes from the season, a holiday, or a new timetable, numbers alone do not say.",
        ),
        tag("p", _legend(comparison)),
    )


def _legend(comparison: ReleaseComparison) -> Html:
    say = comparison.noun.say
    marks = ((1, True, say("more trips")), (-1, True, say("fewer trips")), (1, False, "within noise"))
    return tag(
        "ul",
        [
            tag(
                "li",
                tag(
                    "svg",
                    tag("rect", width=12, height=12, rx=3, class_=mark_of(sign, sure)),
                    width=12,
                    height=12,
                ),
                text,
            )
            for sign, sure, text in marks
        ],
        class_="legend",
    )


# The table of all rows


def rows_table(comparison: ReleaseComparison) -> Html:
    """Every row, those that stand out first; a page lists so many, and says where the others are."""
    order = _order(comparison)
    names = [*(comparison.by or ("",)), *ROW_HEADINGS]
    head = tag(
        "thead", tag("tr", [tag("th", tag("button", name, type="button"), scope="col") for name in names])
    )
    body = [_table_row(comparison, row) for row in order[:MAX_ROWS_LISTED]]
    more = (
        f" The page lists {MAX_ROWS_LISTED:,} of {comparison.rows:,}; cbdp compare --format csv has all."
        if comparison.rows > MAX_ROWS_LISTED
        else ""
    )
    controls = tag(
        "div",
        tag("label", "Find ", tag("input", id="find", type="search")),
        tag("label", tag("input", id="only", type="checkbox"), " only rows that stand out"),
        tag("span", "", id="shown", class_="muted"),
        class_="choices",
    )
    return join(
        controls,
        tag("p", more, class_="note") if more else None,
        tag(
            "div",
            tag("table", head, tag("tbody", body), id="rows", class_="rows sortable"),
            class_="tall scroll",
            tabindex=0,
        ),
    )


def _order(comparison: ReleaseComparison) -> list[int]:
    first = comparison.standing_out()
    chance: Any = comparison.columns["chance"]
    return [*first, *sorted(set(range(comparison.rows)) - set(first), key=lambda row: (chance[row], row))]


def _table_row(comparison: ReleaseComparison, row: int) -> Html:
    first, second, change = numbers_of(comparison, row)
    ends = ends_of(comparison, row)
    verdict, ratio = str(comparison.columns["verdict"][row]), float(comparison.columns["ratio"][row])  # type: ignore[arg-type]
    labels = [str(comparison.columns[name][row]) for name in comparison.by] or [f"all {comparison.noun.many}"]
    shown = "–" if math.isnan(ratio) else f"{ratio:.3g}"
    cells = [
        tag("th", labels[0], scope="row"),
        [tag("td", label) for label in labels[1:]],
        _table_cell(f"{first:,}", first),
        _table_cell(f"{second:,}", second),
        _table_cell(signed(change), change),
        _table_cell(
            "–" if ends is None else range_of(comparison, row), -1 if ends is None else ends[1] - ends[0]
        ),
        _table_cell(shown, -1 if math.isnan(ratio) else round(ratio, 6)),
        tag("td", tag("span", verdict, class_=f"pill {VERDICT_CLASSES.get(verdict, 'none')}")),
    ]
    return tag("tr", cells, data_out=int(verdict == CHANGED))


def _table_cell(text: str, value: float) -> Html:
    return tag("td", text, class_="number", data_value=value)


# The map: a disc for each stop or zone, or a line for each pair, as large as its change; grey where noise explains it

MAP_WIDTH, MAP_PADDING = 900.0, 46.0  # pixels
MAX_DISC_RADIUS = 26.0  # pixels: the radius of the largest change
MAX_LINE_WIDTH = 9.0  # pixels: the width of the largest change
MAX_LINES = 80  # lines drawn, the clearest changes
MAX_PLACES_NAMED = 24  # places that are named
Point = tuple[float, float]


def change_map(comparison: ReleaseComparison, places: Stops | None) -> Html | None:
    """None where the rows are no places, or nobody knows where they are."""
    if places is None or len(comparison.by) not in (1, 2):
        return None
    seats = [_positions(comparison, name, places) for name in comparison.by]
    if any(not s for s in seats):
        return None
    at, tall = _projected({k: p for s in seats for k, p in s.items()}, places)
    marks = _discs(comparison, at) if len(comparison.by) == 1 else _lines(comparison, at)
    dots = _stops(places, at)
    label = f"Map of the change by {' and '.join(comparison.by)}"
    ground = tag("rect", width=MAP_WIDTH, height=f"{tall:.0f}", rx=10, class_="ground")
    picture = tag(
        "svg", ground, dots, marks, viewBox=f"0 0 {MAP_WIDTH:.0f} {tall:.0f}", width=f"{MAP_WIDTH:.0f}", height=f"{tall:.0f}", role="img",
        aria_label=label, class_="picture",
    )  # fmt: skip
    what = "Discs are as large as the change." if len(comparison.by) == 1 else _lines_note(comparison)
    note = f"{what} Orange: more {comparison.noun.many}, blue: fewer, grey: within noise."
    return join(tag("p", note, class_="note"), tag("div", picture, id="chart-map"))


def _lines_note(comparison: ReleaseComparison) -> str:
    return f"Lines bend to the right of their direction and are as wide as the change; the {min(MAX_LINES, comparison.rows)} clearest are drawn."


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


def _stops(places: Stops, at: Mapping[tuple[str, Hashable], Point]) -> list[Html]:
    return [
        tag("circle", cx=f"{at['stop', i][0]:.1f}", cy=f"{at['stop', i][1]:.1f}", r=1.4, class_="ink")
        for i in range(len(places))
        if ("stop", i) in at
    ]


def _discs(comparison: ReleaseComparison, at: Mapping[tuple[str, Hashable], Point]) -> list[Html]:
    most = max(1, *(abs(numbers_of(comparison, row)[2]) for row in range(comparison.rows)))
    order = sorted(range(comparison.rows), key=lambda row: -abs(numbers_of(comparison, row)[2]))
    marks, names = [], []
    for place, row in enumerate(order):
        x, y = at["at", comparison.columns[comparison.by[0]][row]]
        change, sure = numbers_of(comparison, row)[2], stands_out(comparison, row)
        radius = max(2.0, MAX_DISC_RADIUS * math.sqrt(abs(change) / most))
        marks.append(
            tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{radius:.1f}", class_=f"mark dot {mark_of(change, sure)}", data_tip=tip_of(comparison, row), tabindex=0)
        )  # fmt: skip
        if place < MAX_PLACES_NAMED and (sure or comparison.rows <= MAX_PLACES_NAMED):
            names.append(
                tag(
                    "text",
                    label_of(comparison, row),
                    x=f"{x:.1f}",
                    y=f"{y - radius - 3:.1f}",
                    text_anchor="middle",
                    class_="halo",
                )
            )
    return [*marks, *names]


def _lines(comparison: ReleaseComparison, at: Mapping[tuple[str, Hashable], Point]) -> list[Html]:
    chance = np.asarray(comparison.columns["chance"], dtype=float)
    order = sorted(
        range(comparison.rows), key=lambda row: (not stands_out(comparison, row), chance[row], row)
    )[:MAX_LINES]
    most = max(1, *(abs(numbers_of(comparison, row)[2]) for row in order))
    marks: list[Html] = []
    seen: dict[Hashable, Point] = {}
    for row in reversed(order):
        ends = [comparison.columns[name][row] for name in comparison.by]
        (x0, y0), (x1, y1) = (at["at", end] for end in ends)
        change = numbers_of(comparison, row)[2]
        shown = {"class_": "", "data_tip": tip_of(comparison, row), "tabindex": 0}
        mark = mark_of(change, stands_out(comparison, row))
        wide = max(1.0, MAX_LINE_WIDTH * math.sqrt(abs(change) / most))
        seen.update(zip(ends, ((x0, y0), (x1, y1)), strict=True))
        if (x0, y0) == (x1, y1):
            marks.append(
                tag(
                    "circle",
                    cx=f"{x0:.1f}",
                    cy=f"{y0:.1f}",
                    r=f"{6 + wide:.1f}",
                    **{**shown, "class_": f"mark dot {mark}"},
                )
            )
            continue
        bend = 0.14
        cx, cy = (x0 + x1) / 2 - (y1 - y0) * bend, (y0 + y1) / 2 + (x1 - x0) * bend
        path = f"M{x0:.1f},{y0:.1f} Q{cx:.1f},{cy:.1f} {x1:.1f},{y1:.1f}"
        marks.append(
            tag("path", d=path, stroke_width=f"{wide:.1f}", **{**shown, "class_": f"mark way s-{mark}"})
        )
    names = [
        tag("text", str(label), x=f"{x:.1f}", y=f"{y - 10:.1f}", text_anchor="middle", class_="halo") for label, (x, y) in list(seen.items())[-MAX_PLACES_NAMED:]
    ]  # fmt: skip
    return [*marks, *names]


# Small multiples: a little chart of the change over time for each group

MAX_PANELS = 24  # the groups with the largest changes
MAX_VALUES_ALONG = 100  # values along a chart
TIME_LABEL = re.compile(r"\d{1,2}:\d{2}|\d{4}-\d{2}-\d{2}$")
PANEL_WIDTH, PANEL_HEIGHT, PANEL_LEFT, PANEL_TOP, PANEL_BASE = 260, 110, 46, 8, 18  # pixels


def small_multiples(comparison: ReleaseComparison) -> Html | None:
    """One chart for each group of the other attributes; all have the same scale."""
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
    figures = [_panel(comparison, key, panels[key], along, values, most) for key in order]
    left = (
        f" The {MAX_PANELS} groups with the largest changes of {len(panels):,} are shown."
        if len(panels) > MAX_PANELS
        else ""
    )
    note = f"Bars are changes by {along}, lines their intervals, all on the same scale (up to {signed(most)}).{left}"
    return join(tag("p", note, class_="note"), tag("div", figures, class_="multiples", id="chart-multiples"))


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
) -> Html:
    step = (PANEL_WIDTH - PANEL_LEFT - 4) / len(values)
    middle = PANEL_TOP + (PANEL_HEIGHT - PANEL_TOP - PANEL_BASE) / 2
    high = (PANEL_HEIGHT - PANEL_TOP - PANEL_BASE) / 2
    place = {value: number for number, value in enumerate(values)}
    marks = []
    for row in rows:
        x = PANEL_LEFT + step * place[comparison.columns[along][row]]
        marks.append(_bar(comparison, row, x, step, middle, high / most))
    axis = tag("line", x1=PANEL_LEFT, x2=PANEL_WIDTH - 4, y1=middle, y2=middle, class_="axis")
    words = [
        tag("text", signed(most), x=PANEL_LEFT - 4, y=PANEL_TOP + 8, text_anchor="end", class_="muted"),
        tag(
            "text",
            signed(-most),
            x=PANEL_LEFT - 4,
            y=PANEL_HEIGHT - PANEL_BASE,
            text_anchor="end",
            class_="muted",
        ),
        tag("text", values[0], x=PANEL_LEFT, y=PANEL_HEIGHT - 3, class_="muted"),
        tag("text", values[-1], x=PANEL_WIDTH - 4, y=PANEL_HEIGHT - 3, text_anchor="end", class_="muted"),
    ]
    others = (name for name in comparison.by if name != along)
    name = (
        ", ".join(f"{other} {value}" for other, value in zip(others, key, strict=True))
        or f"all {comparison.noun.many}"
    )
    picture = tag(
        "svg",
        axis,
        marks,
        words,
        viewBox=f"0 0 {PANEL_WIDTH} {PANEL_HEIGHT}",
        role="img",
        aria_label=f"Change of {name} by {along}",
    )
    return tag("figure", tag("figcaption", name), picture)


def _bar(comparison: ReleaseComparison, row: int, x: float, step: float, middle: float, unit: float) -> Html:
    change, ends = numbers_of(comparison, row)[2], ends_of(comparison, row)
    top, tall = middle - max(change, 0) * unit, max(abs(change) * unit, 0.6)
    mark = mark_of(change, stands_out(comparison, row))
    wide = max(step - math.ceil(step / 8), 0.8)
    bar = tag(
        "rect", x=f"{x:.1f}", y=f"{top:.1f}", width=f"{wide:.1f}", height=f"{tall:.1f}", class_=f"mark {mark}", data_tip=tip_of(comparison, row)
    )  # fmt: skip
    if ends is None:
        return bar
    at, (low, high) = x + wide / 2, ends
    line = tag(
        "line", x1=f"{at:.1f}", x2=f"{at:.1f}", y1=f"{middle - high * unit:.1f}", y2=f"{middle - low * unit:.1f}", class_="whisker added"
    )  # fmt: skip
    return tag("g", bar, line)


# The clearest changes one below the other: a dot for the change, a line for its interval, and zero between more and fewer

MAX_STEMS = 30  # rows, as many as one sees at once
STEM_ROW_HEIGHT, STEM_LETTER_WIDTH, STEM_WIDTH, STEM_RIGHT, STEM_TOP = 24, 8.8, 520, 80, 26  # pixels
MAX_LABEL_LETTERS = 34  # letters of a row's label


def stem_plot(comparison: ReleaseComparison) -> Html | None:
    """At most 30 rows, by how little chance explains them."""
    if comparison.rows < 2:
        return None
    chance: Any = comparison.columns["chance"]
    order = sorted(range(comparison.rows), key=lambda row: (chance[row], row))[:MAX_STEMS]
    shown: list[int] = [
        n for row in order for n in (numbers_of(comparison, row)[2], *(ends_of(comparison, row) or ()))
    ]
    low, high = min(0, *shown), max(0, *shown)
    span = max(high - low, 1)
    left = round(
        24 + STEM_LETTER_WIDTH * min(MAX_LABEL_LETTERS, max(len(label_of(comparison, row)) for row in order))
    )

    def at(value: float) -> float:
        return left + (value - low) / span * STEM_WIDTH

    tall = STEM_TOP + STEM_ROW_HEIGHT * len(order) + 8
    marks = [
        _stem(comparison, row, STEM_TOP + STEM_ROW_HEIGHT * place + STEM_ROW_HEIGHT / 2, left, at)
        for place, row in enumerate(order)
    ]
    zero = tag("line", x1=f"{at(0):.1f}", x2=f"{at(0):.1f}", y1=STEM_TOP - 4, y2=tall - 8, class_="axis")
    names = [
        tag("text", text, x=f"{at(value):.1f}", y=14, text_anchor="middle", class_="muted")
        for text, value in _ticks(low, high)
    ]
    label = "The clearest changes, with their intervals"
    wide = left + STEM_WIDTH + STEM_RIGHT
    picture = tag(
        "svg", zero, names, marks, viewBox=f"0 0 {wide} {tall}", width=wide, height=tall, role="img", aria_label=label, class_="picture"
    )  # fmt: skip
    note = comparison.noun.say(
        "Lines are intervals. Coloured: more than noise can explain, orange for more trips and blue for fewer. Grey: within noise."
    )
    return join(tag("p", note, class_="note"), tag("div", picture, class_="scroll", id="chart-stems"))


def _ticks(low: int, high: int) -> list[tuple[str, int]]:
    """The ends and zero, as far as they do not overlap."""
    span = max(high - low, 1)
    return [("0", 0), *((signed(end), end) for end in (low, high) if abs(end) > 0.12 * span)]


def _stem(comparison: ReleaseComparison, row: int, y: float, left: int, at: Any) -> Html:
    change = numbers_of(comparison, row)[2]
    low, high = ends_of(comparison, row) or (change, change)
    mark = mark_of(change, stands_out(comparison, row))
    text = label_of(comparison, row)
    short = text if len(text) <= MAX_LABEL_LETTERS else f"{text[: MAX_LABEL_LETTERS - 1]}…"
    line = tag("line", x1=f"{at(low):.1f}", x2=f"{at(high):.1f}", y1=y, y2=y, class_=f"stem s-{mark}")
    dot = tag(
        "circle",
        cx=f"{at(change):.1f}",
        cy=y,
        r=5,
        class_=f"mark {mark}",
        data_tip=tip_of(comparison, row),
        tabindex=0,
    )
    label = tag("text", short, x=left - 12, y=y + 4, text_anchor="end")
    number = tag("text", signed(change), x=left + STEM_WIDTH + 10, y=y + 4, class_="muted")
    return tag("g", line, dot, label, number)


# A row in words


def label_of(comparison: ReleaseComparison, row: int, by: tuple[str, ...] | None = None) -> str:
    """The labels of a row."""
    names = comparison.by if by is None else by
    arrow = len(names) == 2 and names[0].startswith("origin") and names[1].startswith("destination")
    return (" → " if arrow else ", ").join(
        str(comparison.columns[name][row]) for name in names
    ) or f"all {comparison.noun.many}"


def signed(value: int) -> str:
    """A change with its sign.

    >>> signed(1200), signed(-3), signed(0)
    ('+1,200', '−3', '0')
    """
    return f"{value:+,}".replace("-", "−") if value else "0"


def percent_of(first: int, second: int) -> str:
    """A change in percent of what was before."""
    if first <= 0:
        return "none before"
    change = 100 * (second - first) / first
    return f"{change:+.1f} %".replace("-", "−") if abs(change) < 1000 else f"{second / first:.3g} times"


def mark_of(sign: float, sure: bool) -> str:
    """The colour class of a change."""
    return ("up" if sign > 0 else "down") if sure else "quiet"


def numbers_of(comparison: ReleaseComparison, row: int) -> tuple[int, int, int]:
    """Before, after and change."""
    first, second, change = (int(comparison.columns[n][row]) for n in ("first", "second", "change"))  # type: ignore[arg-type]
    return first, second, change


def ends_of(comparison: ReleaseComparison, row: int) -> tuple[int, int] | None:
    """Both ends of the change's interval, where it has one."""
    low, high = (float(comparison.columns[n][row]) for n in ("low", "high"))  # type: ignore[arg-type]
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
    return (
        f"{first:,} → {second:,}, {signed(change)} ({percent_of(first, second)}; {range_of(comparison, row)})"
    )


def tip_of(comparison: ReleaseComparison, row: int) -> str:
    """What stands at a mark."""
    return (
        f"{label_of(comparison, row)}\n{change_text(comparison, row)}\n{comparison.columns['verdict'][row]}"
    )


__all__ = ["build"]
