"""The figures: PNG by matplotlib. Colours that colour-blind readers tell apart, and markers; legends beside the data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.store import NOT_POSSIBLE, OK
from benchmarks.harness.tables import Group, Summary, value

# Okabe and Ito's palette less its yellow, which is faint on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
BLACK = "#000000"
OURS = "O5"
MARKERS = "sD^vPX*<>hp"
LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)))
GREY = "#767676"
ZEROS = "all zeros"
WIDTH, HEIGHT, DPI = 9.6, 3.3, 130


@dataclass(frozen=True)
class Series:
    """A line of a figure: numbers by ε, or by whatever the figure is over."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def style(label: str, labels: Sequence[str]) -> dict[str, Any]:
    """How a line is drawn among others: no two alike among the first dozens, and O5 the same in every figure."""
    ours = label == OURS
    place = 0 if ours else [other for other in labels if other != OURS].index(label)
    return {
        "color": BLACK if ours else COLOURS[place % len(COLOURS)],
        "marker": "o" if ours else MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place // len(COLOURS) % len(LINES)],
        "zorder": 3 if ours else 2,
        "linewidth": 1.6,
        "markersize": 5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
    }


def series(
    found: Mapping[Group, Summary], task: str, data: str, mechanism: str, epsilons: Sequence[str], metric: str
) -> Series | None:
    """A mechanism's line over ε; what went wrong stands in its label. None where it was never run."""
    own = {e: found[task, data, mechanism, e] for e in epsilons if (task, data, mechanism, e) in found}
    if not own:
        return None
    good = {e: value(s, metric) for e, s in own.items() if not math.isnan(value(s, metric))}
    bad = dict.fromkeys(s.status for s in own.values() if s.status not in (OK, NOT_POSSIBLE))
    label = f"{mechanism} ({', '.join(bad)})" if bad else mechanism
    return Series(label, [float(e) for e in good], list(good.values()))


def plotting() -> Any:
    """matplotlib without a screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _axes(axis: Any, *, x: str, y: str, title: str = "", log: str = "xy") -> None:
    if "x" in log:
        axis.set_xscale("log")
    if "y" in log:
        axis.set_yscale("log")
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.set_title(title, fontsize=10, loc="left")
    axis.grid(visible=True, which="major", color="#dddddd", linewidth=0.7)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _ticks(axis: Any, at: Sequence[float]) -> None:
    axis.set_xticks(list(at), [f"{v:g}" for v in at])
    axis.minorticks_off()


def _save(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    # no software version or date inside: the same numbers give the same file
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
    plotting().close(figure)
    return path


def _beside(axis: Any, handles: Sequence[Any], labels: Sequence[str]) -> None:
    axis.legend(
        handles,
        labels,
        loc="center left",
        bbox_to_anchor=(1.02, 0.5),
        frameon=False,
        fontsize=8.5,
        handlelength=3.2,
    )


def grid(
    rows: Mapping[str, Mapping[str, Sequence[Series]]],
    path: Path,
    *,
    x: str,
    y: str,
    reference: Mapping[str, tuple[str, float]] | None = None,
) -> Path:
    """A row of panels for each group of lines, a column for each data set; one legend beside each row.

    `reference` is a level by column with its name, say the error of an answer of all zeros.
    """
    columns = list(dict.fromkeys(c for row in rows.values() for c in row))
    plt = plotting()
    figure, axes = plt.subplots(
        len(rows),
        len(columns),
        figsize=(WIDTH, HEIGHT * len(rows)),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for r, (name, panels) in enumerate(rows.items()):
        labels = list(dict.fromkeys(s.label for lines in panels.values() for s in lines))
        handles: dict[str, Any] = {}
        for c, column in enumerate(columns):
            axis, lines = axes[r, c], panels.get(column, ())
            if not lines:
                axis.axis("off")
                axis.text(0.5, 0.5, f"{column}: not run", transform=axis.transAxes, ha="center", color=GREY)
                continue
            below = any(later.get(column) for later in list(rows.values())[r + 1 :])
            axis.tick_params(labelbottom=not below)
            _axes(
                axis,
                x="" if below else x,
                y=y if c == 0 else "",
                title=f"{column}: {name}" if name else column,
            )
            for line in lines:
                drawn = axis.plot(line.x, line.y, **style(line.label, labels))[0]
                handles.setdefault(line.label, drawn)
            _ticks(axis, sorted({v for line in lines for v in line.x}) or [1.0])
            if reference and column in reference:
                said, level = reference[column]
                handles[said] = axis.axhline(level, color=GREY, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
        _beside(axes[r, -1], list(handles.values()), list(handles))
    return _save(figure, path)


def panels(
    shown: Mapping[str, Sequence[Series]],
    path: Path,
    *,
    x: str,
    y: str,
    reference: Mapping[str, float],
    across: int = 3,
) -> Path:
    """A panel for each data set, each with an axis of its own and a dashed level; one legend for all, in the last place."""
    plt = plotting()
    down = -(-(len(shown) + 1) // across)
    figure, axes = plt.subplots(
        down, across, figsize=(WIDTH, HEIGHT * 0.85 * down), squeeze=False, layout="constrained"
    )
    names = list(dict.fromkeys(line.label for lines in shown.values() for line in lines))
    handles: dict[str, Any] = {}
    places = list(axes.flat)
    for n, (axis, (title, lines)) in enumerate(zip(places, shown.items(), strict=False)):
        _axes(axis, x=x if n + across >= len(shown) else "", y=y if n % across == 0 else "", title=title)
        for line in lines:
            handles.setdefault(line.label, axis.plot(line.x, line.y, **style(line.label, names))[0])
        _ticks(axis, sorted({v for line in lines for v in line.x}) or [1.0])
        if title in reference:
            level = axis.axhline(reference[title], color=GREY, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
            handles.setdefault(ZEROS, level)
    for axis in places[len(shown) :]:
        axis.axis("off")
    places[len(shown)].legend(
        list(handles.values()), list(handles), loc="center left", frameon=False, fontsize=9, handlelength=3.2
    )
    return _save(figure, path)


def dots(
    lines: Sequence[Series], theirs: Sequence[Series], path: Path, *, x: str, y: str, level: tuple[str, float]
) -> Path:
    """Our numbers as lines, published ones as open rings in the colour of the line of the same name."""
    plt = plotting()
    figure, axis = plt.subplots(figsize=(WIDTH * 0.8, HEIGHT * 1.15), layout="constrained")
    _axes(axis, x=x, y=y)
    handles, names = [], [line.label for line in lines]
    for line in lines:
        handles += axis.plot(line.x, line.y, **style(line.label, names))
    for line in theirs:
        handles += axis.plot(
            line.x, line.y, linestyle="none", marker="o", markersize=11, markerfacecolor="none", markeredgewidth=1.4,
            color=style(line.label, names)["color"] if line.label in names else GREY,
        )  # fmt: skip
    handles.append(axis.axhline(level[1], color=GREY, linewidth=1, linestyle=(0, (2, 2))))
    _ticks(axis, sorted({v for line in (*lines, *theirs) for v in line.x}))
    _beside(axis, handles, [*names, *(f"{line.label}, published" for line in theirs), level[0]])
    return _save(figure, path)


def stacks(
    parts: Mapping[str, Mapping[tuple[str, str], float]], path: Path, *, y: str, mechanisms: Sequence[str]
) -> Path:
    """Stacked bars: part → (mechanism, ε) → seconds; a cluster of mechanisms for each ε."""
    plt = plotting()
    epsilons = list(dict.fromkeys(e for part in parts.values() for _, e in part))
    figure, axis = plt.subplots(figsize=(WIDTH, HEIGHT * 1.15), layout="constrained")
    _axes(axis, x="", y=y, log="")
    ticks, names = [], []
    handles: dict[str, Any] = {}
    for cluster, epsilon in enumerate(epsilons):
        for place, mechanism in enumerate(mechanisms):
            at, height = cluster * (len(mechanisms) + 1) + place, 0.0
            for p, (part, seconds) in enumerate(parts.items()):
                more = seconds.get((mechanism, epsilon), math.nan)
                if math.isnan(more):
                    continue
                hatch = ("", "///", "...")[p % 3]
                drawn = axis.bar(
                    at, more, 0.85, bottom=height, color=COLOURS[p], hatch=hatch, edgecolor="white"
                )
                handles.setdefault(part, drawn)
                height += more
            ticks.append(at)
            names.append(mechanism)
        middle = cluster * (len(mechanisms) + 1) + (len(mechanisms) - 1) / 2
        axis.annotate(
            f"ε = {epsilon}", (middle, 0), (0, -26), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", fontsize=9.5,
        )  # fmt: skip
    axis.set_xticks(ticks, names, fontsize=8)
    axis.grid(visible=False, axis="x")
    axis.set_xlabel(" \n ", fontsize=8)  # room for the names of the clusters
    _beside(axis, list(handles.values()), list(handles))
    return _save(figure, path)


def crossover(
    errors: Sequence[Series],
    ratio: Series,
    path: Path,
    *,
    labels: Mapping[str, str],
    crossing: Sequence[float],
) -> Path:
    """Left: errors by ε on the densest city, with the ε at which two lines cross. Right: their ratio by density."""
    plt = plotting()
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(WIDTH, HEIGHT * 1.15), layout="constrained", width_ratios=(1.25, 1)
    )
    _axes(left, x=labels["x"], y=labels["y"], title=labels["left"])
    names = [line.label for line in errors]
    handles = [left.plot(line.x, line.y, **style(line.label, names))[0] for line in errors]
    for at in crossing:
        handles.append(left.axvline(at, color=GREY, linewidth=1, linestyle=(0, (2, 2))))
        names.append(f"equal at ε = {at:.2g}")
    _ticks(left, sorted({v for line in errors for v in line.x}))
    left.tick_params(axis="x", labelsize=8)
    _beside(left, handles, names)
    _axes(right, x=labels["x right"], y=labels["y right"], title=labels["right"])
    right.plot(ratio.x, ratio.y, **style(OURS, [OURS]))
    right.axhline(1, color=GREY, linewidth=1, linestyle=(0, (2, 2)))
    right.annotate(
        "as good as Lap",
        (max(ratio.x), 1),
        (0, -11),
        textcoords="offset points",
        fontsize=8,
        color=GREY,
        ha="right",
    )
    _ticks(right, ratio.x)
    marks = [2.0**k for k in range(-6, 7) if min(1, *ratio.y) / 1.5 < 2.0**k < max(1, *ratio.y) * 1.5]
    right.set_yticks(marks, [f"{m:g}" for m in marks])
    right.set_ylim(min(1, *ratio.y) / 1.5, max(1, *ratio.y) * 1.5)
    right.minorticks_off()
    right.tick_params(axis="x", labelsize=8)
    return _save(figure, path)
