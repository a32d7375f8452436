"""PRIVATE. From trips to exact counts of trip types, bounded for a unit of privacy and checked by invariants found by other code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.counting.bounding import draw_key
from cbdp.counting.clock import Clock
from cbdp.counting.engines import CountFacts, engine_for
from cbdp.counting.linking import within_periods
from cbdp.counting.plan import CountingPlan, ServiceDays, StructuralZeros, make_plan, needed_columns
from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag, Universe
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.unit import Person, Trip, Unit, UnitLike, unit_of
from cbdp_features.universe import Block

# Invariants: what must be true of every count before anything is spent on it, found by other code than the count. A violation means that one trip or one person could weigh more than the unit of privacy says, so that ε would be false. It stops the
# release with nothing spent. The facts are private, and so is which of them is wrong: the message is for the curator.


class InvariantError(InputError):
    """A count contradicts what can be known of it: nothing was released, and nothing was spent."""


def check_invariants(plan: CountingPlan, facts: CountFacts) -> None:
    """Refuse a count that breaks an invariant."""
    if facts.changed:
        raise InvariantError(
            f"{facts.changed[0]!r} was written while it was counted: count again when it is at rest"
        )
    most = facts.read if plan.weight is None else facts.weight or 0
    if facts.inside > most or facts.kept > facts.inside:
        raise InvariantError(
            "more trips were counted than there are: a row was counted twice; nothing was spent. Report this, please"
        )
    if plan.bound is None:
        return
    if facts.most_kept is None or facts.allowed is None or (plan.bound.apart and facts.most_apart is None):
        raise InvariantError(
            "the engine did not say how many trips of each person it kept: nothing was spent"
        )
    if facts.most_kept > plan.bound.most or facts.kept > facts.allowed:
        raise InvariantError(
            f"more than {plan.bound.most} trips of a person were counted; nothing was spent. Report this, please"
        )
    if (facts.most_apart or 0) > 1:
        raise InvariantError(
            "two trips of a person were counted that should have been kept apart; nothing was spent. Report this, please"
        )


# From an engine's answer, (flat, n) in any order, to trip types


def ranked_counts(
    batches: Iterable[tuple[Ints, Ints]], universe: Universe, plan: CountingPlan
) -> tuple[Ints, Ints]:
    """Trip types in order with their counts, from batches of (flat, n). What no engine should say is not believed. Proof: docs/proofs/counting.md."""
    none = np.empty(0, dtype=np.int64)
    flats, values = [none], [none]
    for flat, n in batches:
        flats.append(flat)
        values.append(n)
    flat, value = _sorted_pairs(np.concatenate(flats), np.concatenate(values))
    if len(flat) and ((flat[1:] == flat[:-1]).any() or value.min() <= 0 or flat[0] < 0):
        raise InvariantError("the engine gave a trip type twice: nothing was spent. Report this, please")
    index = trip_types_at(flat, universe, plan)
    if plan.zeros:
        index, value = index[index >= 0], value[index >= 0]
    return (index, value) if (index[1:] > index[:-1]).all() else _sorted_pairs(index, value)


def _sorted_pairs(index: Ints, value: Ints) -> tuple[Ints, Ints]:
    """By index. Where both fit into one word they are sorted as one, which takes half the time."""
    if not len(index):
        return index, value
    bits = int(value.max()).bit_length()
    if min(index.min(), value.min()) < 0 or int(index.max()).bit_length() + bits > 63:
        order = np.argsort(index)
        return index[order], value[order]
    both = np.sort((index << bits) | value)
    return both >> bits, both & ((1 << bits) - 1)


def trip_types_at(flat: Ints, universe: Universe, plan: CountingPlan) -> Ints:
    """The trip types at these places of the product of all dimensions; −1 for structural zeros.

    As `universe.rank_codes`, but where the zeros are few, a place is found by counting those before it.
    """
    if not plan.zeros and all(len(block.dims) == 1 for block in universe.blocks):
        return flat
    listed = {zeros.axes: zeros for zeros in plan.zeros}
    index, outside = np.zeros(len(flat), dtype=np.int64), np.zeros(len(flat), dtype=bool)
    for block in universe.blocks:
        place = _place_in_block(flat, block, plan.shape)
        if block.dims in listed:
            place, out = _rank_without_zeros(place, listed[block.dims])
            outside |= out
        index = index * block.size + place
    return np.where(outside, -1, index)


def _place_in_block(flat: Ints, block: Block, shape: tuple[int, ...]) -> Ints:
    """The place among a block's combinations."""
    first, last = block.dims[0], block.dims[-1]
    if last - first + 1 == len(block.dims):
        within = flat // math.prod(shape[last + 1 :])
        return within if first == 0 else within % math.prod(block.shape)
    codes = np.unravel_index(flat, shape)
    return np.ravel_multi_index(tuple(codes[d] for d in block.dims), block.shape).astype(np.int64)


def _rank_without_zeros(place: Ints, zeros: StructuralZeros) -> tuple[Ints, NDArray[np.bool_]]:
    """The place among the combinations that are no zeros, and whether it is one."""
    before = np.searchsorted(zeros.flat, place)
    listed = np.zeros(len(place), dtype=bool)
    if len(zeros.flat):
        listed = zeros.flat[np.minimum(before, len(zeros.flat) - 1)] == place
    return (place - before, listed) if zeros.out else (before, ~listed)


# Counts. Private: what is here never leaves the curator's machine, nor is it printed.


MAX_LISTED_TRIP_TYPES = 2**30  # trip types of which a count each may be held in memory: 8 GiB


@dataclass(frozen=True)
class RowTotals:
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
    rows: RowTotals | None = field(default=None, repr=False)  # private

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
        if self.universe.size > MAX_LISTED_TRIP_TYPES:
            raise InputError(
                f"counts of all {self.universe.size:,} trip types do not fit in memory: use ConstraintBased, which lists "
                "only those that matter"
            )
        counts = np.zeros(self.universe.size, dtype=np.int64)
        counts[self.index] = self.value
        return counts


def count(
    trips: object,
    universe: Universe,
    *,
    columns: Mapping[str, str] | None = None,
    unit: UnitLike = "trip",
    entropy: Entropy | None = None,
    clock: Clock | None = None,
    days: ServiceDays | None = None,
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
        return _counts_again(trips, universe, unit)
    if isinstance(trips, np.ndarray):
        return _counts_of_array(trips, universe, unit)
    needed, drawn = needed_columns(universe, columns, unit, days), entropy or SystemEntropy()
    bounded = isinstance(unit, Person)
    trips = within_periods(trips, universe, unit, columns, clock or Clock(), days)
    with engine_for(trips).open(trips, needed) as source:
        plan = make_plan(source.schema, universe, columns, unit, clock or Clock(), days)
        key = draw_key(drawn) if bounded else None
        index, value = ranked_counts(source.count(plan, key), universe, plan)
        facts = source.facts(plan)
    facts = replace(facts, kept=int(value.sum()), inside=facts.inside if bounded else int(value.sum()))
    check_invariants(plan, facts)
    secure = drawn.secure or not bounded  # counting trips draws nothing
    read = facts.read if facts.weight is None else facts.weight
    return Counts(universe, index, value, unit, secure, RowTotals(read, facts.inside))


def _counts_again(counts: Counts, universe: Universe, unit: Unit) -> Counts:
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


def _counts_of_array(array: Ints | Floats, universe: Universe, unit: Unit) -> Counts:
    if isinstance(unit, Person):
        raise InputError("an array of counts names no persons: give the trips with their person column")
    if array.shape != (universe.size,):
        raise InputError(f"counts of shape {array.shape} for a universe of {universe.size:,} trip types")
    whole = array.astype(np.int64) if array.dtype.kind in "iuf" and np.isfinite(array).all() else None
    if whole is None or (whole != array).any() or (whole < 0).any():
        raise InputError("counts must be whole numbers of at least 0")
    index = np.flatnonzero(whole).astype(np.int64)
    return Counts(universe, index, whole[index], unit)
