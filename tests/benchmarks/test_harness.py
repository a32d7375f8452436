"""The benchmark harness: metrics against brute force, mechanisms and data as they say."""

from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from harness_cases import own_files

import cbdp
from benchmarks.harness import data, registry, runner, worker
from benchmarks.harness.metrics import emd
from benchmarks.harness.registry import DATA, MECHANISMS, Answer, Setup, answer
from benchmarks.harness.specs import ERRORS, Experiment, Spec
from benchmarks.harness.worker import scores
from cbdp.errors import InputError
from cbdp.features import SINGLETON

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


def test_own_trips_come_by_configuration(tmp_path: Path) -> None:
    """Errors are against all trips of the file; mechanisms get them bounded as the configuration asks."""
    own_files(tmp_path)
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
