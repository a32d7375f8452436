"""The benchmark harness: metrics against brute force, limits that hold, runs that resume, mechanisms that plug in."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import cbdp
from benchmarks import paper
from benchmarks.harness import data, figures, page, registry, runner, sections, tables, worker
from benchmarks.harness.metrics import emd
from benchmarks.harness.registry import DATA, MECHANISMS, Answer, Setup, answer, prepare
from benchmarks.harness.specs import ERRORS, Experiment, Limits, Spec
from benchmarks.harness.store import DIED, FAILED, MEMORY, NOT_POSSIBLE, OK, TIME, Row, Store
from benchmarks.harness.worker import scores
from cbdp.errors import InputError
from cbdp.features import SINGLETON

ROOT = Path(__file__).parents[2]

prepare(Setup())


@pytest.fixture(scope="module")
def tiny() -> registry.Case:
    return data.dense_city(30, stations=5, half_hours=2, mean=4)


# Metrics


def _labels(case: registry.Case, name: str) -> list[tuple]:
    """The labels that group each trip type, looked up one by one."""
    universe, made = case.features.universe, []
    names = list(universe.dimensions)
    for index in range(universe.size):
        codes = dict(zip(names, (int(c[0]) for c in universe.unrank_codes(np.array([index]))), strict=True))
        by = case.features.features[name].by
        attributes = [universe.attribute(a) for a in by]
        made.append(tuple(a.labels[a.codes[tuple(codes[d] for d in a.of)]] for a in attributes))
    return made


def test_metrics_agree_with_brute_force(tiny: registry.Case) -> None:
    """Every metric of a made-up answer is what loops over the trip types give."""
    raw = tiny.truth + np.random.default_rng(1).normal(0, 2, len(tiny.truth))
    found = scores(tiny, answer(tiny, raw))
    whole = [max(0, round(v)) for v in raw.tolist()]
    truth = tiny.truth.tolist()
    for name in tiny.features.features:
        off: Counter[tuple] = Counter(dict.fromkeys(_labels(tiny, name), 0))
        for label, given, true in zip(_labels(tiny, name), whole, truth, strict=True):
            off[label] += given - true
        errors = list(off.values())
        assert len(errors) == tiny.features.size(name)
        assert found[f"rmse/{name}"] == pytest.approx(math.sqrt(sum(e * e for e in errors) / len(errors)))
        assert found[f"mae/{name}"] == pytest.approx(sum(map(abs, errors)) / len(errors))
    pairs = list(zip(whole, truth, strict=True))
    assert found["l1"] == pytest.approx(sum(abs(g - t) for g, t in pairs) / sum(truth))
    assert found["trips"] == sum(whole)
    assert found["inflation"] == pytest.approx(sum(whole) / sum(truth))
    assert found["negative"] == sum(v < 0 for v in raw)
    assert found["false"] == sum(g > 0 and t == 0 for g, t in pairs) > 0
    assert found["missed"] == sum(g == 0 and t > 0 for g, t in pairs) > 0
    assert found["sparsity"] == pytest.approx(sum(g == 0 for g in whole) / len(whole))


def _full_transport(here: np.ndarray, there: np.ndarray, distance: np.ndarray) -> float:
    """The transport problem with every pair of places, by another modeller and solver."""
    import cvxpy as cp

    plan = cp.Variable(distance.shape, nonneg=True)
    rules = [cp.sum(plan, axis=1) == here, cp.sum(plan, axis=0) == there]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(plan, distance))), rules)
    return float(problem.solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("seed", range(4))
def test_earth_movers_distance_is_the_transport_problems(seed: int) -> None:
    """Moving only the surplus costs what the whole transport problem costs."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(7, 2))
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    here, there = rng.dirichlet(np.ones(7)), rng.dirichlet(np.full(7, 0.3))
    assert emd(here, there, distance) == pytest.approx(_full_transport(here, there, distance), abs=1e-6)
    assert emd(here, here, distance) == 0


def test_earth_movers_distance_of_zone_flows(tiny: registry.Case) -> None:
    """One trip of n moved from a zone pair to another costs the stated ground distance, over n."""
    leaves = tiny.truth.copy()
    start, flows = int(np.flatnonzero(leaves)[0]), tiny.flows
    assert flows is not None
    label = list(zip(*tiny.features.universe.partition(flows.by).keys().values(), strict=True))
    zones = _labels(tiny, "zone")
    end = next(i for i, z in enumerate(zones) if z[0] != zones[start][0] and z[1] != zones[start][1])
    leaves[start] -= 1
    leaves[end] += 1
    apart = flows.distance[label.index(zones[start][:2]), label.index(zones[end][:2])]
    assert apart > 0
    assert scores(tiny, answer(tiny, leaves))["emd"] == pytest.approx(apart / tiny.trips)
    nothing = scores(tiny, answer(tiny, 0 * leaves))
    assert math.isnan(nothing["emd"])


# Mechanisms


@pytest.mark.parametrize("name", [n for n, m in MECHANISMS.items() if not m.needs and not m.absent])
def test_every_mechanism_runs_and_states_what_it_had_before_rounding(name: str, tiny: registry.Case) -> None:
    """The same seed gives the same answer; where rounding is type by type, the numbers before it round to it."""
    run = MECHANISMS[name].make(tiny, "1")
    found, again = answer(tiny, run(3)), answer(tiny, run(3))
    assert (found.leaves == again.leaves).all()
    assert (found.leaves >= 0).all()
    if name.startswith(("Lap", "H")):
        assert (np.maximum(np.rint(found.raw), 0) == found.leaves).all()
        assert scores(tiny, found)["negative"] == (found.raw < 0).sum() > 0
    if name.startswith("O"):
        assert scores(tiny, found)["negative"] == 0


def test_suppressed_tables_count_as_published(tiny: registry.Case) -> None:
    """A mechanism that publishes tables beside its trips is judged by those tables."""
    found = answer(tiny, MECHANISMS["Threshold skip"].make(tiny, "1")(0))
    time = scores(tiny, found)["mae/time"]
    assert time == pytest.approx(float(np.abs(found.tables["time"] - tiny.by_feature["time"]).mean()))
    summed = scores(tiny, Answer(found.leaves, found.raw))["mae/time"]
    assert time != summed


def test_opendp_tree_is_unbiased(tiny: registry.Case) -> None:
    """The peer's answers average to the truth: within six standard errors for the total."""
    pytest.importorskip("opendp")
    run = MECHANISMS["OpenDP tree"].make(tiny, "1")
    totals = np.array([run(seed).sum() for seed in range(200)])
    assert abs(totals.mean() - tiny.trips) < 6 * totals.std(ddof=1) / math.sqrt(len(totals))


def test_private_pgm_solves_the_same_problem(tiny: registry.Case) -> None:
    """mbi's answer to O5's measurements is near the least-squares optimum with its total held fixed."""
    pytest.importorskip("mbi")
    import cvxpy as cp

    from benchmarks.harness.mechanisms import pgm_estimate
    from cbdp.privacy.entropy import InsecureSeededEntropy

    found = pgm_estimate(tiny, "1")(0)
    measured = cbdp.measure(tiny.counts, tiny.features, "1", entropy=InsecureSeededEntropy(0))
    dag, x = tiny.features, cp.Variable(len(tiny.truth), nonneg=True)

    def matrix(name: str) -> np.ndarray:
        n = len(tiny.truth)
        element = np.arange(n) if name == SINGLETON else dag.cells.element_of_cell[name][dag.cell_of_leaf]
        return (np.arange(dag.size(name))[:, None] == element).astype(float)

    parts = [cp.sum_squares(matrix(m.feature) @ x - m.values) / float(m.variance[0]) for m in measured]
    total = float(next(m.values[0] for m in measured if m.feature == "total"))
    best = cp.Problem(cp.Minimize(sum(parts)), [cp.sum(x) == total]).solve(solver=cp.CLARABEL)
    reached = sum(
        float(((matrix(m.feature) @ found - m.values) ** 2).sum()) / float(m.variance[0]) for m in measured
    )
    assert best * (1 - 1e-6) <= reached <= 1.02 * best


def test_both_lists_of_trips_are_the_same(tiny: registry.Case, tmp_path: Path) -> None:
    """Written by columns or trip by trip: a row for each trip, with the labels of its type."""
    found = answer(tiny, tiny.truth)
    worker.write_list(tiny, found, tmp_path / "columns.csv")
    worker.write_loop(tiny, found, tmp_path / "loop.csv")
    columns, loop = (
        list(csv.reader((tmp_path / name).read_text("utf-8").splitlines()))
        for name in ("columns.csv", "loop.csv")
    )
    assert columns == loop
    assert columns[0] == ["origin", "destination", "time"]
    counted = Counter(map(tuple, columns[1:]))
    assert sum(counted.values()) == tiny.trips
    busiest = int(tiny.truth.argmax())
    codes = tiny.features.universe.unrank_codes(np.array([busiest]))
    label = [
        str(d.values[c[0]]) for d, c in zip(tiny.features.universe.dimensions.values(), codes, strict=True)
    ]
    assert counted[tuple(label)] == tiny.truth[busiest]


def test_stages_are_told_for_projections_only(tiny: registry.Case) -> None:
    """The program and the rounding of O5 are timed once more; Lap has neither."""
    assert set(worker._stages(MECHANISMS["O5"].make(tiny, "1")(0))) == {"solve", "round"}
    assert worker._stages(MECHANISMS["Lap"].make(tiny, "1")(0)) == {}


# Data


@pytest.mark.parametrize("fill", [60, 5])
def test_dense_city_is_as_full_as_it_says(fill: int) -> None:
    """The share of types that have trips is exact, their mean is near what it says, and none goes nowhere."""
    made = data.dense_city(fill)
    assert (made.truth > 0).sum() == round(fill / 100 * len(made.truth))
    assert made.truth[made.truth > 0].mean() == pytest.approx(data.MEAN, rel=0.02)
    places = made.truth.reshape(data.STATIONS, data.STATIONS, -1)
    assert places[np.arange(data.STATIONS), np.arange(data.STATIONS)].sum() == 0


TNTP = """<NUMBER OF ZONES> 3
<TOTAL OD FLOW> 16.4
<END OF METADATA>


Origin  1
    2 :    5.4;     3 :    7.0;
Origin 	2
    1 :      1.0;
    3 :      3.0;
Origin 3
"""


def test_tntp_tables_are_read(tmp_path: Path) -> None:
    """Origins, destinations and trips come out where they stand, and fractions are rounded."""
    (tmp_path / "net_trips.tntp").write_text(TNTP)
    assert data.read_tntp(tmp_path / "net_trips.tntp").tolist() == [[0, 5.4, 7], [1, 0, 3], [0, 0, 0]]
    case = data.tntp(str(tmp_path / "net_trips.tntp"))
    assert case.truth.tolist() == [0, 5, 7, 1, 0, 3, 0, 0, 0]
    assert case.by_feature["origin"].tolist() == [12, 4, 0]
    (tmp_path / "bad.tntp").write_text("Origin 1\n 2 : 3;")
    with pytest.raises(InputError, match="NUMBER OF ZONES"):
        data.read_tntp(tmp_path / "bad.tntp")
    (tmp_path / "bad.tntp").write_text(TNTP.replace("ZONES> 3", "ZONES> 2"))
    with pytest.raises(InputError, match="from 1 to 3, but 2 zones"):
        data.read_tntp(tmp_path / "bad.tntp")


CONFIG = """
preset = "odmts"
[data]
trips = "trips.csv"
id = "own"
stops = "stops.csv"
columns = { person = "card" }
[universe]
time = { start = "08:00", end = "10:00", every = "1h" }
modes = { distance_km = [1, 5] }
[privacy]
epsilon = 1
unit = { person = "card", max_trips = 1 }
ledger = "ledger.sqlite"
[output]
path = "release"
"""


def _own(tmp_path: Path) -> None:
    """A user's stops, trips and configuration."""
    (tmp_path / "stops.csv").write_text("id,lat,lon,zone\nA,42.0,-83.0,n\nB,42.1,-83.0,s\n")
    rows = ["A,B,2026-03-02 08:10:00,x", "A,B,2026-03-02 08:20:00,x", "B,A,2026-03-02 09:00:00,y"]
    (tmp_path / "trips.csv").write_text("origin,destination,time,card\n" + "\n".join(rows) + "\n")
    (tmp_path / "own.toml").write_text(CONFIG)


def test_own_trips_come_by_configuration(tmp_path: Path) -> None:
    """Errors are against all trips of the file; mechanisms get them bounded as the configuration asks."""
    _own(tmp_path)
    case = data.own_trips(str(tmp_path / "own.toml"))
    assert case.trips == 3
    assert case.truth[case.features.universe.rank("A", "B", "08:00")] == 2
    assert case.counts.dense().sum() == 2
    assert case.flows is not None
    assert case.flows.unit == "km"
    for name in ("Lap", "O5"):
        assert answer(case, MECHANISMS[name].make(case, "1")(0)).leaves.shape == case.truth.shape
    (registered,) = [
        d for d in data.register_files(Setup(configs=(str(tmp_path / "own.toml"),))) if d.private
    ]
    assert [Path(f).name for f in registered.files] == ["own.toml", "trips.csv"]


def test_missing_data_and_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that cannot be are left out, with the reason; the others stay."""
    for made in data.register_files(Setup(folder=str(tmp_path))):
        monkeypatch.setitem(DATA, made.name, made)
    lost = registry.Mechanism("needy", MECHANISMS["Lap"].make, "peers", "", needs="no_such_package")
    monkeypatch.setitem(MECHANISMS, "needy", lost)
    plan = Experiment("x", ("weekday", "bikes, busiest day"), ("Lap", "needy"), ("1",), 1)
    kept, absent = runner.possible(plan.specs())
    assert kept == [Spec(ERRORS, "weekday", "Lap", "1", 0)]
    assert absent == {
        "bikes, busiest day": "trips.parquet is not there",
        "needy": "pip install no_such_package",
    }


def test_real_bike_trips() -> None:
    """The busiest day and the pooled weekdays of the real data, where it is at hand."""
    if DATA["bikes, busiest day"].absent:
        pytest.skip("the bike trips are not at ../shared/data")
    case = DATA["bikes, busiest day"].load()
    assert case.features.sizes["zone"] == 25 * 48
    import duckdb

    file = DATA["bikes, busiest day"].files[0]
    with duckdb.connect() as engine:
        query = "SELECT count(*) FROM read_parquet(?) GROUP BY start_time::DATE ORDER BY 1 DESC LIMIT 1"
        (busiest,) = engine.execute(query, [file]).fetchone()
    assert case.trips == busiest
    assert (case.truth > 0).mean() == pytest.approx(0.0054, abs=0.0003)


# Running: plug-ins, limits, resuming

PLUGIN = """
import os, signal, time
import numpy as np
from benchmarks.harness import dataset, mechanism
from benchmarks.harness.data import dense_city

def note(name, seed):
    with open({log!r}, "a") as log:
        log.write(f"{{name}} {{seed}} {{os.getpid()}}\\n")

@dataset("tiny", "a tiny city")
def tiny():
    return dense_city(30, stations=5, half_hours=2)

def make(name, act):
    @mechanism(name)
    def made(case, epsilon):
        def run(seed):
            note(name, seed)
            return act(case)
        return run

make("Quick", lambda case: case.truth)
make("Slow", lambda case: time.sleep(0.2) or case.truth)
make("Sleeper", lambda case: time.sleep(60))
make("Hog", lambda case: np.ones(2**27).sum() + case.truth)
make("Crash", lambda case: os.kill(os.getpid(), signal.SIGKILL))
make("Raises", lambda case: 1 / 0)
make("Shape", lambda case: case.truth[1:])
"""


def _plugin(folder: Path) -> tuple[Setup, Path]:
    log = folder / "executions.txt"
    log.touch()
    (folder / "plugin.py").write_text(PLUGIN.format(log=str(log)))
    return Setup(plugins=(str(folder / "plugin.py"),)), log


@pytest.fixture
def plugged(tmp_path: Path) -> object:
    """The plug-in's names, registered for one test."""
    before = [(t, dict(t)) for t in (registry.DATA, registry.MECHANISMS, registry.METRICS)]
    yield
    for table, held in before:
        table.clear()
        table.update(held)
    registry._done.clear()
    prepare(Setup())


def _executed(log: Path) -> Counter[str]:
    return Counter(line.rsplit(" ", 1)[0] for line in log.read_text().splitlines())


@pytest.mark.slow
@pytest.mark.usefixtures("plugged")
def test_a_run_beyond_its_limits_is_a_result(tmp_path: Path) -> None:
    """Time, memory, death, errors and wrong shapes are told apart; they stop neither the others nor a second start."""
    setup, log = _plugin(tmp_path)
    prepare(setup)
    store, limits = Store(tmp_path / "store"), Limits(20.0, 200 * 2**20)
    names = ("Quick", "Sleeper", "Hog", "Crash", "Raises", "Shape", "O5")
    specs = Experiment("limits", ("tiny",), names, ("1",), 2).specs()
    rows, absent = runner.run(specs, store, setup, limits, 2)
    found = tables.summarise(rows)
    status = {group[2]: summary.status for group, summary in found.items()}
    assert absent == {}
    assert status == {
        "Quick": OK, "Sleeper": TIME, "Hog": MEMORY, "Crash": DIED, "Raises": FAILED, "Shape": FAILED, "O5": OK
    }  # fmt: skip
    detail = {group[2]: summary.detail for group, summary in found.items()}
    assert detail["Sleeper"] == "not done in 20 s"
    assert detail["Hog"] == "needs more than 200 MiB"
    assert detail["Crash"] == "killed by SIGKILL"
    assert "ZeroDivisionError" in detail["Raises"]
    assert found[ERRORS, "tiny", "Quick", "1"].runs == 2
    assert found[ERRORS, "tiny", "Quick", "1"].numbers["rmse/singleton"].mean == 0
    text = tables.by_epsilon(found, ERRORS, "tiny", names, ("1",), "rmse/singleton").markdown()
    assert "| Sleeper | over time |" in text
    assert "| Hog | over memory |" in text
    assert {row[0].split(" · ")[1] for row in tables.failures(found).rows} == set(names) - {"Quick", "O5"}

    before = _executed(log)
    assert max(before.values()) == 1  # the second seed of what failed is not tried
    again, _ = runner.run(specs, store, setup, limits, 2)
    assert _executed(log) == before
    assert tables.summarise(again).keys() == found.keys()
    _, left = runner.finished(runner.possible(specs)[0], store, Limits(25.0, 200 * 2**20))
    assert {s.mechanism for s in left} == {"Sleeper", "Hog"}  # larger limits are worth another try


SCRIPT = """
import sys
from pathlib import Path
from benchmarks.harness import runner
from benchmarks.harness.registry import Setup, prepare
from benchmarks.harness.specs import Experiment
from benchmarks.harness.store import Store

if __name__ == "__main__":
    setup = Setup(plugins=(sys.argv[1],))
    prepare(setup)
    specs = Experiment("resume", ("tiny",), ("Slow",), ("1", "0.1"), 12).specs()
    runner.run(specs, Store(Path(sys.argv[2])), setup, jobs=2)
"""


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def _wait(until: object, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="workers are told of their runner's death by Linux")
def test_a_killed_run_resumes_without_repeating_what_is_done(tmp_path: Path) -> None:
    """After SIGKILL half way the workers die too; the next start does what is left, and only that."""
    setup, log = _plugin(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), setup.plugins[0], str(tmp_path / "store")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    store = Store(tmp_path / "store")
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as first:
        _wait(lambda: first.poll() is not None or len(store.parts()) >= 8)
        first.send_signal(signal.SIGKILL)
    workers = {int(line.split()[-1]) for line in log.read_text().splitlines()}
    _wait(lambda: not any(map(_alive, workers)))
    done = {f"Slow {row.spec.seed}" for row in store.rows()}
    stored = {(row.spec.epsilon, row.spec.seed) for row in store.rows()}
    executed = sum(_executed(log).values())
    assert 8 <= len(stored) < 24
    assert executed - len(stored) <= 2  # at most what each of two workers was at
    assert done

    subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
    rows = store.rows()
    assert Counter((r.spec.epsilon, r.spec.seed) for r in rows) == Counter(
        {(e, s): 1 for e in ("1", "0.1") for s in range(12)}
    )
    assert {r.status for r in rows} == {OK}
    assert sum(_executed(log).values()) == executed + 24 - len(stored)


def test_results_are_kept_for_the_code_that_made_them(tmp_path: Path, plugged: object) -> None:
    """Another plug-in text is another version, so its results are not taken for the old ones."""
    setup, _ = _plugin(tmp_path)
    prepare(setup)
    before = registry.version("tiny", "Quick")
    assert before.startswith(registry.code_version())
    assert before != registry.version("weekday", "Lap")
    path = Path(setup.plugins[0])
    path.write_text(path.read_text() + "# changed\n")
    registry._files_version.cache_clear()
    assert registry.version("tiny", "Quick") != before


LOADS = """
import sys
from benchmarks.harness import data, registry, worker
registry.prepare(registry.Setup())
case = data.dense_city(30, stations=5, half_hours=2)
for name, entry in registry.MECHANISMS.items():
    if not entry.needs and not entry.absent:
        made = entry.make(case, "1")(0)
        worker.scores(case, registry.answer(case, made))
        worker._written(case, made)
data.own_trips(sys.argv[1])
print(*sorted(m for m in sys.modules if m.startswith("cbdp.")))
"""


@pytest.mark.slow
def test_no_run_loads_what_the_version_leaves_aside(tmp_path: Path) -> None:
    """Results outlive changes of some modules, so no mechanism, metric, writing or user's data may load those."""
    _own(tmp_path)
    command = [sys.executable, "-c", LOADS, str(tmp_path / "own.toml")]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = done.stdout.split()
    assert "cbdp.release.files" in loaded
    assert [m for m in loaded if m.split(".")[1] in registry.ASIDE] == []


def test_store_merges_and_forgets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts become one; the last of two results of a run counts; what was half written is no result."""
    monkeypatch.setattr("benchmarks.harness.store.MERGE", 3)
    store = Store(tmp_path)
    spec = Spec(ERRORS, "d", "m", "1", 0)
    for seed in range(5):
        store.write(
            [Row(spec._replace(seed=seed), "v", OK, metrics={"rmse/x": float(seed), "emd": math.nan})]
        )
    store.write([Row(spec, "v", FAILED, "why")])
    store.write([Row(spec, "other version", OK)])
    for name, age in (("old", 7200), ("new", 0)):
        partial = tmp_path / f".part-{name}.parquet.partial"
        partial.write_bytes(b"PAR1")
        os.utime(partial, (time.time() - age,) * 2)
    store.merge()
    assert len(store.parts()) == 1
    assert [p.name for p in tmp_path.glob(".*")] == [".part-new.parquet.partial"]
    rows = {row.key: row for row in store.rows()}
    assert len(rows) == 6
    assert rows[spec, "v"].status == FAILED
    assert rows[spec._replace(seed=4), "v"].metrics["rmse/x"] == 4
    assert math.isnan(rows[spec._replace(seed=4), "v"].metrics["emd"])


def test_a_mechanism_that_needs_more_features_is_no_failure(tmp_path: Path) -> None:
    """O5 on data of three features is left blank, not reported as broken."""
    row = Row(Spec(ERRORS, "d", "O5", "1", 0), "v", NOT_POSSIBLE, "has 3 features, not 5")
    found = tables.summarise([row])
    assert tables.failures(found).rows == []
    assert tables.by_epsilon(found, ERRORS, "d", ["O5"], ["1"], "l1").rows == [["O5", "–"]]
    small = data.dense_city(30, stations=4, half_hours=2)
    one = registry.Case("small", small.level(3), small.truth)
    with pytest.raises(registry.NotPossibleError, match="3 features, not 5"):
        MECHANISMS["O5"].make(one, "1")


# The page

ADDED = """\
from benchmarks.harness import mechanism
import numpy as np

@mechanism("Halves", what="half of every count, and no privacy")
def halves(case, epsilon):
    def run(seed):
        return np.floor(case.truth / 2) + (seed % 2) * float(epsilon)
    return run
"""


@pytest.mark.slow
@pytest.mark.usefixtures("plugged")
def test_a_mechanism_in_a_few_lines_is_in_tables_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One small file, named on the command line, and the mechanism stands in the page, the CSV and the figure."""
    pytest.importorskip("matplotlib")
    assert len(ADDED.splitlines()) < 20
    (tmp_path / "added.py").write_text(ADDED)
    drawn: dict[str, list[str]] = {}
    save = figures._save

    def seen(figure: object, path: Path) -> Path:
        legends = [axis.get_legend() for axis in figure.axes if axis.get_legend()]
        drawn[path.stem] = [text.get_text() for legend in legends for text in legend.get_texts()]
        for legend in legends:  # beside its axes, not over the data
            figure.canvas.draw()
            assert legend.get_window_extent().x0 >= legend.axes.get_window_extent().x1
            assert legend.get_window_extent().x1 <= figure.bbox.x1
        return save(figure, path)

    monkeypatch.setattr(figures, "_save", seen)
    out = tmp_path / "out"
    asked = ["--smoke", "--sections", "errors,overview", "--mechanisms", "Lap,H5,O5,Halves"]
    places = ["--out", str(out), "--store", str(tmp_path / "store"), "--with", str(tmp_path / "added.py")]
    assert paper.main([*asked, *places]) == 0
    text = (out / "benchmarks.md").read_text()
    assert re.search(r"^\| Halves \| \d", text, flags=re.MULTILINE)
    assert "half of every count, and no privacy" in text
    rows = list(csv.DictReader(io.StringIO((out / "benchmarks.csv").read_text())))
    mine = {
        r["metric"]: r
        for r in rows
        if (r["mechanism"], r["data"], r["epsilon"]) == ("Halves", "weekday", "1")
    }
    assert mine["trips"]["runs"] == "2"
    truth = DATA["weekday"].load().truth
    expected = (truth // 2).sum() + len(
        truth
    ) / 2  # the mean of two runs, the second with one trip more per type
    assert float(mine["trips"]["mean"]) == pytest.approx(expected, rel=1e-5)
    assert "Halves" in drawn["errors-others"]
    assert drawn["errors"] == ["Lap", "H5", "O5", "all zeros"]
    whole = (out / "benchmarks.html").read_text()
    assert "<td>Halves</td>" in whole
    assert set(re.findall(r'src="([^:"]+):', whole)) == {"data"}
    assert not re.findall(r'(?:src|href)="https?:', whole)
    for name in drawn:
        assert (out / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "O5's error per type is below that of Lap, H3, H4 and H5: yes" in capsys.readouterr().out


def test_bad_options_are_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown names and impossible sizes end with exit code 2 and one line."""
    for asked in (
        ["--mechanisms", "O6"],
        ["--sections", "x"],
        ["--runs", "0"],
        ["--tntp", "no.tntp"],
        ["--memory", "0"],
    ):
        assert paper.main(asked) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_crossings_lie_between_the_points() -> None:
    """Two power laws cross where their formulas do; lines that do not cross have no crossing."""
    x = [10.0, 1.0, 0.1, 0.01]
    one = figures.Series("one", x, [3 * e**-0.5 for e in x])
    other = figures.Series("other", x, [e**-1 for e in x])
    assert sections.crossings(one, other) == [pytest.approx(1 / 9)]
    assert sections.crossings(one, figures.Series("", x, [2 * y for y in one.y])) == []


def test_every_built_in_line_looks_different() -> None:
    """No two of 24 lines share colour, marker and dashes; O5 is always black."""
    labels = [f"m{n}" for n in range(24)] + ["O5"]
    looks = [figures.style(label, labels) for label in labels]
    assert len({(s["color"], s["marker"], str(s["linestyle"])) for s in looks}) == 25
    assert looks[-1]["color"] == figures.style("O5", ["O5"])["color"] == "#000000"


def test_page_states_machine_and_versions(tmp_path: Path) -> None:
    """The machine's cores and the packages' versions are in the text, and text is escaped in HTML."""
    assert f"{os.cpu_count()} cores" in page.machine()
    assert f"numpy {np.__version__}" in page.versions()
    made = page.as_html([page.Text("a < b & `c`"), tables.Table(["x"], [["<td>"]])], "t")
    assert "a &lt; b &amp; <code>c</code>" in made
    assert "<td>&lt;td&gt;</td>" in made
