"""`cbdp fleet`: what it prints is what the engine finds, raw trips are marked, and bad input is one line."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cbdp
from cbdp.app import cli
from cbdp.app.fleet import city_of, compare, fleet_for, read, riders_of, size
from cbdp.app.fleet import place as placed
from cbdp.errors import InputError
from cbdp.text import INTERNAL_WARNING
from cbdp.transit import (
    Fleet,
    ModeRule,
    SearchSizer,
    check_plugin,
    city_from_csv,
    figures,
    legs_of,
    plugins,
    simulate,
    size_fleet,
    spread,
)
from cbdp.transit.fleets import FleetRules
from cbdp.transit.plugins import example_city, example_legs

STOPS = [f"stop{i:02d}" for i in range(12)]
CONFIG = """
[data]
trips = "trips.parquet"
stops = "places.csv"
id = "two towns"

[universe]
time = { start = "08:00", end = "10:00", every = "1h" }
zones = { column = "zone" }

[[feature]]
name = "zone"
by = ["origin.zone", "destination.zone"]

[privacy]
epsilon = 1
unit = { person = "rider", max_trips = 1 }
ledger = "ledger.sqlite"
cap = 1000

[mechanism]
name = "constraint-based"

[output]
path = "published"
"""


def universe() -> cbdp.Universe:
    return cbdp.Universe(origin=STOPS, destination=STOPS, time=cbdp.periods("08:00", "10:00", "1h"))


def save(trips, folder: Path, epsilon=10**6, types=None, preset="best") -> None:
    """A simulated release; the default ε leaves every count exact."""
    dag = cbdp.FeatureDag(types or universe(), [cbdp.Feature("time", by="time")])
    cbdp.ConstraintBased(dag, epsilon=epsilon, preset=preset).simulate(trips, 3).save(folder, simulation=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two towns as CSV, real trips as Parquet, an exact release of them and a noisy one, and a configuration."""
    folder = tmp_path_factory.mktemp("towns")
    city = example_city()
    rows = [
        f"{n},{city.zones[z]},{int(h)},{x:g},{y:g}"
        for n, z, h, x, y in zip(city.names, city.zone, city.hub, city.x, city.y, strict=True)
    ]
    (folder / "stops.csv").write_text("\n".join(["stop,zone,hub,x,y", *rows]))
    (folder / "lines.csv").write_text("line,stop,headway\nwest–east,stop02,300\nwest–east,stop06,300\n")
    places = [f"{n},{n},42.{i},-83.{i},{city.zones[city.zone[i]]}" for i, n in enumerate(STOPS)]
    (folder / "places.csv").write_text("\n".join(["id,name,lat,lon,zone", *places]))
    rng = np.random.default_rng(4)
    trips = {
        "origin": rng.choice(STOPS, 300).tolist(),
        "destination": rng.choice(STOPS, 300).tolist(),
        "time": rng.choice(["08:00", "09:00"], 300).tolist(),
        "rider": [f"r{i // 3}" for i in range(300)],
    }
    pq.write_table(pa.table(trips), folder / "trips.parquet")
    real = {k: trips[k] for k in ("origin", "destination", "time")}
    save(real, folder / "exact")
    save(real, folder / "noisy", epsilon="0.01", preset="paper")  # expected counts would size the same fleet
    (folder / "cbdp.toml").write_text(CONFIG)
    return folder


def place(made: Path, **more) -> FleetRules:
    return FleetRules(city=str(made / "stops.csv"), lines=str(made / "lines.csv"), **more)


def table(text: str) -> dict[str, list[str]]:
    """The printed rows by their first word."""
    return {w[0]: w[1:] for line in text.splitlines() if (w := line.split())}


def test_size_prints_what_the_search_finds(made, capsys):
    """Fleet, legs and waits are those of the library called by hand, in every zone and in total."""
    assert size(str(made / "exact"), place(made, period=0, seed=5, limit=200)) == 0
    out = capsys.readouterr().out
    release = cbdp.load(made / "exact")
    city = city_from_csv(made / "stops.csv", made / "lines.csv")
    riders = legs_of(spread(universe(), release.index, release.value, city, seed=5), ModeRule().choose(city))
    sized = size_fleet(city, riders, sizer=SearchSizer(200))
    found = figures(simulate(city, sized.fleet, riders), city)
    rows = table(out)
    for zone in ("west", "east", "total"):
        assert rows[zone][:4] == [f"{found[zone][k]:.0f}" for k in ("shuttles", "legs", "unserved", "wait")]
    assert "300 trips, 08:00–10:00" in out
    assert "simulation, not a release" in out
    assert "INTERNAL" not in out


def test_a_configuration_gives_all_real_trips_and_is_internal(made, capsys):
    """Trips are not bounded by person, the fleet is the exact release's, and the first line says INTERNAL."""
    assert size(str(made / "cbdp.toml"), place(made)) == 0
    internal = capsys.readouterr().out
    assert size(str(made / "exact"), place(made)) == 0
    published = capsys.readouterr().out
    assert internal.splitlines()[0] == INTERNAL_WARNING
    assert ": 300 trips" in internal
    assert table(internal)["total"] == table(published)["total"]
    assert not (made / "ledger.sqlite").exists()


@pytest.mark.parametrize("trips", ["trips.parquet", "cbdp.toml"])
def test_an_exact_release_has_no_error(made, capsys, trips):
    """Sized on the true counts, the fleet is the original: every error of the Table 1 row is 0."""
    assert compare(str(made / "exact"), str(made / trips), place(made)) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == INTERNAL_WARNING
    assert (
        "relative errors: shuttles 0.000, wait 0.000, idle 0.000; shuttles by zone, on average 0.000" in out
    )
    for zone in ("west", "east", "total"):
        assert [table(out)[zone][k] for k in (2, 5, 8)] == ["+0.000"] * 3


def test_a_noisy_release_has_the_errors_of_its_own_columns(made, capsys):
    """Errors are the two columns' ratio less 1, and both fleets carried the same real riders."""
    assert compare(str(made / "noisy"), str(made / "trips.parquet"), place(made)) == 0
    out = capsys.readouterr().out
    errors = []
    for zone in ("west", "east", "total"):
        ours, real, error = (float(v) for v in table(out)[zone][:3])
        assert error == pytest.approx(ours / real - 1, abs=5.1e-4)
        errors.append(abs(error))
    assert max(errors) > 0
    said = re.search(r"errors: shuttles ([\d.]+).*on average ([\d.]+)", out)
    assert float(said[1]) == pytest.approx(errors[2], abs=1e-9)
    assert float(said[2]) == pytest.approx(sum(errors[:2]) / 2, abs=1e-3)


def test_hours_take_a_part_of_the_day(made, capsys):
    """The two hours' trips add up to the day's, and idle times are counted inside the hour."""
    totals, idle = [], []
    for hours in ("08:00-09:00", "09:00-10:00"):
        assert size(str(made / "exact"), place(made, hours=hours)) == 0
        out = capsys.readouterr().out
        totals.append(int(re.search(r": (\d+) trips", out)[1]))
        idle.append(float(table(out)["total"][6].replace(",", "")))
    assert sum(totals) == 300
    assert max(idle) <= 3600


def test_only_takes_one_day(made, tmp_path, capsys):
    """A universe with days needs one to be chosen; its trips alone are simulated."""
    days = cbdp.Universe(
        origin=STOPS, destination=STOPS, time=cbdp.periods("08:00", "10:00", "1h"), day=["week", "weekend"]
    )
    rows = [("stop00", "stop05", "08:00", "week")] * 7 + [("stop06", "stop11", "09:00", "weekend")] * 5
    columns = dict(
        zip(("origin", "destination", "time", "day"), map(list, zip(*rows, strict=True)), strict=True)
    )
    save(columns, tmp_path / "days", types=days)
    with pytest.raises(InputError, match="--only day=VALUE"):
        size(str(tmp_path / "days"), place(made))
    with pytest.raises(InputError, match="there are week, weekend"):
        size(str(tmp_path / "days"), place(made, only=["day=Monday"]))
    assert size(str(tmp_path / "days"), place(made, only=["day=weekend"])) == 0
    out = capsys.readouterr().out
    assert "5 trips" in out
    assert "zone 'west' has no shuttle legs, so it needs no shuttles" in out
    assert table(out)["west"][:2] == ["0", "0"]
    assert table(out)["east"][1] == "5"


def test_a_dispatcher_runs_the_service(made, capsys):
    """The built-in dispatcher by its class, in the checking engine, gives the simulator's figures."""
    assert size(str(made / "exact"), place(made, hours="08:00-09:00")) == 0
    simulated = table(capsys.readouterr().out)
    named = place(made, hours="08:00-09:00", dispatcher="cbdp.transit:CheapestInsertion")
    assert size(str(made / "exact"), named) == 0
    assert table(capsys.readouterr().out)["total"] == simulated["total"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with plug-ins in it."""
    (tmp_path / "own_plugins.py").write_text(
        "from cbdp.transit import Sizing\n"
        "class None_:\n    def size(self, city, legs, operations):\n        return Sizing(None, None, 'I do not know')\n"
        "class Zero:\n    def size(self, city, legs, operations):\n        return [0] * len(city.zones)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("own_plugins", None)


def test_no_fleet_is_told(made, here, capsys):
    """A sizer that finds no fleet is quoted, and the exit code is 1."""
    assert size(str(made / "exact"), place(made, sizer="own_plugins:None_")) == 1
    assert "no fleet found: I do not know" in capsys.readouterr().out


def test_a_sizer_that_does_not_serve_is_refused(made, here, capsys):
    """A fleet of no shuttles breaks the service rule: one line, exit code 2."""
    code = cli.main(
        ["fleet", "size", str(made / "exact"), "--city", str(made / "stops.csv"), "--lines", str(made / "lines.csv"),
         "--sizer", "own_plugins:Zero"]
    )  # fmt: skip
    assert code == 2
    error = capsys.readouterr().err
    assert error.startswith("cbdp: service: zone 'west'")
    assert error.count("\n") == 1


def test_check_plugin(here, capsys):
    """The built-in sizer conforms; one that answers no shuttles fails, with exit code 1."""
    assert cli.main(["fleet", "check-plugin", "sizer", "search"]) == 0
    assert "FAIL" not in capsys.readouterr().out
    assert cli.main(["fleet", "check-plugin", "sizer", "own_plugins:Zero"]) == 1
    out = capsys.readouterr().out
    assert "FAIL  its fleet serves, case 0: service" in out
    assert "does NOT conform" in out
    assert cli.main(["fleet", "check-plugin", "sizer", "nobody"]) == 2


def test_help_is_the_fleets_own(capsys):
    """Options behind `fleet` reach its own command, --help among them; an unknown one is a usage error."""
    for words, code in ((["--help"], 0), (["size", "--help"], 0), (["size", "x", "--what"], 2), ([], 2)):
        assert cli.main(["fleet", *words]) == code
    assert "check-plugin" in capsys.readouterr().out


def wrong(made, **more):
    return lambda: size(str(made / "exact"), replace(place(made), **more))


def test_bad_input_is_one_sentence(made, tmp_path):
    """Every wrong option or file is an InputError that names it."""
    (tmp_path / "hubless.csv").write_text("stop,zone,hub,x,y\na,north,1,0,0\nb,south,0,1,1\n")
    (tmp_path / "zones.csv").write_text("stop,zone\na,north\n")
    cases = {
        "is not a stop of the city": wrong(made, city="built-in", lines=None),
        "the stops of exact have no coordinates: give a table with --city": lambda: size(str(made / "exact")),
        "--units ft: give km or m": wrong(made, units="ft"),
        "invalid speed 0 km/h": wrong(made, speed=0),
        "zone 'south' has no hub": lambda: size(str(made / "exact"), FleetRules(city=str(tmp_path / "hubless.csv"))),
        "neither the folder of a release": lambda: size("nothing"),
        "write them as 08:00-10:00": wrong(made, hours="08:00-08:20"),
        "the end must come after": wrong(made, hours="09:00-08:00"),
        "dimension=value": wrong(made, only=["weekday"]),
        "no dimension 'day'": wrong(made, only=["day=1"]),
        "--zones needs a GTFS feed": wrong(made, zones=str(tmp_path / "zones.csv")),
        "--date needs a GTFS feed": wrong(made, date="2026-03-02"),
        "--lines needs a table of stops": lambda: size(str(made / "exact"), FleetRules(lines="lines.csv")),
        "--limit -1: give seconds, at least 0": wrong(made, limit=-1),
        "invalid seed -1": wrong(made, seed=-1),
        "cannot be loaded": wrong(made, dispatcher="no_such_module:Thing"),
    }  # fmt: skip
    for message, call in cases.items():
        with pytest.raises(InputError, match=message) as failure:
            call()
        assert "\n" not in str(failure.value)


@pytest.mark.parametrize(("count", "message"), [(1.5, "1.5 trips"), (-1, "-1 trips")])
def test_trips_are_whole_and_not_negative(made, count, message):
    """Counts that no riders can be made of are refused."""
    source = read(str(made / "exact"))
    odd = replace(source, index=np.array([1]), value=np.array([count]))
    city, modes = placed(place(made), source)
    with pytest.raises(InputError, match=message):
        riders_of(odd, city, modes, place(made), 0)


def test_more_trips_than_can_be_listed_are_no_fleet(made):
    """A count inflated to billions ends at once, with the reason."""
    source = read(str(made / "exact"))
    crowd = replace(source, value=source.value * 10**9)
    city, modes = placed(place(made), source)
    riders = riders_of(crowd, city, modes, place(made), 0)
    assert "300,000,000,000 trips" in fleet_for(city, crowd, riders, place(made)).reason


def test_a_gtfs_city_takes_zones_from_a_table(made, tmp_path, capsys):
    """A feed without zones is refused until a table gives them; then its lines carry the riders."""
    feed = tmp_path / "feed"
    feed.mkdir()
    where = {n: (0.01 * (i % 6) + (0.1 if i > 5 else 0), 0.01 * (i % 3)) for i, n in enumerate(STOPS)}
    (feed / "stops.txt").write_text(
        "stop_id,stop_lat,stop_lon\n" + "".join(f"{n},{a},{b}\n" for n, (a, b) in where.items())
    )
    (feed / "trips.txt").write_text(
        "trip_id,route_id,direction_id\n" + "".join(f"t{k}{d},R,{d}\n" for k in range(12) for d in (0, 1))
    )
    times = []
    for k in range(12):
        for d, stops in ((0, STOPS), (1, STOPS[::-1])):
            for j, n in enumerate(stops):
                minute = 10 * k + 2 * j
                times.append(f"t{k}{d},{n},{j},{8 + minute // 60:02d}:{minute % 60:02d}:00\n")
    (feed / "stop_times.txt").write_text("trip_id,stop_id,stop_sequence,departure_time\n" + "".join(times))
    with pytest.raises(InputError, match="no zone_id"):
        size(str(made / "exact"), FleetRules(city=str(feed)))
    rows = "".join(f"{n},{'west' if i < 6 else 'east'},{int(i in (2, 6))}\n" for i, n in enumerate(STOPS))
    (tmp_path / "zones.csv").write_text("stop,zone,hub\n" + rows)
    rules = FleetRules(city=str(feed), zones=str(tmp_path / "zones.csv"))
    assert [line.headway for line in city_of(rules, read(str(made / "exact"))).lines] == [600, 600]
    assert size(str(made / "exact"), rules) == 0
    assert table(capsys.readouterr().out)["total"][2] == "0"


def test_the_page_goes_where_it_may(made, tmp_path, capsys):
    """It is written once, marked if its riders are real, also in its name, and such a page is never put into a release."""
    out = tmp_path / "service.html"
    assert size(str(made / "exact"), place(made), page=str(out)) == 0
    assert "INTERNAL" not in out.read_text()
    with pytest.raises(InputError, match="exists"):
        size(str(made / "exact"), place(made), page=str(out))
    with pytest.raises(InputError, match="no folder"):
        size(str(made / "exact"), place(made), page=str(tmp_path / "none" / "x.html"))
    trips = str(made / "trips.parquet")
    for name, said in (("exact/internal.html", "lies in the release"), ("x.html", "use '.*x-internal.html'")):
        with pytest.raises(InputError, match=said):
            compare(str(made / "exact"), trips, place(made), page=str(made / name))
        assert not (made / name).exists()
    internal = tmp_path / "internal.html"
    assert compare(str(made / "noisy"), trips, place(made), page=str(internal)) == 0
    assert "INTERNAL – reveals private data" in internal.read_text()
    assert f"open {internal}" in capsys.readouterr().out


def test_the_vroom_dispatcher_conforms(monkeypatch):
    """The example plug-in keeps every rule, reads no future, and decides by VROOM where shuttles are free."""
    pytest.importorskip("vroom", reason="no example: pip install pyvroom")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    example = pytest.importorskip("examples.pyvroom_dispatcher")
    checks = check_plugin("dispatcher", example.VroomDispatcher())
    assert len(checks) == 8
    assert [str(c) for c in checks if not c.passed] == []

    def refuse(*_):
        raise AssertionError("VROOM found no plan")

    monkeypatch.setattr(example.CheapestInsertion, "dispatch", refuse)
    city = example_city()
    service = plugins.dispatch(city, Fleet((12, 12)), example_legs(city, 3, 12), example.VroomDispatcher())
    assert service.served.all()
