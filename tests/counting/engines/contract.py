"""What every counting engine is asked, one row each: trips that are read in every way there is, with values that are none.

Counts, and what `inspect` says, are DuckDB's exactly; with the same key, persons keep the same trips. tests/counting/test_machine.py holds DuckDB
against a plain loop over the rows.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from counting.making import ORIGINS, same

import cbdp
from cbdp.counting import Clock, inspect, trips_by_person

KEY = bytes.fromhex("9f0c31a7b2d84e65f1093ac7d25e8b46770d1e9ac3b5f28460dbe7a1934cf258")
DAYS = ["weekday", "saturday", "sunday"]
LABELS = [3, 5, 8, 2**53 + 1]
STOPS = {"origin": ORIGINS, "destination": LABELS, "time": cbdp.periods("04:00", "24:00", "30min")}


def _without_one(universe: cbdp.Universe) -> cbdp.Universe:
    return universe.without(("origin", "destination"), lambda o, d: o == "A" and d == 5)


PLACES, DATED = _without_one(cbdp.Universe(**STOPS)), _without_one(cbdp.Universe(**STOPS, day=DAYS))


class Fixed:
    """A source of one key."""

    secure = False

    def words(self, n: int, bits: int) -> Any:
        assert n * bits == 256
        return np.frombuffer(KEY, dtype=f"u{bits // 8}")


@dataclass(frozen=True)
class Case:
    """Trips, and how they are to be read."""

    table: pa.Table
    universe: cbdp.Universe
    columns: dict[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    unit: Any = "trip"
    folded: tuple[str, ...] = ()  # columns of text to which the engine gives a collation that ignores case

    def count(self, trips: Any) -> Any:
        return cbdp.count(
            trips, self.universe, columns=self.columns, clock=self.clock, unit=self.unit, entropy=Fixed()
        )

    def groups(self, trips: Any) -> list[list[int]]:
        """The types of each person's trips in each period; of the table in memory by the second count, else by the engine."""
        with pytest.MonkeyPatch.context() as patch:
            if trips is not self.table:
                patch.setattr("cbdp.counting.inspection.can_recount", lambda _: False)
            new, types = trips_by_person(
                trips, self.universe, self.unit, columns=self.columns, clock=self.clock
            )
        return sorted(sorted(part.tolist()) for part in np.split(types, np.flatnonzero(new)[1:]))

    def inspect(self, trips: Any) -> Any:
        return inspect(trips, self.universe, columns=self.columns, clock=self.clock, unit=self.unit)


def check(case: Case, trips: Any, *, inspected: bool = False) -> None:
    """The same counts, and the same facts for the curator, as DuckDB has of the table in memory."""
    wanted, found = case.count(case.table), case.count(trips)
    assert same(wanted, found)
    assert found.rows == wanted.rows
    assert wanted.value.sum() > 0 or len(case.table) == 0
    if getattr(case.unit, "per", "release") != "release":
        assert case.groups(trips) == case.groups(case.table)
    if inspected:
        here, there = case.inspect(case.table), case.inspect(trips)
        for name in ("read", "counted", "trips", "first", "last", "by", "loads"):
            assert getattr(here, name) == getattr(there, name), name
        assert [_shown(d) for d in here.dropped] == [_shown(d) for d in there.dropped]


def _shown(dropped: Any) -> Any:
    """A reason without its examples, whose numbers and stamps each engine writes its own way."""
    return dropped.reason, dropped.column, dropped.dimension, dropped.rows, [n for _, n in dropped.examples]


# Rows


def stamped(n: int = 4000, seed: int = 0, zone: str | None = None) -> pa.Table:
    """Trips with unknown stops, missing values, duplicates, stamps before 1970, fractions, hours when clocks change."""
    rng = np.random.default_rng(seed)
    changes = [(2026, 3, 8, 10), (2026, 11, 1, 9), (2026, 4, 4, 15), (2026, 10, 3, 15)]
    seconds = rng.integers(-(3 * 10**8), 3 * 10**8, n)
    stamps = [dt.datetime(1975, 1, 1) + dt.timedelta(microseconds=int(s) * 10**6 + 999_999) for s in seconds]  # noqa: DTZ001
    for i in range(0, n, 3):
        stamps[i] = dt.datetime(*changes[i % 4]) + dt.timedelta(seconds=int(seconds[i] % 14400 - 7200))  # noqa: DTZ001
    made = {
        "origin": rng.choice([*ORIGINS, "gone", "a", None], n).tolist(),
        "destination": pa.array(
            [None if d == 99 else int(d) for d in rng.choice([*LABELS, 4, 99], n)], pa.int64()
        ),
        "start": pa.array(
            [None if i % 50 == 0 else s for i, s in enumerate(stamps)], pa.timestamp("us", zone)
        ),
        "card": [None if c == 0 else f"card {c}" for c in rng.integers(0, 80, n).tolist()],
        "number": pa.array(rng.choice([0, -5, 2**53, 2**53 + 1, 7], n), pa.int64()),
        "weight": pa.array(rng.choice([0, 1, 1, 7, -1, 2**50], n), pa.int64()),
    }
    table = pa.table(made)
    return pa.concat_tables([table, table.slice(0, n // 4)])  # a quarter of them twice


def written() -> pa.Table:
    """Times as text: in ISO 8601 and others, in capitals and small letters, and texts that are none."""
    at = [dt.datetime(2026, 2, 27) + dt.timedelta(seconds=3571 * i) for i in range(150)]  # noqa: DTZ001
    texts: list[str | None] = [
        None,
        "",
        "now",
        "2026-02-29 10:00",
        "2026-02-28 24:00",
        "2024-02-29T23:59:59.999999",
        "08:60",
        "8:05",
    ]
    texts += [
        "290000-01-01 00:00",
        "0001-01-01 08:00",
        "1849-12-31 23:59",
        "2149-12-31T23:59Z",
        "2150-01-01 00:00",
        "2026-03-02 10:00\n",
    ]
    texts += [
        "2026-13-01 10:00",
        "2100-02-29 10:00",
        "2000-02-29 10:00",
        " 2026-3-2 9:00 ",
        "2026-03-02 09:00+05:30",
        "2026-03-02T09:00:01-2330",
    ]
    texts += [
        "9",
        " 09.0",
        "24",
        "-1",
        "7.5",
        "2026-03-01",
        "2026-03-01T00:00:00.5+14",
        "2026-03-02 09:00:00Z",
        "2026-03-02 09:00:00,5",
        "é",
    ]
    texts += [a.isoformat(" ") for a in at]
    other = [a.strftime("%d %b %y, %I:%M:%S.%f %p") for a in at] + [
        t if t is None else t.upper() for t in texts[: len(texts) - len(at)]
    ]
    digits = [int(a.strftime("%Y%m%d")) for a in at] + [20260230, 0, -1, 2**62, 20261301]
    n = len(texts)
    stops = (["A", "a", "B b", None] * n)[:n]
    return pa.table(
        {"iso": texts, "other": other, "digits": pa.array((digits * n)[:n], pa.int64()), "stop": stops}
    )


def numbers() -> pa.Table:
    """Numbers of every kind, as numbers and as text, among what is none."""
    reals = [
        7.0,
        289.0,
        -3.0,
        -0.0,
        0.0,
        7.5,
        float("nan"),
        float("inf"),
        float("-inf"),
        1e300,
        2.0**63,
        -(2.0**63),
        None,
    ]
    texts: list[str | None] = [
        "7",
        "07",
        " 7.0",
        "7.",
        "+7",
        "289.0",
        "-3.00",
        "0",
        "-0.0",
        "1e3",
        "7.50",
        "9" * 40,
        "x",
        "",
        None,
    ]
    texts += [str(2**63 - 1), str(2**63), str(-(2**63)), "0" * 60 + "7", "1e999", "1e-999", "7\n"]
    decimals = [
        Decimal("7.00"),
        Decimal("289"),
        Decimal("-3"),
        Decimal("7.25"),
        Decimal(0),
        None,
        Decimal("9" * 18),
    ]
    n = len(reals) * len(texts)

    def spread(values: list[Any], kind: Any) -> Any:
        return pa.array((values * n)[:n], kind)

    whole = [7, 289, -3, 0, 2**63 - 1, -(2**63), None]
    hours = [0, 9, 23, 24, -1, 2**60, None]
    return pa.table(
        {
            "real": spread(reals, pa.float64()),
            "rider": spread([7.0, -0.0, 0.0, 7.5, float("nan"), 2.0**53, None], pa.float64()),
            "text": spread(texts, pa.string()),
            "decimal": spread(decimals, pa.decimal128(20, 2)),
            "whole": spread(whole, pa.int64()),
            "truth": spread([True, False, None], pa.bool_()),
            "hour": spread(hours, pa.int64()),
            "epoch": spread([0, -1, 1_772_442_000, 1_772_500_000, 2**62, -(2**62), None], pa.int64()),
            "date": spread(
                [dt.date(2026, 3, 1), dt.date(2026, 3, 2), dt.date(1969, 12, 31), dt.date(9999, 1, 1), None],
                pa.date32(),
            ),
        }
    )


def folded(n: int = 1200, seed: int = 1) -> pa.Table:
    """Persons, stops and taps that a collation takes for one: capitals, accents, spaces at the end; and one person in several spellings."""
    rng = np.random.default_rng(seed)
    cards = [
        "ab",
        "AB",
        "Ab",
        "áb",
        "a\u0301b",
        "ab ",
        "289",
        "289.0",
        "289.",
        "0289",
        "-7.00",
        "-7",
        "0.0",
        "0",
        "1.50",
    ]
    return pa.table(
        {
            "stop": rng.choice(["A", "a", "Á", "á", "a ", "B", None], n).tolist(),
            "card": rng.choice([*cards, "", None], n).tolist(),
            "hour": pa.array(rng.integers(0, 24, n), pa.int64()),
            "weight": rng.choice(
                [str(2**63 - 1), str(2**63), "9" * 40, "-" + "9" * 40, "1", "x"], n
            ).tolist(),
        }
    )


FOLDED = ("stop", "card")


def _numbered(*names: str) -> cbdp.Universe:
    known: dict[str, Any] = {
        "real": [7, 289, 0, 7.5],
        "text": ["7", "289", "-3", "0"],
        "decimal": [7, 289, -3, 0],
        "whole": ["7", "289", "-3", str(2**63 - 1)],
        "truth": [True, False],
        "hour": cbdp.periods("00:00", "24:00", "1h"),
        "epoch": cbdp.periods("00:00", "24:00", "1h"),
        "date": [dt.date(2026, 3, 1), dt.date(2026, 3, 2), dt.date(1969, 12, 31)],
    }
    return cbdp.Universe(**{name: known[name] for name in names})


def _folded(*stops: str) -> cbdp.Universe:
    return cbdp.Universe(stop=stops, hour=cbdp.periods("00:00", "24:00", "6h"))


AT = {"time": "start"}
DAY = {"time": "start", "day": "start"}
HOLIDAYS = {dt.date(2026, 3, 9): "sunday"}
HOURS, FEBRUARY = (
    cbdp.periods("00:00", "24:00", "1h"),
    [dt.date(2026, 2, 27), dt.date(2026, 2, 28), dt.date(2026, 3, 1)],
)

CASES: dict[str, Callable[[], Case]] = {
    "trips": lambda: Case(stamped(), DATED, DAY, Clock(holidays=HOLIDAYS)),
    "zone": lambda: Case(stamped(zone="UTC"), DATED, DAY, Clock("America/Los_Angeles", holidays=HOLIDAYS)),
    "zone without one": lambda: Case(stamped(), PLACES, AT, Clock("Australia/Lord_Howe")),
    "offset": lambda: Case(stamped(zone="UTC"), PLACES, AT, Clock("+05:45")),
    "persons": lambda: Case(stamped(), PLACES, AT, Clock("Europe/Berlin"), cbdp.Person("card", 7)),
    "persons by day": lambda: Case(
        stamped(zone="UTC"),
        PLACES,
        AT,
        Clock("Europe/Berlin", day_starts="04:00"),
        cbdp.Person("card", 3, per="day", apart="time"),
    ),
    "persons by week": lambda: Case(
        stamped(), DATED, DAY, Clock(holidays=HOLIDAYS), cbdp.Person("number", 4, per="week")
    ),
    "persons by month": lambda: Case(
        written(),
        cbdp.Universe(time=HOURS, day=FEBRUARY, stop=["A", "a"]),
        {"time": "iso", "day": "iso"},
        Clock(day_starts="02:30"),
        cbdp.Person("stop", 5, per="month", apart="stop"),
    ),
    "numbered persons": lambda: Case(stamped(), PLACES, AT, unit=cbdp.Person("number", 100)),
    "real persons": lambda: Case(numbers(), _numbered("text", "whole"), unit=cbdp.Person("rider", 3)),
    "weights": lambda: Case(stamped(), PLACES, {**AT, "count": "weight"}),
    "texts": lambda: Case(
        written(), cbdp.Universe(time=HOURS, day=FEBRUARY, stop=["A", "a"]), {"time": "iso", "day": "iso"}
    ),
    "texts in a zone": lambda: Case(
        written(),
        cbdp.Universe(time=HOURS, day=FEBRUARY),
        {"time": "iso", "day": "iso"},
        Clock("America/St_Johns"),
    ),
    "format": lambda: Case(
        written(),
        cbdp.Universe(time=HOURS, day=FEBRUARY),
        {"time": "other", "day": "other"},
        Clock(format="%d %b %y, %I:%M:%S.%f %p"),
    ),
    "digits": lambda: Case(written(), cbdp.Universe(day=FEBRUARY), {"day": "digits"}, Clock(format="%Y%m%d")),
    "numbers": lambda: Case(numbers(), _numbered("real", "text", "truth")),
    "more numbers": lambda: Case(numbers(), _numbered("decimal", "whole", "hour", "date")),
    "epoch": lambda: Case(numbers(), _numbered("epoch", "text"), clock=Clock("Asia/Kathmandu", "epoch_s")),
    "collated stops": lambda: Case(folded(), _folded("A", "a", "á"), folded=FOLDED),
    "collated persons": lambda: Case(folded(), _folded("A", "a"), unit=cbdp.Person("card", 3), folded=FOLDED),
    "collated persons apart": lambda: Case(
        folded(), _folded("A", "a"), unit=cbdp.Person("card", 2, apart="stop"), folded=FOLDED
    ),
    "huge weights as text": lambda: Case(
        folded(60), cbdp.Universe(stop=["A", "a", "B"]), {"count": "weight"}
    ),
    "huge weights": lambda: Case(
        pa.table({"real": [2.0**63, 1e300, float("inf"), -1e300, float("nan"), 2.5], "stop": list("ABCDEF")}),
        cbdp.Universe(stop=list("ABCDEF")),
        {"count": "real"},
    ),
    "no rows": lambda: Case(stamped().slice(0, 0), PLACES, AT, unit=cbdp.Person("card", 7)),
}


def spellings(key: bytes) -> list[bytes]:
    """A key as it might be written down, in small letters: its bytes, digits, base 64, decimal numbers; parts of these too."""
    signed = [b - 256 if b > 127 else b for b in key[:6]]
    numbers = [", ".join(map(str, some)) for some in (key[:6], signed)]
    texts = [key.hex()[:20], key.hex(" ")[:29], base64.b64encode(key).decode()[:20], *numbers]
    octal = "".join(f"\\{b:03o}" for b in key[:6])
    return [key[:8].lower(), *(text.encode().lower() for text in [*texts, octal])]
