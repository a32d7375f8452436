"""The golden configurations: each writes its inputs, releases, exports and answers into a folder of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import cbdp
from golden import inputs
from golden.ways import Case, steady

CASES: dict[str, Callable[[Case], None]] = {}


def case(function: Callable[[Case], None]) -> Callable[[Case], None]:
    CASES[function.__name__] = function
    return function


def write(name: str, folder: Path) -> None:
    with steady():
        CASES[name](Case(name, folder / name))


# The command line

CONFIG = """
{preset}
[data]
id = "golden city"
stops = "stops.csv"
{data}

[universe]
{time}
zones = {{ column = "zone" }}
{universe}

[privacy]
ledger = "ledger.sqlite"
{privacy}

{more}
"""
TRIPS = 'trips = "trips.csv"\ncolumns = { origin = "from_stop", destination = "to_stop", time = "left_at", person = "card" }'
NO_CARD = TRIPS.replace(', person = "card"', "")
TIME = 'time = { start = "06:00", end = "12:00", every = "1h" }'
ZONE_PAIRS = ["--by", "origin.zone,destination.zone", "--share-of", "origin.zone"]


def configured(
    run: Case, *, data: str = NO_CARD, universe: str = "", privacy: str, more: str = "",
    preset: str = 'preset = "odmts"', time: str = TIME, days: int = 7,
) -> None:  # fmt: skip
    """The city's files and a configuration; trips of so many days."""
    run.write("stops.csv", inputs.stops_csv())
    if "trips.csv" in data:
        run.write("trips.csv", inputs.trips_csv(days))
    text = CONFIG.format(preset=preset, data=data, universe=universe, privacy=privacy, more=more, time=time)
    run.write("cbdp.toml", text)


def released(run: Case, *, questions: bool = True) -> None:
    """Check, release, two questions, the account and the audit."""
    run.run("check", "cbdp.toml", "--json", output="check.json")
    run.run("release", "cbdp.toml", "--create-ledger", "--accept-unusual")
    if questions:
        run.run("ask", "release", *ZONE_PAIRS, "--csv", "zones.csv", output="zones.txt")
        run.run(
            "ask", "release", "--by", "origin", "--where", "time<09:00", "--no-sharp", "--csv", "origins.csv"
        )
    run.run("audit", "release", "--ledger", "ledger.sqlite", "--json", "audit.json")


def table(name: str, *by: str) -> str:
    return f'\n[[feature]]\nname = "{name}"\nby = {json.dumps(by)}\n'


CROSSING = table("origin", "origin") + table(
    "destination", "destination"
)  # with zones and modes: more than two families


@case
def trips_geometric(run: Case) -> None:
    """One trip, geometric noise; zones, modes, boardings and alightings cross, so rounding is repaired. All formats without further programs."""
    configured(
        run, universe="modes = { distance_km = [2, 5] }\norigin_is_destination = false", privacy="epsilon = 1\ncap = 2",
        more=CROSSING + '\n[about]\ntitle = "Golden"\nplace = "a small city"\nlicence = "CC BY 4.0"\n',
    )  # fmt: skip
    released(run)
    run.run("ledger", "ledger.sqlite", output="ledger.txt")
    run.run("export", "release", "--format", "csv", "--intervals", "--out", "export.csv")
    run.run("export", "release", "--format", "omx", "--out", "export.omx")
    run.run("export", "release", "--format", "omx", "--level", "zone", "--out", "zones.omx")
    run.run("export", "release", "--format", "geojson", "--level", "zone", "--out", "zones.geojson")
    run.run("export", "release", "--format", "kepler", "--out", "kepler.json")
    run.run("export", "release", "--format", "sumo", "--out", "sumo.xml")
    run.run("export", "release", "--format", "matsim", "--out", "matsim.xml")


@case
def trips_gaussian(run: Case) -> None:
    """Discrete Gaussian noise with δ, a public prior, and a budget for a target."""
    configured(
        run, data=NO_CARD + "\nexpected_trips = 650",
        privacy='epsilon = 1\ndelta = 1e-6\nlaw = "gaussian"\ntarget = { zone = 2, singleton = 1 }\ncap = 3',
        more='[mechanism]\nname = "constraint-based"\nprior = "boardings.csv"\n',
    )  # fmt: skip
    run.write("boardings.csv", inputs.boardings_csv())
    released(run)


@case
def persons(run: Case) -> None:
    """What a person did on one day; kinds of days; trips gathered on few types. A second release after a change of ε, and their difference."""
    configured(
        run, data=TRIPS, universe='days = ["weekday", "saturday", "sunday"]', time=TIME.replace("1h", "2h"),
        privacy='epsilon = 2\nunit = { person = "card", max_trips = 2, per = "day" }\ncap = 40',
        more='[mechanism]\nname = "constraint-based"\nrounding = "few"\n',
    )  # fmt: skip
    released(run)
    text = (run.folder / "cbdp.toml").read_text(encoding="utf-8")
    run.write("second.toml", text.replace("epsilon = 2", "epsilon = 1.5") + '\n[output]\npath = "second"\n')
    run.run("release", "second.toml", "--accept-unusual")
    run.run("compare", "release", "second", "--by", "origin.zone,time", output="compare.txt")
    run.run("compare", "release", "second", "--by", "day", "--format", "json", output="compare.json")


@case
def persons_bought(run: Case) -> None:
    """max_trips is a private quantile, which is paid for; all trips of a person are protected."""
    unit = 'unit = { person = "card", max_trips = { quantile = 0.9, epsilon = 0.25 } }'
    configured(run, data=TRIPS, privacy=f"epsilon = 2\n{unit}\ncap = 4")
    run.run("ledger", "create", "cbdp.toml")
    run.run("choose", "cbdp.toml", "--accept-unusual")
    run.run("release", "cbdp.toml", "--accept-unusual")
    run.run("ask", "release", *ZONE_PAIRS, "--csv", "zones.csv")


@case
def persons_apart(run: Case) -> None:
    """At most one trip of a person in each period of a day, with Gaussian noise paid for in ρ."""
    configured(
        run, data=TRIPS,
        privacy='rho = 0.5\nlaw = "gaussian"\nunit = { person = "card", max_trips = 3, per = "day", apart = "time" }\ncap = 2',
    )  # fmt: skip
    released(run)


@case
def taps(run: Case) -> None:
    """Taps of cards, linked to trips."""
    linked = 'trips = "taps.csv"\npreset = "taps"\ncolumns = { person = "card", time = "time", stop = "stop", action = "tap" }'
    unit = 'unit = { person = "card", max_trips = 4, per = "day" }'
    configured(run, data=linked, privacy=f"epsilon = 4\n{unit}\ncap = 40", more=CROSSING)
    run.write("taps.csv", inputs.taps_csv())
    released(run)


@case
def counts(run: Case) -> None:
    """A table of counts, with a total that is public."""
    summed = 'trips = "counts.csv"\ncolumns = { origin = "from", destination = "to", time = "hour", count = "count" }'
    configured(run, data=summed, privacy="epsilon = 1\npublic = { total = 1300 }\ncap = 1", more=CROSSING)
    run.write("counts.csv", inputs.counts_csv())
    released(run)


@case
def counts_of_taps(run: Case) -> None:
    """Counts of tap-ons and tap-offs by stop and hour, with Opal's tables, by Opal's mechanism."""
    summed = (
        'trips = "taps.csv"\ncolumns = { location = "stop", time = "hour", tap = "tap", count = "count" }'
    )
    configured(
        run, preset='preset = "opal"', data=summed, universe='dimensions = { location = "stops", tap = ["on", "off"] }',
        privacy='epsilon = 8\ndelta = 1e-4\nunit = { trip = "replace" }\ncap = 8',
        more='[mechanism]\nname = "stability-histogram"\n',
    )  # fmt: skip
    run.write("taps.csv", inputs.tap_counts_csv())
    released(run, questions=False)  # its tables do not add up, so nothing is asked


@case
def paper(run: Case) -> None:
    """The published mechanism: ε split evenly, projection, weights by size; three crossing families."""
    configured(
        run, universe="modes = { distance_km = [2, 5] }", privacy="epsilon = 1\ncap = 1", more=CROSSING
        + '\n[mechanism]\nname = "constraint-based"\npreset = "paper"\n',
    )  # fmt: skip
    released(run)


@case
def hierarchical(run: Case) -> None:
    """A tree of features in closed form, from the command line."""
    configured(run, privacy="epsilon = 1\ncap = 1", more='[mechanism]\nname = "hierarchical"\n')
    released(run)


DAILY = """
[series]
calendar = "daily"
start = 2026-03-02
{series}

[output]
path = "releases/{{period}}"
"""
FOUR_HOURS = 'time = { start = "06:00", end = "12:00", every = "2h" }'
A_DAY = 'unit = { person = "card", max_trips = 2, per = "day" }'


def ran(run: Case, *until: str) -> None:
    """A series, in as many runs as there are days named, its page, and what changed between its days."""
    (run.folder / "releases").mkdir()
    for n, day in enumerate(until):
        create = [] if n else ["--create-ledger"]
        run.run("series", "run", "cbdp.toml", "--until", day, "--accept-unusual", "--accept-dropped", *create)
    run.run("series", "status", "cbdp.toml", "--until", until[-1], output="status.txt")
    run.run("series", "page", "cbdp.toml", "--until", until[-1], "--out", "page.html")


@case
def series_daily(run: Case) -> None:
    """Four days of persons; each learns from two before it."""
    configured(
        run, data=TRIPS, time=FOUR_HOURS, privacy=f"epsilon = 1\n{A_DAY}\ncap = {{ per_day = 2, per_30_days = 60 }}",
        more=DAILY.format(series="earlier = 2"),
    )  # fmt: skip
    ran(run, "2026-03-03", "2026-03-05")
    run.run(
        "series",
        "compare",
        "cbdp.toml",
        "2026-03-02..2026-03-03",
        "2026-03-04..2026-03-05",
        output="compare.txt",
    )
    run.run("audit", "releases/2026-03-05", "--ledger", "ledger.sqlite", "--json", "audit.json")


@case
def series_running(run: Case) -> None:
    """Five days with running totals in spans of three, Gaussian noise."""
    configured(
        run, data=TRIPS, time=FOUR_HOURS,
        privacy=f'rho = 0.5\nlaw = "gaussian"\n{A_DAY}\ncap = {{ per_day = 4, per_year = 9000 }}',
        more=DAILY.format(series='running = { tables = ["total", "zone"], periods = 3 }'),
    )  # fmt: skip
    ran(run, "2026-03-03", "2026-03-06")
    run.run("audit", "releases/2026-03-06", "--ledger", "ledger.sqlite", "--json", "audit.json")


@case
def series_revised(run: Case) -> None:
    """Two weeks, each with a preliminary and a final release."""
    stages = 'revise = "once"\nshares = { preliminary = "1/4", final = "3/4" }\nfinal_after = 2'
    configured(
        run, data=TRIPS, time=FOUR_HOURS, privacy=f"epsilon = 2\n{A_DAY}\ncap = 100", days=14,
        more=DAILY.format(series=stages).replace('"daily"', '"weekly"').replace("{period}", "{period}-{stage}"),
    )  # fmt: skip
    ran(run, "2026-03-08", "2026-03-17")


# Python


def features(stops: int = 8) -> cbdp.FeatureDag:
    """Zones, modes and single stops, which cross."""
    names = list(inputs.STOPS[:stops])
    place = cbdp.Dimension(names, zone=[inputs.ZONES[n // 3] for n in range(stops)])
    universe = cbdp.Universe(origin=place, destination=place, time=list(inputs.TIMES))
    universe = universe.without_equal("origin", "destination")
    modes = np.array([[("walk", "bus", "rail")[abs(i - j) % 3] for j in range(stops)] for i in range(stops)])
    return cbdp.FeatureDag(
        universe.with_attribute("mode", ["origin", "destination"], modes),
        [
            cbdp.Feature("time", by="time"),
            cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"]),
            cbdp.Feature("mode", by=["mode", "time"]),
            cbdp.Feature("origin", by="origin"),
        ],
    )


def trips_of(stops: int) -> dict[str, list[str]]:
    taken = inputs.columns(stops)
    return {name: taken[name] for name in ("origin", "destination", "time")}


def plain(value: Any) -> Any:
    """Lists of Python numbers, for JSON; real numbers keep every digit."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "to_pylist"):
        return value.to_pylist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def answered(run: Case, name: str, columns: Any) -> None:
    run.write(name, json.dumps(plain(columns), indent=1))


def columns_of(table: Any) -> dict[str, Any]:
    """A labelled table as columns, whatever kind of table it is."""
    kept = table if isinstance(table, Mapping) else table.to_arrow().to_pydict()
    return {name: list(kept[name]) for name in kept}


def saved(run: Case, name: str, mechanism: Any, stops: int = 8, **asked: Any) -> None:
    """Release with a mechanism, save, load, ask; where tables do not add up, their counts are the answers."""
    with run.seeded():
        release = mechanism.release(inputs.columns(stops) if asked.pop("cards", False) else trips_of(stops))
    with run.seeded():
        release = release.with_intervals(0.9) if asked.pop("intervals", False) else release
        release.save(run.folder / name)
    if not asked.pop("adds_up", True):
        answered(run, f"{name}.json", {table: release.counts(table) for table in release.features.features})
        return
    with run.seeded():
        by = ["origin.zone", "destination.zone"]
        answer = cbdp.load(run.folder / name).ask(by=by, where="time<09:00", **asked)
    answered(run, f"{name}.json", columns_of(answer))


@case
def projection(run: Case) -> None:
    """The quadratic program on the noisy answers, weights by inverse variance and by hand."""
    saved(
        run,
        "inverse",
        cbdp.ConstraintBased(features(), 1, estimator="projection", weights="inverse-variance"),
        intervals=True,
    )
    saved(
        run,
        "uniform",
        cbdp.ConstraintBased(features(), 1, estimator="projection", weights="uniform", solver="osqp"),
    )
    saved(
        run,
        "in part",
        cbdp.ConstraintBased(features(), 1, measured=["singleton", "zone"], budget="geometric"),
    )


@case
def sparse(run: Case) -> None:
    """Universes that are not listed: noise is drawn only where it can matter."""
    saved(run, "posterior", cbdp.ConstraintBased(features(), 1, sparse=True), intervals=True)
    saved(
        run,
        "projection",
        cbdp.ConstraintBased(features(), "1/2", sparse=True, estimator="projection", weights="size"),
    )
    saved(run, "gaussian", cbdp.ConstraintBased(features(), law="gaussian", rho="1/8", sparse=True))
    saved(run, "laplace", cbdp.Laplace(features(), 1, law="geometric", sparse=True))


@case
def wide(run: Case) -> None:
    """A universe of 2^31 trip types, which nothing lists."""
    stops = cbdp.Dimension(range(2**13), zone=[n // 2**10 for n in range(2**13)])
    universe = cbdp.Universe(origin=stops, destination=stops, time=range(32))
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("zone", by=["origin.zone", "destination.zone"])])
    rows = inputs.columns()
    place = {stop: 611 * n for n, stop in enumerate(inputs.STOPS)}
    hours = {time: n for n, time in enumerate(inputs.TIMES)}
    trips = {
        "origin": [place[o] for o in rows["origin"]] * 30,
        "destination": [place[d] for d in rows["destination"]] * 30,
        "time": [hours[t] for t in rows["time"]] * 30,
    }
    with run.seeded():
        release = cbdp.ConstraintBased(dag, 2, estimator="projection", weights="size").release(trips)
    release.save(run.folder / "release")
    answered(run, "zones.json", columns_of(release.ask(by="origin.zone", sharp=False)))


@case
def mechanisms(run: Case) -> None:
    """The other mechanisms, from Python."""
    saved(run, "laplace", cbdp.Laplace(features(), 1))
    saved(run, "hierarchical", cbdp.Hierarchical(features(), 1, root=True, prune=False), intervals=True)
    saved(run, "stability", cbdp.StabilityHistogram(features(), 6, delta="1/1000"), adds_up=False)
    saved(run, "threshold", cbdp.ThresholdLaplace(features(), 2, threshold=4), adds_up=False)
    saved(
        run, "perturbed", cbdp.ThresholdLaplace(features(), 2, threshold=4, zeros="perturbed"), adds_up=False
    )
    saved(run, "person", cbdp.ConstraintBased(features(), 2, unit=cbdp.Person("card", 3)), cards=True)


@case
def engine(run: Case) -> None:
    """Noisy counts from elsewhere made consistent, by several solvers and weights; measurements of our own; running totals."""
    dag = features(6)
    sizes = {"total": 1, "time": 6, "zone": 24, "mode": 18, "origin": 6, "singleton": 180}
    noisy = {name: [(37 * n + 11 * len(name)) % 19 - 4 for n in range(size)] for name, size in sizes.items()}
    for weights in ("size", "uniform", {"total": float("inf"), "zone": 3.0, "singleton": "size"}):
        estimate = cbdp.post_process(dag, noisy, weights=weights)
        label = weights if isinstance(weights, str) else "exact total"
        answered(run, f"newton, {label}.json", {name: estimate.counts(name) for name in dag.features})
    for solver in ("osqp", "scipy"):
        estimate = cbdp.post_process(dag, noisy, weights="size", solver=solver, tolerance=1e-4)
        answered(run, f"{solver}.json", {name: estimate.counts(name) for name in dag.features})
    with run.seeded():
        counts = cbdp.count(trips_of(6), dag.universe)
        measurements = cbdp.measure(counts, dag, epsilon=1, budget="uniform")
    answered(run, "measured.json", {m.feature: m.values for m in measurements})
    estimate = cbdp.post_process(dag, measurements)
    answered(run, "posterior.json", {name: estimate.counts(name) for name in dag.features})
    running(run, dag, counts)


def running(run: Case, dag: cbdp.FeatureDag, counts: cbdp.Counts) -> None:
    """Totals over four periods of the same trips, with both noise distributions."""
    for law in ("gaussian", "geometric"):
        sums = cbdp.RunningTotals(dag, "zone", amount="1/2", periods=5, law=law)
        with run.seeded():
            noisy = [sums.measure([counts] * n) for n in range(1, 5)]
        totals = sums.totals(noisy)
        answered(
            run,
            f"running {law}.json",
            {
                **{f"sum {n}": a for n, a in enumerate(noisy)},
                **{f"total {n}": a for n, a in enumerate(totals)},
            },
        )
