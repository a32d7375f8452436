"""Opal's 14 days as one series, through `cbdp series`: what it costs one person, and how far off days and the two weeks are.

Claim: what it costs to protect more than one trip over 14 days, from Opal's own promise on (docs/results/opal.md).

python -m benchmarks opal_series [--days 14] [--mode bus ferry lightrail train] [--way trip day weeks learning]

The synthetic taps (benchmarks.harness.opal_taps, with cards by opal_cards) are published day by day, each day once, with a ledger: first with Opal's own promise, (8, δ) for
one trip that is replaced, then with more that is protected. A trip's two taps are rows of their own, so that one trip is a "person" of two rows. An error is the sum of
all deviations of a table's counts as a share of its taps.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

import cbdp
from benchmarks.harness.markdown import markdown
from benchmarks.harness.opal_taps import DAYS, LOCATIONS, OpalTaps, opal_taps, tap_rows
from benchmarks.opal import EACH, OPAL_BUDGET, TAPS, parts
from cbdp.app import cli
from cbdp.app.series import status_of
from cbdp.config import read
from cbdp.counting.plan import ServiceDays
from cbdp.features import SINGLETON
from cbdp.ledger.windows import PrivacyStatement
from cbdp.mechanisms import StabilityHistogram
from cbdp.privacy.accounting import rho_for

Ints = NDArray[np.int64]
Tables = dict[str, Ints]

DATES = tuple(dt.datetime.strptime(day, "%Y%m%d").date() for day in DAYS)  # noqa: DTZ007
TABLES = {"time": "time", "location": "location", SINGLETON: "both"}
EPSILON, DELTA = 8, Fraction(3, 4_000_000)  # Opal's, for one trip that is replaced
MOST = 8  # taps of a card in a day: four trips
CONFIG = """
[data]
trips = "taps.parquet"
id = "synthetic taps in the shape of Opal's"
columns = {{ day = "day" }}

[universe]
time = {{ start = "00:00", end = "24:00", every = "15min" }}

[universe.dimensions]
tap = ["on", "off"]
location = {{ file = "places.csv", column = "place", attributes = {{ mode = "mode" }} }}

[[feature]]
name = "time"
by = ["tap", "location.mode", "time"]

[[feature]]
name = "location"
by = ["tap", "location"]

[privacy]
unit = {{ {unit}, per = "day" }}
{price}

[series]
calendar = "daily"
start = {first}
end = {last}
{more}

[output]
path = "releases/{{period}}"
"""


@dataclass(frozen=True)
class Way:
    """What is protected, and with what."""

    about: str
    unit: str
    price: str
    earlier: int = 0

    def config(self, days: Sequence[dt.date]) -> str:
        gap = [] if days[-1] <= DATES[6] else ["gaps = [{ first = 2016-08-01, last = 2016-08-07 }]"]
        learnt = [f"earlier = {self.earlier}"] * bool(self.earlier)
        more = "\n".join([*gap, *learnt])
        return CONFIG.format(unit=self.unit, price=self.price, first=days[0], last=days[-1], more=more)


def _pure(epsilon: int) -> str:
    return f"epsilon = {epsilon}\ncap = {{ per_day = {epsilon} }}"


def _whole(days: int) -> str:
    """ρ of each day, if all days together are to cost (8, δ); its noise is Gaussian."""
    each = rho_for(EPSILON, DELTA) / days
    exact = Fraction(int(each * 10**9), 10**9)
    return f'rho = "{float(exact)!r}"\nlaw = "gaussian"\ncap = {{ per_day = "{float(exact)!r}" }}'


def ways(days: int) -> dict[str, Way]:
    """By name; days are how many share what a person's two weeks may cost."""
    card = f'person = "card", max_trips = {MOST}'
    apart = f'{card}, apart = "time"'
    return {
        "trip": Way("one trip on one day", 'person = "trip", max_trips = 2, apart = "tap"', _pure(EACH)),
        "day": Way("all that a person does on one day", card, _pure(EACH)),
        "weeks": Way("all that a person does in the two weeks", apart, _whole(days)),
        "learning": Way("the same, and days learn from earlier ones", apart, _whole(days), earlier=days),
    }


@dataclass(frozen=True, eq=False)
class Truth:
    """The rows, and the true tables of every day."""

    rows: Any
    days: tuple[dt.date, ...]
    tables: Mapping[dt.date, Tables]
    places: Sequence[tuple[str, str]]  # and the mode of each


@dataclass(frozen=True)
class Found:
    """Errors of every day and of all days added up, by table, and what it costs one person."""

    daily: Mapping[str, tuple[float, ...]]
    whole: Mapping[str, float]
    person: PrivacyStatement | None = field(default=None, repr=False)


def features(places: Sequence[tuple[str, str]]) -> cbdp.FeatureDag:
    """All modes in one universe: 33,600 types of tap."""
    universe = cbdp.Universe(
        time=cbdp.periods("00:00", "24:00", "15min"),
        tap=list(TAPS),
        location=cbdp.Dimension([p for p, _ in places], mode=[m for _, m in places]),
    )
    tables = [("time", ["tap", "location.mode", "time"]), ("location", ["tap", "location"])]
    return cbdp.FeatureDag(universe, [cbdp.Feature(name, by=by) for name, by in tables])


def truth(taps: OpalTaps, days: Sequence[dt.date], modes: Sequence[str] = tuple(LOCATIONS)) -> Truth:
    """The true tables of these days and modes."""
    places = [(place, mode) for mode in modes for place in LOCATIONS[mode]]
    dag, rows = features(places), tap_rows(taps)
    rows = rows.filter(pc.is_in(rows["day"], pa.array(days)))
    rows = rows.filter(pc.is_in(rows["location"], pa.array([place for place, _ in places])))
    tables = {}
    for day in days:
        counts = cbdp.count(rows, dag.universe, columns={"day": "day"}, days=ServiceDays(day, day))
        tables[day] = {name: counts.of(dag, name) for name in TABLES}
    return Truth(rows, tuple(days), tables, places)


def published(true: Truth, way: Way, folder: Path) -> Found:
    """The series, made in a folder by `cbdp series run`, and read from there."""
    pq.write_table(true.rows, folder / "taps.parquet")
    with (folder / "places.csv").open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([("place", "mode"), *true.places])
    (folder / "cbdp.toml").write_text(way.config(true.days), encoding="utf-8")
    (folder / "releases").mkdir()
    written = str(folder / "cbdp.toml")
    if cli.main(["series", "run", written, "--until", true.days[-1].isoformat(), "--create-ledger"]):
        raise RuntimeError("the series was not made")
    found = []
    for day in true.days:
        release = cbdp.load(folder / "releases" / day.isoformat())
        found.append({name: np.asarray(release.counts(name)) for name in TABLES})
    return errors(
        found, [true.tables[day] for day in true.days], status_of(read(written), true.days[-1]).person
    )


def errors(found: Sequence[Tables], true: Sequence[Tables], person: PrivacyStatement | None = None) -> Found:
    """Of each day, and of the tables added up over days."""
    daily = {name: tuple(_off(f[name], t[name]) for f, t in zip(found, true, strict=True)) for name in TABLES}
    whole = {
        name: _off(*(np.sum([s[name] for s in side], axis=0) for side in (found, true))) for name in TABLES
    }
    return Found(daily, whole, person)


def _off(found: Ints, true: Ints) -> float:
    return float(np.abs(found - true).sum() / true.sum())


def as_released(taps: OpalTaps, true: Truth) -> Found:
    """What Opal's own mechanism makes of the same days: a part for each day and mode, ε 1, 1, 2 for each kind of tap."""
    modes = {mode for _, mode in true.places}
    found: list[dict[str, list[Ints]]] = [{name: [] for name in TABLES} for _ in DATES]
    held: list[dict[str, list[Ints]]] = [{name: [] for name in TABLES} for _ in DATES]
    for n, (mode, _, dag, counts) in enumerate(parts(taps)):
        day = n // (len(taps.modes) * len(TAPS))
        if DATES[day] in true.days and mode in modes:
            release = StabilityHistogram(dag, EACH, budget=OPAL_BUDGET).simulate(counts, n)
            for name in TABLES:
                found[day][name].append(release.counts(name))
                held[day][name].append(cbdp.count(counts, dag.universe).of(dag, name))
    made, true_tables = ([_joined(day) for day in side if day[SINGLETON]] for side in (found, held))
    return errors(made, true_tables)


def _joined(pieces: Mapping[str, list[Ints]]) -> Tables:
    return {name: np.concatenate(each) for name, each in pieces.items()}


def lines(found: Mapping[str, Found], about: Mapping[str, str]) -> Iterator[str]:
    """Errors, and what all days together cost one person."""
    shown = list(TABLES.values())
    head = ["protected", *(f"{t}, mean day" for t in shown), *(f"{t}, all days" for t in shown)]
    body = []
    for name, one in found.items():
        figures = [float(np.mean(one.daily[t])) for t in TABLES] + [one.whole[t] for t in TABLES]
        body.append([about[name], *(f"{100 * f:.1f} %" for f in figures)])
    yield markdown(head, body)
    yield ""
    yield markdown(["protected", "a day", "7 days", "all days together"], list(_costs(found, about)))


def _costs(found: Mapping[str, Found], about: Mapping[str, str]) -> Iterator[list[str]]:
    for name, one in found.items():
        if one.person is None:
            continue
        worst = {w.days: w for w in one.person.windows}
        yield [
            about[name],
            *(f"{worst[d].amount}: ({worst[d].shown}, {float(worst[d].delta):.2g})" for d in (1, 7, None)),
        ]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks opal_series", description=__doc__)
    parser.add_argument("--days", type=int, default=len(DATES), help="how many of the 14 (default all)")
    parser.add_argument("--way", nargs="+", choices=list(ways(1)), default=list(ways(1)))
    parser.add_argument("--mode", nargs="+", choices=list(LOCATIONS), default=list(LOCATIONS))
    given = parser.parse_args(argv)
    taps = opal_taps()
    true = truth(taps, DATES[: given.days], given.mode)
    size = features(true.places).universe.size
    print(f"{true.rows.num_rows // 2:,} trips in {len(true.days)} days, {size:,} types of tap\n")
    found = {"released": as_released(taps, true)}
    about = {"released": "as Opal did it: one trip on one day, (8, δ)"}
    for name in given.way:
        way = ways(len(true.days))[name]
        with tempfile.TemporaryDirectory() as folder:
            found[name] = published(true, way, Path(folder))
        about[name] = way.about
    print("\n".join(lines(found, about)))
    return 0
