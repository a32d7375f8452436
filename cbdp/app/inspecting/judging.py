"""Whether a count may be charged for: shown to the curator in one line, and stopped where most rows do not count, or cannot be what they seem.

This decision sees private rows. It is the curator's own: what it says goes to the terminal of whoever holds the trips, nothing is
spent, and nothing is written. docs/reference/data.md says what an outsider could learn from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cbdp.app.inspecting.cause import Cause, counted
from cbdp.app.inspecting.causes import causes_of
from cbdp.app.inspecting.plausibility import Plausibility, doubts
from cbdp.app.inspecting.reading import TripReading, dropped_as, look, reading_of_plan
from cbdp.app.inspecting.roles import role_causes
from cbdp.app.inspecting.tables import read_as_trips, unused_counts
from cbdp.app.inspecting.taps import ROWS
from cbdp.errors import InputError
from cbdp.privacy.unit import RELEASE, Person
from cbdp.release.counted import counted as noun
from cbdp.trips import Counts, Inspection, planning
from cbdp.trips.days import Days
from cbdp.trips.engines.base import UNREAD
from cbdp.trips.preparing import Linked, Prepared

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.app.publish.run import Judge

LEAST = 0.5  # share of the rows, and of the trips they stand for, that must count
UNREADABLE = 0.1  # share of the rows whose time may be written in no form that is understood


ACCEPT_DROPPED, ACCEPT_UNUSUAL = "--accept-dropped", "--accept-unusual"


class DroppedError(InputError):
    """Most rows do not count: nothing was charged."""


class UnusualError(InputError):
    """The rows can hardly be what they are said to be: nothing was charged."""


@dataclass(frozen=True)
class Accepted:
    """What the curator has looked at and goes on with."""

    dropped: bool = False  # fewer than half of the rows count, or of the trips are kept
    unusual: bool = (
        False  # repeated rows, days without rows, another number of trips than expected, times in UTC
    )


NOTHING_ACCEPTED = Accepted()


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


def judge(say: Callable[[str], None], accepted: Accepted = NOTHING_ACCEPTED) -> Judge:
    """What a release does between its count and its charge; what is `accepted` stops nothing."""

    def judged(plan: Plan, counts: Counts) -> None:
        judge_rows(say, plan, counts, accepted)
        if not accepted.dropped:
            refuse_bounded(plan, counts)
        if not accepted.unusual:
            reading = reading_of_plan(plan)
            refuse_unusual(
                Plausibility(reading, _rows_read(counts)), _inside(counts), int(counts.value.sum())
            )

    return judged


def judge_rows(
    say: Callable[[str], None], plan: Plan, counts: Counts, accepted: Accepted, days: str = ""
) -> None:
    """Tell how all rows are read, and stop where most do not count; `days` says which days are counted."""
    shares = shares_of(plan, counts)
    say(f"{days}{summary(plan, counts, shares)}")
    for note in () if plan.schema is None else plan.schema.notes:
        say(f"note: {note}")
    if accepted.dropped:
        return
    column = None if plan.schema is None else unused_counts(plan.schema, plan.columns, plan.unit)
    if column is not None:
        raise DroppedError(_refusal(reading_of_plan(plan), "", read_as_trips(column)))
    refuse_dropped(reading_of_plan(plan), shares)


def _rows_read(counts: Counts) -> int:
    return 0 if counts.rows is None else counts.rows.read


def _inside(counts: Counts) -> int:
    return int(counts.value.sum()) if counts.rows is None else counts.rows.inside


def refuse_bounded(plan: Plan, counts: Counts) -> None:
    """Stop where the bound on a person's trips would keep fewer than half of them: the column may be no person's, or the bound too low."""
    if not isinstance(plan.unit, Person) or counts.rows is None:
        return
    kept = Share(counts.rows.inside, int(counts.value.sum()), noun(plan.universe).one)
    if kept.read and kept.short:
        reading = reading_of_plan(plan)
        raise DroppedError(_refusal(reading, few_kept(kept), bounded_cause(reading, look(reading))))


def few_kept(kept: Share) -> str:
    return f"only {kept.counted:,} of {kept.all} would be kept, fewer than half: "


def bounded_cause(reading: TripReading, found: Inspection) -> Cause:
    """Why the bound on a person's trips drops so many."""
    assert isinstance(reading.unit, Person)
    stated = f"max_trips = {reading.unit.max_trips}{reading.unit.period}"
    persons = [
        cause for cause in role_causes(reading, found) if cause.what.startswith(f"{reading.person!r} has few")
    ]
    if persons:
        return persons[0]
    loads = found.loads
    enough = (
        []
        if loads is None
        else [
            m
            for m, lost in loads.dropped.items()
            if m > reading.unit.max_trips and lost < LEAST * loads.trips
        ]
    )
    cure = f"write max_trips = {enough[0]} or more" if enough else "write a larger max_trips"
    return Cause(
        found.counted,
        f"many persons have more than {stated}",
        f"{cure} (noise grows with it), protect a person per day or week, or name another column if {reading.person!r} is no person's",
    )


def refuse_unusual(looked: Plausibility, inside: int, kept: int, days: Days | None = None) -> None:
    """Stop where the rows can hardly be what they are said to be."""
    cause = next(doubts(looked, inside, kept, days), None)
    if cause is not None:
        raise UnusualError(_refusal(looked.reading, "", cause, ACCEPT_UNUSUAL))


def refuse_dropped(reading: TripReading, shares: tuple[Share, ...]) -> None:
    """Stop where fewer than half count, and where more than a few times cannot be read."""
    short = [share for share in shares if share.short]
    if not short and all(share.counted >= (1 - UNREADABLE) * share.read for share in shares):
        return
    found = look(reading)
    unread = max((d.rows for d in dropped_as(found, UNREAD)), default=0)
    if short or unread > UNREADABLE * found.read:
        few = (
            _few(short[0])
            if short
            else f"{unread:,} of {counted(found.read, 'row')} hold times that cannot be read: "
        )
        raise DroppedError(_refusal(reading, few, next(iter(causes_of(reading, found)), None)))


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


def _refusal(reading: TripReading, few: str, cause: Cause | None, accept: str = ACCEPT_DROPPED) -> str:
    why = "the reason is not known" if cause is None else f"{cause.what}; {cause.cure}"
    return (
        f"{few}{why}. Nothing was spent. `cbdp inspect {reading.config.source.path}` shows all of it; "
        f"to go on nevertheless, add {accept}"
    )


def verdict(reading: TripReading, found: Inspection) -> Iterator[str]:
    """What would stop a release of these rows, for `cbdp inspect`; nothing: it would go on."""
    column = unused_counts(reading.schema, reading.columns, reading.unit)
    rows = Share(found.read, found.counted)
    unread = max((d.rows for d in dropped_as(found, UNREAD)), default=0)
    if column is not None:
        cause = read_as_trips(column)
        yield f"{cause.what}; {cause.cure} ({ACCEPT_DROPPED} goes on)"
    if rows.short:
        yield f"{_few(rows)}see above ({ACCEPT_DROPPED} goes on)"
    elif unread > UNREADABLE * found.read:
        yield f"{unread:,} of {counted(found.read, 'row')} hold times that cannot be read: see above ({ACCEPT_DROPPED} goes on)"
    kept = found.trips
    whole = reading.config.series is None or getattr(reading.unit, "per", RELEASE) != RELEASE
    if found.loads is not None and found.loads.kept is not None and whole:
        kept = found.loads.kept
        share = Share(found.loads.trips, kept, noun(reading.universe).one)
        if share.read and share.short:
            cause = bounded_cause(reading, found)
            yield f"{few_kept(share)}{cause.what}; {cause.cure} ({ACCEPT_DROPPED} goes on)"
    if reading.config.series is None and found.read:
        for cause in doubts(Plausibility(reading, found.read), found.trips, kept):
            yield f"{cause.what}; {cause.cure} ({ACCEPT_UNUSUAL} goes on)"
