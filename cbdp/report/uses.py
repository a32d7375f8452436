"""What a table may be used for: by how far a typical count may be off, in words of people who plan services."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Use:
    """What a table may be used for, if a typical count is within such a part of itself."""

    within: float
    name: str
    can: str
    why: str


USES = (
    Use(0.10, "size a line", "size lines and vehicles", "a count a fifth larger stands out: ranges do not meet"),
    Use(0.25, "see the peak", "see the peak", "a count half as large again stands out: ranges do not meet"),
    Use(0.50, "busy or quiet", "tell busy from quiet", "a count twice as large stands out: ranges do not meet"),
    Use(math.inf, "sums only", "add up many counts first", "single counts say little: merge zones or periods, or use a coarser table"),
)  # fmt: skip


def use_of(relative: float) -> Use:
    """The most demanding use that such a margin allows.

    >>> use_of(0.07).name, use_of(0.5).name, use_of(3).name
    ('size a line', 'busy or quiet', 'sums only')
    """
    return next(use for use in USES if relative <= use.within)
