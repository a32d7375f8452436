"""The largest flows as bars with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from cbdp.release.plots.ends import largest
from cbdp.release.plots.style import BAR, INK, axes, clean, head_and_foot, sureness
from cbdp.release.published import Published

LONGEST = 24  # letters of a name


def flows(published: Published, most: int, level: str | None, ax: Any) -> Any:
    """A bar for each flow, the largest on top."""
    found = largest(published, most, level)
    many = len(found.flows)
    ax = axes(ax, (9, 1.9 + 0.3 * max(many, 3)))
    place, counts = np.arange(many), np.array([f.count for f in found.flows], dtype=np.int64)
    ax.barh(place, counts, height=0.72, color=BAR)
    drawn = many > 0 and found.flows[0].low is not None
    if drawn:
        low, high = (np.array([getattr(f, end) for f in found.flows]) for end in ("low", "high"))
        ends = np.vstack([counts - low, high - counts]).clip(min=0)
        ax.errorbar(counts, place, xerr=ends, fmt="none", ecolor=INK, elinewidth=1.2, capsize=3)
    ax.set_yticks(place, [" → ".join(map(_short, f.names)) for f in found.flows])
    ax.invert_yaxis()
    clean(ax, "x")
    ax.tick_params(axis="y", labelcolor=INK)
    ax.set_xlim(left=0)
    ax.set_xlabel("trips", color=INK)
    what = f"the {many} largest flows between {found.level}"
    head_and_foot(ax, published, what, sureness(published, drawn, found.exact, "Thin lines"))
    return ax


def _short(name: str) -> str:
    """A name that leaves room for the bars.

    >>> _short("San Francisco Caltrain 2 (330 Townsend)")
    'San Francisco Caltrain …'
    """
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
