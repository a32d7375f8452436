"""`cbdp check` and `cbdp init`: what a configuration means, told before anything is spent; and how one is begun."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as pacsv
from pyarrow import parquet

from cbdp.app import config, explain
from cbdp.app import init as starter
from cbdp.app import plan as planning
from cbdp.app.plan import Plan
from cbdp.errors import CbdpError, InputError
from cbdp.privacy.allocation import Facts, expected_errors, model, named
from cbdp.privacy.ledger import BudgetError, Ledger
from cbdp.privacy.unit import Person, Trip
from cbdp.trips.count import count

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("CBDP_DATA", ROOT.parent / "shared" / "data"))
BIKE = DATA / "bayarea_bike_2014"
bike = pytest.mark.skipif(
    not BIKE.is_dir(), reason=f"no bike-share data at {BIKE}: set CBDP_DATA to its folder"
)

CONFIG = """\
preset = "odmts"

[data]
trips = "trips.parquet"
id = "city"
stops = "stops.csv"
columns = { origin = "from_stop", destination = "to_stop", time = "left_at" }
expected_trips = 60000

[universe]
time = { start = "06:00", end = "10:00", every = "1h" }
zones = { column = "zone" }
modes = { distance_km = [2, 4] }

[privacy]
epsilon = 1.0
ledger = "ledger.sqlite"
cap = 2.0

[mechanism]
name = "constraint-based"

[output]
path = "release"
"""

STOPS = "id,name,lat,lon,zone\n" + "".join(
    f"S{n},Stop {n},{42 + n / 100},{-83 + n / 100},{'north' if n > 3 else 'south'}\n" for n in range(6)
)


def _table(rows: int = 50) -> Any:
    rng = np.random.default_rng(0)
    start = dt.datetime(2026, 3, 2, 6)  # noqa: DTZ001
    return pa.table(
        {
            "from_stop": [f"S{n}" for n in rng.integers(0, 6, rows)],
            "to_stop": [f"S{n}" for n in rng.integers(0, 6, rows)],
            "left_at": [start + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 240, rows)],
            "card": rng.integers(0, 9, rows),
        }
    )


@pytest.fixture
def city(tmp_path: Path) -> Path:
    """A folder with trips, stops and a configuration."""
    parquet.write_table(_table(), tmp_path / "trips.parquet")
    (tmp_path / "stops.csv").write_text(STOPS)
    (tmp_path / "cbdp.toml").write_text(CONFIG)
    return tmp_path


def _plan(folder: Path, *changes: tuple[str, str]) -> Plan:
    """The plan of the configuration with some of its text replaced."""
    text = CONFIG
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "cbdp.toml").write_text(text)
    return planning.plan(config.read(folder / "cbdp.toml"))


def _state(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file and folder, with its content and its time."""
    return {
        str(p): (hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "", p.stat().st_mtime_ns)
        for p in sorted(folder.rglob("*"))
    }


# What a configuration means


def test_a_plan_holds_what_a_release_needs(city: Path) -> None:
    """Universe, features, mechanism, account and output are those the configuration describes."""
    plan = _plan(city)
    assert plan.features.sizes == {"total": 1, "time": 4, "zone": 16, "mode": 12, "singleton": 144}
    assert plan.mechanism.claim().cost.epsilon == 1
    assert plan.unit == Trip()
    assert plan.dataset == "city"
    assert plan.output == city / "release"
    assert (plan.account.exists, plan.account.cap.epsilon, plan.account.after.epsilon) == (False, 2, 1)
    counted = count(plan.trips, plan.universe, columns=plan.columns, unit=plan.unit, clock=plan.clock)
    assert counted.value.sum() == 50


def test_the_person_may_be_named_by_role_or_by_column(city: Path) -> None:
    """`person = "person"` goes by data.columns, `person = "card"` is the column itself: the same unit."""
    unit = ("[mechanism]", 'unit = { person = "%s", max_trips = 3 }\n[mechanism]')
    role = ('left_at" }', 'left_at", person = "card" }')
    plans = [_plan(city, role, (unit[0], unit[1] % "person")), _plan(city, (unit[0], unit[1] % "card"))]
    assert [p.unit for p in plans] == [Person("card", 3)] * 2
    assert plans[0].request == plans[1].request


def test_stop_ids_follow_the_type_of_the_trips(city: Path) -> None:
    """Where trips hold numbers, the ids of the stops are numbers."""
    table = _table()
    codes = {
        f: pa.array([int(s.as_py()[1:]) for s in table[f]], pa.int16()) for f in ("from_stop", "to_stop")
    }
    parquet.write_table(pa.table({**codes, "left_at": table["left_at"]}), city / "trips.parquet")
    (city / "stops.csv").write_text(STOPS.replace("\nS", "\n"))
    plan = _plan(city)
    assert plan.universe.dimension("origin").values == (0, 1, 2, 3, 4, 5)
    assert count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock).value.sum() == 50


def test_trips_in_several_files_of_text_with_a_time_format(city: Path) -> None:
    """CSV files by list or pattern, with times like 8/29/2013 14:13, mean the same trips as one Parquet file."""
    table = _table()
    whole = _plan(city)
    stamps = [f"{t.month}/{t.day}/{t.year} {t.hour}:{t.minute:02d}" for t in table["left_at"].to_pylist()]
    text = table.set_column(2, "left_at", pa.array(stamps))
    pacsv.write_csv(text.slice(0, 20), city / "part-1.csv")
    pacsv.write_csv(text.slice(20), city / "part-2.csv")
    wanted = count(whole.trips, whole.universe, columns=whole.columns, clock=whole.clock)
    for trips in ('["part-1.csv", "part-2.csv"]', '"part-*.csv"'):
        plan = _plan(city, ('"trips.parquet"', f'{trips}\ntime_format = "%m/%d/%Y %H:%M"'))
        got = count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock)
        assert (got.index.tolist(), got.value.tolist()) == (wanted.index.tolist(), wanted.value.tolist())


def test_a_table_in_a_database_is_found_from_the_configuration(city: Path) -> None:
    """A DuckDB file is relative to the configuration, and its default name in the ledger is the table's."""
    import duckdb

    with duckdb.connect(str(city / "city.db")) as engine:
        engine.read_parquet(str(city / "trips.parquet")).create("rides")
    plan = _plan(city, ('"trips.parquet"', '"duckdb:///city.db::rides"'), ('id = "city"\n', ""))
    assert plan.dataset == "rides"
    assert count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock).value.sum() == 50


def test_periods_days_and_further_dimensions(city: Path) -> None:
    """Named periods, day types with holidays, and dimensions from a list and from a public file."""
    (city / "cards.csv").write_text("card,kind\n" + "".join(f"{n},{'a' if n else 'b'}\n" for n in range(9)))
    time = '[{ name = "late", start = "08:00", end = "10:00" }, { name = "early", start = "06:00", end = "08:00" }]'
    plan = _plan(
        city,
        ('{ start = "06:00", end = "10:00", every = "1h" }', time),
        ("expected_trips = 60000", 'holidays = { "2026-03-02" = "sunday" }'),
        (
            "[privacy]",
            """days = ["weekday", "sunday"]
            dimensions.card = { file = "cards.csv", column = "card", attributes = { kind = "kind" } }
            [[feature]]
            name = "kinds"
            by = ["card.kind", "day"]
            [privacy]""",
        ),
    )
    assert plan.universe.dimension("time").values == ("early", "late")
    assert plan.columns["day"] == "left_at"
    assert plan.features.size("kinds") == 4
    counts = count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock)
    by_day = counts.of(plan.features, "kinds").reshape(2, 2).sum(axis=0)
    assert by_day.tolist() == [0, 50]  # all trips were made on the holiday


def test_taps_need_no_origin(city: Path) -> None:
    """The stops may be another dimension than origin and destination, with the preset `opal`."""
    table = {"tap": ["on", "off"], "time": ["06:10", "07:20"], "location": ["S1", "S5"]}
    parquet.write_table(pa.table(table), city / "trips.parquet")
    plan = _plan(
        city,
        ('"odmts"', '"opal"'),
        ('columns = { origin = "from_stop", destination = "to_stop", time = "left_at" }\n', ""),
        ("modes = { distance_km = [2, 4] }", 'dimensions = { tap = ["on", "off"], location = "stops" }'),
    )
    assert plan.features.sizes == {"total": 1, "tap": 2, "time": 8, "location": 12, "singleton": 48}
    assert count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock).value.sum() == 2


@pytest.mark.parametrize(
    ("of", "rows", "modes"),
    [
        ('["origin", "destination"]', "S0,S1,bus\nS1,S0,rail\n", {"bus": 4, "rail": 4, "walk": 136}),
        ('["origin.zone", "destination.zone"]', "north,south,bus\n", {"bus": 32, "walk": 112}),
        ('["origin.zone", "time"]', "north,07:00,bus\n", {"bus": 12, "walk": 132}),
    ],
)
def test_modes_by_a_table(city: Path, of: str, rows: str, modes: dict[str, int]) -> None:
    """A public table gives modes to pairs of stops, of zones, or of a zone and a time; the rest is `otherwise`."""
    (city / "pairs.csv").write_text(",".join(re.findall(r'"(.*?)"', of)) + ",mode\n" + rows)
    plan = _plan(city, ("distance_km = [2, 4]", f'table = "pairs.csv", of = {of}, otherwise = "walk"'))
    labels = plan.universe.attribute("mode").labels
    assert dict(zip(labels, plan.universe.count_types(["mode"]).tolist(), strict=True)) == modes


def test_modes_by_a_column_are_a_dimension(city: Path) -> None:
    """Modes that only the trips know are counted like any other value."""
    parquet.write_table(
        _table().append_column("kind", pa.array(["bus", "tram"] * 25)), city / "trips.parquet"
    )
    plan = _plan(city, ("distance_km = [2, 4]", 'column = "kind", values = ["bus", "tram"]'))
    assert plan.columns["mode"] == "kind"
    counts = count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock)
    assert counts.of(plan.features, "mode").reshape(2, 4).sum(axis=1).tolist() == [25, 25]


def test_zones_by_polygon_and_by_clustering(city: Path) -> None:
    """Zones come from polygons around the stops, or from their coordinates."""
    square = "[[[-84,41],[-82,41],[-82,42.015],[-84,42.015],[-84,41]]]"
    rest = "[[[-84,42.015],[-82,42.015],[-82,43],[-84,43],[-84,42.015]]]"
    polygons = ",".join(
        f'{{"type":"Feature","properties":{{"zone":"{z}"}},"geometry":{{"type":"Polygon","coordinates":{c}}}}}'
        for z, c in (("low", square), ("high", rest))
    )
    (city / "zones.geojson").write_text(f'{{"type":"FeatureCollection","features":[{polygons}]}}')
    by_polygon = _plan(city, ('{ column = "zone" }', '{ polygons = "zones.geojson" }')).stops
    assert by_polygon is not None
    assert by_polygon.zone == ("low", "low", "high", "high", "high", "high")
    clustered = _plan(city, ('{ column = "zone" }', "{ clusters = 3 }")).stops
    assert clustered is not None
    assert clustered.zone == ("Z03", "Z03", "Z02", "Z02", "Z01", "Z01")


def test_delta_is_that_of_the_whole_release(city: Path) -> None:
    """A mechanism that needs δ for each table shares the one stated for all."""
    plan = _plan(
        city, ('"constraint-based"', '"stability-histogram"'), ("cap = 2.0", "cap = 2.0\ndelta = 1e-6")
    )
    assert plan.mechanism.claim().cost.delta == Fraction(1, 10**6)
    assert plan.account.charge.delta == Fraction(1, 10**6)


# What is wrong: replacements, the line, what is said
MODES = "modes = { distance_km = [2, 4] }"
WRONG = [
    ([('"trips.parquet"', '"none.parquet"')], 4, "there is no file"),
    ([('"trips.parquet"', '"broken.parquet"')], 4, "cannot be read as Parquet"),
    ([('"trips.parquet"', '"stops.txt"')], 4, "there is no file"),
    ([('"trips.parquet"', '["trips.parquet", "other.parquet"]')], 4, "column 'from_stop' holds int64 values"),
    ([('"trips.parquet"', '["trips.parquet", "duckdb://x::t"]')], 4, "lists a URL among others"),
    ([('"stops.csv"', '"none.csv"')], 6, "there is no file"),
    ([('"stops.csv"', '"twice.csv"')], 6, "the stop 'S0' stands twice"),
    ([('stops = "stops.csv"', 'stops = "stops.csv"\nstop_columns = { id = "key" }')], 6, "has no column 'key'"),
    ([('stops = "stops.csv"\n', "")], 11, "universe.zones needs stops"),
    ([('"from_stop"', '"form_stop"')], 7, "the trips have no column 'form_stop': there are from_stop"),
    ([('"to_stop"', '"from_stop"')], 7, "origin and destination are the same column"),
    ([("columns = { origin", "columns = { orign")], 7, "names 'orign', which is no dimension: did you mean 'origin'?"),
    ([('"left_at"', '"card"')], 7, "column 'card' holds int64 values"),
    ([('"from_stop"', '"left_at"')], 7, "column 'left_at' holds timestamp[us] values, the dimension text"),
    ([("expected_trips = 60000", 'timezone = "Mars/Base"')], 8, "unknown time zone 'Mars/Base'"),
    ([("expected_trips = 60000", 'time_format = "%Q"')], 8, "the time format '%Q' cannot be read"),
    ([('every = "1h"', 'every = "45min"')], 11, "'45min' does not divide the time"),
    ([('start = "06:00"', 'start = "11:00"')], 11, "not after their start '11:00'"),
    ([('end = "10:00"', 'end = "24:30"')], 11, "'24:30' is not a time of day"),
    ([('zones = { column = "zone" }', 'zones = { column = "district" }')], 6, "has no column 'district'"),
    ([('zones = { column = "zone" }', 'zones = { polygons = "none.geojson" }')], 12, "there is no file"),
    ([('zones = { column = "zone" }', "zones = { clusters = 99 }")], 12, "99 zones of stops at 6 places"),
    ([(MODES, "modes = { distance_km = [4, 2] }")], 13, "give distances above 0 that rise"),
    ([(MODES, 'modes = { table = "none.csv" }')], 13, "there is no file"),
    ([(MODES, 'modes = { table = "pairs.csv" }')], 13, "row 3 of 'pairs.csv' has the unknown destination 'S9'"),
    ([(MODES, 'modes = { table = "pairs.csv", of = ["origin.zon", "destination"] }')], 13, "did you mean 'origin.zone'?"),
    ([(MODES, 'modes = { table = "zones.csv", of = ["origin.zone", "destination.zone"] }')], 13,
     "row 2 of 'zones.csv' has the unknown zone 'nort': did you mean 'north'?"),
    ([(MODES, 'modes = { table = "few.csv" }')], 13, "no value for 'S0', 'S0'"),
    ([(MODES, 'dimensions = { time = ["a"] }')], 13, "the dimension 'time' is there already"),
    ([(MODES, 'dimensions = { card = { file = "stops.csv", column = "x" } }')], 13, "has no column 'x'"),
    ([(MODES, 'dimensions = { card = { file = "stops.csv", column = "id" } }')], 13, "the trips hold numbers"),
    ([(MODES, 'dimensions = { card = ["a", "a"] }')], 13, "the value 'a' stands twice"),
    ([(MODES, 'days = ["weekday", "sunnday"]')], 13, "'sunnday' is no type of day: did you mean 'sunday'?"),
    ([(MODES, 'days = { first = "2026-03-09", last = "2026-03-02" }')], 13, "before their start"),
    ([('time = { start = "06:00", end = "10:00", every = "1h" }\n', "")], 7, "which is no dimension: say universe.time"),
    ([('time = { start = "06:00", end = "10:00", every = "1h" }\n', ""), (', time = "left_at"', "")], 1,
     "'odmts' needs the dimension 'time'"),
    ([("[privacy]", '[[feature]]\nname = "x"\nby = ["origin.zone",\n "tme"]\n[privacy]')], 18,
     "the feature 'x' groups by 'tme', which is no attribute: did you mean 'time'?"),
    ([("[privacy]", '[[feature]]\nname = "zone"\nby = ["time"]\n[privacy]')], 16, "'zone' is there already"),
    ([("[privacy]", '[[feature]]\nname = "a/b"\nby = ["time"]\n[privacy]')], 15, "cannot be named 'a/b'"),
    ([("[privacy]", '[[feature]]\nname = "total"\nby = ["time"]\n[privacy]')], 16, "'total' is there already"),
    ([("cap = 2.0", 'unit = { person = "carrd", max_trips = 2 }')], 18, "no column 'carrd'"),
    ([("cap = 2.0", "delta = 0.001")], 18, "constraint-based spends no δ"),
    ([("cap = 2.0", "budget = { total = 0.5, tiem = 0.5 }")], 18, "names 'tiem', which is no feature: did you mean 'time'?"),
    ([("cap = 2.0", "budget = { total = 0.5, time = 0.5 }")], 18, "no budget for"),
    ([("cap = 2.0", "budget = { total = 1, time = 1, zone = 1, mode = 1, singleton = 1 }")], 18, "add up to 5, more than"),
    ([("cap = 2.0", "cap = 0.5")], 16, "a charge of 1 does not fit: 0.5 of the cap 0.5 is left for data set 'city'"),
    ([("cap = 2.0", "cap_delta = 0.5")], 15, "without a cap"),
    ([('"ledger.sqlite"', '"no/ledger.sqlite"')], 17, "there is no folder"),
    ([('"ledger.sqlite"', '"stops.csv"')], 17, "stops.csv"),
    ([('"constraint-based"', '"laplace"\nweights = "size"')], 22, "laplace has no setting 'weights'"),
    ([('"constraint-based"', '"laplace"'), ("cap = 2.0", 'budget = "uniform"')], 18, "no budget to share"),
    ([('"constraint-based"', '"stability-histogram"')], 15, "pays with δ: give a delta above 0"),
    ([('"constraint-based"', '"constraint-based"\nsolver = "newtn"')], 22, "unknown solver 'newtn'"),
    ([('"constraint-based"', '"constraint-based"\nmeasured = ["total"]')], 22, "'singleton' is not measured"),
    ([('"constraint-based"', '"constraint-based"\nmeasured = ["singleton",\n"zones"]')], 23, "did you mean 'zone'?"),
    ([('"constraint-based"', '"constraint-based"\nweights = { zon = 1 }')], 22, "names 'zon', which is no feature"),
    ([('"constraint-based"', '"constraint-based"\nweights = "size"\nestimator = "posterior"')], 20,
     "weights 'size' with estimator 'posterior', which weighs by inverse variance: leave weights out"),
    ([('"constraint-based"', '"constraint-based"\nprior = "stops.csv"')], 22, "holds no weights"),
    ([('"constraint-based"', '"constraint-based"\npreset = "paper"\nprior = "even.csv"')], 20, "a prior with estimator 'projection'"),
    ([("cap = 2.0", 'budget = "optimal"')], 18, "budget 'optimal' without a target"),
    ([("cap = 2.0", 'budget = "tables"\ntarget = { zone = 1 }')], 19, "a target with budget 'tables'"),
    ([("cap = 2.0", "target = { zone = 1, mod = 2 }")], 18, "privacy.target names 'mod', which is no feature: did you mean 'mode'?"),
    ([("cap = 2.0", "target = {}")], 18, "say how much features matter"),
    ([('"constraint-based"', '"hierarchical"'), ("cap = 2.0", "target = { zone = 1 }")], 18, "hierarchical shares ε by no target"),
    ([('"constraint-based"', '"stability-histogram"'), ("cap = 2.0", 'delta = "1e-400"')], 20, "too small to compute with"),
    ([('"constraint-based"', '"stability-histogram"\ntables = ["zone", "zone"]'), ("cap = 2.0", "delta = 1e-6")], 20,
     "feature 'zone' is listed twice"),
    ([(MODES, 'modes = { table = "empty.csv" }')], 13, "row 2 of 'empty.csv' has no mode"),
    ([('"release"', '"stops.csv"')], 24, "exists already"),
    ([('"release"', '"no/release"')], 24, "there is no folder"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "line", "said"), WRONG, ids=[w[2][:40] for w in WRONG])
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    city: Path, changes: list[tuple[str, str]], line: int, said: str
) -> None:
    """Each mistake is told with file and line, and no file, folder or ledger appears or changes."""
    (city / "broken.parquet").write_bytes(b"PAR1 this is not whole")
    parquet.write_table(
        pa.table({"from_stop": [1], "to_stop": ["S1"], "left_at": [None]}), city / "other.parquet"
    )
    (city / "twice.csv").write_text("id,lat,lon,zone\nS0,42,-83,a\nS0,42,-83,a\n")
    (city / "pairs.csv").write_text("origin,destination,mode\nS0,S1,bus\nS0,S9,bus\n")
    (city / "zones.csv").write_text("origin.zone,destination.zone,mode\nnort,south,bus\n")
    (city / "empty.csv").write_text("origin,destination,mode\nS0,S1,\n")
    (city / "even.csv").write_text("stop,weight\n" + "".join(f"S{n},1\n" for n in range(6)))
    (city / "few.csv").write_text("origin,destination,mode\nS0,S1,bus\n")
    text = CONFIG
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (city / "cbdp.toml").write_text(text)
    before = _state(city)
    with pytest.raises(CbdpError) as caught:
        planning.plan(config.read(city / "cbdp.toml"))
    message = str(caught.value)
    assert said in message
    assert message.startswith(f"{city / 'cbdp.toml'}:{line}: ")
    assert message.count(str(city / "cbdp.toml")) == 1
    assert "\n" not in message
    assert _state(city) == before


def test_periods_that_overlap_or_leave_a_gap(city: Path) -> None:
    """Both are told at the line of the later period."""
    time = 'time = [\n  { name = "a", start = "06:00", end = "%s" },\n  { name = "b", start = "%s", end = "10:00" },\n]'
    old = 'time = { start = "06:00", end = "10:00", every = "1h" }'
    for ends, starts, said in (
        ("08:30", "08:00", r":13: the periods 'a' \(to 08:30\) and 'b' \(from 08:00\) overlap"),
        (
            "07:00",
            "08:00",
            r":13: there is a gap between the periods 'a' \(to 07:00\) and 'b' \(from 08:00\)",
        ),
        ("06:00", "06:00", r":12: the period 'a' ends at 06:00, which is not after its start"),
    ):
        with pytest.raises(InputError, match=said):
            _plan(city, (old, time % (ends, starts)))


def test_no_row_is_read(city: Path) -> None:
    """Trips whose rows cannot be read at all are planned and explained as if they could."""
    wanted = explain.explain(_plan(city)).text
    whole = (city / "trips.parquet").read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    (city / "trips.parquet").write_bytes(b"PAR1" + b"\xff" * (len(whole) - footer - 4) + whole[-footer:])
    assert explain.explain(_plan(city)).text == wanted
    with pytest.raises(InputError):
        count(str(city / "trips.parquet"), _plan(city).universe, columns=_plan(city).columns)
    (city / "trips.csv").write_text('from_stop,to_stop,left_at\n"S0,S1\nS2,,,,,\n')
    assert (
        explain.explain(_plan(city, ("trips.parquet", "trips.csv"))).noise
        == explain.explain(_plan(city)).noise
    )


# The ledger, only read


def test_a_ledger_of_another_data_set_is_refused(city: Path) -> None:
    """The line is that of the data set's name, or of the ledger where none is stated."""
    Ledger.open(city / "ledger.sqlite", dataset="village", cap=2, create=True).close()
    before = _state(city)
    with pytest.raises(InputError, match=r":5: the ledger .* is of data set 'village', not 'city'"):
        _plan(city)
    with pytest.raises(
        InputError, match=r":16: the ledger .* is of data set 'village', not 'trips\.parquet'"
    ):
        _plan(city, ('id = "city"\n', ""))
    (city / "cbdp.toml").write_text(CONFIG)
    assert set(_state(city)) == set(before)


def test_what_is_left_decides(city: Path) -> None:
    """ε over what is left is refused before anything is spent; what fits is shown with what stays."""
    with Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True) as ledger:
        ledger.reserve("another request", "1.25")
    with pytest.raises(BudgetError, match=r":16: a charge of 1 does not fit: 0\.75 of the cap 2 is left"):
        _plan(city)
    plan = _plan(city, ("epsilon = 1.0", "epsilon = 0.5"))
    assert (plan.account.spent.epsilon, plan.account.after.epsilon) == (Fraction(5, 4), Fraction(1, 4))
    assert "cap 2, spent 1.25, this release 0.5, left after it 0.25" in explain.explain(plan).text
    with pytest.raises(InputError, match=r":18: the ledger's cap is 2, not 3: it is fixed at creation"):
        _plan(city, ("cap = 2.0", "cap = 3.0"), ("epsilon = 1.0", "epsilon = 0.5"))
    with Ledger.view(city / "ledger.sqlite") as ledger:
        assert ledger.spent.epsilon == Fraction(5, 4)


def test_an_identical_request_that_was_released_costs_nothing(city: Path) -> None:
    """Neither the cap nor its own folder stand in its way, and the text says that it is returned."""
    request = _plan(city).request
    with Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True) as ledger:
        ledger.released(ledger.reserve(request, 1), "0" * 64, city / "release")
        ledger.reserve("another request", 1)
    (city / "release").mkdir()
    plan = _plan(city)
    assert plan.account.finished is not None
    assert plan.account.after.epsilon == 0
    assert "it is returned, nothing is spent" in " ".join(explain.explain(plan).text.split())
    with pytest.raises(BudgetError):
        _plan(city, ("epsilon = 1.0", "epsilon = 0.9"))


def test_an_interrupted_request_is_told(city: Path) -> None:
    """A charge without a release is a warning, and its folder is left for the release to look at."""
    request = _plan(city).request
    with Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True) as ledger:
        ledger.reserve(request, 1)
    (city / "release").mkdir()
    assert any("charged and never released" in w for w in explain.explain(_plan(city)).warnings)


def test_a_broken_ledger_is_told_with_its_line(city: Path) -> None:
    """A chain that does not verify stops the check."""
    import sqlite3
    from contextlib import closing

    Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True).close()
    with closing(sqlite3.connect(city / "ledger.sqlite")) as raw:
        raw.execute("DROP TRIGGER no_update")
        raw.execute("UPDATE entry SET hash = ?", ("f" * 64,))
        raw.commit()
    with pytest.raises(CbdpError, match=r"cbdp\.toml:17: .*broken"):
        _plan(city)


# The request


def test_identical_requests_have_one_hash(city: Path) -> None:
    """Spelling, place, confidence and exports do not matter: to change them must not cost ε again."""
    request = _plan(city).request
    every = 'measured = ["singleton", "mode", "zone", "time", "total"]'
    shares = "budget = { total = 0.15, time = 0.15, zone = 0.15, mode = 0.15, singleton = 0.4 }"
    for changes in (
        [("epsilon = 1.0", 'epsilon = "2/2"')],
        [("cap = 2.0", f"cap = 2.0\n{shares}")],
        [("cap = 2.0", 'cap = 2.0\nbudget = "balanced"')],
        [('"release"', '"elsewhere"\nconfidence = 0.5\nexport = ["csv"]')],
        [("expected_trips = 60000", "")],
        [('name = "constraint-based"', f'preset = "best"\nestimator = "posterior"\n{every}')],
    ):
        assert _plan(city, *changes).request == request
    paper = _plan(city, ('name = "constraint-based"', 'preset = "paper"')).request
    spelt = 'weights = "size"\nestimator = "projection"\n' + every
    assert (
        _plan(
            city, ("cap = 2.0", 'cap = 2.0\nbudget = "uniform"'), ('name = "constraint-based"', spelt)
        ).request
        == paper
    )
    assert paper != request


def test_requests_that_differ_have_other_hashes(city: Path) -> None:
    """Whatever changes what is released changes the hash."""
    for name, last in (("even", 1), ("uneven", 2)):
        rows = [f"S{n},{last if n == 5 else 1}" for n in range(6)]
        (city / f"{name}.csv").write_text("\n".join(["stop,weight", *rows]) + "\n")
    hashes = {_plan(city).request}
    changes: list[tuple[str, str]] = [
        ("epsilon = 1.0", "epsilon = 1.5"),
        ('id = "city"', 'id = "town"'),
        ('every = "1h"', 'every = "2h"'),
        ("[2, 4]", "[2, 3]"),
        ("zones = {", "origin_is_destination = false\nzones = {"),
        ('{ column = "zone" }', "{ clusters = 2 }"),
        ("[privacy]", '[[feature]]\nname = "o"\nby = "origin"\n[privacy]'),
        ("cap = 2.0", 'cap = 2.0\nbudget = "geometric"'),
        ("cap = 2.0", 'cap = 2.0\nbudget = "leaves"'),
        ("cap = 2.0", "cap = 2.0\ntarget = { zone = 1, singleton = 1 }"),
        ("cap = 2.0", "cap = 2.0\ntarget = { zone = 9, singleton = 1 }"),
        ('"constraint-based"', '"constraint-based"\npreset = "paper"'),
        ('"constraint-based"', '"constraint-based"\nestimator = "projection"'),
        ('"constraint-based"', '"constraint-based"\nprior = "even.csv"'),
        ('"constraint-based"', '"constraint-based"\nprior = "uneven.csv"'),
        ("cap = 2.0", 'cap = 2.0\nunit = { trip = "replace" }'),
        ("cap = 2.0", 'cap = 2.0\nunit = { person = "card", max_trips = 1 }'),
        ('"constraint-based"', '"constraint-based"\nweights = "uniform"'),
        ('"constraint-based"', '"hierarchical"'),
        ("expected_trips = 60000", 'timezone = "America/Detroit"'),
        ('origin = "from_stop", destination = "to_stop"', 'origin = "to_stop", destination = "from_stop"'),
    ]
    for change in changes:
        hashes.add(_plan(city, change).request)
    assert len(hashes) == 1 + len(changes)


# What is said


def _tail(scale: float, k: int) -> float:
    """P(|Z| > k) of two-sided geometric noise, summed term by term."""
    z = np.arange(-4000, 4001)
    weight = np.exp(-np.abs(z) / scale)
    return float(weight[np.abs(z) > k].sum() / weight.sum())


def test_noise_by_table_is_that_of_its_law(city: Path) -> None:
    """Scale is Δ/ε_i, the half width the least that holds often enough, the relative noise a part of the mean count."""
    plan = _plan(
        city,
        ("cap = 2.0", 'cap = 2.0\nunit = { person = "card", max_trips = 3 }'),
        ('"constraint-based"', '"constraint-based"\npreset = "paper"'),
    )
    told = explain.explain(plan)
    assert [n.feature for n in told.noise] == ["total", "time", "mode", "zone", "singleton"]
    for n in told.noise:
        assert n.scale == 3 / n.epsilon == 15
        assert _tail(15, n.half_width) <= 0.1 < _tail(15, n.half_width - 1)
        assert n.expected == Fraction(60000, n.elements)
        assert n.relative == pytest.approx(n.half_width * n.elements / 60000)


@pytest.mark.parametrize(
    ("feature", "relative"), [("zone", "1/100"), ("singleton", "1/10"), ("total", "1e-5")]
)
def test_epsilon_for_a_wanted_precision_is_the_least(city: Path, feature: str, relative: str) -> None:
    """At the ε found the noise is within the part asked for, and at one unit of its last digit less it is not."""
    plan = _plan(city, ("cap = 2.0", 'cap = 2.0\nbudget = "geometric"'))
    found = explain.epsilon_for(plan, feature, relative, 0.9)
    allowed = int(Fraction(relative) * 60000 / plan.features.size(feature))
    share = float(next(n.epsilon for n in explain.noise(plan) if n.feature == feature))
    step = 10.0 ** (np.floor(np.log10(float(found))) - 2)
    assert _tail(1 / (share * float(found)), allowed) <= 0.1
    assert _tail(1 / (share * (float(found) - step)), allowed) > 0.1
    assert f"{float(found):.3g}" == f"{float(found):.10g}"  # three digits, no more


def test_epsilon_for_asks_for_what_it_needs(city: Path) -> None:
    """A misspelt feature and an unknown number of trips are told."""
    with pytest.raises(InputError, match="'zones' is not measured: did you mean 'zone'"):
        explain.epsilon_for(_plan(city), "zones", 0.1)
    plan = _plan(city, ("expected_trips = 60000", ""))
    with pytest.raises(InputError, match=r"data\.expected_trips"):
        explain.epsilon_for(plan, "zone", 0.1)
    assert explain.epsilon_for(plan, "zone", 0.1, expected_trips=60000) > 0


def test_epsilon_for_a_budget_that_gives_tables_enough(city: Path) -> None:
    """With "leaves" the tables' part stops growing: a leaf's ε is found, and of a table it is said that none meets the wish."""
    plan = _plan(city, ("cap = 2.0", 'cap = 2.0\nbudget = "leaves"'))
    found = explain.epsilon_for(plan, "singleton", "1/200", 0.9)
    allowed = int(Fraction(1, 200) * 60000 / plan.features.size("singleton"))
    assert _tail(1 / (float(found) - 0.02), allowed) <= 0.1
    with pytest.raises(InputError, match=r"does not get within 0\.01 % by any ε: use budget 'balanced'"):
        explain.epsilon_for(plan, "zone", "1/10000", 0.9)


def test_the_answer_states_what_it_rests_on(city: Path) -> None:
    """A wish in per cent is answered in one sentence, with the confidence and the law it is worked out by."""
    said = explain.answer(_plan(city), "zone", "10 %")
    found = explain.epsilon_for(_plan(city), "zone", "1/10")
    assert f"ε of the whole release must be at least {float(found):g}" in said
    assert "within 10 % (375 of 3,750 trips on average)" in said
    assert "90 % confidence" in said
    assert "before post-processing" in said
    with pytest.raises(InputError, match="'ten'"):
        explain.answer(_plan(city), "zone", "ten")


def test_wishes_are_answered_together_or_not_at_all(city: Path) -> None:
    """Each wish of the command line has its sentence; one that is wrong is refused with its value."""
    plan = _plan(city)
    assert explain.answers(plan, ["zone=5", "total=1"]) == [
        explain.answer(plan, "zone", "5"),
        explain.answer(plan, "total", "1"),
    ]
    for wrong, said in (("zone=abc", "'abc'"), ("zone", "like zone=5"), ("zones=5", "did you mean 'zone'")):
        with pytest.raises(InputError, match=said):
            explain.answers(plan, ["zone=5", wrong])


def test_the_text_says_what_matters(city: Path) -> None:
    """Size, DAG twice, ε by feature, account, files and the reassurance at the end."""
    paper = ('"constraint-based"', '"constraint-based"\npreset = "paper"')
    told = explain.explain(_plan(city, paper, ('"release"', '"release"\nexport = ["omx"]')))
    for part in (
        "6 origin × 6 destination × 4 time: 144 trip types",
        "at most a factor e^1 = 2.72",
        "5 features × 1/5, same data: 1",
        "graph TD",
        "cap 2, spent 0, this release 1, left after it 1",
        "features/zone.parquet",
        "and beside it release-omx",
        "Nothing was spent, nothing was written, and no row of the trips was read.",
    ):
        assert part in " ".join(told.text.split())
    assert told.tree in "\n".join(line[2:] for line in told.text.split("\n"))
    assert told.warnings == ()


def test_noisy_tables_are_warned_of(city: Path) -> None:
    """Above the stated bound there is a warning with the ε that would be needed; without trips there is none."""
    few = ("expected_trips = 60000", "expected_trips = 1200")
    told = explain.explain(_plan(city, few))
    [warning] = told.warnings
    assert warning.startswith("singleton: expected relative noise 72 % is above the bound of 50 %")
    needed = explain.epsilon_for(_plan(city, few), "singleton", 0.5)
    assert f"ε would have to be {float(needed):g}," in warning
    assert explain.explain(_plan(city, few, ('"release"', '"release"\nnoise_bound = 0.8'))).warnings == ()
    silent = explain.explain(_plan(city, ("expected_trips = 60000", "")))
    assert silent.warnings == ()
    assert "Relative noise is not known" in silent.text
    assert all(n.relative is None for n in silent.noise)


def test_choices_of_a_budget_are_shown_with_their_errors(city: Path) -> None:
    """By the model each table's error is told for each budget; what serves a table makes it better than what does not."""
    told = explain.explain(_plan(city))
    assert list(told.choices) == ["balanced", "leaves", "tables", "uniform"]
    made = told.choices
    assert made["leaves"]["singleton"] < made["balanced"]["singleton"] < made["tables"]["singleton"]
    assert made["tables"]["total"] < made["balanced"]["total"] < made["leaves"]["total"]
    facts = Facts(1, 60000)
    split = named(["total", "time", "mode", "zone", "singleton"], Fraction(1), "tables")
    assert made["tables"] == pytest.approx(expected_errors(_plan(city).features, split, facts))
    lines = [line.split() for line in told.text.split("\n")]
    shown = {line[0]: line[-5:] for line in lines if line and line[0] in made}
    order = list(_plan(city).features.features)
    for name, errors in made.items():
        assert shown[name] == [f"{errors[f]:,.3g}" for f in order]
    assert explain.explain(_plan(city, ('"constraint-based"', '"laplace"'))).choices == {}


def test_a_target_is_the_best_choice_for_itself(city: Path) -> None:
    """Configured by a target, ε is shared so that its loss is below that of every named budget; `check` states the target."""
    plan = _plan(city, ("cap = 2.0", "cap = 2.0\ntarget = { zone = 2, singleton = 1 }"))
    told = explain.explain(plan)
    assert next(iter(told.choices)) == "optimal"
    assert "worked out for the target zone 2, singleton 1" in told.text
    alone = model(plan.features, ["singleton"], Fraction(1), Facts(1, 60000)).alone()
    best = dict(zip(plan.features.features, alone, strict=True))
    loss = {
        name: sum(w * errors[f] ** 2 / best[f] for f, w in (("zone", 2), ("singleton", 1)))
        for name, errors in told.choices.items()
    }
    assert loss["optimal"] == min(loss.values())
    share = next(n.epsilon for n in told.noise if n.feature == "zone")
    assert explain.epsilon_for(plan, "zone", "1/100") < explain.epsilon_for(_plan(city), "zone", "1/100")
    assert share > Fraction(3, 20)


def test_a_target_that_names_a_further_feature_adds_it(city: Path) -> None:
    """With the preset `odmts`, tables of single stops are there when the target asks for them; a declared one stays."""
    plan = _plan(city, ("cap = 2.0", "cap = 2.0\ntarget = { origin-time = 1, singleton = 1 }"))
    assert plan.features.features["origin-time"].by == ("origin", "time")
    own = ("[privacy]", '[[feature]]\nname = "origin-time"\nby = ["time", "origin.zone"]\n[privacy]')
    declared = _plan(city, own, ("cap = 2.0", "cap = 2.0\ntarget = { origin-time = 1 }"))
    assert declared.features.features["origin-time"].by == ("time", "origin.zone")


def test_a_prior_by_stop_is_a_product_of_both_ends(city: Path) -> None:
    """A weight for each stop counts at the origin and at the destination; the file's hash goes with it."""
    text = "stop,weight\n" + "".join(f"S{n},{n + 1}\n" for n in range(6))
    (city / "w.csv").write_text(text)
    plan = _plan(city, ('"constraint-based"', '"constraint-based"\nprior = "w.csv"'))
    made: Any = plan.mechanism
    by = np.arange(1.0, 7.0)
    wanted = np.broadcast_to((by[:, None] * by)[:, :, None], (6, 6, 4))
    assert made.prior.tolist() == wanted.reshape(-1).tolist()
    assert made.prior_source == {"file": "w.csv", "sha256": hashlib.sha256(text.encode()).hexdigest()}
    assert made.estimator == "posterior"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_prior_by_dimensions(city: Path, kind: str) -> None:
    """Weights by some of the dimensions hold for all types of those values; what is not listed weighs nothing."""
    table = pa.table({"time": ["06:00", "08:00"], "destination": ["S1", "S1"], "weight": [2.0, 0.5]})
    (pacsv.write_csv if kind == "csv" else parquet.write_table)(table, city / f"w.{kind}")
    plan = _plan(city, ('"constraint-based"', f'"constraint-based"\nprior = "w.{kind}"'))
    made: Any = plan.mechanism
    prior = made.prior.reshape(6, 6, 4)
    assert (prior[:, 1, 0] == 2).all()
    assert (prior[:, 1, 2] == 0.5).all()
    assert prior.sum() == 6 * 2.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stop,weight\nS0,1\n", "has no weight for the stop 'S1'"),
        ("stop,weight\nS9,1\n", "row 2 of 'w.csv' has the unknown stop 'S9'"),
        ("time,weight\n06:00,1\n06:00,2\n", "row 3 of 'w.csv' gives a second weight to 06:00"),
        ("time,weight\n06:00,-1\n", "row 2 of 'w.csv' has the weight '-1'"),
        ("time,weight\n06:00,nan\n", "has the weight 'nan'"),
        ("time,weight\n06:00,lots\n", "has the weight 'lots'"),
        ("time,weight\n06:00,0\n", "all weights of 'w.csv' are 0"),
        ("tiem,weight\n06:00,0\n", "the column 'tiem' of 'w.csv' is no dimension: did you mean 'time'?"),
        ("time,wait\n06:00,0\n", "holds no weights: give a column 'weight'"),
        ("weight\n1\n", "holds no weights"),
        ("", "is not a CSV file"),
        (None, "there is no file"),
    ],
)
def test_a_wrong_prior_is_one_line(city: Path, text: str | None, said: str) -> None:
    """The file is public: its row and value are told, at the line of the setting."""
    if text is not None:
        (city / "w.csv").write_text(text)
    with pytest.raises(InputError, match=r"cbdp\.toml:22: ") as caught:
        _plan(city, ('"constraint-based"', '"constraint-based"\nprior = "w.csv"'))
    assert said in str(caught.value)


def test_a_cap_that_was_not_stated_is_warned_of(city: Path) -> None:
    """The ledger would take ε as its cap, also where ε is no round number."""
    plan = _plan(city, ("cap = 2.0\n", ""), ("epsilon = 1.0", 'epsilon = "1/3"'))
    assert plan.account.after.nano == 0
    assert any("cap of 0.333333334" in w for w in explain.explain(plan).warnings)


def test_mechanisms_are_explained_as_they_are(city: Path) -> None:
    """A mechanism that promises nothing says so; one that measures once has noise on trip types only."""
    skipped = explain.explain(_plan(city, ('"constraint-based"', '"threshold-laplace"')))
    assert any("not differentially private" in w for w in skipped.warnings)
    once = explain.explain(_plan(city, ('"constraint-based"', '"laplace"')))
    assert [n.feature for n in once.noise] == ["singleton"]
    assert once.unmeasured == ("total", "time", "zone", "mode")
    tree = explain.explain(_plan(city, ('"constraint-based"', '"hierarchical"')))
    assert sum(n.epsilon for n in tree.noise) == 1
    assert {n.feature for n in tree.noise} == {"time", "zone", "mode", "singleton"}


# How a configuration is begun


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        (
            "Trip ID,Start Date,Start Station,Start Terminal,End Date,End Station,End Terminal,Bike #,Zip Code",
            {"origin": "Start Terminal", "destination": "End Terminal", "time": "Start Date"},
        ),
        (
            "ride_id,started_at,ended_at,start_station_name,start_station_id,end_station_id,start_lat,member_casual",
            {"origin": "start_station_id", "destination": "end_station_id", "time": "started_at"},
        ),
        (
            "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID,DOLocationID",
            {"origin": "PULocationID", "destination": "DOLocationID", "time": "tpep_pickup_datetime"},
        ),
        (
            "start_stop,end_stop,start_time,card_id",
            {"origin": "start_stop", "destination": "end_stop", "time": "start_time", "person": "card_id"},
        ),
        ("o;d;t", {"origin": "o", "destination": "d"}),
    ],
)
def test_columns_are_guessed_by_their_names(tmp_path: Path, header: str, columns: dict[str, str]) -> None:
    """Headers of well-known trip files find their roles."""
    (tmp_path / "t.csv").write_text(header + "\n")
    assert dict(starter.guess([str(tmp_path / "t.csv")]).columns) == columns


def test_init_then_check(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configuration written for generated files is accepted as it stands, seen from any folder."""
    monkeypatch.chdir(city.parent)
    (city / "sub").mkdir()
    file = starter.write(city / "sub" / "new.toml", f"{city.name}/trips.parquet", f"{city.name}/stops.csv")
    assert 'trips = "../trips.parquet"' in file.read_text()
    plan = planning.plan(config.read(file))
    assert plan.features.sizes == {"total": 1, "time": 24, "zone": 96, "singleton": 864}
    assert count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock).value.sum() == 50
    assert explain.explain(plan).warnings == ()
    with pytest.raises(InputError, match="exists already"):
        starter.write(file, city / "trips.parquet", city / "stops.csv")


def test_init_reads_no_row(city: Path) -> None:
    """The text is the same whatever the rows hold, and a first line that is a row is not repeated."""
    (city / "a.csv").write_text("from_stop,to_stop,left_at\nS1,S2,2026-03-02 06:00\n")
    wanted = starter.starter(city / "a.csv", city / "stops.csv")
    (city / "a.csv").write_text('from_stop,to_stop,left_at\n"""secret,,,\n')
    assert starter.starter(city / "a.csv", city / "stops.csv") == wanted
    (city / "a.csv").write_text("Anna,S1,2026-03-02 06:00\n")
    with pytest.raises(InputError, match="does not look like names") as caught:
        starter.starter(city / "a.csv", city / "stops.csv")
    assert "Anna" not in str(caught.value)


def test_init_without_stops_says_what_to_edit(city: Path) -> None:
    """What cannot be guessed is marked, and `check` points at that very line."""
    parquet.write_table(pa.table({"a": ["x"], "b": ["y"]}), city / "odd.parquet")
    file = starter.write(city / "odd.toml", city / "odd.parquet", city / "stops.csv")
    line = next(n for n, text in enumerate(file.read_text().split("\n"), 1) if "EDIT: the column" in text)
    with pytest.raises(InputError, match=rf"odd\.toml:{line}: "):
        planning.plan(config.read(file))
    file = starter.write(city / "bare.toml", city / "trips.parquet")
    (city / "stops.csv").unlink()
    line = next(n for n, text in enumerate(file.read_text().split("\n"), 1) if "EDIT: a public list" in text)
    with pytest.raises(InputError, match=rf"bare\.toml:{line}: there is no file"):
        planning.plan(config.read(file))


def test_init_knows_stops_of_all_kinds(city: Path) -> None:
    """Zones come from a column that groups the stops, else from coordinates; GTFS needs no names."""
    (city / "s.csv").write_text(
        STOPS.replace("id,name,lat,lon,zone", "station_id,title,latitude,long,landmark")
    )
    text = starter.starter(city / "trips.parquet", city / "s.csv")
    assert 'stop_columns = { id = "station_id", lat = "latitude", lon = "long" }' in text
    assert 'zones = { column = "landmark" }' in text
    (city / "stops.txt").write_text("stop_id,stop_name,stop_lat,stop_lon\nS0,a,42,-83\nS1,b,42.1,-83\n")
    file = starter.write(city / "gtfs.toml", city / "trips.parquet", city / "stops.txt")
    plan = planning.plan(config.read(file))
    assert plan.stops is not None
    assert plan.stops.zone == ("Z01", "Z01")


@bike
def test_init_then_check_on_real_bike_trips(tmp_path: Path) -> None:
    """On the bike-share data the configuration written is accepted as it stands, with the cities as zones."""
    file = starter.write(tmp_path / "bike.toml", BIKE / "trips.parquet", BIKE / "stations.csv")
    plan = planning.plan(config.read(file))
    told = explain.explain(plan)
    assert told.dataset == "bayarea_bike_2014"
    assert told.dimensions == {"origin": 70, "destination": 70, "time": 24}
    assert plan.features.sizes["zone"] == 5 * 5 * 24
    counts = count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock)
    assert counts.value.sum() == 326_339
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bike.toml"]
