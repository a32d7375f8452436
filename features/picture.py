"""The feature DAG as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx

from cbdp.errors import CbdpError

if TYPE_CHECKING:
    from cbdp.features.dag import FeatureDag


def draw(dag: FeatureDag, path: Path) -> Path:
    """Coarse features above, the features that refine them below."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise CbdpError("drawing needs matplotlib: pip install 'cbdp[plot]'") from missing
    layers = list(nx.topological_generations(dag.reduction.reverse(copy=True)))
    wide = max(len(layer) for layer in layers)
    figure = Figure(figsize=(2.9 * wide + 0.6, 1.35 * len(layers) + 0.3), layout="constrained")
    axes = figure.add_subplot()
    place = {}
    for depth, layer in enumerate(layers):
        for column, name in enumerate(sorted(layer, key=list(dag.features).index)):
            place[name] = (column - (len(layer) - 1) / 2, -depth)
    for fine, coarse in dag.edges:
        axes.annotate(
            "", xy=place[fine], xytext=place[coarse], arrowprops={"arrowstyle": "-|>", "color": "#555", "shrinkA": 24, "shrinkB": 26}
        )  # fmt: skip
    for name, feature in dag.features.items():
        text = f"{name}\n{' × '.join(feature.by) or 'everything'}\n{dag.size(name):,}"
        box = {"boxstyle": "round,pad=0.5", "facecolor": "#eaf2fb", "edgecolor": "#2b5d8a"}
        axes.text(*place[name], text, ha="center", va="center", fontsize=8, bbox=box)
    axes.set_xlim(-wide / 2 - 0.1, wide / 2 + 0.1)
    axes.set_ylim(-len(layers) + 0.45, 0.55)
    axes.axis("off")
    figure.savefig(path, dpi=150)
    return path
