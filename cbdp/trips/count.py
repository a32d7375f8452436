"""From trips to exact counts. Private: what is here never leaves the curator's machine, nor is it printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag, Universe
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.unit import Person, Trip, Unit, unit_of
from cbdp.trips.sources import Clock, coded

Ints = NDArray[np.int64]

LISTED = 2**30  # trip types of which a count each may be held in memory
WAITING = 4_000_000  # rows that wait to be merged into the counts


@dataclass(frozen=True, eq=False)
class Counts:
    """How many trips each trip type has, and what unit of privacy they are bounded for. Only non-zero types are kept."""

    universe: Universe
    index: Ints = field(repr=False)  # private: the non-zero trip types, ascending
    value: Ints = field(repr=False)  # private
    unit: Unit = field(default_factory=Trip)
    secure: bool = True  # False: trips were dropped by a seeded source, which a release refuses

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
) -> Counts:
    """Count trips, whatever they come in: columns, a data frame, an Arrow, DuckDB or Ibis table, files, a database.

    Files are Parquet or CSV: a path, a list of paths, a pattern, a folder of Parquet. A database is a URL that ends with
    its table, like "duckdb:///city.db::trips". Columns are named by the dimensions, or mapped by `columns`
    (dimension → column). Rows with a value outside the universe, or with none, are dropped and not spoken of: whether
    there are any is private. Time stamps fall into periods, days or day types as `clock` reads them. With a person as
    the unit, at most `max_trips` trips of each person are kept, chosen at random from `entropy`.

    An array of a count per trip type is taken as it is (unit: one trip).
    """
    unit = unit_of(unit)
    if isinstance(trips, Counts):
        return _again(trips, universe, unit)
    if isinstance(trips, np.ndarray):
        return _given(trips, universe, unit)
    names = columns or {}
    dimensions = {n: (names.get(n, n), d) for n, d in universe.dimensions.items()}
    person = names.get(unit.column, unit.column) if isinstance(unit, Person) else None
    source = entropy or SystemEntropy()
    tally = Tally()
    with coded(trips, dimensions, person, clock or Clock()) as batches:
        if isinstance(unit, Person):
            for rank in _bounded(_ranked(batches, universe), unit.max_trips, source):
                tally.add(rank, np.ones(len(rank), dtype=np.int64))
        else:
            for batch in batches:
                rank = _rank(batch, universe)
                tally.add(rank[rank >= 0], batch.column("n").to_numpy()[rank >= 0].astype(np.int64))
    secure = source.secure or not isinstance(unit, Person)  # counting trips draws nothing
    return Counts(universe, *tally.total(), unit, secure)


def _rank(batch: Any, universe: Universe) -> Ints:
    """The trip type of each row; −1 for a structural zero."""
    codes = [batch.column(f"c{d}").to_numpy().astype(np.int64) for d in range(len(universe.dimensions))]
    return universe.rank_codes(codes) if len(batch) else np.empty(0, dtype=np.int64)


def _ranked(batches: Iterable[Any], universe: Universe) -> Iterator[tuple[Any, Ints]]:
    """Persons and their trips' types, less structural zeros: those are outside, and outside comes before bounding."""
    for batch in batches:
        rank = _rank(batch, universe)
        inside = rank >= 0
        if inside.any():
            yield batch.column("person").filter(inside), rank[inside]


class Tally:
    """Counts that grow: trip types in order, each once."""

    def __init__(self) -> None:
        self._index: Ints = np.empty(0, dtype=np.int64)
        self._value: Ints = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[Ints, Ints]] = []
        self._rows = 0

    def add(self, index: Ints, value: Ints) -> None:
        self._waiting.append((index, value))
        self._rows += len(index)
        if self._rows > WAITING:
            self._merge()

    def total(self) -> tuple[Ints, Ints]:
        self._merge()
        return self._index, self._value

    def _merge(self) -> None:
        """Take in what waits by inserting into the sorted counts, so that only one copy of them is made."""
        if not self._rows:
            return
        index = np.concatenate([i for i, _ in self._waiting])
        value = np.concatenate([v for _, v in self._waiting])
        self._waiting, self._rows = [], 0
        order = np.argsort(index, kind="stable")
        index, value = index[order], value[order]
        start = np.flatnonzero(np.r_[True, index[1:] != index[:-1]])
        index, value = index[start], np.add.reduceat(value, start)
        place = np.searchsorted(self._index, index)
        known = place < len(self._index)
        known[known] = self._index[place[known]] == index[known]
        self._value[place[known]] += value[known]
        self._value = np.insert(self._value, place[~known], value[~known])
        self._index = np.insert(self._index, place[~known], index[~known])


def _bounded(
    trips: Iterable[tuple[Any, Ints]], most: int, entropy: Entropy, bits: int = 64
) -> Iterator[Ints]:
    """The trips that stay when every person keeps at most `most`, each set of that size being equally likely.

    Trips come sorted by person and type, in batches. Each gets a ticket, and a person keeps the smallest. A ticket is an
    endless string of fair bits of which only the first `bits` are drawn at once: independent, and never equal, so every
    set of `most` trips is exactly equally likely. Where two tickets agree at the border as far as drawn, more bits are.
    A trip whose ticket is above that of `most` others of the same person can be forgotten, so memory does not grow.
    As tickets are dealt in the sorted order, the order in which rows were stored changes nothing.
    """
    last: Any = None  # the person that the next batch may go on with
    rank: Ints = np.empty(0, dtype=np.int64)
    ticket: NDArray[Any] = np.empty(0, dtype=f"u{bits // 8}")
    for persons, types in trips:
        new = np.ones(len(types), dtype=bool)
        new[0] = last is None or not persons[0].equals(last)
        new[1:] = _changes(persons)
        who = np.concatenate([np.zeros(len(rank), dtype=np.int64), np.cumsum(new)])
        rank = np.concatenate([rank, types])
        ticket = np.concatenate([ticket, entropy.words(len(types), bits)])
        last = persons[-1]
        ready = who < who[-1]
        yield rank[ready][_smallest(who[ready], ticket[ready], most, entropy)]
        rank, ticket = rank[~ready], ticket[~ready]
        if len(ticket) > most:
            hopeful = ticket <= np.partition(ticket, most - 1)[most - 1]
            rank, ticket = rank[hopeful], ticket[hopeful]
    yield rank[_smallest(np.zeros(len(rank), dtype=np.int64), ticket, most, entropy)]


def _smallest(who: Ints, ticket: NDArray[Any], most: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Which trips are among their person's `most` smallest tickets; `who` ascends."""
    keep = np.ones(len(who), dtype=bool)
    if len(who) <= most:
        return keep
    order = np.lexsort((ticket, who))
    begins = np.r_[True, who[1:] != who[:-1]]
    start = np.maximum.accumulate(np.where(begins, np.arange(len(who)), 0))  # the same here and in the order
    place = np.arange(len(who)) - start
    keep[order] = place < most
    drawn = ticket[order]
    beyond = np.flatnonzero(place == most)
    for border in beyond[drawn[beyond] == drawn[beyond - 1]]:
        own = order[start[border] : np.searchsorted(who, who[border], side="right")]
        tied = own[ticket[own] == drawn[border]]
        wanted = most - int((ticket[own] < drawn[border]).sum())
        again = entropy.words(len(tied), ticket.dtype.itemsize * 8)
        keep[tied] = _smallest(np.zeros(len(tied), dtype=np.int64), again, wanted, entropy)
    return keep


def _changes(persons: Any) -> NDArray[np.bool_]:
    """Where a person differs from the one before."""
    import pyarrow.compute as pc

    return np.asarray(pc.not_equal(persons[1:], persons[:-1]).to_numpy(zero_copy_only=False), dtype=bool)


def _again(counts: Counts, universe: Universe, unit: Unit) -> Counts:
    if counts.universe.size != universe.size:
        raise InputError(f"the counts are of {counts.universe!r}, not of {universe!r}")
    if counts.unit != unit:
        raise InputError(
            f"the counts are bounded for {counts.unit}, the mechanism protects {unit}: make them agree"
        )
    return counts


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
