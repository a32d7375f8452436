"""What a table may be used for: by how far its average count may be off, in words of people who plan services.

One rule for a release that is planned (`cbdp check`, the page of `cbdp plan`) and for one that is published (its report): a table is judged by its
average count, trips ÷ number of counts. Noise is about as large on every count, so beside it stands the least count that is good on its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

GOOD = 0.2  # a count is called good if it is within such a part of itself


@dataclass(frozen=True)
class Use:
    """What a table may be used for, if its average count is within such a part of itself."""

    within: float
    name: str
    can: str
    why: str


USES = (
    Use(0.10, "size a line", "size lines and vehicles", "a count a fifth larger stands out: ranges do not meet"),
    Use(0.25, "see the peak", "see the peak", "a count half as large again stands out: ranges do not meet"),
    Use(0.50, "busy or quiet", "tell busy from quiet", "a count twice as large stands out: ranges do not meet"),
    Use(math.inf, "sums only", "use sums of many counts", "single counts say little: use a coarser table, or merge zones or periods"),
)  # fmt: skip


def use_of(relative: float) -> Use:
    """The most demanding use that such a margin allows.

    >>> use_of(0.07).name, use_of(0.5).name, use_of(3).name
    ('size a line', 'busy or quiet', 'sums only')
    """
    return next(use for use in USES if relative <= use.within)


def average_count(trips: float, counts: int) -> float:
    """The count that a table is judged by: trips ÷ number of counts, to two digits, and at least 1. Of a single count, that count.

    >>> average_count(300_000, 600), average_count(326_315, 600), average_count(70_000, 117_600), average_count(326_315, 1)
    (500.0, 540.0, 1.0, 326315.0)
    """
    mean = max(trips / counts, 1.0)
    step = 1.0 if counts == 1 else 10.0 ** max(0, math.floor(math.log10(mean)) - 1)
    return math.floor(mean / step + 0.5) * step
