"""The choices that the paper's text leaves open, or that an implementation may have made otherwise, for H5."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Reading:
    """One way to read the hierarchical mechanism. The defaults are the paper's text, and `cbdp.Hierarchical`."""

    budget: str = "geometric"  # most for the leaves; or "most for the root", or "uniform"
    root: bool = False  # measured
    prune: str = "T1"  # or "final values", "T1, children only", "none"
    order: str = "zones first"
    doubled: bool = False  # noise as if one trip changed every level by 2
    fan_out: str = "any"  # least squares; or Hay's formula with the "own", "average" or "largest" fan-out

    def __str__(self) -> str:
        names = {
            "budget": f"budget {self.budget}", "root": "root measured", "prune": f"pruning: {self.prune}",
            "order": self.order, "doubled": "noise doubled", "fan_out": f"Hay's formula, {self.fan_out} fan-out",
        }  # fmt: skip
        return "; ".join(names[name] for name in self.changes) or "as in the text"

    @property
    def changes(self) -> list[str]:
        """What is read otherwise than the text says."""
        return [f.name for f in fields(self) if getattr(self, f.name) != f.default]


AS_IN_TEXT = Reading()
SINGLE = (
    AS_IN_TEXT,
    Reading(budget="uniform"),
    Reading(budget="most for the root"),
    Reading(root=True),
    Reading(prune="none"),
    Reading(prune="final values"),
    Reading(prune="T1, children only"),
    Reading(order="modes first"),
    Reading(doubled=True),
    Reading(fan_out="own"),
    Reading(fan_out="average"),
    Reading(fan_out="largest"),
)
EVERY = tuple(
    Reading(*choice)
    for choice in itertools.product(
        ("geometric", "most for the root", "uniform"),
        (False, True),
        ("T1", "final values", "T1, children only", "none"),
        ("zones first", "modes first"),
        (False, True),
        ("any", "own", "average", "largest"),
    )
)
