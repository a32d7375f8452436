"""Pictures that do not change: how the tables fit together, the budget, published against true counts. SVG, our own layout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import networkx as nx
import numpy as np

from cbdp.arrays import Ints
from cbdp.features import FeatureDag
from cbdp.release.summary import amount_text
from cbdp.report.markup import Html, tag

# in pixels: letters and lines of text, between boxes and between layers of them, above a scatter diagram, beside boxes that an arrow passes
LETTER_WIDTH, LINE_HEIGHT, BOX_GAP, LAYER_GAP, SCATTER_TOP, LANE_WIDTH = 7.1, 18, 26, 54, 26, 14


def dag_diagram(dag: FeatureDag) -> Html:
    """Coarse features above, those they are made of below; an arrow from each to the coarser one it adds up to."""
    layers = list(nx.topological_generations(dag.reduction.reverse(copy=True)))
    texts = {
        n: [n, *_grouping_lines(f.by), f"{dag.size(n):,} counts" if n != "total" else "1 count"]
        for n, f in dag.features.items()
    }
    wide = {n: max(24 + LETTER_WIDTH * max(map(len, lines)), 90) for n, lines in texts.items()}
    tall = {n: 14 + LINE_HEIGHT * len(lines) for n, lines in texts.items()}
    rows = [sorted(layer, key=list(dag.features).index) for layer in layers]
    full = (
        max(sum(wide[n] for n in row) + BOX_GAP * (len(row) - 1) for row in rows) + 8 + 2 * _lanes(dag, rows)
    )
    place, top = {}, 4.0
    for row in rows:
        left = (full - sum(wide[n] for n in row) - BOX_GAP * (len(row) - 1)) / 2
        for name in row:
            place[name] = (left, top)
            left += wide[name] + BOX_GAP
        top += max(tall[n] for n in row) + LAYER_GAP
    height = top - LAYER_GAP + 4
    arrows = [_arrow(place, wide, tall, fine, coarse, rows) for fine, coarse in dag.edges]
    boxes = [_box(*place[n], wide[n], tall[n], lines) for n, lines in texts.items()]
    head = tag(
        "marker", tag("path", d="M0,0 L10,5 L0,10 z", class_="ink"), id="head", viewBox="0 0 10 10", refX=9, refY=5,
        markerWidth=7, markerHeight=7, orient="auto-start-reverse",
    )  # fmt: skip
    description = "; ".join(f"{fine} adds up to {coarse}" for fine, coarse in dag.edges)
    return _svg(
        full,
        height,
        f"How the tables are made of each other: {description}",
        tag("defs", head),
        arrows,
        boxes,
    )


def _grouping_lines(by: Sequence[str]) -> list[str]:
    """What a feature groups by, in lines of about 24 letters."""
    lines: list[str] = []
    for name in by or ("everything",):
        piece = name if not lines else f"× {name}"
        if lines and len(lines[-1]) + len(piece) < 24:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return lines


def _arrow(
    place: Mapping[str, tuple[float, float]],
    wide: Mapping[str, float],
    tall: Mapping[str, float],
    fine: str,
    coarse: str,
    rows: Sequence[Sequence[str]],
) -> Html:
    """Straight up, or around the tables that lie between: on the side that is nearer."""
    x0, y0 = place[fine][0] + wide[fine] / 2, place[fine][1]
    x1, y1 = place[coarse][0] + wide[coarse] / 2, place[coarse][1] + tall[coarse] + 3
    bend = (y0 - y1) / 2
    path = f"M{x0:.1f},{y0:.1f} C{x0:.1f},{y0 - bend:.1f} {x1:.1f},{y1 + bend:.1f} {x1:.1f},{y1:.1f}"
    between = [n for row in rows for n in row if y1 < place[n][1] < y0 - 1 and n != coarse]
    if between:
        left, right = min(place[n][0] for n in between), max(place[n][0] + wide[n] for n in between)
        x = left - LANE_WIDTH if (x0 + x1) / 2 < (left + right) / 2 else right + LANE_WIDTH
        top, bottom = min(place[n][1] for n in between), max(place[n][1] + tall[n] for n in between)
        path = (
            f"M{x0:.1f},{y0:.1f} C{x0:.1f},{y0 - LAYER_GAP / 2:.1f} {x:.1f},{bottom + LAYER_GAP / 2:.1f} {x:.1f},{bottom:.1f} "
            f"L{x:.1f},{top:.1f} C{x:.1f},{top - LAYER_GAP / 2:.1f} {x1:.1f},{y1 + LAYER_GAP / 2:.1f} {x1:.1f},{y1:.1f}"
        )
    return tag("path", d=path, class_="arrow", marker_end="url(#head)")


def _lanes(dag: FeatureDag, rows: Sequence[Sequence[str]]) -> float:
    """Room beside the tables for arrows that go around some of them."""
    layer = {n: i for i, row in enumerate(rows) for n in row}
    return LANE_WIDTH + 4 if any(abs(layer[a] - layer[b]) > 1 for a, b in dag.edges) else 0


def _box(x: float, y: float, wide: float, tall: float, lines: Sequence[str]) -> Html:
    box = tag(
        "rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{wide:.1f}", height=f"{tall:.1f}", rx=8, class_="box"
    )
    middle = f"{x + wide / 2:.1f}"
    texts = [
        tag("text", line, x=middle, y=f"{y + LINE_HEIGHT * (i + 1):.1f}", text_anchor="middle", class_="strong" if i == 0 else "muted")
        for i, line in enumerate(lines)
    ]  # fmt: skip
    return tag("g", box, texts)


def budget_diagram(spends: Mapping[str, Fraction], whole: Fraction, sign: str = "ε") -> Html:
    """A bar for each answer, as long as its share of the privacy budget."""
    most = max(spends.values(), default=Fraction(1))
    rows = []
    for name, share in spends.items():
        length = float(share / most) * 100
        bar = tag("rect", x=0, y=0, width=f"{length:.2f}%", height=14, rx=3, class_="c0")
        picture = tag("svg", bar, width="100%", height=14, aria_hidden="true", class_="bar")
        rows.append(
            tag(
                "li",
                tag("span", name),
                picture,
                tag(
                    "span",
                    f"{sign} {amount_text(share)} ({float(100 * share / whole):.3g} %)",
                    class_="number",
                ),
            )
        )
    return tag("ul", rows, class_="bars")


def scatter_diagram(published: Ints, true: Ints, name: str) -> Html:
    """Published against true counts on scales of square roots; on the diagonal both agree. For the curator only."""
    side, left, most = 300, 64, max(1, int(max(published.max(initial=0), true.max(initial=0))))

    def at(n: int) -> float:
        return math.sqrt(max(n, 0) / most) * side

    points = np.unique(np.column_stack([true, published]), axis=0)
    if len(points) > 2_000:
        points = points[np.linspace(0, len(points) - 1, 2_000).astype(int)]
    marks = [
        tag(
            "circle", cx=f"{left + at(t):.1f}", cy=f"{SCATTER_TOP + side - at(p):.1f}", r=2.5, class_="c1 dot"
        )
        for t, p in points.tolist()
    ]
    ticks = sorted({0, most // 16, most // 4, most})
    labels = [
        [tag("text", f"{t:,}", x=f"{left + at(t):.1f}", y=SCATTER_TOP + side + 18, text_anchor="middle", class_="muted"),
         tag("text", f"{t:,}", x=left - 8, y=f"{SCATTER_TOP + 4 + side - at(t):.1f}", text_anchor="end", class_="muted")]
        for t in ticks
    ]  # fmt: skip
    frame = tag("rect", x=left, y=SCATTER_TOP, width=side, height=side, class_="frame")
    line = tag("line", x1=left, y1=SCATTER_TOP + side, x2=left + side, y2=SCATTER_TOP, class_="axis")
    names = [
        tag("text", "true count", x=left + side / 2, y=SCATTER_TOP + side + 36, text_anchor="middle"),
        tag("text", "published count", x=0, y=12),
    ]
    return _svg(
        left + side + 24,
        SCATTER_TOP + side + 42,
        f"Published against true counts of {name}",
        frame,
        line,
        marks,
        labels,
        names,
    )


def _svg(wide: float, tall: float, label: str, *inside: object) -> Html:
    return tag(
        "svg", *inside, viewBox=f"0 0 {wide:.0f} {tall:.0f}", width=f"{wide:.0f}", height=f"{tall:.0f}", role="img",
        aria_label=label, class_="picture",
    )  # fmt: skip
