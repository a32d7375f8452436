"""Where trips are counted: what a counting engine is, and one ordered table of engines, one file each.

Another engine is one file that implements what is written here.

**How a count runs.** `cbdp.count(trips, …)` asks the engines of the table in `cbdp.counting.engines` which of them `opens` the trips, and then:

    with engine.open(trips, needed) as source:              # schema only: no row is read, mistakes are found here
        plan = make_plan(source.schema, universe, …)         # cbdp.counting.plan: public, checked, the same for all engines
        for flat, n in source.count(plan, key): …            # the rows are read, where they lie; only (flat, n) comes back
        facts = source.facts(plan)                           # by other code than the count; cbdp.counting.counts judges them

**What an engine promises.** (The conformance test in tests/counting/engines/ asks all of it of every engine.)

1.  `count` carries out the steps of `cbdp.counting.plan.CountingPlan`, in the order given there, with the engine's own relational operations on whole
    numbers and bytes. No Python function sees a row. Every flat number comes at most once, with n ≥ 1.
2.  Keys are compared as bytes: a column's or a session's collation is cast away first. A way's keys are unique, so that a join with them never
    multiplies rows; the ways of an axis are tried in order (`COALESCE` over left joins does it).
3.  `instant`s are whole microseconds since 1970, UTC, floored. One outside [clock.FIRST_DATE, clock.LAST_DATE) is no time. Day and second follow by
    floor division, after the zone's table (`plan.zones`) has been added: seconds `before` until the second `change` of the UTC day, `after` from
    then on. The engine's own time zone functions, its session's zone and its clock are not used. A naive stamp is read as if it were UTC.
4.  No row decides the outcome: what cannot be read (a text that is no number, a stamp beyond the range, bytes that are no UTF-8, a weight of
    −1 or 0.5) is no value, and the row is dropped. Casts are of the trying kind. Overflow is guarded. Only what is public may raise, at `open`.
5.  With `plan.bound`, persons are told apart by the bytes of `cbdp.counting.bounding.ticket_message`, NaN, NULL and "" being nobody, and kept by its
    tickets: numbered over (person order by flat), chosen over (person order by ticket, j). With a period, persons are told apart with it; with
    `apart`, one trip of each slot is chosen the same way first. The key is in no query's text and no plan that is logged: hand it over as
    a parameter or a one-row table.
6.  Errors after opening are turned into `InputError` without the engine's own text, which may quote private values (`raise … from None`).
7.  Temporary tables and views have names nobody else has, and are dropped when the source closes, in any case.

**SQL engines.** `cbdp.counting.engines.sql` writes the steps as SQL for a `Dialect`; DuckDB's dialect is `cbdp.counting.engines.duckdb`. An engine
that speaks SQL states a dialect, registers the plan's public tables (`sql.lookup_tables(plan)`), and runs the queries (`sql.count_query`, `sql.weight_query`, …).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Bools, Ints
from cbdp.counting.columns import Schema
from cbdp.counting.plan import CountingPlan, Field
from cbdp.errors import InputError
from cbdp.parts import Parts, instance_of
from cbdp.text import remember_secrets

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class CountFacts:
    """What is known of a finished count, found by other code than the count. Private: of `cbdp.counting.counts` alone.

    >>> CountFacts(read=3, inside=3, kept=2).kept
    2
    """

    read: int  # rows of the source, by its own books (a file's metadata, lines, batches)
    weight: int | None = None  # the sum of all weights that are whole and at least 0
    inside: int = 0  # with a bound: trips inside the universe, before bounding
    kept: int = 0  # trips that were counted; the driver fills it in
    most_kept: int | None = (
        None  # the greatest number of kept trips of any person (in any period), grouped again
    )
    most_apart: int | None = None  # the same in any slot, where trips are kept apart
    allowed: int | None = (
        None  # Σ over persons of min(most × periods, rows of the person), from the person's column alone
    )
    changed: tuple[str, ...] = ()  # files that are not what they were when the count began


# What becomes of a row at an axis, for `inspect`
COUNTED, MISSING, UNKNOWN, OUTSIDE, UNREAD = range(5)


@dataclass(frozen=True, eq=False)
class Statuses:
    """How many rows share each combination of statuses, for `inspect`. Private."""

    axes: Ints  # row × axis: one of the constants above
    zero: NDArray[np.bool_]
    nobody: NDArray[np.bool_]
    weightless: NDArray[np.bool_]
    undated: NDArray[np.bool_]  # in no period, where persons are bounded by periods
    rows: Ints
    trips: Ints = field(repr=False)  # the sum of weights; the number of rows where there are none


def statuses_of(rows: Ints, axes: int) -> Statuses:
    """The rows that `sql.status_query` asks for, by column."""
    rest = rows[:, axes:]
    zero, nobody, weightless, undated = (rest[:, c].astype(bool) for c in range(4))
    return Statuses(rows[:, :axes], zero, nobody, weightless, undated, rest[:, 4], rest[:, 5])


def group_starts(who: Sequence[pa.Array], last: Sequence[pa.Scalar] | None) -> Bools:
    """Where another person's trips begin, or those of another period: `who` are the columns, `last` their values in the row before."""
    import pyarrow.compute as pc

    starts = np.zeros(len(who[0]), dtype=bool)
    starts[0] = last is None or not all(c[0].equals(v) for c, v in zip(who, last, strict=True))
    for column in who:
        changes = pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
        starts[1:] |= np.asarray(changes, dtype=bool)
    return starts


class Source(ABC):
    """Open trips. Not a value: it holds the engine's connection, and lives inside `with engine.open(…)`.

    >>> from cbdp.counting.engines import engine_for
    >>> trips = {"stop": ["A", "B"]}
    >>> with engine_for(trips).open(trips) as source:
    ...     print(isinstance(source, Source))
    True
    """

    schema: Schema

    @abstractmethod
    def count(self, plan: CountingPlan, key: bytes | None) -> Iterator[tuple[Ints, Ints]]:
        """Batches of (flat, n). `key` is there when the plan has a bound."""

    @abstractmethod
    def rows(self) -> int:
        """How many rows the source has, by its own books; of what can be read only once, after it has been read."""

    @abstractmethod
    def facts(self, plan: CountingPlan) -> CountFacts:
        """What the invariants are checked by; after `count` has been read to its end."""

    @abstractmethod
    def unbounded(self, plan: CountingPlan) -> Iterator[tuple[Ints, Ints]]:
        """As `count`, of all trips inside, with nobody bounded: for inspections, never for a release."""

    @abstractmethod
    def by_person(self, plan: CountingPlan) -> Iterator[tuple[NDArray[np.bool_], Ints]]:
        """All trips of persons, unbounded, in the order of (person, period, flat): whether another person or period begins, and flat."""

    @abstractmethod
    def statuses(self, plan: CountingPlan) -> Statuses:
        """Why rows are dropped."""

    @abstractmethod
    def examples(self, plan: CountingPlan, axis: int, status: int, most: int) -> list[tuple[str, int]]:
        """The commonest values of an axis' column that have this status, as text, with their rows."""

    @abstractmethod
    def by_day(self, plan: CountingPlan) -> Ints:
        """Rows (day since 1970, rows, rows whose text states an offset from UTC), ascending, of the rows that have a day."""

    @abstractmethod
    def copies(self, fields: Sequence[Field], digits: int) -> Ints:
        """Rows (k, groups): how many groups of k rows are alike in all these fields.

        Of the groups, those whose digest begins with so many zeros are looked at: one in 16 to the power of `digits`. Rows that are alike have one
        digest, so that a group is looked at whole or not at all. It is asked of a source that nothing else is asked of.
        """

    @abstractmethod
    def loads(self, plan: CountingPlan) -> tuple[Ints, Ints, Ints]:
        """Numbers of trips (ascending), how many persons have each (in a period), and all their trips; of trips in one slot one is a number's."""


@dataclass(frozen=True)
class Engine(ABC):
    """A place where trips lie and are counted. Subclass it, set the class data, implement `opens` and `open`; fields are settings.

    >>> from cbdp.counting.engines import ENGINES
    >>> list(ENGINES.names())
    ['duckdb', 'spark', 'ibis']
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""

    @abstractmethod
    def opens(self, trips: object) -> bool:
        """Whether these trips are this engine's; by their type or their URL's scheme, without touching them."""

    @abstractmethod
    def open(self, trips: object, needed: Sequence[str] | None = None) -> AbstractContextManager[Source]:
        """Open the trips for reading: the schema only. `needed` are the columns that will be read; None: not decided yet."""


ENGINES: Parts[Engine] = Parts(
    "counting engine",
    "cbdp.engines",
    {
        "duckdb": "cbdp.counting.engines.duckdb:DuckDB",
        "spark": "cbdp.counting.engines.spark:Spark",
        "ibis": "cbdp.counting.engines.ibis:Ibis",
    },
    instance_of(Engine),
    base="cbdp.counting.engines.Engine",
)


def engine_for(trips: object) -> Engine:
    """The engine that opens these trips. DuckDB is asked first for what is nobody else's, and last for whatever hands out Arrow.

    >>> engine_for({"stop": ["A", "B"]}).name
    'duckdb'
    """
    from cbdp.counting.engines.duckdb import DuckDB

    if isinstance(trips, str):
        remember_secrets(trips)
    if DuckDB().owns(trips):
        return DuckDB()
    names = list(ENGINES.names())
    for name in [*names[1:], names[0]]:
        engine = ENGINES.get(name)
        if engine.opens(trips):
            return engine
    if isinstance(trips, str) and "://" in trips:
        scheme = trips.partition("://")[0]
        raise InputError(f"no engine opens {scheme} URLs: there are {', '.join(names)}")
    raise InputError(
        f"trips of type {type(trips).__name__} cannot be read as a table: "
        "give a path, a data frame, an Arrow table or a URL"
    )


__all__ = ["ENGINES", "CountFacts", "Engine", "Source", "engine_for"]
