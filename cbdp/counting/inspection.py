"""PRIVATE. What the curator should see before a release: what of the trips counts, what does not and why; their schema, and how many trips persons have.

Nothing here is protected: examples quote cells, and every number is exact. It is for whoever holds the trips, and for nobody else.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.counting.clock import EPOCH_DATE, Clock
from cbdp.counting.columns import BOOLEAN, DATE, REAL, STAMP, TEXT, TIME, WHOLE, Schema, kind_of
from cbdp.counting.counts import count, ranked_counts, trip_types_at
from cbdp.counting.engines import COUNTED, MISSING, OUTSIDE, UNKNOWN, UNREAD, Source, Statuses, engine_for
from cbdp.counting.engines.duckdb import readable_errors
from cbdp.counting.linking import within_periods
from cbdp.counting.plan import (
    CountingPlan,
    Field,
    ServiceDays,
    dated_column,
    day_column,
    make_plan,
    needed_columns,
    person_column,
)
from cbdp.counting.recount import Recount, can_recount, recount
from cbdp.features import Universe
from cbdp.privacy.unit import RELEASE, Person, Trip, Unit, UnitLike, unit_of
from cbdp_features.calendar import WEEKDAYS

MAX_EXAMPLES = 5  # values that are quoted for each reason
MAX_TRIPS_TRIED = (1, 2, 3, 4, 5, 8, 10, 20)  # values of max_trips that are tried
LOAD_QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 1.0)

REASONS = {
    MISSING: "missing",  # an empty cell
    UNKNOWN: "unknown",  # a value that the dimension does not list
    UNREAD: "not understood",  # a time in a form that the clock does not read
    OUTSIDE: "outside",  # a time that is in none of the periods or days
}
MALFORMED, STRUCTURAL_ZERO, NO_PERSON, NOT_A_COUNT = (
    "malformed",
    "structural zero",
    "no person",
    "not a count",
)
NO_DAY = "no day"  # nothing tells in which period a trip was made


@dataclass(frozen=True)
class DroppedRows:
    """Rows that are not counted for one reason. A row may have several."""

    reason: str  # one of the words above
    column: str | None
    dimension: str | None
    rows: int
    examples: tuple[tuple[str, int], ...] = ()  # the commonest values, with their rows


@dataclass(frozen=True)
class PersonLoads:
    """How many trips persons have; with a period, how many in one period, and a person counts once for each."""

    persons: int
    trips: int
    quantiles: Mapping[float, int]  # share of persons → they have at most this many trips
    dropped: Mapping[int, int]  # max_trips → trips that it would drop
    per: str = RELEASE
    kept: int | None = None  # trips that the unit's own max_trips keeps
    together: int = 0  # trips of all that `apart` drops, whatever max_trips is; `dropped` has them too


@dataclass(frozen=True)
class Inspection:
    """Which of the trips count, and why the others do not. Private.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> inspection = cbdp.counting.inspect(trips, features.universe)
    >>> inspection.read, inspection.counted, inspection.trips
    (3, 3, 3)
    """

    label: str
    notes: tuple[str, ...]  # of the files
    read: int  # rows
    counted: int  # rows
    trips: int  # that the counted rows stand for: more than the rows where there is a column of counts
    dropped: tuple[DroppedRows, ...]  # the commonest reason first
    first: dt.date | None  # of all rows whose day is known
    last: dt.date | None
    by: Mapping[str, tuple[tuple[Hashable, int], ...]] = field(
        repr=False
    )  # dimension → its values in order, with their trips
    loads: PersonLoads | None = None

    @property
    def share(self) -> float:
        """The share of the rows that count; 1 where there are none."""
        return self.counted / self.read if self.read else 1.0

    def busiest(self, dimension: str, most: int = 10) -> tuple[tuple[Hashable, int], ...]:
        """The values of a dimension with the most trips."""
        return tuple(sorted(self.by[dimension], key=lambda pair: -pair[1])[:most])


def inspect(
    trips: object,
    universe: Universe,
    *,
    columns: Mapping[str, str] | None = None,
    unit: UnitLike = "trip",
    clock: Clock | None = None,
    examples: int = MAX_EXAMPLES,
) -> Inspection:
    """Look at trips as `cbdp.count` would read them, with at most so many `examples` of values for each reason.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "X"], "time": ["am", "pm"]}
    >>> inspection = cbdp.counting.inspect(trips, features.universe)
    >>> inspection.read, inspection.counted
    (2, 1)
    """
    unit = unit_of(unit)
    trips = within_periods(trips, universe, unit, columns, clock or Clock())
    with engine_for(trips).open(trips, needed_columns(universe, columns, unit)) as source:
        plan = make_plan(source.schema, universe, columns, unit, clock or Clock())
        statuses = source.statuses(plan)
        good = (statuses.axes == COUNTED).all(axis=1) & ~(
            statuses.zero | statuses.nobody | statuses.weightless | statuses.undated
        )
        read = source.rows()
        days = [EPOCH_DATE + dt.timedelta(days=d) for d in source.by_day(plan)[:, 0].tolist()]
        return Inspection(
            source.schema.label,
            source.schema.notes,
            read,
            int(statuses.rows[good].sum()),
            int(statuses.trips[good].sum()),
            _dropped_rows(source, plan, statuses, read, examples),
            days[0] if days else None,
            days[-1] if days else None,
            _trips_by_value(source, plan, universe),
            None
            if plan.bound is None or not isinstance(unit, Person)
            else _person_loads(unit, *source.loads(plan)),
        )


@dataclass(frozen=True)
class DatedRows:
    """Rows by day, of those whose day is known, and how many of them hold a text that ends in an offset from UTC. Private."""

    days: Mapping[dt.date, int] = field(repr=False)
    offsets: int = field(default=0, repr=False)

    @property
    def rows(self) -> int:
        return sum(self.days.values())


def rows_by_day(trips: object, column: str, clock: Clock | None = None) -> DatedRows:
    """The rows of each day, as the clock reads a column, by one pass over it. Private.

    >>> import datetime as dt
    >>> rows_by_day({"at": ["2026-03-02T08:00Z", "2026-03-02 09:00", "soon"]}, "at")
    DatedRows()
    >>> rows_by_day({"at": ["2026-03-02T08:00Z", "2026-03-02 09:00", "soon"]}, "at").rows
    2
    """
    week = Universe(day=list(WEEKDAYS))
    with engine_for(trips).open(trips, [column]) as source:
        plan = make_plan(source.schema, week, {"day": column}, unit_of("trip"), clock or Clock())
        dated = source.by_day(plan).tolist()
    return DatedRows({EPOCH_DATE + dt.timedelta(days=d): n for d, n, _ in dated}, sum(z for _, _, z in dated))


@dataclass(frozen=True)
class DuplicateRows:
    """How many groups of rows are alike in every column, by the size of the group. Private.

    Of a large table, one group in `one_in` is looked at, chosen by a digest of what it holds.

    >>> DuplicateRows(((1, 90), (2, 5))).repeated
    0.05
    """

    groups: tuple[tuple[int, int], ...] = field(repr=False)  # (rows in the group, groups)
    one_in: int = 1

    @property
    def repeated(self) -> float:
        """The share of the rows that repeat another row; 0 where there are none."""
        rows = sum(k * n for k, n in self.groups)
        return sum((k - 1) * n for k, n in self.groups) / rows if rows else 0.0

    def by_chance(self) -> bool:
        """Whether rows are alike as often as by chance: whether the sizes of the groups can be those of a Poisson mixture.

        If each thing that a row can say happens at a rate λ of its own, then n_k, the expected number of groups of k rows, is a sum over things of
        e^−λ λᵏ / k!. By the inequality of Cauchy and Schwarz, (k! n_k)² ≤ (k−1)! n_{k−1} · (k+1)! n_{k+1}: where there are many pairs,
        there are some triples. A file that was appended to itself has pairs and no triples. Room for chance: `MIN_EXPECTED_GROUPS` and
        `CHANCE_FACTOR`.
        """
        sizes = dict(self.groups)
        for k in range(2, MAX_GROUP_SIZE):
            least = k / (k + 1) * sizes.get(k, 0) ** 2 / (sizes.get(k - 1, 0) + PSEUDO_GROUPS)
            if least >= MIN_EXPECTED_GROUPS and sizes.get(k + 1, 0) < least / CHANCE_FACTOR:
                return False
        return True


MAX_GROUP_SIZE = 20  # sizes of groups that are compared
MIN_EXPECTED_GROUPS = 30  # groups that the inequality must ask for, so that their absence is not chance
CHANCE_FACTOR = 4  # by which there may be fewer groups than the inequality asks for
PSEUDO_GROUPS = (
    3  # groups added to the number of a size, so that a small number does not ask for many of the next
)
MAX_ROWS_ALL_GROUPS = (
    2_000_000  # rows of which all groups are looked at; of more, a sixteenth or less of the groups
)
COMPARABLE_KINDS = (TEXT, WHOLE, REAL, BOOLEAN, DATE, TIME, STAMP)
MAX_COMPARED_COLUMNS = 200  # columns that are compared; rows that differ in further ones alone count as alike


def duplicate_rows(trips: object, rows: int) -> DuplicateRows:
    """Which of about so many rows are alike in every column, by one pass over them. Private.

    >>> duplicate_rows({"stop": ["A", "A", "B"], "time": [1, 1, 2]}, 3).groups
    ((1, 1), (2, 1))
    """
    digits = 0
    while rows > MAX_ROWS_ALL_GROUPS * 16**digits:
        digits += 1
    with engine_for(trips).open(trips) as source:
        kinds = {name: kind_of(kind) for name, kind in source.schema.kinds.items() if name}
        fields = [Field(name, kind) for name, kind in kinds.items() if kind.name in COMPARABLE_KINDS][
            :MAX_COMPARED_COLUMNS
        ]
        copies = source.copies(fields, digits) if fields else np.empty((0, 2), dtype=np.int64)
    return DuplicateRows(tuple((int(k), int(n)) for k, n in copies), 16**digits)


def _dropped_rows(
    source: Source, plan: CountingPlan, statuses: Statuses, read: int, most: int
) -> tuple[DroppedRows, ...]:
    every = []
    for a, axis in enumerate(plan.axes):
        for status, reason in REASONS.items():
            rows = int(statuses.rows[statuses.axes[:, a] == status].sum())
            if rows:
                shown = source.examples(plan, a, status, most) if status != MISSING else []
                every.append(DroppedRows(reason, plan.fields[axis.field].name, axis.name, rows, tuple(shown)))
    person = None if plan.bound is None else plan.fields[plan.bound.person].name
    weight = None if plan.weight is None else plan.fields[plan.weight].name
    for reason, column, mask in (
        (STRUCTURAL_ZERO, None, statuses.zero),
        (NO_PERSON, person, statuses.nobody),
        (NOT_A_COUNT, weight, statuses.weightless),
        (NO_DAY, None, statuses.undated),
    ):
        every.append(DroppedRows(reason, column, None, int(statuses.rows[mask].sum())))
    every.append(DroppedRows(MALFORMED, None, None, read - int(statuses.rows.sum())))
    return tuple(sorted((d for d in every if d.rows), key=lambda d: -d.rows))


def _trips_by_value(
    source: Source, plan: CountingPlan, universe: Universe
) -> dict[str, tuple[tuple[Hashable, int], ...]]:
    """Trips by each dimension's values."""
    index, value = ranked_counts(source.unbounded(plan), universe, plan)
    trips_by_value = {}
    for (name, dimension), codes in zip(
        universe.dimensions.items(), universe.unrank_codes(index), strict=True
    ):
        totals = np.zeros(len(dimension), dtype=np.int64)
        np.add.at(totals, codes, value)
        trips_by_value[name] = tuple(zip(dimension.values, totals.tolist(), strict=True))
    return trips_by_value


def _person_loads(unit: Person, trips: Ints, persons: Ints, all_trips: Ints) -> PersonLoads:
    everyone, upto = int(persons.sum()), np.cumsum(persons)
    quantiles = {}
    for share in LOAD_QUANTILES if everyone else ():
        place = int(np.searchsorted(upto, share * everyone))
        quantiles[share] = int(trips[min(place, len(trips) - 1)])
    together = int((all_trips - trips * persons).sum())
    dropped = {
        most: together + int((np.maximum(trips - most, 0) * persons).sum()) for most in MAX_TRIPS_TRIED
    }
    kept = int((np.minimum(trips, unit.max_trips) * persons).sum())
    return PersonLoads(everyone, int(all_trips.sum()), quantiles, dropped, unit.per, kept, together)


# Without counting: the schema of trips, which is public; and the trips counted again on another path, which are not


def schema_of(trips: object, needed: Sequence[str] | None = None) -> Schema:
    """The columns of trips and their types: no row is read. Of several files, the `needed` columns must be alike in all.

    >>> list(schema_of({"stop": ["A"], "time": ["am"]}).kinds)
    ['stop', 'time']
    """
    with engine_for(trips).open(trips, needed) as source:
        return source.schema


def rows_of(trips: object) -> int:
    """How many rows a file or a table of a database has, by its own books. Private."""
    with engine_for(trips).open(trips) as source:
        return source.rows()


def second_count(
    trips: object,
    universe: Universe,
    *,
    columns: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    days: ServiceDays | None = None,
) -> tuple[Ints, Ints]:
    """Trip types with trips, and how many, counted by other code than `cbdp.count` where that can read such trips; nobody is bounded. Private.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> index, value = second_count(trips, features.universe)
    >>> index.tolist(), value.tolist()
    ([0, 1, 3], [1, 1, 1])
    """
    if can_recount(trips):
        return _second_count(trips, universe, Trip(), columns, clock, days).counts()
    counts = count(trips, universe, columns=columns, clock=clock, days=days)
    return counts.index, counts.value


def trips_by_person(
    trips: object,
    universe: Universe,
    unit: Person,
    *,
    columns: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    days: ServiceDays | None = None,
) -> tuple[NDArray[np.bool_], Ints]:
    """All trips of persons inside the universe, before bounding: where another person (or period) begins, and the trips' types. Private.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"], "card": [1, 1, 2]}
    >>> begins, types = trips_by_person(trips, features.universe, cbdp.Person("card", 2))
    >>> int(begins.sum()), len(types)
    (2, 3)
    """
    if can_recount(trips):
        recounted = _second_count(trips, universe, unit, columns, clock, days)
        assert recounted.person is not None
        order = np.lexsort((recounted.types, recounted.person))
        return np.diff(recounted.person[order], prepend=-1) != 0, recounted.types[order]
    trips = within_periods(trips, universe, unit, columns, clock or Clock(), days)
    with engine_for(trips).open(trips, needed_columns(universe, columns, unit, days)) as source:
        plan = make_plan(source.schema, universe, columns, unit, clock or Clock(), days)
        begins, types = [np.empty(0, dtype=bool)], [np.empty(0, dtype=np.int64)]
        for new, flat in source.by_person(plan):
            begins.append(new)
            types.append(trip_types_at(flat, universe, plan))
    return np.concatenate(begins), np.concatenate(types)


def loads_of(
    trips: object,
    universe: Universe,
    unit: Person,
    *,
    columns: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> tuple[list[int], list[int]]:
    """Numbers of trips, and how many persons made so many (in one period, kept apart as the unit says); nobody is bounded. Private.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"], "card": [1, 1, 2]}
    >>> loads_of(trips, features.universe, cbdp.Person("card", 2))
    ([1, 2], [1, 1])
    """
    trips = within_periods(trips, universe, unit, columns, clock or Clock())
    with engine_for(trips).open(trips, needed_columns(universe, columns, unit)) as source:
        many, persons, _ = source.loads(make_plan(source.schema, universe, columns, unit, clock or Clock()))
    return many.tolist(), persons.tolist()


def _second_count(
    trips: object,
    universe: Universe,
    unit: Unit,
    columns: Mapping[str, str] | None,
    clock: Clock | None,
    days: ServiceDays | None,
) -> Recount:
    """The second count, of trips whose schema has been checked; what cannot be read is one error that quotes nothing."""
    with engine_for(trips).open(trips, needed_columns(universe, columns, unit, days)) as source:
        make_plan(source.schema, universe, columns, unit, clock or Clock(), days)
        label = source.schema.label
    person = day = None
    if isinstance(unit, Person):
        person = person_column(unit.column, columns or {}, universe)
        day = None if unit.per == RELEASE else day_column(columns or {}, universe, unit)
    dated = None if days is None else dated_column(columns or {}, universe)
    with readable_errors(label, ": it is damaged, or not whole"):
        return recount(
            trips,
            universe,
            columns=columns,
            clock=clock,
            person=person,
            per=unit.per,
            day=day,
            days=days,
            dated=dated,
        )
