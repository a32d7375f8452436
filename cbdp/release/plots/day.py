"""Demand over the day: a bar for each period with its interval, or a line with a band for each value of an attribute."""

from __future__ import annotations

from typing import Any

import numpy as np

from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.features.dimension import Dimension
from cbdp.parts import did_you_mean
from cbdp.release.counted import counted
from cbdp.release.plots.style import BAR, COLOURS, INK, axes, clean, head_and_foot, sureness
from cbdp.release.published import Grouped, Published
from cbdp.release.roles import clock, roles
from cbdp.release.when import calendar_order

HOUR = 3600


def day(published: Published, by: str | None, ax: Any) -> Any:
    """Trips, or taps, in each period."""
    time = roles(published.dag).time
    if time is None:
        known = ", ".join(published.dag.universe.dimensions)
        raise InputError(f"the release has no times to draw a day by: its dimensions are {known}")
    ax = axes(ax, (9, 4.6))
    dimension = published.dag.universe.dimension(time)
    left, width = _places(dimension)
    grouped = (
        _bars(published, time, left, width, ax)
        if by is None
        else _lines(published, by, time, left, width, ax)
    )
    clean(ax, "y")
    _ticks(ax, dimension, left, width)
    noun = counted(published.dag.universe)
    ax.set_ylabel(noun.many, color=INK)
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
        sureness(published, grouped.low is not None, grouped.exact, marks),
    )
    return ax


def _places(dimension: Dimension) -> tuple[Floats, Floats]:
    """Where each period begins and how long it is, in hours; other values stand side by side."""
    if dimension.edges is None:
        return np.arange(len(dimension), dtype=np.float64), np.ones(len(dimension))
    edges = np.asarray(dimension.edges, dtype=np.float64) / HOUR
    return edges[:-1], np.diff(edges)


def _bars(published: Published, time: str, left: Floats, width: Floats, ax: Any) -> Grouped:
    grouped = published.grouped(time)
    middle = left + width / 2
    ax.bar(middle, grouped.counts, width * 0.86, color=BAR)
    if grouped.low is not None and grouped.high is not None:
        ends = np.vstack([grouped.counts - grouped.low, grouped.high - grouped.counts]).clip(min=0)
        ax.errorbar(middle, grouped.counts, ends, fmt="none", ecolor=INK, elinewidth=1.2, capsize=3)
    return grouped


def _lines(published: Published, by: str, time: str, left: Floats, width: Floats, ax: Any) -> Grouped:
    known = [n for n, a in published.dag.universe.attributes.items() if n != time]
    if by not in known:
        raise InputError(f"unknown attribute {by!r}: {did_you_mean(by, known)}")
    labels = published.labels(by)
    if len(labels) > len(COLOURS):
        raise InputError(
            f"{by} has {len(labels)} values, at most {len(COLOURS)} lines can be read: choose another attribute"
        )
    grouped, middle = published.grouped(by, time), left + width / 2
    order = calendar_order(labels) or range(len(labels))
    for colour, row in zip(COLOURS, order, strict=False):
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


def _ticks(ax: Any, dimension: Dimension, left: Floats, width: Floats) -> None:
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
    ax.set_xticks(shown, [clock(round(h * HOUR)) for h in shown])
    ax.set_xlim(left[0], left[-1] + width[-1])
