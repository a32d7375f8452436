"""A change map: a disc for each stop or zone, or a line for each pair, as large as its change; grey where noise explains it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

import numpy as np

from cbdp.features.places import Stops
from cbdp.release.change import Compared
from cbdp.report.change.rows import label_of, mark_of, numbers_of, sure_of, tip_of
from cbdp.report.markup import Html, join, tag

WIDE, PAD = 900.0, 46.0
LARGEST = 26.0  # radius of the largest change
WIDEST = 9.0  # of a line
WAYS = 80  # lines drawn, the clearest changes
NAMES = 24  # places that are named

Point = tuple[float, float]


def change_map(made: Compared, places: Stops | None) -> Html | None:
    """None where the rows are no places, or nobody knows where they are."""
    if places is None or len(made.by) not in (1, 2):
        return None
    seats = [_seats(made, name, places) for name in made.by]
    if any(not s for s in seats):
        return None
    at, tall = _projected({k: p for s in seats for k, p in s.items()}, places)
    marks = _discs(made, at) if len(made.by) == 1 else _ways(made, at)
    dots = _stops(places, at)
    said = f"Map of the change by {' and '.join(made.by)}"
    ground = tag("rect", width=WIDE, height=f"{tall:.0f}", rx=10, class_="ground")
    picture = tag(
        "svg", ground, dots, marks, viewBox=f"0 0 {WIDE:.0f} {tall:.0f}", width=f"{WIDE:.0f}", height=f"{tall:.0f}", role="img",
        aria_label=said, class_="picture",
    )  # fmt: skip
    what = "Discs are as large as the change." if len(made.by) == 1 else _ways_note(made)
    note = f"{what} Orange: more {made.noun.many}, blue: fewer, grey: within noise."
    return join(tag("p", note, class_="note"), tag("div", picture, id="chart-map"))


def _ways_note(made: Compared) -> str:
    return f"Lines bend to the right of their direction and are as wide as the change; the {min(WAYS, made.rows)} clearest are drawn."


def _seats(made: Compared, name: str, places: Stops) -> dict[tuple[str, Hashable], Point]:
    """Longitude and latitude of each label of an attribute: a stop's, or the middle of a zone's stops."""
    labels = list(dict.fromkeys(made.columns[name]))
    known = {
        str(stop): (float(x), float(y)) for stop, x, y in zip(places.ids, places.lon, places.lat, strict=True)
    }
    if not all(str(label) in known for label in labels):
        known = _zones(places)
    found = {("at", label): known[str(label)] for label in labels if str(label) in known}
    return {k: p for k, p in found.items() if not math.isnan(p[0])} if len(found) == len(labels) else {}


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
    scale = min((WIDE - 2 * PAD) / wide, 640 / tall)
    height = tall * scale + 2 * PAD
    left = (WIDE - wide * scale) / 2
    made = {
        k: (left + (x - min(xs)) * shrink * scale, height - PAD - (y - min(ys)) * scale)
        for k, (x, y) in every.items()
    }
    return made, height


def _stops(places: Stops, at: Mapping[tuple[str, Hashable], Point]) -> list[Html]:
    return [
        tag("circle", cx=f"{at['stop', i][0]:.1f}", cy=f"{at['stop', i][1]:.1f}", r=1.4, class_="ink")
        for i in range(len(places))
        if ("stop", i) in at
    ]


def _discs(made: Compared, at: Mapping[tuple[str, Hashable], Point]) -> list[Html]:
    most = max(1, *(abs(numbers_of(made, row)[2]) for row in range(made.rows)))
    order = sorted(range(made.rows), key=lambda row: -abs(numbers_of(made, row)[2]))
    marks, names = [], []
    for place, row in enumerate(order):
        x, y = at["at", made.columns[made.by[0]][row]]
        change, sure = numbers_of(made, row)[2], sure_of(made, row)
        radius = max(2.0, LARGEST * math.sqrt(abs(change) / most))
        marks.append(
            tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{radius:.1f}", class_=f"mark dot {mark_of(change, sure)}", data_tip=tip_of(made, row), tabindex=0)
        )  # fmt: skip
        if place < NAMES and (sure or made.rows <= NAMES):
            names.append(
                tag(
                    "text",
                    label_of(made, row),
                    x=f"{x:.1f}",
                    y=f"{y - radius - 3:.1f}",
                    text_anchor="middle",
                    class_="halo",
                )
            )
    return [*marks, *names]


def _ways(made: Compared, at: Mapping[tuple[str, Hashable], Point]) -> list[Html]:
    chance = np.asarray(made.columns["chance"], dtype=float)
    order = sorted(range(made.rows), key=lambda row: (not sure_of(made, row), chance[row], row))[:WAYS]
    most = max(1, *(abs(numbers_of(made, row)[2]) for row in order))
    marks: list[Html] = []
    seen: dict[Hashable, Point] = {}
    for row in reversed(order):
        ends = [made.columns[name][row] for name in made.by]
        (x0, y0), (x1, y1) = (at["at", end] for end in ends)
        change = numbers_of(made, row)[2]
        shown = {"class_": "", "data_tip": tip_of(made, row), "tabindex": 0}
        mark = mark_of(change, sure_of(made, row))
        wide = max(1.0, WIDEST * math.sqrt(abs(change) / most))
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
        tag("text", str(label), x=f"{x:.1f}", y=f"{y - 10:.1f}", text_anchor="middle", class_="halo") for label, (x, y) in list(seen.items())[-NAMES:]
    ]  # fmt: skip
    return [*marks, *names]
