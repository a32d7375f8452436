"""What the curator should see before a release: what of the trips counts, what does not, and why. Private, all of it.

Nothing here is protected: examples quote cells, and every number is exact. It is for whoever holds the trips, and for nobody else.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.features import Universe
from cbdp.privacy.unit import RELEASE, unit_of
from cbdp.trips.clock import Clock
from cbdp.trips.engines import Source, engine_for
from cbdp.trips.engines.base import COUNTED, MISSING, OUTSIDE, UNKNOWN, UNREAD, Statuses
from cbdp.trips.plan import CountingPlan
from cbdp.trips.planning import make_plan, wanted_columns
from cbdp.trips.preparing import within_periods
from cbdp.trips.ranking import ranked
from cbdp.trips.zones import EPOCH

Ints = NDArray[np.int64]

EXAMPLES = 5
BOUNDS = (1, 2, 3, 4, 5, 8, 10, 20)  # values of max_trips that are tried
QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 1.0)

REASONS = {
    MISSING: "missing",  # an empty cell
    UNKNOWN: "unknown",  # a value that the dimension does not list
    UNREAD: "not understood",  # a time in a form that the clock does not read
    OUTSIDE: "outside",  # a time that is in none of the periods or days
}
MALFORMED, ZERO, NOBODY, WEIGHTLESS = "malformed", "structural zero", "no person", "not a count"
UNDATED = "no day"  # nothing tells in which period a trip was made


@dataclass(frozen=True)
class Dropped:
    """Rows that are not counted for one reason. A row may have several."""

    reason: str  # one of the words above
    column: str | None
    dimension: str | None
    rows: int
    examples: tuple[tuple[str, int], ...] = ()  # the commonest values, with their rows


@dataclass(frozen=True)
class Loads:
    """How many trips persons have; with a period, how many in one period, and a person counts once for each."""

    persons: int
    trips: int
    quantiles: Mapping[float, int]  # share of persons → they have at most this many trips
    dropped: Mapping[int, int]  # max_trips → trips that it would drop
    per: str = RELEASE
    together: int = 0  # trips of all that `apart` drops, whatever max_trips is; `dropped` has them too


@dataclass(frozen=True)
class Inspection:
    """Which of the trips count, and why the others do not. Private.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> found = cbdp.trips.inspect(trips, features.universe)
    >>> found.read, found.counted, found.trips
    (3, 3, 3)
    """

    label: str
    notes: tuple[str, ...]  # of the files
    read: int  # rows
    counted: int  # rows
    trips: int  # that the counted rows stand for: more than the rows where there is a column of counts
    dropped: tuple[Dropped, ...]  # the commonest reason first
    first: dt.date | None  # of all rows whose day is known
    last: dt.date | None
    by: Mapping[str, tuple[tuple[Any, int], ...]] = field(
        repr=False
    )  # dimension → its values in order, with their trips
    loads: Loads | None = None

    @property
    def share(self) -> float:
        """The share of the rows that count; 1 where there are none."""
        return self.counted / self.read if self.read else 1.0

    def busiest(self, dimension: str, most: int = 10) -> tuple[tuple[Any, int], ...]:
        """The values of a dimension with the most trips."""
        return tuple(sorted(self.by[dimension], key=lambda pair: -pair[1])[:most])


def inspect(
    trips: Any,
    universe: Universe,
    *,
    columns: Mapping[str, str] | None = None,
    unit: Any = "trip",
    clock: Clock | None = None,
    examples: int = EXAMPLES,
) -> Inspection:
    """Look at trips as `cbdp.count` would read them, with at most so many `examples` of values for each reason.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "X"], "time": ["am", "pm"]}
    >>> found = cbdp.trips.inspect(trips, features.universe)
    >>> found.read, found.counted
    (2, 1)
    """
    unit = unit_of(unit)
    trips = within_periods(trips, universe, unit, columns, clock or Clock())
    with engine_for(trips).open(trips, wanted_columns(universe, columns, unit)) as source:
        plan = make_plan(source.schema, universe, columns, unit, clock or Clock())
        found = source.statuses(plan)
        good = (found.axes == COUNTED).all(axis=1) & ~(
            found.zero | found.nobody | found.weightless | found.undated
        )
        read = source.rows()
        first, last = (
            (EPOCH + dt.timedelta(days=d) for d in span) if (span := source.span(plan)) else (None, None)
        )
        return Inspection(
            source.schema.label,
            source.schema.notes,
            read,
            int(found.rows[good].sum()),
            int(found.trips[good].sum()),
            _dropped(source, plan, found, read, examples),
            first,
            last,
            _by(source, plan, universe),
            None if plan.bound is None else _loads(unit.per, *source.loads(plan)),
        )


def _dropped(
    source: Source, plan: CountingPlan, found: Statuses, read: int, most: int
) -> tuple[Dropped, ...]:
    every = []
    for a, axis in enumerate(plan.axes):
        for status, reason in REASONS.items():
            rows = int(found.rows[found.axes[:, a] == status].sum())
            if rows:
                shown = source.examples(plan, a, status, most) if status != MISSING else []
                every.append(Dropped(reason, plan.fields[axis.field].name, axis.name, rows, tuple(shown)))
    person = None if plan.bound is None else plan.fields[plan.bound.person].name
    weight = None if plan.weight is None else plan.fields[plan.weight].name
    for reason, column, mask in (
        (ZERO, None, found.zero),
        (NOBODY, person, found.nobody),
        (WEIGHTLESS, weight, found.weightless),
        (UNDATED, None, found.undated),
    ):
        every.append(Dropped(reason, column, None, int(found.rows[mask].sum())))
    every.append(Dropped(MALFORMED, None, None, read - int(found.rows.sum())))
    return tuple(sorted((d for d in every if d.rows), key=lambda d: -d.rows))


def _by(source: Source, plan: CountingPlan, universe: Universe) -> dict[str, tuple[tuple[Any, int], ...]]:
    """Trips by each dimension's values."""
    index, value = ranked(source.unbounded(plan), universe, plan)
    made = {}
    for (name, dimension), codes in zip(
        universe.dimensions.items(), universe.unrank_codes(index), strict=True
    ):
        totals = np.zeros(len(dimension), dtype=np.int64)
        np.add.at(totals, codes, value)
        made[name] = tuple(zip(dimension.values, totals.tolist(), strict=True))
    return made


def _loads(per: str, trips: Ints, persons: Ints, own: Ints) -> Loads:
    everyone, upto = int(persons.sum()), np.cumsum(persons)
    quantiles = {}
    for share in QUANTILES if everyone else ():
        place = int(np.searchsorted(upto, share * everyone))
        quantiles[share] = int(trips[min(place, len(trips) - 1)])
    together = int((own - trips * persons).sum())
    dropped = {most: together + int((np.maximum(trips - most, 0) * persons).sum()) for most in BOUNDS}
    return Loads(everyone, int(own.sum()), quantiles, dropped, per, together)
