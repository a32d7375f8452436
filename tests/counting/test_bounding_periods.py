"""At most m trips of a person a day, week or month, and kept apart: the bound holds where trips are counted, whatever rows look like."""

from __future__ import annotations

import collections
import datetime as dt
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from counting.making import as_dict, same
from hypothesis import given, settings
from hypothesis import strategies as st

import cbdp
from cbdp.counting import Clock, bounding, inspect
from cbdp.counting.counts import InvariantError
from cbdp.errors import InputError
from cbdp.features import days
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.unit import sensitivity
from cbdp_features.contribution import contribution_structure

HOURS = cbdp.periods("00:00", "24:00", "1h")
MARCH = days("2026-03-02", "2026-03-15")  # from Monday on, two weeks


def at(day: int, hour: float) -> dt.datetime:
    return dt.datetime(2026, 3, day) + dt.timedelta(hours=hour)  # noqa: DTZ001 - a wall clock


def counted(rows: list[tuple[str, Any, Any]], universe: cbdp.Universe, unit: cbdp.Person, **more: Any) -> Any:
    """Counts of rows (stop, when, card)."""
    stop, when, card = map(list, zip(*rows, strict=True))
    columns = {name: "when" for name in ("time", "day") if name in universe.dimensions}
    table = {"stop": stop, "when": when, "card": card}
    return cbdp.count(table, universe, columns=columns, unit=unit, **more)


def test_a_person_is_bounded_in_every_period() -> None:
    """Three trips on each of 14 days: two a day are kept, four a week, five a month and a release."""
    universe = cbdp.Universe(stop=["A"], time=HOURS, day=MARCH)
    rows = [("A", at(day, hour), "x") for day in range(2, 16) for hour in (8, 8.5, 17)]
    kept = {per: counted(rows, universe, cbdp.Person("card", most, per)).value.sum() for per, most in PERIODS}
    assert kept == {"day": 28, "week": 8, "month": 5, "release": 5}
    pooled = cbdp.Universe(stop=["A"], time=HOURS)
    assert counted(rows, pooled, cbdp.Person("card", 2, "day")).value.sum() == 28, (
        "of days that are not counted, too"
    )
    kinds = cbdp.Universe(stop=["A"], day=["weekday", "saturday", "sunday"])
    week = as_dict(counted(rows, kinds, cbdp.Person("card", 2, "day")), kinds)
    assert week == {("A", "weekday"): 20, ("A", "saturday"): 4, ("A", "sunday"): 4}


PERIODS = [("day", 2), ("week", 4), ("month", 5), ("release", 5)]


def test_weeks_begin_on_monday_and_months_on_the_first() -> None:
    """Sunday night and Monday morning are two weeks; the last of February and the first of March two months."""
    universe = cbdp.Universe(time=HOURS, stop=["A"])
    for per, first, second in [
        ("week", dt.datetime(2026, 3, 8, 23, 59), dt.datetime(2026, 3, 9)),  # noqa: DTZ001
        ("month", dt.datetime(2026, 2, 28, 23), dt.datetime(2026, 3, 1)),  # noqa: DTZ001
        ("month", dt.datetime(2025, 12, 31), dt.datetime(2026, 1, 1)),  # noqa: DTZ001
        ("day", dt.datetime(1969, 12, 31, 23, 59), dt.datetime(1970, 1, 1)),  # noqa: DTZ001
    ]:
        unit = cbdp.Person("card", 1, per)
        assert counted([("A", first, "x"), ("A", second, "x")], universe, unit).value.sum() == 2
        assert counted([("A", first, "x"), ("A", first, "x")], universe, unit).value.sum() == 1


def test_a_service_day_is_counted_and_bounded_alike() -> None:
    """At 01:30 on Tuesday it is still Monday: in the table of days, as a kind of day, and for the bound; the hour stays."""
    clock, unit = Clock(day_starts="04:00"), cbdp.Person("card", 1, "day")
    rows = [("A", at(2, 25.5), "x"), ("A", at(2, 4), "x"), ("A", at(3, 4), "x"), ("A", at(2, 3.9), "x")]
    universe = cbdp.Universe(stop=["A"], time=HOURS, day=MARCH)
    every = as_dict(counted(rows, universe, cbdp.Person("card", 9), clock=clock), universe)
    assert every == {
        ("A", "01:00", "2026-03-02"): 1,
        ("A", "04:00", "2026-03-02"): 1,
        ("A", "04:00", "2026-03-03"): 1,
    }, "and 03:54 on Monday is Sunday, which is not listed"
    by_day = cbdp.Universe(day=MARCH)
    assert as_dict(counted(rows, by_day, unit, clock=clock), by_day) == {
        ("2026-03-02",): 1,
        ("2026-03-03",): 1,
    }
    pooled = cbdp.Universe(stop=["A"], time=HOURS)
    assert counted(rows, pooled, unit, clock=clock).value.sum() == 3, "Sunday, Monday and Tuesday"
    kinds = cbdp.Universe(day=["weekday", "sunday"])
    assert as_dict(counted(rows, kinds, unit, clock=clock), kinds) == {("weekday",): 2, ("sunday",): 1}


def test_a_written_date_is_the_service_day_itself() -> None:
    """A column of dates has the day that the agency wrote down: no hour moves it."""
    universe = cbdp.Universe(day=MARCH)
    table = {"date": [dt.date(2026, 3, 2), dt.date(2026, 3, 2), dt.date(2026, 3, 3)], "card": ["x"] * 3}
    found = cbdp.count(
        table,
        universe,
        columns={"day": "date"},
        unit=cbdp.Person("card", 1, "day"),
        clock=Clock(day_starts="04:00"),
    )
    assert as_dict(found, universe) == {("2026-03-02",): 1, ("2026-03-03",): 1}


def test_clocks_that_change_make_no_second_day() -> None:
    """The hour that comes twice, and the one that is left out, belong to the day that the zone's clock shows."""
    zone, unit = Clock("America/Los_Angeles", day_starts="03:00"), cbdp.Person("card", 1, "day")
    universe = cbdp.Universe(day=days("2026-10-30", "2026-11-02"))
    stamps = pa.array(
        [dt.datetime(2026, 11, 1, h, 30) for h in (7, 8, 9, 10, 11)],  # noqa: DTZ001 - 00:30, 01:30 twice, 02:30, 03:30
        pa.timestamp("us", "UTC"),
    )
    table = pa.table({"day": stamps, "card": ["x"] * 5})
    assert as_dict(cbdp.count(table, universe, unit=unit, clock=zone), universe) == {
        ("2026-10-31",): 1,
        ("2026-11-01",): 1,
    }


# Apart


def test_trips_are_kept_apart() -> None:
    """One in each hour of each day at most; then at most `max_trips` of what is left."""
    universe = cbdp.Universe(stop=["A", "B"], time=HOURS, day=MARCH)
    rows = [(stop, at(day, hour), "x") for day in (2, 3) for hour in (8, 8.5, 17, 18) for stop in "AB"]
    for most, wanted in [(9, 6), (2, 4)]:
        kept = as_dict(counted(rows, universe, cbdp.Person("card", most, "day", "time")), universe)
        assert sum(kept.values()) == wanted
        assert max(collections.Counter((t, d) for _, t, d in kept).values()) == 1
        assert set(kept.values()) == {1}


def test_of_trips_that_are_kept_apart_each_is_as_likely() -> None:
    """Three trips in one hour and one in another, one of the two hours kept: 1/6, 1/6, 1/6, 1/2."""
    universe = cbdp.Universe(card=range(6000), stop=["a", "b", "c"], time=HOURS)
    table = {
        "card": np.repeat(np.arange(6000), 4),
        "stop": ["a", "b", "c", "a"] * 6000,
        "time": ["08:10", "08:20", "08:30", "17:00"] * 6000,
    }
    unit = cbdp.Person("card", 1, apart="time")
    found = as_dict(cbdp.count(table, universe, unit=unit, entropy=InsecureSeededEntropy(3)), universe)
    seen = collections.Counter((stop, time) for _, stop, time in found)
    assert sum(seen.values()) == 6000
    for kind, share in [
        (("a", "08:00"), 1 / 6),
        (("b", "08:00"), 1 / 6),
        (("c", "08:00"), 1 / 6),
        (("a", "17:00"), 1 / 2),
    ]:
        assert abs(seen[kind] - 6000 * share) < 5 * np.sqrt(6000 * share * (1 - share))


def test_other_days_are_other_draws() -> None:
    """A person with the same trips every day does not lose the same ones every day."""
    universe = cbdp.Universe(time=HOURS, day=MARCH)
    rows = [("A", at(day, hour), "x") for day in range(2, 16) for hour in (7, 8, 9, 17, 18)]
    kept = as_dict(
        counted(rows, universe, cbdp.Person("card", 2, "day"), entropy=InsecureSeededEntropy(1)), universe
    )
    assert len({tuple(t for t, d in kept if d == day) for day in MARCH.values}) > 3


# Attacks


def test_persons_that_differ_by_case_and_nobody() -> None:
    """`ab` and `AB` are bounded each for themselves, on every day; NULL, empty and NaN are nobody."""
    universe = cbdp.Universe(time=HOURS)
    rows = [("A", at(2, 8), card) for card in ("ab", "AB", "", None) for _ in range(50)]
    assert counted(rows, universe, cbdp.Person("card", 3, "day")).value.sum() == 6


def test_what_is_outside_takes_nobodys_place() -> None:
    """Unknown stops, times outside, structural zeros, unreadable days: they are gone before trips are numbered, on that day and any other."""
    universe = cbdp.Universe(stop=["A", "B"], time=cbdp.periods("06:00", "20:00", "1h")).without(
        ("stop", "time"), lambda s, t: s == "B" and t == "08:00"
    )
    good = [("A", at(day, 8), "x") for day in (2, 3)]
    outside = [("gone", at(2, 8), "x"), ("A", at(2, 22), "x"), ("B", at(2, 8), "x"), ("A", None, "x")] * 200
    unit = cbdp.Person("card", 1, "day", "time")
    assert same(counted(good, universe, unit), counted([*outside, *good], universe, unit))


def test_a_trip_whose_day_cannot_be_read_is_not_counted() -> None:
    """A time like 08:15 alone is a time of no day: it could belong to any, so it is dropped, and an inspection says so."""
    universe, columns = cbdp.Universe(stop=["A"], time=HOURS), {"time": "when"}
    table = {"stop": ["A"] * 4, "when": ["2026-03-02 08:15", "08:15", "8", "2026-03-02"], "card": ["x"] * 4}
    unit = cbdp.Person("card", 9, "day")
    assert cbdp.count(table, universe, columns=columns, unit=unit).value.sum() == 1
    assert cbdp.count(table, universe, columns=columns, unit=cbdp.Person("card", 9)).value.sum() == 3
    seen = inspect(table, universe, columns=columns, unit=unit)
    assert (seen.counted, {d.reason: d.rows for d in seen.dropped}) == (1, {"no day": 2, "not understood": 1})


@pytest.mark.parametrize(
    ("universe", "table", "columns", "said"),
    [
        (cbdp.Universe(stop=["A"]), {"stop": ["A"]}, {}, "nothing says on which day"),
        (cbdp.Universe(time=HOURS), {"time": pa.array([8], pa.int64())}, {}, "'time' tells no dates"),
        (cbdp.Universe(time=HOURS), {"time": pa.array([8], pa.time32("s"))}, {}, "'time' tells no dates"),
        (cbdp.Universe(day=["D1", "D2"]), {"day": ["D1"]}, {}, "'day' tells no dates"),
        (
            cbdp.Universe(stop=["A"]),
            {"stop": ["A"], "d": pa.array([1.5])},
            {"day": "d"},
            "'d' tells no dates",
        ),
        (cbdp.Universe(stop=["A"]), {"stop": ["A"]}, {"day": "gone"}, "no column 'gone'"),
    ],
)
def test_days_that_cannot_be_told_are_refused(universe: Any, table: Any, columns: Any, said: str) -> None:
    """By the schema alone: one line that says what to do."""
    with pytest.raises(InputError, match=said):
        cbdp.count(
            pa.table({**table, "card": ["x"]}), universe, columns=columns, unit=cbdp.Person("card", 2, "day")
        )


def test_the_day_may_be_in_a_column_that_is_not_counted() -> None:
    """`columns["day"]` tells the period where no day is counted."""
    universe = cbdp.Universe(stop=["A"])
    table = {
        "stop": ["A"] * 4,
        "date": ["2026-03-02", "2026-03-02", "2026-03-03", "someday"],
        "card": ["x"] * 4,
    }
    unit = cbdp.Person("card", 1, "day")
    assert cbdp.count(table, universe, columns={"day": "date"}, unit=unit).value.sum() == 2


def test_an_unknown_dimension_is_refused() -> None:
    """With the names that there are."""
    with pytest.raises(InputError, match="kept apart by 'tiem', which is no dimension"):
        counted([("A", at(2, 8), "x")], cbdp.Universe(time=HOURS), cbdp.Person("card", 2, apart="tiem"))


def test_turns_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Persons that do not fit in memory keep the same trips, by period and apart, as at once; also above the heap's size."""
    rng = np.random.default_rng(2)
    when = [at(2, float(h)) for h in rng.uniform(0, 24 * 14, 4000)]
    rows = list(
        zip(rng.choice(["A", "B"], 4000).tolist(), when, rng.integers(0, 40, 4000).tolist(), strict=True)
    )
    universe = cbdp.Universe(stop=["A", "B"], time=HOURS, day=MARCH)
    for unit in (
        cbdp.Person("card", 3, "day", "time"),
        cbdp.Person("card", 5, "week"),
        cbdp.Person("card", 9, apart="time"),
    ):
        found = []
        for name, size in [
            ("duckdb.BOUNDED_ROWS_PER_MB", 8000),
            ("duckdb.BOUNDED_ROWS_PER_MB", 1),
            ("duckdb.MAX_ARG_MIN_VALUES", 1),
        ]:
            with monkeypatch.context() as patch:
                patch.setenv("CBDP_MEMORY_MB", "500")
                patch.setattr(f"cbdp.counting.engines.{name}", size)
                found.append(counted(rows, universe, unit, entropy=InsecureSeededEntropy(1)))
        assert all(same(found[0], other) for other in found[1:])
        assert found[0].value.sum() > 100


@pytest.mark.parametrize(("windows", "most"), [("person, period", 1), ("person, period, slot", 9)])
def test_a_broken_bound_is_found_before_anything_is_spent(
    windows: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If trips were chosen for each type instead of each period, or each slot, the invariants would say so."""
    real = bounding._row_number
    monkeypatch.setattr(
        bounding, "_row_number", lambda of, order: real(f"{of}, flat" if of == windows else of, order)
    )
    monkeypatch.setattr("cbdp.counting.engines.duckdb.MAX_ARG_MIN_VALUES", 1)
    universe = cbdp.Universe(stop=["A", "B"], time=HOURS)
    rows = [(stop, at(2, hour), "x") for stop in "AB" for hour in (8, 8.2, 9)]
    with pytest.raises(InvariantError):
        counted(rows, universe, cbdp.Person("card", most, "day", "time"))


@settings(max_examples=20, deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 9), st.sampled_from("xy")), max_size=14),
    per=st.sampled_from(["day", "week", "release"]),
    apart=st.sampled_from([None, "time"]),
    kind=st.sampled_from(["dates", "kinds", "none"]),
)
def test_neighbours_differ_by_what_is_stated(rows: Any, per: str, apart: str | None, kind: str) -> None:
    """With one key, data with and without one person's one period: every feature's counts differ by at most its change."""
    dims: dict[str, Any] = {"stop": ["A", "B"], "time": cbdp.periods("00:00", "24:00", "12h")}
    dims |= {
        "dates": {"day": days("2026-03-07", "2026-03-10")},
        "kinds": {"day": ["weekday", "weekend"]},
        "none": {},
    }[kind]
    universe = cbdp.Universe(**dims)
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("time", by=["time"]), cbdp.Feature("stop", by=["stop"])])
    trips = [(stop, at(7, 9.0 * n), card) for stop, n, card in rows]
    unit = cbdp.Person("card", 2, per, apart)

    def period(when: dt.datetime) -> Any:
        return {"day": when.date(), "week": when.isocalendar()[:2], "release": 0}[per]

    def counts(some: Any) -> Any:
        return counted(some or [("A", None, "x")], universe, unit, entropy=InsecureSeededEntropy(4))

    before = counts(trips)
    for card, within in {(c, period(w)) for _, w, c in trips}:
        less = [t for t in trips if (t[2], period(t[1])) != (card, within)]
        after = counts(less)
        for name in dag.features:
            change = sensitivity(unit, contribution_structure(dag, name, per, apart))
            moved = before.of(dag, name) - after.of(dag, name)
            assert (moved >= 0).all(), "nobody else's trips change"
            assert moved.sum() <= change.l1
            assert (moved**2).sum() <= change.l2_squared
            assert (moved > 0).sum() <= change.l0
            assert moved.max() <= change.linf


def test_loads_are_of_a_period() -> None:
    """How many trips persons have in one day, and what each bound would drop, `apart` included."""
    universe = cbdp.Universe(time=HOURS)
    rows = [("A", at(day, hour), "x") for day in (2, 3) for hour in (8, 8.5, 9)] + [("A", at(2, 8), "y")]
    table = dict(zip(("stop", "time", "card"), map(list, zip(*rows, strict=True)), strict=True))
    plain = inspect(table, universe, unit=cbdp.Person("card", 2, "day")).loads
    assert plain is not None
    assert (plain.persons, plain.trips, plain.dropped[2], plain.together) == (3, 7, 2, 0)
    apart = inspect(table, universe, unit=cbdp.Person("card", 2, "day", "time")).loads
    assert apart is not None
    assert (apart.persons, apart.trips, apart.dropped[1], apart.dropped[2], apart.together) == (3, 7, 4, 2, 2)
    assert sum(itertools.chain(apart.quantiles.values())) > 0
