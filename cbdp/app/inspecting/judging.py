"""Whether a count may be charged for: shown to the curator in one line, and stopped where most rows do not count.

This decision sees private rows. It is the curator's own: what it says goes to the terminal of whoever holds the trips, nothing is
spent, and nothing is written. docs/reference/data.md says what an outsider could learn from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cbdp.app.inspecting.cause import Cause, counted
from cbdp.app.inspecting.causes import causes_of
from cbdp.app.inspecting.reading import dropped_as, look, reading_of_plan
from cbdp.app.inspecting.tables import read_as_trips, unused_counts
from cbdp.app.inspecting.taps import ROWS
from cbdp.errors import InputError
from cbdp.privacy.unit import Person
from cbdp.release.counted import counted as noun
from cbdp.trips import Counts, planning
from cbdp.trips.engines.base import UNREAD
from cbdp.trips.preparing import Linked, Prepared

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.app.publish.run import Judge

LEAST = 0.5  # share of the rows, and of the trips they stand for, that must count
UNREADABLE = 0.1  # share of the rows whose time may be written in no form that is understood


class DroppedError(InputError):
    """Most rows do not count: nothing was charged."""


@dataclass(frozen=True)
class Share:
    """What counted, for the curator. Private."""

    read: int
    counted: int
    what: str = "row"

    @property
    def all(self) -> str:
        """How many there are of what."""
        return f"{self.read:,} {ROWS}" if self.what == ROWS else counted(self.read, self.what)

    @property
    def short(self) -> bool:
        return not self.read or self.counted < LEAST * self.read


def judge(say: Callable[[str], None], *, accept: bool = False, days: str = "") -> Judge:
    """What a release does between its count and its charge; `accept` goes on whatever the count is, `days` says which days are counted."""

    def judged(plan: Plan, counts: Counts) -> None:
        shares = shares_of(plan, counts)
        say(f"{days}{summary(plan, counts, shares)}")
        for note in () if plan.schema is None else plan.schema.notes:
            say(f"note: {note}")
        if accept:
            return
        column = None if plan.schema is None else unused_counts(plan.schema, plan.columns, plan.unit)
        if column is not None:
            raise DroppedError(_refusal(plan, "", read_as_trips(column)))
        _refuse(plan, shares)

    return judged


def _refuse(plan: Plan, shares: tuple[Share, ...]) -> None:
    """Stop where fewer than half count, and where more than a few times cannot be read."""
    short = [share for share in shares if share.short]
    if not short and all(share.counted >= (1 - UNREADABLE) * share.read for share in shares):
        return
    reading = reading_of_plan(plan)
    found = look(reading)
    unread = max((d.rows for d in dropped_as(found, UNREAD)), default=0)
    if short or unread > UNREADABLE * found.read:
        few = (
            _few(short[0])
            if short
            else f"{unread:,} of {counted(found.read, 'row')} hold times that cannot be read: "
        )
        raise DroppedError(_refusal(plan, few, next(iter(causes_of(reading, found)), None)))


def shares_of(plan: Plan, counts: Counts) -> tuple[Share, ...]:
    """Rows, and where rows stand for many trips, those as well."""
    if counts.rows is None:
        return ()
    prepared = plan.trips.by if isinstance(plan.trips, Prepared) else None
    seen = Share(counts.rows.read, counts.rows.inside, ROWS if isinstance(prepared, Linked) else "row")
    if planning.weight_column(plan.columns, plan.universe) is None:
        return (seen,)
    found = look(reading_of_plan(plan))
    return Share(found.read, found.counted), Share(seen.read, seen.counted, noun(plan.universe).one)


def summary(plan: Plan, counts: Counts, shares: tuple[Share, ...]) -> str:
    """One line for the curator."""
    said = [f"{t.counted:,} of {t.all}" for t in shares]
    line = f"counted {', '.join(said)}"
    if isinstance(plan.unit, Person):
        line += f", of which {int(counts.value.sum()):,} are kept with at most {plan.unit.max_trips} of each person{plan.unit.period}"
    return f"{line} (private: for you alone)"


def _few(share: Share) -> str:
    if not share.read:
        return "there is nothing to count: "
    return f"only {share.counted:,} of {share.all} would count, fewer than half: "


def _refusal(plan: Plan, few: str, cause: Cause | None) -> str:
    why = "the reason is not known" if cause is None else f"{cause.what}; {cause.cure}"
    return (
        f"{few}{why}. Nothing was spent. `cbdp inspect {plan.config.source.path}` shows all of it; "
        "to release nevertheless, add --accept-dropped"
    )
