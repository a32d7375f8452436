"""What a plan's tables do not tell apart, and what that means for whoever reads counts by it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

from cbdp.app.plan.facts import PlannedRelease
from cbdp.features import SINGLETON
from cbdp.features.coverage import partly_covered, uncovered


@dataclass(frozen=True)
class Gap:
    """A dimension or attribute that no measured table covers."""

    name: str
    instead: tuple[str, ...]  # attributes of it that tables do tell apart, like the zones of stops
    half_width: (
        int | None
    )  # trips by which the noise of single trip types alone moves a count by it; None: not measured

    def __str__(self) -> str:
        noise = (
            ""
            if self.half_width is None
            else f", whose noise adds up to about ±{self.half_width:,} trips in each"
        )
        guess = f"a guess from the noisy counts of single combinations{noise}"
        add = f'add a table by {self.name}: [[feature]] with name = "{self.name}" and by = ["{self.name}"]'
        if self.instead:
            return f"{self.name}: tables know its {', '.join(self.instead)} only; counts by {self.name} itself are {guess}. If you need them, {add}"
        return f"no table tells {self.name} apart: counts by {self.name} are {guess}; {add}"


def gaps(plan: PlannedRelease) -> tuple[Gap, ...]:
    """What no measured or public table tells apart. A mechanism that measures only trip types has no use for tables."""
    if not plan.mechanism.asks_tables:
        return ()
    features, answers = plan.mechanism.measured_features, {a.feature: a for a in plan.mechanism.answers()}
    known = [n for n in (*answers, *plan.public) if n in features]
    leaves = answers.get(SINGLETON)
    found = []
    for name in uncovered(features, known):
        half = None
        if leaves is not None:
            types = plan.universe.size / len(plan.universe.attribute(name).labels)
            deviation = math.sqrt(types * float(leaves.law.variance()))
            half = math.ceil(NormalDist().inv_cdf(0.5 + plan.confidence / 2) * deviation)
        found.append(Gap(name, partly_covered(features, known, name), half))
    return tuple(found)


def missing(found: tuple[Gap, ...]) -> Iterator[Gap]:
    """The gaps that deserve a warning: nothing at all is told of them."""
    return (gap for gap in found if not gap.instead)
