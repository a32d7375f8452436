"""The figures: shuttles and waits over ε as in Figure 5(c)(d), and errors as the tail of demand gets heavier."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.harness.figures import DPI, GREY, HEIGHT, WIDTH, plotting, style
from benchmarks.transit.city import demand, heavy_share
from benchmarks.transit.jobs import RULES, heavy
from benchmarks.transit.plan import PROGRAMS, SHAPES, TAIL_LINES
from benchmarks.transit.results import Results, errors, mean, standard_error

MARKS = (10, 20, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1200)
REAL: Any = {"color": GREY, "linewidth": 2, "linestyle": (0, (4, 2)), "zorder": 1}  # the paper's red line


def over_epsilon(results: Results, path: Path) -> Path:
    """A row for each reading of the limit: shuttles and wait by ε; where no fleet was found, a cross at the top."""
    plt = plotting()
    figure, axes = plt.subplots(
        len(RULES), 2, figsize=(WIDTH, HEIGHT * len(RULES)), sharex=True, sharey="col", layout="constrained"
    )
    handles: dict[str, Any] = {}
    for (row, (rule, period)), (column, metric) in product(
        enumerate(RULES.items()), enumerate(("shuttles", "wait"))
    ):
        axis = axes[row, column]
        axis.set_title(f"({'cd'[column]}) {metric}, limit for {rule}", fontsize=10, loc="left")
        _plain(axis, "ε" if row else "", "shuttles" if metric == "shuttles" else "mean wait, s")
        ticks = [float(e) for e in results.plan.epsilons]
        axis.set_xlim(min(ticks) / 1.4, max(ticks) * 1.4)
        axis.set_ylim(*_limits(results, metric))
        axis.set_xscale("log")
        axis.set_yscale("log")
        for name in results.plan.mechanisms:
            if period is not None or not heavy(name):
                handles.setdefault(name, _line(axis, results, name, period, metric))
        truth = getattr(results.truth(results.plan.first, period=period), metric)
        level = axis.axhline(truth, **REAL)
        handles.setdefault("sized on the real trips", level)
        axis.set_xticks(ticks, results.plan.epsilons)
        low, high = axis.get_ylim()
        marks = [m for m in MARKS if low <= m <= high]
        axis.set_yticks(marks, [str(m) for m in marks])
        axis.minorticks_off()
    cross = axes[0, 0].plot([], [], linestyle="none", marker="x", color=GREY)[0]
    handles["no fleet found"] = cross
    figure.legend(
        list(handles.values()), list(handles), loc="outside right center", frameon=False, fontsize=8.5
    )
    return _save(figure, path)


def _limits(results: Results, metric: str) -> tuple[float, float]:
    """Room for every mean, with some above for the crosses."""
    plan = results.plan
    levels = [results.truth(plan.first, period=p) for p in RULES.values()]
    shown = [float(getattr(o, metric)) for o in levels]
    for name, e, period in product(plan.mechanisms, plan.epsilons, RULES.values()):
        made = results.made(plan.first, name, e, period=period, seeds=range(plan.runs))
        if any(o.fleet for o in made):
            shown.append(mean(float(getattr(o, metric)) for o in made if o.fleet))
    return min(shown) / 1.2, max(shown) * 1.5


def _line(axis: Any, results: Results, name: str, period: int | None, metric: str) -> Any:
    plan = results.plan
    drawn, lost = [], []
    for e in plan.epsilons:
        made = results.made(plan.first, name, e, period=period, seeds=range(plan.runs))
        values = [float(getattr(o, metric)) for o in made if o.fleet]
        if values:
            drawn.append((float(e), mean(values), standard_error(values) if len(values) > 1 else 0.0))
        elif made:
            lost.append(float(e))
    look = style(name, plan.mechanisms)
    x, y, around = zip(*drawn, strict=True) if drawn else ((), (), ())
    line = axis.errorbar(x, y, yerr=around, capsize=2, **look)
    if metric == "shuttles" and lost:
        order = [n for n in plan.mechanisms if heavy(n)]
        shift = 1 + 0.09 * (order.index(name) - (len(order) - 1) / 2) if name in order else 1.0
        top = [0.96] * len(lost)
        axis.plot(
            [v * shift for v in lost], top, linestyle="none", marker="x", markersize=5, color=look["color"],
            transform=axis.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
    return line


def over_tails(results: Results, path: Path) -> Path:
    """The signed error in shuttles, over the share of trips that are of types with 50 or more."""
    plt = plotting()
    day, seeds = results.plan.first, range(results.plan.runs)
    figure, axis = plt.subplots(figsize=(WIDTH * 0.8, HEIGHT * 1.15), layout="constrained")
    _plain(axis, "trips in types of 50 or more, %", "error in shuttles, %")
    names = [f"{n}, ε = {e}" if n in PROGRAMS else n for n, e in TAIL_LINES]
    x = [100 * heavy_share(demand(day, shape)) for shape in SHAPES]
    for label, (name, e) in zip(names, TAIL_LINES, strict=True):
        made = [
            errors(results.made(day, name, e, shape=s, seeds=seeds), results.truth(day, shape=s), "shuttles")
            for s in SHAPES
        ]
        y = [100 * mean(v) for v in made]
        around = [100 * standard_error(v) if len(v) > 1 else 0.0 for v in made]
        axis.errorbar(x, y, yerr=around, capsize=2, label=label, **style(label, names))
    axis.axhline(0, **REAL)
    axis.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=8.5)
    return _save(figure, path)


def _plain(axis: Any, x: str, y: str) -> None:
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.grid(visible=True, which="major", color="#dddddd", linewidth=0.7)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _save(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
    plotting().close(figure)
    return path


def draw(results: Results, folder: Path, sections: Sequence[str]) -> list[Path]:
    """The figures of these sections."""
    made = []
    if "epsilon" in sections:
        made.append(over_epsilon(results, folder / "transit-epsilon.png"))
    if "tail" in sections:
        made.append(over_tails(results, folder / "transit-tail.png"))
    return made
