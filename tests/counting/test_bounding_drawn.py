"""Bounding by SQL, against facts that hold whatever is chosen: for drawn trips with ties, nobody, repeated rows, zones, nights, and days on which clocks change."""

from __future__ import annotations

import collections
import datetime as dt
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from counting.engines.contract import KEY, Fixed
from counting.making import Types, as_dict
from counting.reference import reference
from hypothesis import event, given, settings
from hypothesis import strategies as st

import cbdp
from cbdp.counting import Clock
from cbdp.features import days

CARDS = ("x", "X", "Ü", "07")  # each has stops of its own, so that counts tell whose trips they are
STOPS = [f"{card} at {place}" for card in CARDS for place in "ab"]
HALVES = cbdp.periods("00:00", "24:00", "30min")
CHANGES = {  # an instant near which the zone's clock goes forward or back; the last by half an hour
    "America/Los_Angeles": (dt.datetime(2026, 3, 8, 10, tzinfo=dt.UTC), dt.datetime(2026, 11, 1, 9, tzinfo=dt.UTC)),
    "Europe/Berlin": (dt.datetime(2026, 3, 29, 1, tzinfo=dt.UTC), dt.datetime(2026, 10, 25, 1, tzinfo=dt.UTC)),
    "Asia/Kathmandu": (dt.datetime(2026, 2, 28, 18, 15, tzinfo=dt.UTC),),
    "Australia/Lord_Howe": (dt.datetime(2026, 4, 4, 15, tzinfo=dt.UTC), dt.datetime(2026, 10, 3, 15, 30, tzinfo=dt.UTC)),
}  # fmt: skip

Row = tuple[str | None, dt.datetime | None, str | None]  # stop, instant, card


@dataclass(frozen=True)
class Drawn:
    """Trips, and how they are bounded."""

    rows: list[Row]
    clock: Clock
    unit: cbdp.Person
    universe: cbdp.Universe

    @property
    def table(self) -> pa.Table:
        stop, when, card = ([row[n] for row in self.rows] for n in range(3))
        stamps = pa.array(when, pa.timestamp("us", "UTC"))
        return pa.table(
            {"stop": pa.array(stop, pa.string()), "began": stamps, "card": pa.array(card, pa.string())}
        )

    @property
    def columns(self) -> dict[str, str]:
        return {"time": "began", "day": "began"}

    def count(self, trips: Any) -> Types:
        asked = {"columns": self.columns, "clock": self.clock, "unit": self.unit, "entropy": Fixed()}
        return as_dict(cbdp.count(trips, self.universe, **asked), self.universe)

    def local(self, instant: dt.datetime) -> dt.datetime:
        return instant.astimezone(ZoneInfo(self.clock.timezone or "UTC")).replace(tzinfo=None)

    def service_day(self, instant: dt.datetime) -> dt.date:
        """By shifting the clock on the wall back to the start of the day."""
        return (self.local(instant) - dt.timedelta(seconds=self.clock.first_second)).date()

    def period(self, day: dt.date) -> Any:
        names = {"release": 0, "day": day, "week": day.isocalendar()[:2], "month": (day.year, day.month)}
        return names[self.unit.per]

    def slot(self, instant: dt.datetime) -> str:
        at = self.local(instant)
        return f"{at.hour:02d}:{at.minute // 30 * 30:02d}"


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    zone = draw(st.sampled_from(sorted(CHANGES)))
    near = draw(st.sampled_from(CHANGES[zone]))
    minutes = st.one_of(
        st.integers(-200, 200), st.sampled_from([-5760, -2880, -1440, 0, 1440, 2880])
    )  # ties are frequent
    instants = st.one_of(st.just(None), *[minutes.map(lambda m: near + dt.timedelta(minutes=m))] * 12)
    one = st.tuples(st.sampled_from([*CARDS, *CARDS, *CARDS, None, ""]), st.sampled_from("aaab?"), instants)
    some = draw(st.lists(st.tuples(one, st.integers(1, 3)), max_size=14))
    rows: list[Row] = []
    for (card, place, instant), times in some:
        stop = None if place == "?" else f"{card or 'x'} at {place}"
        rows += [(stop, instant, card)] * times  # the same row several times is as many trips
    per = draw(st.sampled_from(["day", "day", "week", "month", "release"]))
    unit = cbdp.Person("card", draw(st.integers(1, 3)), per, draw(st.sampled_from([None, "time"])))
    clock = Clock(zone, day_starts=draw(st.sampled_from(["00:00", "02:30", "04:00"])))
    listed = {
        "day": days(str((near - dt.timedelta(days=3)).date()), str((near + dt.timedelta(days=3)).date()))
    }
    universe = cbdp.Universe(stop=STOPS, time=HALVES, **draw(st.sampled_from([{}, listed])))
    return Drawn(rows, clock, unit, universe)


Trips = collections.Counter[tuple[str, Any, dt.date, str, str]]  # card, period, service day, slot, stop


def inside_of(case: Drawn) -> Trips:
    """The trips that may count, by a plain loop: with a person, a stop, a time and, where days are listed, one of these."""
    found: Trips = collections.Counter()
    listed = (
        {str(d) for d in case.universe.dimensions["day"].values}
        if "day" in case.universe.dimensions
        else None
    )
    for stop, instant, card in case.rows:
        if stop is None or instant is None or not card:
            continue
        day = case.service_day(instant)
        if listed is None or str(day) in listed:
            found[card, case.period(day), day, case.slot(instant), stop] += 1
    return found


def check_facts(case: Drawn, counted: Types) -> None:
    """Nobody has more than the bound, everybody has as much as it allows, and nothing is counted that is not there."""
    inside, dated = inside_of(case), "day" in case.universe.dimensions
    types: collections.Counter[tuple[Any, ...]] = collections.Counter()
    own: dict[tuple[str, Any], list[Any]] = collections.defaultdict(list)  # what bounding may choose from
    for (card, period, day, slot, stop), n in inside.items():
        types[(stop, slot, str(day)) if dated else (stop, slot)] += n
        own[card, period] += [(day if dated else None, slot)] * n
    assert all(n <= types[trip] for trip, n in counted.items())
    most = {
        who: min(case.unit.max_trips, len(set(slots)) if case.unit.apart else len(slots))
        for who, slots in own.items()
    }
    for card in CARDS:
        kept = {trip: n for trip, n in counted.items() if trip[0].split(" at ")[0] == card}
        assert sum(kept.values()) == sum(n for (who, _), n in most.items() if who == card)
        if dated:
            for period in {p for who, p in own if who == card}:
                within = {t: n for t, n in kept.items() if case.period(dt.date.fromisoformat(t[2])) == period}
                assert sum(within.values()) == most[card, period]
                slots = collections.Counter()
                for trip, n in within.items():
                    slots[trip[1:]] += n
                assert not case.unit.apart or max(slots.values(), default=0) <= 1


@settings(max_examples=60, deadline=None)
@given(case=drawn(), seed=st.integers(0, 2**32 - 1))
def test_what_is_kept_is_what_the_unit_says(case: Drawn, seed: int) -> None:
    """Facts first; then the choice itself, which is the reference's with the same key, and the same in any order of rows."""
    event(f"{case.unit.per}, apart: {case.unit.apart}")
    found = case.count(case.table)
    check_facts(case, found)
    order = np.random.default_rng(seed).permutation(len(case.rows))
    assert case.count(case.table.take(pa.array(order))) == found
    rows = [dict(zip(("stop", "began", "card"), row, strict=True)) for row in case.rows]
    person = {
        "person": "card",
        "most": case.unit.max_trips,
        "key": KEY,
        "per": case.unit.per,
        "apart": case.unit.apart,
    }
    wanted = reference(rows, case.universe, case.columns, case.clock, **person)  # type: ignore[arg-type]
    assert found == {trip: n for trip, n in wanted.items() if n}
