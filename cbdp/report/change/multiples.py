"""Small multiples: a little chart of the change over time for each group."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable

from cbdp.release.change import Compared
from cbdp.report.change.rows import ends_of, mark_of, numbers_of, signed, sure_of, tip_of
from cbdp.report.markup import Html, join, tag

PANELS = 24  # the groups with the largest changes
LONGEST = 100  # values along a chart
TIME = re.compile(r"\d{1,2}:\d{2}|\d{4}-\d{2}-\d{2}$")
WIDE, TALL, LEFT, TOP, BASE = 260, 110, 46, 8, 18


def multiples(made: Compared) -> Html | None:
    """One chart for each group of the other attributes; all have the same scale."""
    along = along_of(made)
    if along is None:
        return None
    others = tuple(name for name in made.by if name != along)
    panels: dict[tuple[Hashable, ...], list[int]] = {}
    for row in range(made.rows):
        panels.setdefault(tuple(made.columns[name][row] for name in others), []).append(row)
    order = sorted(panels, key=lambda key: -max(abs(numbers_of(made, r)[2]) for r in panels[key]))[:PANELS]
    shown = [r for key in order for r in panels[key]]
    most = max(1, *(abs(n) for r in shown for n in (numbers_of(made, r)[2], *(ends_of(made, r) or ()))))
    values = list(dict.fromkeys(made.columns[along]))
    figures = [_panel(made, key, panels[key], along, values, most) for key in order]
    left = (
        f" The {PANELS} groups with the largest changes of {len(panels):,} are shown."
        if len(panels) > PANELS
        else ""
    )
    note = f"Bars are changes by {along}, lines their intervals, all on the same scale (up to {signed(most)}).{left}"
    return join(tag("p", note, class_="note"), tag("div", figures, class_="multiples", id="chart-multiples"))


def along_of(made: Compared) -> str | None:
    """The attribute that is laid along the charts: one whose labels are times of day or dates."""
    for name in made.by:
        labels = list(dict.fromkeys(made.columns[name]))
        if 2 <= len(labels) <= LONGEST and all(TIME.match(str(v)) for v in labels):
            return name
    return None


def _panel(
    made: Compared,
    key: tuple[Hashable, ...],
    rows: list[int],
    along: str,
    values: list[Hashable],
    most: int,
) -> Html:
    step = (WIDE - LEFT - 4) / len(values)
    middle = TOP + (TALL - TOP - BASE) / 2
    high = (TALL - TOP - BASE) / 2
    place = {value: number for number, value in enumerate(values)}
    marks = []
    for row in rows:
        x = LEFT + step * place[made.columns[along][row]]
        marks.append(_bar(made, row, x, step, middle, high / most))
    axis = tag("line", x1=LEFT, x2=WIDE - 4, y1=middle, y2=middle, class_="axis")
    words = [
        tag("text", signed(most), x=LEFT - 4, y=TOP + 8, text_anchor="end", class_="muted"),
        tag("text", signed(-most), x=LEFT - 4, y=TALL - BASE, text_anchor="end", class_="muted"),
        tag("text", values[0], x=LEFT, y=TALL - 3, class_="muted"),
        tag("text", values[-1], x=WIDE - 4, y=TALL - 3, text_anchor="end", class_="muted"),
    ]
    others = (name for name in made.by if name != along)
    name = (
        ", ".join(f"{other} {value}" for other, value in zip(others, key, strict=True))
        or f"all {made.noun.many}"
    )
    picture = tag(
        "svg",
        axis,
        marks,
        words,
        viewBox=f"0 0 {WIDE} {TALL}",
        role="img",
        aria_label=f"Change of {name} by {along}",
    )
    return tag("figure", tag("figcaption", name), picture)


def _bar(made: Compared, row: int, x: float, step: float, middle: float, unit: float) -> Html:
    change, ends = numbers_of(made, row)[2], ends_of(made, row)
    top, tall = middle - max(change, 0) * unit, max(abs(change) * unit, 0.6)
    mark = mark_of(change, sure_of(made, row))
    wide = max(step - math.ceil(step / 8), 0.8)
    bar = tag(
        "rect", x=f"{x:.1f}", y=f"{top:.1f}", width=f"{wide:.1f}", height=f"{tall:.1f}", class_=f"mark {mark}", data_tip=tip_of(made, row)
    )  # fmt: skip
    if ends is None:
        return bar
    at, (low, high) = x + wide / 2, ends
    line = tag(
        "line", x1=f"{at:.1f}", x2=f"{at:.1f}", y1=f"{middle - high * unit:.1f}", y2=f"{middle - low * unit:.1f}", class_="whisker added"
    )  # fmt: skip
    return tag("g", bar, line)
