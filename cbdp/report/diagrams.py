"""Where the parts of pictures stand that do not change: how the tables fit together, and published against true counts. Our own layout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from cbdp.arrays import Ints
from cbdp.features import FeatureDag

# in pixels: letters and lines of text, between boxes and between layers of them, above a scatter diagram, beside boxes that an arrow passes
LETTER_WIDTH, LINE_HEIGHT, BOX_GAP, LAYER_GAP, SCATTER_TOP, LANE_WIDTH = 7.1, 18, 26, 54, 26, 14
MAX_POINTS = 2_000  # of a scatter diagram: more cannot be told apart


@dataclass(frozen=True)
class Box:
    """A table: its corner, its size, its middle, and its lines with their heights."""

    x: str
    y: str
    width: str
    height: str
    middle: str
    lines: list[tuple[str, str]]


@dataclass(frozen=True)
class DagDiagram:
    """Coarse features above, those they are made of below; an arrow (a path) from each to the coarser one it adds up to."""

    width: str
    height: str
    description: str
    boxes: list[Box]
    arrows: list[str]


def dag_diagram(dag: FeatureDag) -> DagDiagram:
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
    return DagDiagram(
        f"{full:.0f}",
        f"{top - LAYER_GAP + 4:.0f}",
        "; ".join(f"{fine} adds up to {coarse}" for fine, coarse in dag.edges),
        [_box(*place[n], wide[n], tall[n], lines) for n, lines in texts.items()],
        [_arrow(place, wide, tall, fine, coarse, rows) for fine, coarse in dag.edges],
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
) -> str:
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
    return path


def _lanes(dag: FeatureDag, rows: Sequence[Sequence[str]]) -> float:
    """Room beside the tables for arrows that go around some of them."""
    layer = {n: i for i, row in enumerate(rows) for n in row}
    return LANE_WIDTH + 4 if any(abs(layer[a] - layer[b]) > 1 for a, b in dag.edges) else 0


def _box(x: float, y: float, wide: float, tall: float, lines: Sequence[str]) -> Box:
    heights = (f"{y + LINE_HEIGHT * (place + 1):.1f}" for place in range(len(lines)))
    return Box(
        f"{x:.1f}", f"{y:.1f}", f"{wide:.1f}", f"{tall:.1f}", f"{x + wide / 2:.1f}", list(zip(lines, heights, strict=True))
    )  # fmt: skip


@dataclass(frozen=True)
class ScatterDiagram:
    """Published against true counts on scales of square roots; on the diagonal both agree. Points and ticks (with their count) as places."""

    left: int
    top: int
    side: int
    points: list[tuple[str, str]]
    ticks: list[tuple[int, str, str]]


def scatter_diagram(published: Ints, true: Ints) -> ScatterDiagram:
    """For the curator only."""
    side, left, most = 300, 64, max(1, int(max(published.max(initial=0), true.max(initial=0))))

    def seat(true: int, published: int) -> tuple[str, str]:
        x, y = (math.sqrt(max(n, 0) / most) * side for n in (true, published))
        return f"{left + x:.1f}", f"{SCATTER_TOP + side - y:.1f}"

    points = np.unique(np.column_stack([true, published]), axis=0)
    if len(points) > MAX_POINTS:
        points = points[np.linspace(0, len(points) - 1, MAX_POINTS).astype(int)]
    ticks = sorted({0, most // 16, most // 4, most})
    return ScatterDiagram(
        left, SCATTER_TOP, side, [seat(t, p) for t, p in points.tolist()], [(t, *seat(t, t)) for t in ticks]
    )
