"""Pictures of a release for a notebook or a paper: each says what it shows, in which unit, how sure it is, and how it is protected."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.parts import did_you_mean
from cbdp.release.views import (
    DEFAULT_CONFIDENCE,
    MAX_REGROUPED_ELEMENTS,
    Frame,
    GroupedCounts,
    Published,
    StopTotals,
    bounding_text,
    calendar_order,
    clock_second,
    counted_noun,
    guarantee_text,
    map_frame,
    planar,
    roles,
    stop_totals,
    title_of,
    where_and_when,
)
from cbdp_features.universe import Dimension

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cbdp.release.release import Release


@dataclass(frozen=True, eq=False)
class Plots:
    """What a release can draw. Every plot returns matplotlib's axes, to be changed or saved; `ax` draws on axes that are there."""

    release: Release = field(repr=False)

    def day(self, by: str | None = None, ax: Axes | None = None) -> Axes:
        """Trips in each period, with intervals; with `by`, say "mode", a line for each of its values."""
        return plot_day(self._published(), by, ax)

    def flows(self, most: int = 15, level: str | None = None, ax: Axes | None = None) -> Axes:
        """The largest flows with intervals, between zones or stops (`level`; zones where there are any)."""
        return plot_flows(self._published(), most, level, ax)

    def map(
        self, most: int = 20, level: str | None = None, zoom: str | None = None, ax: Axes | None = None
    ) -> Axes:
        """The largest flows on a map, between zones or stops (`level`; zones where there are any); `zoom` shows one zone."""
        return plot_map(self._published(), most, level, zoom, ax)

    def _published(self) -> Published:
        release = self.release
        return Published(release, release.intervals, release.confidence or DEFAULT_CONFIDENCE, release.places)


# How plots look: a title from the publisher's words, and a foot that says what is promised


# the palette of Okabe and Ito, which people with any kind of colour vision can tell apart; yellow is left out, it is too pale for lines
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BAR_COLOUR = "#56B4E9"  # of the same palette: light enough for the thin dark lines on it
TEXT_COLOUR, MUTED_COLOUR, GRID_COLOUR = "#1b2430", "#566274", "#d5dbe3"
FOOT_LETTERS_PER_INCH = 14  # letters of the foot in an inch of the figure's width: where its lines end
AXES_MARK = "cbdp"  # marks axes that were made here


def pyplot() -> Any:
    """Matplotlib, which is loaded when something is drawn."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise InputError('plots need matplotlib: pip install "cbdp[plot]"') from None
    return plt


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes to draw on: those given, or new ones, which have a picture of their own."""
    if ax is not None:
        return ax
    _, new_axes = pyplot().subplots(figsize=size, layout="constrained")
    new_axes.set_gid(AXES_MARK)
    return cast("Axes", new_axes)


def clean_axes(ax: Axes, grid: Literal["x", "y"]) -> None:
    """No box around it, and lines to read the numbers of one axis off."""
    for side in ("top", "right", "left" if grid == "y" else "bottom"):
        ax.spines[side].set_visible(False)
    ax.grid(axis=grid, color=GRID_COLOUR, linewidth=0.8)
    ax.set_axisbelow(True)
    (ax.xaxis if grid == "x" else ax.yaxis).set_major_formatter("{x:,.0f}")
    ax.tick_params(colors=MUTED_COLOUR, length=0)


def head_and_foot(ax: Axes, published: Published, what: str, note: str) -> None:
    """The title on top with what is shown; at the foot how sure it is and how it is protected.

    On axes that somebody else has laid out, all of it hangs on the axes, and takes no room from others.
    """
    release = published.release
    promise, only = (
        guarantee_text(release),
        bounding_text(release.promise.unit, counted_noun(release.features.universe)),
    )
    sentences = [note, f"{promise[0].upper()}{promise[1:]}.", f"{only[0].upper()}{only[1:]}." if only else ""]
    whole = cast("Figure", ax.figure)
    foot = "\n".join(
        textwrap.wrap(" ".join(filter(None, sentences)), int(FOOT_LETTERS_PER_INCH * whole.get_figwidth()))
    )
    head = "\n".join(filter(None, [title_of(release), where_and_when(release)]))
    if ax.get_gid() == AXES_MARK:
        whole.suptitle(head, x=0.01, ha="left", color=TEXT_COLOUR, fontweight="bold", fontsize=12)
        whole.supxlabel(foot, x=0.01, ha="left", color=MUTED_COLOUR, fontsize=8.5)
        ax.set_title(what, loc="left", color=MUTED_COLOUR, fontsize=10)
        return
    ax.set_title(f"{head}\n{what}", loc="left", color=TEXT_COLOUR, fontsize=10)
    note_at: dict[str, Any] = {
        "xycoords": "axes fraction",
        "textcoords": "offset points",
        "va": "top",
        "fontsize": 7.5,
    }
    ax.annotate(foot, (0, 0), (0, -36), color=MUTED_COLOUR, **note_at).set_in_layout(False)


def interval_note(published: Published, drawn: bool, exact: bool, marks: str) -> str:
    """What the thin lines are."""
    sure = f"{100 * published.confidence:g} %"
    if not drawn:
        return "No intervals were published for these numbers."
    if exact:
        return f"{marks}: {sure} intervals of the true counts."
    return f"{marks}: the {sure} intervals of a more detailed table, added up, so wider than necessary."


# Demand over the day: a bar for each period with its interval, or a line with a band for each value of an attribute


SECONDS_PER_HOUR = 3600


def plot_day(published: Published, by: str | None, ax: Axes | None) -> Axes:
    """Trips, or taps, in each period."""
    time = roles(published.dag).time
    if time is None:
        dimensions = ", ".join(published.dag.universe.dimensions)
        raise InputError(f"the release has no times to draw a day by: its dimensions are {dimensions}")
    ax = axes_for(ax, (9, 4.6))
    dimension = published.dag.universe.dimension(time)
    left, width = _bar_positions(dimension)
    grouped = (
        _plot_bars(published, time, left, width, ax)
        if by is None
        else _plot_lines(published, by, time, left, width, ax)
    )
    clean_axes(ax, "y")
    _time_ticks(ax, dimension, left, width)
    noun = counted_noun(published.dag.universe)
    ax.set_ylabel(noun.many, color=TEXT_COLOUR)
    ax.set_ylim(bottom=0)
    zone = None if published.release.about is None else published.release.about.timezone
    ax.set_xlabel(
        f"time of day ({zone})" if dimension.edges and zone else "time of day" if dimension.edges else time
    )
    marks = "Thin lines" if by is None else "Bands"
    head_and_foot(
        ax,
        published,
        f"{noun.many} in each period",
        interval_note(published, grouped.low is not None, grouped.exact, marks),
    )
    return ax


def _bar_positions(dimension: Dimension) -> tuple[Floats, Floats]:
    """Where each period begins and how long it is, in hours; other values stand side by side."""
    if dimension.edges is None:
        return np.arange(len(dimension), dtype=np.float64), np.ones(len(dimension))
    edges = np.asarray(dimension.edges, dtype=np.float64) / SECONDS_PER_HOUR
    return edges[:-1], np.diff(edges)


def _plot_bars(published: Published, time: str, left: Floats, width: Floats, ax: Axes) -> GroupedCounts:
    grouped = published.grouped(time)
    middle = left + width / 2
    ax.bar(middle, grouped.counts, width * 0.86, color=BAR_COLOUR)
    if grouped.low is not None and grouped.high is not None:
        ends = np.vstack([grouped.counts - grouped.low, grouped.high - grouped.counts]).clip(min=0)
        ax.errorbar(middle, grouped.counts, ends, fmt="none", ecolor=TEXT_COLOUR, elinewidth=1.2, capsize=3)
    return grouped


def _plot_lines(
    published: Published, by: str, time: str, left: Floats, width: Floats, ax: Axes
) -> GroupedCounts:
    attributes = [n for n, a in published.dag.universe.attributes.items() if n != time]
    if by not in attributes:
        raise InputError(f"unknown attribute {by!r}: {did_you_mean(by, attributes)}")
    labels = published.labels(by)
    if len(labels) > len(PALETTE):
        raise InputError(
            f"{by} has {len(labels)} values, at most {len(PALETTE)} lines can be read: choose another attribute"
        )
    grouped, middle = published.grouped(by, time), left + width / 2
    order = calendar_order(labels) or range(len(labels))
    for colour, row in zip(PALETTE, order, strict=False):
        label = labels[row]
        ax.plot(
            middle, grouped.counts[row], color=colour, label=label, linewidth=2, marker="o", markersize=3.5
        )
        if grouped.low is not None and grouped.high is not None:
            ax.fill_between(
                middle, grouped.low[row], grouped.high[row], color=colour, alpha=0.22, linewidth=0
            )
    ax.legend(frameon=False, title=by.replace(".", " "), loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return grouped


def _time_ticks(ax: Axes, dimension: Dimension, left: Floats, width: Floats) -> None:
    if dimension.edges is None:
        ax.set_xticks(
            left + 0.5, [str(v) for v in dimension.values], rotation=30 if len(left) > 6 else 0, ha="center"
        )
        return
    hours = np.arange(np.ceil(left[0]), left[-1] + width[-1] + 1e-9)
    every = max(1, int(np.ceil(len(hours) / 10)))
    shown = hours[::every]
    if len(shown) < 3:
        shown = np.append(left, left[-1] + width[-1])
    ax.set_xticks(shown, [clock_second(round(h * SECONDS_PER_HOUR)) for h in shown])
    ax.set_xlim(left[0], left[-1] + width[-1])


# The largest flows: between zones where there are any, or between stops


FLOW_LEVELS = ("zones", "stops")


@dataclass(frozen=True)
class DrawnFlow:
    """Trips from one place to another; the places by their codes and by their names."""

    start: int
    end: int
    names: tuple[str, str]
    count: int
    low: int | None
    high: int | None


@dataclass(frozen=True)
class DrawnFlows:
    level: str
    by: tuple[str, str]
    flows: tuple[DrawnFlow, ...]
    exact: bool  # the intervals are of these very counts


def largest_flows(published: Published, most: int, level: str | None) -> DrawnFlows:
    """The largest flows that have any trip; places with a flow to themselves are among them."""
    if most < 1:
        raise InputError(f"most is {most}: draw at least one flow")
    level, by = _flow_level(published, level)
    grouped = published.grouped(*by)
    counts = grouped.counts.reshape(-1)
    order = np.argsort(-counts, kind="stable")[:most]
    labels = [_place_names(published, name, level) for name in by]
    flows = []
    for place in order[counts[order] > 0].tolist():
        start, end = divmod(place, grouped.counts.shape[1])
        ends = (
            (int(grouped.low[start, end]), int(grouped.high[start, end]))
            if grouped.low is not None and grouped.high is not None
            else (None, None)
        )
        flows.append(DrawnFlow(start, end, (labels[0][start], labels[1][end]), int(counts[place]), *ends))
    return DrawnFlows(level, by, tuple(flows), grouped.exact)


def _flow_level(published: Published, level: str | None) -> tuple[str, tuple[str, str]]:
    parts = roles(published.dag)
    ends_by_level = {"zones": parts.zones, "stops": parts.ends}
    if parts.ends is None:
        raise InputError(
            "the release has no trips from place to place: it has no origin and destination to draw flows by"
        )
    if level is None:
        level = "stops" if parts.zones is None else "zones"
    if level not in FLOW_LEVELS or ends_by_level[level] is None:
        some = " or ".join(repr(name) for name, by in ends_by_level.items() if by is not None)
        raise InputError(f"level is {level!r}: this release has {some}")
    by = ends_by_level[level]
    assert by is not None
    if published.label_count(by[0]) * published.label_count(by[1]) > MAX_REGROUPED_ELEMENTS:
        raise InputError(
            f"{published.label_count(by[0]):,} × {published.label_count(by[1]):,} {level} are too many to draw: use release.ask"
        )
    return level, by


def _place_names(published: Published, attribute: str, level: str) -> list[str]:
    """Labels; of stops their names, where no two stops have the same."""
    labels, places = published.labels(attribute), published.places
    if level == "zones" or places is None:
        return labels
    name_of = dict(zip(map(str, places.ids), places.names, strict=True))
    named = [name_of.get(label, label) for label in labels]
    return named if len(set(named)) == len(labels) else labels


# The largest flows as bars with intervals


MAX_NAME_LETTERS = 24  # letters of a place's name, which leave room for the bars


def plot_flows(published: Published, most: int, level: str | None, ax: Axes | None) -> Axes:
    """A bar for each flow, the largest on top."""
    largest = largest_flows(published, most, level)
    many = len(largest.flows)
    ax = axes_for(ax, (9, 1.9 + 0.3 * max(many, 3)))
    place, counts = np.arange(many), np.array([f.count for f in largest.flows], dtype=np.int64)
    ax.barh(place, counts, height=0.72, color=BAR_COLOUR)
    drawn = many > 0 and largest.flows[0].low is not None
    if drawn:
        low, high = (np.array([getattr(f, end) for f in largest.flows]) for end in ("low", "high"))
        ends = np.vstack([counts - low, high - counts]).clip(min=0)
        ax.errorbar(counts, place, xerr=ends, fmt="none", ecolor=TEXT_COLOUR, elinewidth=1.2, capsize=3)
    ax.set_yticks(place, [" → ".join(map(_shortened_name, f.names)) for f in largest.flows])
    ax.invert_yaxis()
    clean_axes(ax, "x")
    ax.tick_params(axis="y", labelcolor=TEXT_COLOUR)
    ax.set_xlim(left=0)
    ax.set_xlabel("trips", color=TEXT_COLOUR)
    what = f"the {many} largest flows between {largest.level}"
    head_and_foot(ax, published, what, interval_note(published, drawn, largest.exact, "Thin lines"))
    return ax


def _shortened_name(name: str) -> str:
    """A name that leaves room for the bars.

    >>> _shortened_name("San Francisco Caltrain 2 (330 Townsend)")
    'San Francisco Caltrain …'
    """
    return name if len(name) <= MAX_NAME_LETTERS else f"{name[: MAX_NAME_LETTERS - 1]}…"


# The largest flows on a map: arrows as wide as their trips, pale where noise alone could have made them


KM_PER_DEGREE = 111.195  # kilometres in a degree of latitude, on a sphere of 6,371 km
FRAME_MARGIN = 0.06  # room around the stops, as a part of the frame
MAX_ARROW_POINTS = 9.0  # width of the widest arrow, in points
SCALE_BAR_KM = (
    500,
    200,
    100,
    50,
    20,
    10,
    5,
    2,
    1,
    0.5,
    0.2,
    0.1,
)  # lengths that the scale bar may have, in kilometres


def plot_map(published: Published, most: int, level: str | None, zoom: str | None, ax: Axes | None) -> Axes:
    """Stops as dots, flows as arrows that bend to the right of their way."""
    parts = roles(published.dag)
    if published.places is None or parts.ends is None:
        raise InputError(
            "the release does not know where its stops are: publish it with stops that have lat and lon"
        )
    largest = largest_flows(published, most, level)
    stops = stop_totals(published)
    view = _map_view(published, stops, zoom)
    if view is None:
        raise InputError(
            "no stop of the release has a latitude and a longitude: give them in the file of stops"
        )
    start = (view.south + view.north) / 2, (view.west + view.east) / 2
    ax = axes_for(ax, _figure_size(view, start))
    _draw_ground(ax, view, start)
    x, y = planar(stops.lat, stops.lon, start)
    size = max(3.0, 22 * min(1.0, float(np.sqrt(200 / max(len(x), 1)))))
    ax.scatter(x, y, s=size, color=MUTED_COLOUR, alpha=0.55, linewidths=0, zorder=1)
    drawn = _draw_arrows(ax, largest, _end_positions(published, largest, stops, view, start))
    _draw_scale_bar(ax)
    head_and_foot(
        ax, published, f"the {drawn} largest flows between {largest.level}", _draw_note(largest, view, drawn)
    )
    return ax


def _map_view(published: Published, stops: StopTotals, zoom: str | None) -> Frame | None:
    """Where the trips are; or the stops of one zone."""
    if zoom is None:
        return map_frame(stops.lat, stops.lon, stops.trips)
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
    return map_frame(stops.lat[here], stops.lon[here], stops.trips[here])


def _figure_size(view: Frame, start: tuple[float, float]) -> tuple[float, float]:
    """Inches of the picture: as tall as the frame asks for, within reason."""
    x, y = planar(np.array([view.south, view.north]), np.array([view.west, view.east]), start)
    tall = float(np.ptp(y)) / max(float(np.ptp(x)), 1e-6)
    return 8.0, 8.0 * min(max(tall, 0.55), 1.2) + 1.4


def _draw_ground(ax: Axes, view: Frame, start: tuple[float, float]) -> None:
    """Equal units to all sides, no axes: north is on top."""
    lat, lon = np.array([view.south, view.north]), np.array([view.west, view.east])
    x, y = planar(lat, lon, start)
    reach = max(float(np.ptp(x)), float(np.ptp(y)), 1e-3)
    pad = FRAME_MARGIN * reach + 1e-4
    ax.set_xlim(x.min() - pad, x.max() + pad)
    ax.set_ylim(y.min() - pad, y.max() + pad)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ax.spines.values():
        side.set_color(GRID_COLOUR)


def _end_positions(
    published: Published, flows: DrawnFlows, stops: StopTotals, view: Frame, start: tuple[float, float]
) -> dict[tuple[int, int], tuple[float, float]]:
    """Where each end of a flow is: a stop's place, or the middle of a zone's stops on the map. Keys are the end (0 or 1) and its code."""
    positions = {}
    for end, name in enumerate(flows.by):
        attribute = published.dag.universe.attribute(name)
        dimension = published.dag.universe.dimension(roles(published.dag).ends[end])  # type: ignore[index]
        lat, lon = stops.of(dimension.values)
        x, y = planar(lat, lon, start)
        for code in range(len(attribute.labels)):
            here = (attribute.codes == code) & np.isfinite(x)
            near = here & view.holds(lat, lon)
            here = near if near.any() else here
            if here.any():
                positions[end, code] = float(x[here].mean()), float(y[here].mean())
    return positions


def _draw_arrows(ax: Axes, flows: DrawnFlows, middles: dict[tuple[int, int], tuple[float, float]]) -> int:
    """The flows whose ends have a place inside the frame; how many were drawn."""
    from matplotlib.patches import FancyArrowPatch

    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    inside = {key: p for key, p in middles.items() if (low <= p).all() and (p <= high).all()}
    kept = [f for f in flows.flows if (0, f.start) in inside and (1, f.end) in inside]
    top, widest = max((f.count for f in kept), default=1), _widest_flow(kept)
    for f in reversed(kept):  # the largest last, on top
        a, b = inside[0, f.start], inside[1, f.end]
        colour, alpha = PALETTE[f.start % 6], 0.25 if _is_within_noise(f) else 0.85
        width = max(0.8, MAX_ARROW_POINTS * f.count / widest)
        if _is_inside_a_place(f) or a == b:
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
    if flows.level == "zones":
        _draw_names(ax, flows, inside)
    return len(kept)


def _draw_names(ax: Axes, flows: DrawnFlows, inside: dict[tuple[int, int], tuple[float, float]]) -> None:
    from matplotlib.patheffects import withStroke

    named = {f.names[0]: inside.get((0, f.start)) for f in flows.flows}
    named |= {f.names[1]: inside.get((1, f.end)) for f in flows.flows}
    for name, place in named.items():
        if place is not None:
            halo = [withStroke(linewidth=3, foreground="white")]
            ax.text(
                *place,
                name,
                ha="center",
                va="center",
                color=TEXT_COLOUR,
                fontweight="bold",
                path_effects=halo,
                zorder=5,
            )


def _is_inside_a_place(flow: DrawnFlow) -> bool:
    return flow.names[0] == flow.names[1]


def _widest_flow(flows: Sequence[DrawnFlow]) -> int:
    """The trips of the widest arrow; circles, which may be far larger, have a scale of their own."""
    return max((f.count for f in flows if not _is_inside_a_place(f)), default=1)


def _is_within_noise(flow: DrawnFlow) -> bool:
    """Whether noise alone could have made it: its interval holds zero."""
    return flow.low is not None and flow.low <= 0


def _draw_scale_bar(ax: Axes) -> None:
    """A bar of a round length, at the bottom on the left."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    long = next((k for k in SCALE_BAR_KM if k / KM_PER_DEGREE <= 0.3 * (right - left)), SCALE_BAR_KM[-1])
    x, y = left + 0.03 * (right - left), bottom + 0.035 * (top - bottom)
    ax.plot(
        [x, x + long / KM_PER_DEGREE],
        [y, y],
        color=TEXT_COLOUR,
        linewidth=2,
        solid_capstyle="butt",
        zorder=5,
        gid="scale",
    )
    ax.text(
        x + long / KM_PER_DEGREE, y, f"  {long:g} km", va="center", color=TEXT_COLOUR, fontsize=9, zorder=5
    )


def _draw_note(flows: DrawnFlows, view: Frame, drawn: int) -> str:
    widths = (
        f"Width: trips (the widest arrow: {_widest_flow(flows.flows):,}). Arrows have the colour of where they start and bend to the right; circles are "
        "trips inside a place, not to the same scale."
    )
    pale = (
        " Pale: the interval reaches zero, so noise alone could have made it."
        if any(map(_is_within_noise, flows.flows))
        else ""
    )
    missing = (
        " No intervals were published for these flows." if flows.flows and flows.flows[0].low is None else ""
    )
    left = len(flows.flows) - drawn
    outside = f" {left} of the largest flows lead outside the map or have no place." if left else ""
    stops = "stop" if view.outside == 1 else "stops"
    far = (
        f" Not shown: {view.outside} {stops} far from most trips, with {100 * view.share:.2g} % of the ends of trips."
        if view.outside
        else ""
    )
    return widths + pale + missing + outside + far
