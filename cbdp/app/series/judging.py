"""Whether the rows of a series may be released: how all rows are read, once in a run; and that a period has trips at all.

Both are decisions about private rows, shown to the curator alone, before anything is charged (docs/explanation/threat-model.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from cbdp.app.inspecting.judging import DroppedError, judge
from cbdp.release.counted import counted
from cbdp.trips import Counts, count

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.app.publish.run import Judge


def judge_series(say: Callable[[str], None], *, accept: bool = False) -> Judge:
    """The judge of one run of a series; `accept` goes on whatever the counts are."""
    judged: set[str] = set()  # places of trips that were looked at as a whole

    def one(plan: Plan, counts: Counts) -> None:
        noun = counted(plan.universe)
        say(f"counted {noun.number(int(counts.value.sum()))} in {plan.days} (private: for you alone)")
        if accept:
            return
        place = repr(plan.trips)
        if place not in judged:
            judge(say, days="all days together: ")(replace(plan, slot=None), _all_rows(plan))
            judged.add(place)
        if not counts.value.sum():
            raise DroppedError(
                f"there are no {noun.many} in {plan.days}, nothing was spent: if its rows are still to come, run this again when they "
                "are there; if nobody travelled, list the days in series.gaps or add --accept-dropped"
            )

    return one


def _all_rows(plan: Plan) -> Counts:
    return count(plan.trips, plan.universe, columns=plan.columns, unit=plan.unit, clock=plan.clock)
