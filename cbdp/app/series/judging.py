"""Whether the rows of a series may be released: how all rows are read, once in a run; and that a period has trips at all.

Both are decisions about private rows, shown to the curator alone, before anything is charged (docs/explanation/threat-model.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from cbdp.app.inspecting.judging import (
    NOTHING_ACCEPTED,
    Accepted,
    DroppedError,
    judge_rows,
    refuse_bounded,
    refuse_unusual,
)
from cbdp.app.inspecting.plausibility import Plausibility
from cbdp.app.inspecting.reading import reading_of_plan
from cbdp.privacy.unit import RELEASE, Person
from cbdp.release.counted import counted
from cbdp.trips import Counts, count

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.app.publish.run import Judge


def judge_series(say: Callable[[str], None], accepted: Accepted = NOTHING_ACCEPTED) -> Judge:
    """The judge of one run of a series; what is `accepted` stops nothing."""
    judged: dict[str, Plausibility] = {}  # places of trips that were looked at as a whole

    def one(plan: Plan, counts: Counts) -> None:
        noun = counted(plan.universe)
        say(f"counted {noun.number(int(counts.value.sum()))} in {plan.days} (private: for you alone)")
        if accepted.dropped and accepted.unusual:
            return
        place = repr(plan.trips)
        if place not in judged:
            every = _all_rows(plan)
            judge_rows(say, replace(plan, slot=None), every, accepted, days="all days together: ")
            if not accepted.dropped and _periodic(plan):
                refuse_bounded(plan, every)
            judged[place] = Plausibility(reading_of_plan(plan), 0 if every.rows is None else every.rows.read)
        if not accepted.dropped and not _periodic(plan):
            refuse_bounded(plan, counts)
        if not accepted.unusual and counts.value.sum():
            inside = counts.value.sum() if counts.rows is None else counts.rows.inside
            refuse_unusual(judged[place], int(inside), int(counts.value.sum()), plan.days)
        if not accepted.dropped and not counts.value.sum():
            raise DroppedError(
                f"there are no {noun.many} in {plan.days}, nothing was spent: if its rows are still to come, run this again when they "
                "are there; if nobody travelled, list the days in series.gaps or add --accept-dropped"
            )

    return one


def _periodic(plan: Plan) -> bool:
    """Whether a person's trips are bounded by periods, so that all rows together are bounded as each release is."""
    return isinstance(plan.unit, Person) and plan.unit.per != RELEASE


def _all_rows(plan: Plan) -> Counts:
    return count(plan.trips, plan.universe, columns=plan.columns, unit=plan.unit, clock=plan.clock)
