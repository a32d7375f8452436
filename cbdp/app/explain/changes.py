"""How much one unit of privacy can change each table, as `cbdp check` shows it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cbdp.app.printing import aligned
from cbdp.features.telling import telling
from cbdp.privacy.sensitivity import change_over
from cbdp.privacy.unit import RELEASE, Person

if TYPE_CHECKING:
    from cbdp.app.plan.facts import PlannedRelease

MANY = {"day": 7, "week": 4, "month": 12}  # periods that a person may ask about


def title(unit: Person) -> str:
    whose = "One person" if unit.per == RELEASE else f"One {unit.per} of one person"
    return f"{whose} can change"


def change_table(plan: PlannedRelease, unit: Person) -> list[str]:
    """Of each measured table: all counts together, their Euclidean length, how many counts, a single count; and the length over several periods."""
    measured, many = plan.mechanism.measured_features, MANY.get(unit.per)
    rows = [["table", "all counts by", "length", "counts", "one count by"]]
    rows[0] += [] if many is None else [f"length in {many} {unit.per}s"]
    for answer in plan.mechanism.answers():
        change = plan.mechanism.change(answer.feature)
        lengths = [change.l2_squared]
        if many is not None:
            tells = telling(measured, answer.feature, unit.per, unit.apart)
            lengths.append(change_over(unit, tells, periods=many).l2_squared)
        length, *over = (f"{math.sqrt(squared):,.3g}" for squared in lengths)
        rows.append(
            [answer.feature, f"{change.l1:,}", length, f"{change.touched:,}", f"{change.pile:,}", *over]
        )
    return aligned(rows, right=range(1, len(rows[0])))


def change_remarks(unit: Person) -> list[str]:
    """What the numbers decide."""
    said = [
        "Geometric noise follows the first number, Gaussian noise the length (the root of the squares' sum)."
    ]
    if unit.apart is None:
        said.append(
            'All trips of a person may fall into one count. With apart = "time", at most one is counted in each time period, and the '
            "length shrinks in tables that tell periods apart."
        )
    return said
