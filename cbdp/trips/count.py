"""From trips to exact counts. Private: what is here never leaves the curator's machine, nor is it printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag, Universe
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.unit import Person, Trip, Unit, unit_of
from cbdp.trips import invariants
from cbdp.trips.clock import Clock
from cbdp.trips.days import Days
from cbdp.trips.engines import engine_for
from cbdp.trips.planning import make_plan, wanted_columns
from cbdp.trips.preparing import within_periods
from cbdp.trips.ranking import ranked
from cbdp.trips.tickets import draw_key

LISTED = 2**30  # trip types of which a count each may be held in memory


@dataclass(frozen=True)
class Rows:
    """How many rows were read, and how many trips of them are inside the universe. Private: for the curator alone."""

    read: int = field(repr=False)  # rows; with a column of counts, the trips they stand for
    inside: int = field(repr=False)  # trips inside the universe, before persons are bounded


@dataclass(frozen=True, eq=False)
class Counts:
    """How many trips each trip type has, and for which unit of privacy they are bounded. Only non-zero types are kept.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> counts = cbdp.count(trips, features.universe)
    >>> counts.index.tolist(), counts.value.tolist(), str(counts.unit)
    ([0, 1, 3], [1, 1, 1], 'one trip, added or removed')
    """

    universe: Universe
    index: Ints = field(repr=False)  # private: the non-zero trip types, ascending
    value: Ints = field(repr=False)  # private
    unit: Unit = field(default_factory=Trip)
    secure: bool = True  # False: trips were dropped by a seeded source, which a release refuses
    rows: Rows | None = field(default=None, repr=False)  # private

    def of(self, features: FeatureDag, name: str) -> Ints:
        """The exact counts of a feature's elements (private)."""
        if name == SINGLETON:
            return self.dense()
        element = features.partition(name).element_of(self.universe.unrank_codes(self.index))
        counts = np.zeros(features.size(name), dtype=np.int64)
        np.add.at(counts, element, self.value)
        return counts

    def dense(self) -> Ints:
        """The exact count of every trip type (private)."""
        if self.universe.size > LISTED:
            raise InputError(
                f"counts of all {self.universe.size:,} trip types do not fit in memory: use ConstraintBased, which lists "
                "only those that matter"
            )
        counts = np.zeros(self.universe.size, dtype=np.int64)
        counts[self.index] = self.value
        return counts


def count(
    trips: Any,
    universe: Universe,
    *,
    columns: Mapping[str, str] | None = None,
    unit: Any = "trip",
    entropy: Entropy | None = None,
    clock: Clock | None = None,
    days: Days | None = None,
) -> Counts:
    """Count trips, whatever they come in: columns, a data frame, an Arrow, DuckDB or Ibis table, files, a database.

    Files are Parquet or CSV: a path, a list of paths, a pattern, a folder of Parquet. A database is a URL that ends with
    its table, like "duckdb:///city.db::trips". Columns are named by the dimensions, or mapped by `columns`
    (dimension → column); `columns["count"]` is a column of counts, where a row stands for many trips. Rows with a value
    outside the universe, or with none, are left out, and nothing says so: whether there are any is private. Time stamps fall into
    periods, days or day types as `clock` reads them. With a person as the unit, at most `max_trips` trips of each person are
    kept, by a key drawn from `entropy`. With `days`, only the trips of these service days are counted.

    An array of a count per trip type is taken as it is (unit: one trip).

    Proof: docs/proofs/counting.md.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> cbdp.count(trips, features.universe).of(features, "time").tolist()
    [1, 2]
    """
    unit = unit_of(unit)
    if isinstance(trips, Counts):
        return _again(trips, universe, unit)
    if isinstance(trips, np.ndarray):
        return _given(trips, universe, unit)
    wanted, drawn = wanted_columns(universe, columns, unit, days), entropy or SystemEntropy()
    bounded = isinstance(unit, Person)
    trips = within_periods(trips, universe, unit, columns, clock or Clock(), days)
    with engine_for(trips).open(trips, wanted) as source:
        plan = make_plan(source.schema, universe, columns, unit, clock or Clock(), days)
        key = draw_key(drawn) if bounded else None
        index, value = ranked(source.count(plan, key), universe, plan)
        facts = source.facts(plan)
    facts = replace(facts, kept=int(value.sum()), inside=facts.inside if bounded else int(value.sum()))
    invariants.check(plan, facts)
    secure = drawn.secure or not bounded  # counting trips draws nothing
    read = facts.read if facts.weight is None else facts.weight
    return Counts(universe, index, value, unit, secure, Rows(read, facts.inside))


def _again(counts: Counts, universe: Universe, unit: Unit) -> Counts:
    check_universe(counts, universe)
    if counts.unit != unit:
        raise InputError(
            f"the counts are bounded for {counts.unit}, the mechanism protects {unit}: make them agree"
        )
    return counts


def check_universe(counts: Counts, universe: Universe) -> None:
    """Refuse counts of other trip types: their sensitivity is that of their own universe, however many types both have.

    >>> import cbdp
    >>> one, other = (cbdp.Universe(origin=values) for values in (["A", "B"], ["A", "C"]))
    >>> check_universe(cbdp.count({"origin": ["A"]}, one), one)
    >>> check_universe(cbdp.count({"origin": ["A"]}, one), other)
    Traceback (most recent call last):
    ...
    cbdp.errors.InputError: the counts are of another universe with as many trip types (Universe(origin 2: 2 trip types)): its dimensions, their values or their structural zeros are not the same. Count the trips again
    """
    if counts.universe.same_types(universe):
        return
    if counts.universe.size != universe.size:
        raise InputError(f"the counts are of {counts.universe!r}, not of {universe!r}")
    raise InputError(
        f"the counts are of another universe with as many trip types ({counts.universe!r}): its dimensions, their values or "
        "their structural zeros are not the same. Count the trips again"
    )


def _given(array: NDArray[Any], universe: Universe, unit: Unit) -> Counts:
    if isinstance(unit, Person):
        raise InputError("an array of counts names no persons: give the trips with their person column")
    if array.shape != (universe.size,):
        raise InputError(f"counts of shape {array.shape} for a universe of {universe.size:,} trip types")
    whole = array.astype(np.int64) if array.dtype.kind in "iuf" and np.isfinite(array).all() else None
    if whole is None or (whole != array).any() or (whole < 0).any():
        raise InputError("counts must be whole numbers of at least 0")
    index = np.flatnonzero(whole).astype(np.int64)
    return Counts(universe, index, whole[index], unit)
