"""The largest flows on a map: arrows as wide as their trips, pale where noise alone could have made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cbdp.errors import InputError
from cbdp.parts import did_you_mean
from cbdp.release.framing import Frame, flat, frame
from cbdp.release.plots.ends import DrawnFlow, DrawnFlows, largest
from cbdp.release.plots.style import COLOURS, INK, LINE, MUTED, axes, head_and_foot
from cbdp.release.published import Published
from cbdp.release.roles import roles
from cbdp.release.stops import Placed, placed

KM = 111.195  # of a degree of latitude
MARGIN = 0.06  # of the frame
THICK = 9.0  # points of the widest arrow
LENGTHS = (500, 200, 100, 50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1)  # kilometres of the scale


def draw_map(published: Published, most: int, level: str | None, zoom: str | None, ax: Any) -> Any:
    """Stops as dots, flows as arrows that bend to the right of their way."""
    parts = roles(published.dag)
    if published.places is None or parts.ends is None:
        raise InputError(
            "the release does not know where its stops are: publish it with stops that have lat and lon"
        )
    found = largest(published, most, level)
    stops = placed(published)
    view = _view(published, stops, zoom)
    if view is None:
        raise InputError(
            "no stop of the release has a latitude and a longitude: give them in the file of stops"
        )
    start = (view.south + view.north) / 2, (view.west + view.east) / 2
    ax = axes(ax, _size(view, start))
    _ground(ax, view, start)
    x, y = flat(stops.lat, stops.lon, start)
    size = max(3.0, 22 * min(1.0, float(np.sqrt(200 / max(len(x), 1)))))
    ax.scatter(x, y, s=size, color=MUTED, alpha=0.55, linewidths=0, zorder=1)
    drawn = _arrows(ax, found, _middles(published, found, stops, view, start))
    _scale(ax)
    head_and_foot(
        ax, published, f"the {drawn} largest flows between {found.level}", _note(found, view, drawn)
    )
    return ax


def _view(published: Published, stops: Placed, zoom: str | None) -> Frame | None:
    """Where the trips are; or the stops of one zone."""
    if zoom is None:
        return frame(stops.lat, stops.lon, stops.trips)
    parts = roles(published.dag)
    if parts.zones is None or parts.ends is None:
        raise InputError(f"there is no zone {zoom!r} to zoom to: this release has no zones")
    zones = published.dag.universe.attribute(parts.zones[0])
    labels = [str(label) for label in zones.labels]
    if zoom not in labels:
        raise InputError(f"there is no zone {zoom!r} to zoom to: {did_you_mean(zoom, labels)}")
    values = published.dag.universe.dimension(parts.ends[0]).values
    inside = {v for v, code in zip(values, zones.codes.tolist(), strict=True) if labels[code] == zoom}
    here = np.array([label in inside for label in stops.labels])
    return frame(stops.lat[here], stops.lon[here], stops.trips[here])


def _size(view: Frame, start: tuple[float, float]) -> tuple[float, float]:
    """Inches of the picture: as tall as the frame asks for, within reason."""
    x, y = flat(np.array([view.south, view.north]), np.array([view.west, view.east]), start)
    tall = float(np.ptp(y)) / max(float(np.ptp(x)), 1e-6)
    return 8.0, 8.0 * min(max(tall, 0.55), 1.2) + 1.4


def _ground(ax: Any, view: Frame, start: tuple[float, float]) -> None:
    """Equal units to all sides, no axes: north is on top."""
    lat, lon = np.array([view.south, view.north]), np.array([view.west, view.east])
    x, y = flat(lat, lon, start)
    reach = max(float(np.ptp(x)), float(np.ptp(y)), 1e-3)
    pad = MARGIN * reach + 1e-4
    ax.set_xlim(x.min() - pad, x.max() + pad)
    ax.set_ylim(y.min() - pad, y.max() + pad)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ax.spines.values():
        side.set_color(LINE)


def _middles(
    published: Published, found: DrawnFlows, stops: Placed, view: Frame, start: tuple[float, float]
) -> dict[tuple[int, int], tuple[float, float]]:
    """Where each end of a flow is: a stop's place, or the middle of a zone's stops on the map. Keys are the end (0 or 1) and its code."""
    made = {}
    for end, name in enumerate(found.by):
        attribute = published.dag.universe.attribute(name)
        dimension = published.dag.universe.dimension(roles(published.dag).ends[end])  # type: ignore[index]
        lat, lon = stops.of(dimension.values)
        x, y = flat(lat, lon, start)
        for code in range(len(attribute.labels)):
            here = (attribute.codes == code) & np.isfinite(x)
            near = here & view.holds(lat, lon)
            here = near if near.any() else here
            if here.any():
                made[end, code] = float(x[here].mean()), float(y[here].mean())
    return made


def _arrows(ax: Any, found: DrawnFlows, middles: dict[tuple[int, int], tuple[float, float]]) -> int:
    """The flows whose ends have a place inside the frame; how many were drawn."""
    from matplotlib.patches import FancyArrowPatch

    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    inside = {key: p for key, p in middles.items() if (low <= p).all() and (p <= high).all()}
    kept = [f for f in found.flows if (0, f.start) in inside and (1, f.end) in inside]
    top, widest = max((f.count for f in kept), default=1), _widest(kept)
    for f in reversed(kept):  # the largest last, on top
        a, b = inside[0, f.start], inside[1, f.end]
        colour, alpha = COLOURS[f.start % 6], 0.25 if _unsure(f) else 0.85
        width = max(0.8, THICK * f.count / widest)
        if _inner(f) or a == b:
            size = (10 + 26 * float(np.sqrt(f.count / top))) ** 2
            ax.scatter(
                *a,
                s=size,
                facecolors="none",
                edgecolors=colour,
                linewidths=1.8,
                alpha=alpha,
                zorder=2,
                gid="inner",
            )
        else:
            ax.add_patch(
                FancyArrowPatch(
                    a, b, connectionstyle="arc3,rad=0.18", arrowstyle=f"-|>,head_length={3 + width / 2},head_width={1.6 + width / 3}",
                    shrinkA=7, shrinkB=7, linewidth=width, color=colour, alpha=alpha, mutation_scale=1.0, zorder=3,
                )
            )  # fmt: skip
    if found.level == "zones":
        _names(ax, found, inside)
    return len(kept)


def _names(ax: Any, found: DrawnFlows, inside: dict[tuple[int, int], tuple[float, float]]) -> None:
    from matplotlib.patheffects import withStroke

    named = {f.names[0]: inside.get((0, f.start)) for f in found.flows}
    named |= {f.names[1]: inside.get((1, f.end)) for f in found.flows}
    for name, place in named.items():
        if place is not None:
            halo = [withStroke(linewidth=3, foreground="white")]
            ax.text(
                *place,
                name,
                ha="center",
                va="center",
                color=INK,
                fontweight="bold",
                path_effects=halo,
                zorder=5,
            )


def _inner(flow: DrawnFlow) -> bool:
    return flow.names[0] == flow.names[1]


def _widest(flows: Sequence[DrawnFlow]) -> int:
    """The trips of the widest arrow; circles, which may be far larger, have a scale of their own."""
    return max((f.count for f in flows if not _inner(f)), default=1)


def _unsure(flow: DrawnFlow) -> bool:
    """Whether noise alone could have made it: its interval holds zero."""
    return flow.low is not None and flow.low <= 0


def _scale(ax: Any) -> None:
    """A bar of a round length, at the bottom on the left."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    long = next((k for k in LENGTHS if k / KM <= 0.3 * (right - left)), LENGTHS[-1])
    x, y = left + 0.03 * (right - left), bottom + 0.035 * (top - bottom)
    ax.plot([x, x + long / KM], [y, y], color=INK, linewidth=2, solid_capstyle="butt", zorder=5, gid="scale")
    ax.text(x + long / KM, y, f"  {long:g} km", va="center", color=INK, fontsize=9, zorder=5)


def _note(found: DrawnFlows, view: Frame, drawn: int) -> str:
    said = (
        f"Width: trips (the widest arrow: {_widest(found.flows):,}). Arrows have the colour of where they start and bend to the right; circles are "
        "trips inside a place, not to the same scale."
    )
    pale = (
        " Pale: the interval reaches zero, so noise alone could have made it."
        if any(map(_unsure, found.flows))
        else ""
    )
    known = (
        " No intervals were published for these flows." if found.flows and found.flows[0].low is None else ""
    )
    left = len(found.flows) - drawn
    outside = f" {left} of the largest flows lead outside the map or have no place." if left else ""
    stops = "stop" if view.outside == 1 else "stops"
    far = (
        f" Not shown: {view.outside} {stops} far from most trips, with {100 * view.share:.2g} % of the ends of trips."
        if view.outside
        else ""
    )
    return said + pale + known + outside + far
