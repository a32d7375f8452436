"""Any two neighbouring inputs of up to six rows differ by at most what is claimed: by z3 for every kind of plan, and the model by the real count."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import z3
from counting.bounding_model import Numbers, Symbols, Tap, least, linked

import cbdp
from cbdp.counting import bounding
from cbdp.counting.bounding import ticket
from cbdp.counting.clock import Clock
from cbdp.counting.columns import Schema
from cbdp.counting.engines import sql
from cbdp.counting.engines.duckdb import DuckDialect, StoredField, connection
from cbdp.counting.linking import LinkedTaps, Prepared
from cbdp.counting.plan import SATURATED_COUNT, ContributionBound, CountingPlan, make_plan
from cbdp.features import Feature, FeatureDag, Universe
from cbdp.privacy.unit import PERIODS, Person, Sensitivity, Trip, Unit, feature_sensitivity, group_sensitivity
from cbdp_features.contribution import contribution_structure

ROWS = 6
DATES = [dt.date(2026, 3, 31), dt.date(2026, 4, 1), dt.date(2026, 4, 6)]  # two weeks, two months
SINCE = [(d - dt.date(1970, 1, 1)).days for d in DATES]
KEY = bytes(range(32))


class Fixed:
    """A source of one key."""

    secure = False

    def words(self, n: int, bits: int) -> Any:
        assert n * bits == 256
        return np.frombuffer(KEY, dtype=f"u{bits // 8}")


@dataclass(frozen=True)
class Case:
    """A universe with features, and a unit: what a plan is compiled from."""

    features: FeatureDag
    unit: Person

    @property
    def universe(self) -> Universe:
        return self.features.universe

    @cached_property
    def plan(self) -> CountingPlan:
        kinds = {name: pa.string() for name in (*self.universe.dimensions, "card", "when")}
        columns = {} if "day" in self.universe.dimensions else {"day": "when"}
        return make_plan(Schema("trips", kinds, typed=False), self.universe, columns, self.unit, Clock())

    @cached_property
    def bound(self) -> ContributionBound:
        assert self.plan.bound is not None
        return self.plan.bound

    @cached_property
    def slots(self) -> list[int]:
        """Flat number → slot, as the plan's axes tell."""
        result = []
        for flat in range(math.prod(self.plan.shape)):
            slot = 0
            for axis in self.bound.apart:
                slot = slot * self.plan.shape[axis] + codes(self.plan, flat)[axis]
            result.append(slot)
        return result

    @cached_property
    def periods(self) -> tuple[list[int], list[int]]:
        """Flat number → period where a code decides, and number of a date → period where the row's date does; all 0 where nothing does."""
        within, size = self.bound.within, math.prod(self.plan.shape)
        if within is None:
            return [0] * size, []
        by = dict(zip(within.keys.tolist(), within.periods.tolist(), strict=True))
        if within.axis is not None:
            return [by[codes(self.plan, flat)[within.axis]] for flat in range(size)], []
        return [], [by[day] for day in SINCE]

    @cached_property
    def people(self) -> list[list[tuple[int, int]]]:
        """All persons with up to three trips, as lists of (flat number, number of a date), in order."""
        by_flat, _ = self.periods
        size = self.universe.size
        trips = (
            [(f, 0) for f in range(size)]
            if by_flat or self.unit.per == "release"
            else list(itertools.product(range(size), range(3)))
        )
        result: list[list[tuple[int, int]]] = []
        for many in range(1, 4 if len(trips) < 10 else 3):
            result += [list(own) for own in itertools.combinations_with_replacement(trips, many)]
        result += [
            [trips[(3 * n + k) % len(trips)] for k in range(6)] for n in range(12)
        ]  # and some with six
        return [sorted(own) for own in result]

    def changes(self) -> dict[str, Sensitivity]:
        return {name: feature_sensitivity(self.features, name, self.unit) for name in self.features.features}

    def element(self, name: str) -> list[int]:
        result: list[int] = self.universe.partition(self.features.features[name].by).of_every_type().tolist()
        return result


def universes() -> Iterator[FeatureDag]:
    times = ["07:00", "08:00", "09:00"]
    half = Universe(stop=["A", "B"], time=times).with_attribute("half", ["time"], ["early", "early", "late"])
    yield FeatureDag(
        half, [Feature("time", by=["time"]), Feature("half", by=["half"]), Feature("stop", by=["stop"])]
    )
    days = Universe(day=[d.isoformat() for d in DATES], time=times[:2])
    yield FeatureDag(days, [Feature("time", by=["time"]), Feature("day", by=["day"])])


@cache
def cases(*limits: int) -> list[Case]:
    """Every kind of plan that the compiler can emit for persons: all periods, kept apart by nothing, by a dimension, by days."""
    return [
        Case(features, Person("card", most, per, apart))
        for features, per, most in itertools.product(universes(), PERIODS, limits)
        for apart in (None, "time", "day")
        if apart is None or apart in features.universe.dimensions
    ]


def codes(plan: CountingPlan, flat: int) -> list[int]:
    return [int(c) for c in np.unravel_index(flat, plan.shape)]


# By z3


def solver(*formulas: Any) -> z3.Solver:
    result = z3.SimpleSolver()
    result.add(*formulas)
    return result


def possible(*formulas: Any) -> bool:
    answer = solver(*formulas).check()
    assert answer in (z3.sat, z3.unsat)
    return bool(answer == z3.sat)


def stage(most: int) -> tuple[Any, Any, Any, Any]:
    """Six rows in arbitrary groups, some of them alive; what a stage keeps of them with arbitrary tickets, and without the groups of one unit."""
    whole = z3.IntSort()
    ticket_of, of_unit = z3.Function("ticket", whole, whole, whole), z3.Function("unit", whole, z3.BoolSort())
    groups, alive = [z3.Int(f"group{i}") for i in range(ROWS)], [z3.Bool(f"alive{i}") for i in range(ROWS)]
    unit = [of_unit(group) for group in groups]
    rest = [z3.And(a, z3.Not(u)) for a, u in zip(alive, unit, strict=True)]
    return (
        groups,
        unit,
        least(groups, alive, most, ticket_of, Symbols),
        least(groups, rest, most, ticket_of, Symbols),
    )


def test_a_stage_keeps_few_of_a_group_and_looks_at_no_other() -> None:
    """z3, six rows, any groups and any tickets: at most m of a group are kept, and without a unit's groups the others keep the same rows."""
    for most in (1, 2, 3):
        groups, unit, one, other = stage(most)
        own = [z3.And(k, group == 0) for k, group in zip(one, groups, strict=True)]
        assert not possible(z3.AtLeast(*own, most + 1))
        assert possible(z3.AtLeast(*own, most)), "fewer than m could be claimed"
        changed = [z3.And(z3.Not(u), k != o) for u, k, o in zip(unit, one, other, strict=True)]
        assert not possible(z3.Or(*changed))
        assert not possible(z3.Or(*(z3.And(u, o) for u, o in zip(unit, other, strict=True))))
        # were tickets no function of the group and the number in it, one unit would move the tickets of others
        alive = [z3.Bool(f"alive{i}") for i in range(ROWS)]
        rest = [z3.And(a, z3.Not(u)) for a, u in zip(alive, unit, strict=True)]
        mixed = z3.Function("mixed", z3.IntSort(), z3.IntSort())
        some = [numbered_over_all(groups, inputs, mixed, most) for inputs in (alive, rest)]
        assert possible(z3.Or(*(z3.And(z3.Not(u), k != o) for u, k, o in zip(unit, *some, strict=True))))


def test_two_stages_keep_few_of_a_unit_and_look_at_no_other() -> None:
    """z3, six rows in any slots of any units, any tickets, one unit removed: others keep their rows, and of the unit at most m are kept, no two in a slot."""
    whole = z3.IntSort()
    unit_of = z3.Function("unit of a slot", whole, whole)
    tickets = [z3.Function(f"ticket {n}", whole, whole, whole) for n in (1, 2)]
    slots, alive = [z3.Int(f"slot{i}") for i in range(ROWS)], [z3.Bool(f"alive{i}") for i in range(ROWS)]
    units = [unit_of(slot) for slot in slots]
    own = [unit == 0 for unit in units]

    def bounded(there: Sequence[Any], most: int) -> list[Any]:
        return least(units, least(slots, there, 1, tickets[0], Symbols), most, tickets[1], Symbols)

    most = 2
    one = bounded(alive, most)
    other = bounded([z3.And(a, z3.Not(o)) for a, o in zip(alive, own, strict=True)], most)
    mine = [z3.And(k, o) for k, o in zip(one, own, strict=True)]
    assert not possible(z3.Or(*(z3.And(z3.Not(o), a != b) for o, a, b in zip(own, one, other, strict=True))))
    assert not possible(z3.Or(*(z3.And(o, b) for o, b in zip(own, other, strict=True))))
    assert not possible(z3.AtLeast(*mine, most + 1))
    pairs = itertools.combinations(range(ROWS), 2)
    assert not possible(z3.Or(*(z3.And(mine[i], mine[k], slots[i] == slots[k]) for i, k in pairs)))
    assert possible(z3.AtLeast(*mine, most), z3.AtLeast(*alive, ROWS)), "fewer than m could be claimed"


def numbered_over_all(groups: Sequence[Any], alive: Sequence[Any], mixed: Any, most: int) -> list[Any]:
    """A wrong stage: the number of a row counts the rows of all groups up to it."""
    drawn = [mixed(Symbols.many(alive[:i])) for i in range(ROWS)]
    result = []
    for i in range(ROWS):
        sooner = [
            z3.And(alive[k], groups[i] == groups[k], drawn[k] < drawn[i]) for k in range(ROWS) if k != i
        ]
        result.append(z3.And(alive[i], Symbols.fewer(sooner, most)))
    return result


def norms(case: Case, name: str, kept: Sequence[tuple[Any, Any]]) -> tuple[Any, Any, Any]:
    """L1, L2² and Linf of what kept trips (whether there, flat number) add to a feature's counts."""
    element = np.array(case.element(name))
    sums = [
        Symbols.many(
            [
                z3.And(there, z3.Or(*(flat == f for f in np.flatnonzero(element == e).tolist())))
                for there, flat in kept
            ]
        )
        for e in range(element.max() + 1)
    ]
    largest = sums[0]
    for one in sums[1:]:
        largest = z3.If(one > largest, one, largest)
    squares = z3.Sum([z3.If(one == n, n * n, 0) for one in sums for n in range(1, len(kept) + 1)])
    return z3.Sum(sums), squares, largest


def kept_of_a_unit(case: Case) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """What the two stages can leave of one unit: at most `most` trips of one period, where slots are told apart no two in one."""
    by_flat, by_day = case.periods
    slots, size = case.slots, case.universe.size
    kept = [(z3.Bool(f"there{i}"), z3.Int(f"flat{i}")) for i in range(case.bound.most)]
    period = z3.Int("period")
    rules = [z3.And(flat >= 0, flat < size) for _, flat in kept]
    if by_flat:  # else the rows' own dates decide, and all of them may be of one
        rules += [
            z3.Implies(z3.And(there, flat == f), period == p)
            for there, flat in kept
            for f, p in enumerate(by_flat)
        ]
    else:
        rules.append(z3.Or(*(period == p for p in by_day)))
    if case.bound.apart:
        for (a, one), (b, other) in itertools.combinations(kept, 2):
            alike = [
                z3.And(one == f, other == g) for f in range(size) for g in range(size) if slots[f] == slots[g]
            ]
            rules.append(z3.Not(z3.And(a, b, z3.Or(*alike))))
    return kept, rules


def test_no_trips_of_one_unit_exceed_a_claim() -> None:
    """z3, every kind of plan: no feature's L1, L2² or Linf is exceeded by what bounding can leave, each is reached, and one less is refuted."""
    for case in cases(1, 2, 3):
        kept, rules = kept_of_a_unit(case)
        result = solver(*rules)
        for name, change in case.changes().items():
            for norm, claim in zip(
                norms(case, name, kept), (change.l1, change.l2_squared, change.linf), strict=True
            ):
                result.push()
                result.add(norm > claim)
                assert result.check() == z3.unsat, (name, case.unit)
                result.pop()
                result.push()
                result.add(norm > claim - 1)
                assert result.check() == z3.sat, f"{name}: a smaller claim would hold for {case.unit}"
                result.pop()


def test_one_trip_changes_what_is_claimed() -> None:
    """z3, tables of counts: a trip more in one row, or in another row instead, changes saturated sums by 1, or by 2 in all."""
    weights, largest = [z3.Int(f"weight{i}") for i in range(ROWS)], z3.Int("largest")
    element = [z3.Int(f"element{i}") for i in range(ROWS)]
    rules = [largest >= 1, *(w >= 0 for w in weights), *(z3.And(e >= 0, e < 2) for e in element)]

    def low(value: Any) -> Any:
        return z3.If(value > largest, largest, value)

    def counts(inputs: Sequence[Any]) -> list[Any]:
        return [
            low(z3.Sum([z3.If(e == c, low(w), 0) for w, e in zip(inputs, element, strict=True)]))
            for c in range(2)
        ]

    def length(one: Sequence[Any], other: Sequence[Any]) -> Any:
        return z3.Sum([z3.If(a > b, a - b, b - a) for a, b in zip(one, other, strict=True)])

    before = counts(weights)
    added = counts([weights[0] + 1, *weights[1:]])
    moved = counts([weights[0] + 1, weights[1] - 1, *weights[2:]])
    for after, unit, more in ((added, Trip(), []), (moved, Trip("replace"), [weights[1] >= 1])):
        claim = feature_sensitivity(next(universes()), "singleton", unit)
        assert not possible(*rules, *more, length(before, after) > claim.l1)
        assert not possible(
            *rules,
            *more,
            z3.Or(
                *(z3.Or(a - b > claim.linf, b - a > claim.linf) for a, b in zip(before, after, strict=True))
            ),
        )
        assert possible(*rules, *more, length(before, after) > claim.l1 - 1)


def test_a_row_more_is_a_trip_more() -> None:
    """Small tables of counts, weights about the point where they saturate: a trip more in any row changes one count by one at most, by the engine."""
    weights = (0, 1, 5, SATURATED_COUNT - 1, SATURATED_COUNT, SATURATED_COUNT + 7)
    own = list(itertools.combinations_with_replacement(weights, 2))  # the two rows of each stop
    before = counted_weights(own)
    assert before.max() == SATURATED_COUNT
    assert before[:3].tolist() == [0, 1, 5]
    for more in ((1, 0), (0, 1)):
        change = counted_weights([(one + more[0], other + more[1]) for one, other in own]) - before
        assert ((change == 0) | (change == 1)).all()
        assert change[:3].tolist() == [1, 1, 1]
    rows = {"stop": ["A", "B", "B", "C", None, "a"]}
    assert cbdp.count(rows, Universe(stop=["A", "B"])).dense().tolist() == [1, 2]


def counted_weights(own: Sequence[tuple[int, int]]) -> Any:
    """What the engine counts of two rows of each stop."""
    stops = [f"stop {n}" for n in range(len(own))]
    rows = {"stop": [s for s in stops for _ in range(2)], "n": [w for pair in own for w in pair]}
    return cbdp.count(rows, Universe(stop=stops), columns={"count": "n"}).dense()


def taps() -> tuple[list[Tap], list[Any]]:
    """Six taps of two persons in two periods, at any times, and the rules for them."""
    result = [
        Tap(
            z3.Bool(f"there{i}"),
            z3.Int(f"person{i}"),
            z3.Int(f"period{i}"),
            z3.Bool(f"enters{i}"),
            z3.Int(f"time{i}"),
        )
        for i in range(ROWS)
    ]
    rules = [one.time <= other.time for one, other in itertools.pairwise(result)]
    rules += [one.period <= other.period for one, other in itertools.pairwise(result)]
    return result, rules


def without(inputs: Sequence[Tap], gone: Callable[[int, Tap], Any]) -> list[Tap]:
    return [
        Tap(z3.And(t.there, z3.Not(gone(i, t))), t.person, t.period, t.enters, t.time)
        for i, t in enumerate(inputs)
    ]


def test_one_tap_changes_one_trip_into_another_at_most() -> None:
    """z3, six taps, one of them gone: at most one trip goes and at most one comes, which is what "replace" pays for."""
    inputs, rules = taps()
    for place in range(ROWS):
        before = linked(inputs, 10, Symbols, periods=False)
        after = linked(
            without(inputs, lambda i, _, place=place: z3.BoolVal(i == place)), 10, Symbols, periods=False
        )  # type: ignore[misc]
        gone = [z3.And(before[pair], z3.Not(after[pair])) for pair in before]
        come = [z3.And(after[pair], z3.Not(before[pair])) for pair in before]
        assert not possible(*rules, z3.Or(z3.AtLeast(*gone, 2), z3.AtLeast(*come, 2)))
        assert 0 < place < ROWS - 1 or not possible(*rules, z3.Or(*come))
        if 0 < place < ROWS - 1:
            assert possible(*rules, z3.Or(*gone), z3.Or(*come)), "add or remove would be enough"


def test_taps_of_a_period_make_trips_of_that_period() -> None:
    """z3, six taps: without what a person did in a period, all other trips are the same; it takes that no trip spans two periods."""
    inputs, rules = taps()
    unit = [z3.And(t.person == 0, t.period == 0) for t in inputs]
    for periods, broken in ((True, False), (False, True)):
        before = linked(inputs, 10, Symbols, periods=periods)
        after = linked(without(inputs, lambda i, _: unit[i]), 10, Symbols, periods=periods)
        changed = [
            z3.Or(z3.And(z3.Not(unit[i]), before[i, k] != after[i, k]), z3.And(unit[i], after[i, k]))
            for i, k in before
        ]
        assert possible(*rules, z3.Or(*changed)) == broken


# The model is what the engine does


def modelled(case: Case, own: Sequence[tuple[int, int]], person: str) -> list[int]:
    """The flat numbers of a person's trips that are kept, by the model with the tickets of the real rule."""
    by_flat, by_day = case.periods
    within = case.bound.within is not None
    periods = [by_flat[f] if by_flat else by_day[d] for f, d in own]
    slots = case.slots
    alive = [True] * len(own)
    if case.bound.apart:
        groups: list[Any] = [(p, slots[f]) for p, (f, _) in zip(periods, own, strict=True)]
        alive = least(
            groups,
            alive,
            1,
            lambda g, n: ticket(KEY, n, person.encode(), period=g[0] if within else None, slot=g[1]),
            Numbers,
        )
    kept = least(
        periods,
        alive,
        case.bound.most,
        lambda g, n: ticket(KEY, n, person.encode(), period=g if within else None),
        Numbers,
    )
    return [f for (f, _), k in zip(own, kept, strict=True) if k]


def counted(case: Case, everybody: Sequence[Sequence[tuple[int, int]]], *, generic: bool) -> Any:
    """Person × flat number: what the engine counts of each, by one count of all of them in a universe that tells them apart."""
    names = [f"p{n}" for n in range(len(everybody))]
    universe = Universe(who=names, **{n: list(d.values) for n, d in case.universe.dimensions.items()})
    labels = [list(d.values) for d in case.universe.dimensions.values()]
    shape = [len(values) for values in labels]
    columns: dict[str, list[Any]] = {n: [] for n in ("who", "card", "when", *case.universe.dimensions)}
    for name, own in zip(names, everybody, strict=True):
        for flat, date in reversed(own):
            columns["who"].append(name)
            columns["card"].append(name)
            columns["when"].append(DATES[date].isoformat())
            for (dimension, values), code in zip(
                zip(case.universe.dimensions, labels, strict=True), np.unravel_index(flat, shape), strict=True
            ):
                columns[dimension].append(values[code])
    inputs = {} if "day" in case.universe.dimensions else {"day": "when"}
    if generic:
        flats, values = by_shared_sql(columns, universe, inputs, case.unit)
    else:
        result = cbdp.count(columns, universe, columns=inputs, unit=case.unit, entropy=Fixed())
        flats, values = result.index, result.value
    dense = np.zeros(universe.size, dtype=np.int64)
    dense[flats] = values
    return dense.reshape(len(names), -1)


def by_shared_sql(
    columns: dict[str, list[Any]], universe: Universe, inputs: dict[str, str], unit: Unit
) -> tuple[Any, Any]:
    """The count by the SQL that engines other than DuckDB share, run in DuckDB."""
    table = pa.table(columns)
    plan = make_plan(
        Schema("trips", {f.name: f.type for f in table.schema}, typed=True), universe, inputs, unit, Clock()
    )
    assert plan.bound is not None
    with connection() as engine:
        for name, outcome in {
            "trips": table,
            "secret": pa.table({"word": pa.array([KEY], pa.binary())}),
            **sql.lookup_tables(plan),
        }.items():
            engine.register("made", outcome)
            engine.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM made")  # noqa: S608 - our own names
            engine.unregister("made")
        say = DuckDialect(tuple(StoredField(f'"{f.name}"', "VARCHAR") for f in plan.fields))
        steps = [
            *sql.steps_inside(plan, say, "trips", str),
            *bounding.bounding_steps(
                plan.bound, plan.fields[plan.bound.person].kind, say, sql.SECRET_TABLE, with_load=False
            ),
        ]
        rows = engine.sql(sql.query(steps, "SELECT flat, COUNT(*) FROM kept GROUP BY flat")).fetchall()
    flats, values = np.array(rows, dtype=np.int64).T
    return flats, values


def engine_agrees(generic: bool) -> None:
    for case in cases(2):
        everybody = case.people
        result = counted(case, everybody, generic=generic)
        by_flat, _ = case.periods
        single = [
            n for n, own in enumerate(everybody) if len({by_flat[f] if by_flat else d for f, d in own}) == 1
        ]
        for n, own in enumerate(everybody):
            wanted = np.bincount(modelled(case, own, f"p{n}"), minlength=case.universe.size)
            assert (result[n] == wanted).all(), (case.unit, own)
        for name, change in case.changes().items():
            element = case.element(name)
            sums = np.stack([np.bincount(element, weights=v) for v in result[single]])
            assert sums.sum(axis=1).max() <= change.l1
            assert (sums**2).sum(axis=1).max() <= change.l2_squared
            assert sums.max() <= change.linf


def test_the_model_is_what_duckdb_counts() -> None:
    """Every kind of plan, all persons with few trips: the default engine keeps the trips that the model keeps with the same tickets."""
    engine_agrees(generic=False)
    persons = DuckDialect.persons

    def by_windows(self: DuckDialect, *inputs: Any, in_lists: bool) -> Any:
        return persons(self, *inputs, in_lists=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DuckDialect, "persons", by_windows)
        engine_agrees(generic=False)


def test_the_model_is_what_the_shared_sql_counts() -> None:
    """The same by the SQL that the other engines share."""
    engine_agrees(generic=True)


def tapped() -> list[list[tuple[bool, int]]]:
    """All orders of up to four taps, on or off, at the same instant, soon after one another, or too late."""
    return [
        list(zip(on, itertools.accumulate((0, *gaps)), strict=True))
        for many in range(1, 5)
        for on in itertools.product((True, False), repeat=many)
        for gaps in itertools.product((0, 300, 7 * 3600), repeat=many - 1)
    ]


def test_the_model_is_how_taps_are_linked() -> None:
    """All orders of up to four taps: the engine links the pairs that the model links, over midnight too where the unit has no period."""
    taps_are_linked(tapped(), dt.datetime(2026, 3, 2, 1), Trip("replace"))  # noqa: DTZ001 - a wall clock
    taps_are_linked(tapped()[:300], dt.datetime(2026, 3, 2, 23), Trip("replace"))  # noqa: DTZ001


def test_the_model_is_how_taps_are_linked_within_days() -> None:
    """The same around midnight where the unit is a person's day: no pair spans two days."""
    taps_are_linked(tapped(), dt.datetime(2026, 3, 2, 1), Person("card", 4, "day"))  # noqa: DTZ001
    taps_are_linked(tapped()[:300], dt.datetime(2026, 3, 2, 23, 55), Person("card", 4, "day"))  # noqa: DTZ001


def taps_are_linked(everybody: Sequence[Sequence[tuple[bool, int]]], start: dt.datetime, unit: Unit) -> None:
    lines, wanted = ["card,time,stop,action"], set()
    for n, own in enumerate(everybody):
        times = [start + dt.timedelta(seconds=at) for _, at in own]
        for k, (on, _) in enumerate(own):
            lines.append(f"c{n},{times[k]},s{n}-{k},{'on' if on else 'off'}")
        order = sorted(range(len(own)), key=lambda k, own=own: (own[k][1], own[k][0], k))  # type: ignore[misc]
        model = [Tap(True, n, times[k].toordinal(), own[k][0], own[k][1]) for k in order]
        for (i, k), outcome in linked(model, 6 * 3600, Numbers, periods=unit.per == "day").items():
            if outcome:
                wanted.add((f"s{n}-{order[i]}", f"s{n}-{order[k]}"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "taps.csv"
        path.write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n", "utf-8")
        stops = [f"s{n}-{k}" for n, own in enumerate(everybody) for k in range(len(own))]
        universe = Universe(origin=stops, destination=stops)
        by = LinkedTaps("card", "time", "stop", "action", ("on",), ("off",))
        columns = {"day": "time"} if unit.per == "day" else None
        result = cbdp.count(Prepared(str(path), by), universe, columns=columns, unit=unit, entropy=Fixed())
    places = [
        (stops[o], stops[d]) for o, d in zip(*np.unravel_index(result.index, (len(stops),) * 2), strict=True)
    ]
    assert {*places} == wanted
    assert result.value.max() == 1
    assert len(wanted) > 30


# Several periods of one release


def test_several_periods_change_what_is_claimed() -> None:
    """All persons with two periods of up to two trips each: counts that hold trips of both add up in length, others in squares."""
    for case in cases(2):
        if case.unit.per == "release":
            continue
        by_flat, by_day = case.periods
        size, slots = case.universe.size, case.slots
        per_period: dict[int, list[list[int]]] = {}
        for period in dict.fromkeys(by_flat or by_day):
            flats = [f for f in range(size) if not by_flat or by_flat[f] == period]
            for own in (c for m in (1, 2) for c in itertools.combinations_with_replacement(flats, m)):
                if case.unit.apart is None or len({slots[f] for f in own}) == len(own):
                    per_period.setdefault(period, []).append(list(own))
        for name in case.features.features:
            element = np.array(case.element(name))
            tells = contribution_structure(case.features, name, case.unit.per, case.unit.apart)
            stated, reached = group_sensitivity(case.unit, tells, periods=2), Fraction(0)
            for one, other in itertools.combinations(per_period.values(), 2):
                for own in itertools.product(one, other):
                    sums = np.bincount(element[[*own[0], *own[1]]])
                    assert sums.sum() <= stated.l1
                    assert (sums**2).sum() <= stated.l2_squared, (case.unit, name)
                    assert sums.max() <= stated.linf
                    reached = max(reached, Fraction(int((sums**2).sum()), stated.l2_squared))
            assert reached > Fraction(1, 8)
