"""The transit benchmark: the original service is the case study's, and its pieces do what their tables say."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

from benchmarks import transit
from benchmarks.ablation.hierarchy import AS_IN_TEXT
from benchmarks.transit import contestants, jobs, page, published, results, speed, tables
from benchmarks.transit.city import AS_IS, SHORT, dataset, demand, driving, heavy_share, reshaped
from benchmarks.transit.contestants import ANYWHERE, CELL, FLOOR, HALF_HOUR, VOLUME, counts_of
from benchmarks.transit.drawing import draw
from benchmarks.transit.jobs import Job, Outcome, attempt, work
from benchmarks.transit.plan import Plan
from benchmarks.transit.published import TABLE_1
from benchmarks.transit.results import Results, error, zone_error
from benchmarks.transit.trees import AVERAGE, tree_counts, trips
from cbdp.errors import InputError

EXTRA = """
from benchmarks.harness import mechanism

mechanism("Exact", what="the truth")(lambda case, epsilon: lambda seed: case.truth)
"""


@pytest.mark.parametrize("module", [contestants, jobs, page, published, results, speed, tables])
def test_examples(module: object) -> None:
    """The examples in the benchmark's own documentation hold."""
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(("day", "near"), [("weekday", 0.1), ("weekend", 0.25)])
def test_the_original_service_is_the_case_studys(day: str, near: float) -> None:
    """Shuttles within 5 % of the published fleet, the wait within 10 % (weekday) or 25 % (weekend), nobody unserved."""
    made = work(Job(day, None))
    shuttles, wait, _ = TABLE_1[day]["original"]
    assert made.shuttles == pytest.approx(shuttles, rel=0.05)
    assert made.wait == pytest.approx(wait, rel=near)
    assert made.unserved == 0


def test_a_private_fleet_is_tried_on_the_real_riders() -> None:
    """A fleet sized on a private data set is run on the real trips, all of whom it serves."""
    made = work(Job("weekend", "O5"))
    assert made.fleet
    assert made.unserved == 0
    assert made.legs > made.trips > 2_000


@pytest.mark.parametrize(
    ("name", "epsilon"), [("Lap", "0.1"), ("Lap", "0.01"), ("H5", "0.1"), ("H3", "0.01")]
)
def test_inflated_demand_finds_no_fleet(name: str, epsilon: str) -> None:
    """Where a mechanism makes many times the trips, the limit that was met is the reason."""
    lost = work(Job("weekday", name, epsilon))
    assert not lost.fleet
    assert np.isnan(lost.shuttles)
    assert lost.reason == "more than 100,000 trips"
    assert lost.trips > 30 * 4_878


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5, 4.0])
def test_reshaping_keeps_types_and_total(power: float) -> None:
    """Only the tail changes: the same types have trips, as many in all, more of them heavy for a larger power."""
    counts = demand("weekday")
    made = reshaped(counts, power)
    assert made.sum() == counts.sum()
    assert ((made > 0) == (counts > 0)).all()
    assert np.sign(heavy_share(made) - heavy_share(counts)) == np.sign(power - 1)


def test_the_busiest_types_can_be_those_with_the_least_driving() -> None:
    """Each half hour keeps its types and its counts, and shuttles would drive less for them."""
    counts, made, seconds = demand("weekday"), demand("weekday", SHORT), driving(dataset("weekday"))
    assert ((made > 0) == (counts > 0)).all()
    for period in range(4):
        assert sorted(made[period::4]) == sorted(counts[period::4])
    assert made @ seconds < 0.7 * (counts @ seconds)
    with pytest.raises(InputError, match="unknown demand"):
        demand("weekday", "flat")


def test_probes_keep_what_they_say() -> None:
    """Trips thrown within cells keep every feature of O5, within half hours those of O3, and anywhere only the total."""
    case = contestants.case("weekday", AS_IS)
    assert (counts_of(FLOOR, "1", "weekday", AS_IS, 0) == case.truth).all()
    assert counts_of(VOLUME, "1", "weekday", AS_IS, 0).sum() == pytest.approx(
        published.laplace_trips(), rel=0.02
    )
    kept = {CELL: ("time", "zone", "mode"), HALF_HOUR: ("time",), ANYWHERE: ()}
    for name, features in kept.items():
        made = counts_of(name, "1", "weekday", AS_IS, 3)
        assert made.sum() == case.trips
        for feature in ("time", "zone", "mode"):
            same = (case.summed(feature, made) == case.by_feature[feature]).all()
            assert same == (feature in features)


def test_errors_by_zone_do_not_cancel() -> None:
    """A fleet that moves shuttles from zone to zone has no error in total and one by zone."""
    truth, moved = Outcome(1, 1, (10, 10), 100, 100), Outcome(1, 1, (5, 15), 100, 100)
    assert error(moved, truth, "shuttles") == 0
    assert zone_error(moved, truth) == 0.5


def from_table(errors: dict[str, tuple[float, float, float]]) -> Results:
    """Outcomes of one run with these relative errors."""
    plan = Plan(["weekday"], tuple(errors), runs=1, many=1)
    made = {
        Job("weekday", n): Outcome(1, 1, (round(1000 * (1 + s)),), 100 * (1 - w), 100 * (1 + i))
        for n, (s, w, i) in errors.items()
    }
    return Results({Job("weekday", None): Outcome(1, 1, (1000,), 100, 100), **made}, plan)


def test_verdicts_read_the_table() -> None:
    """The published table passes every verdict; a worse O5, and a Laplace fleet that makes riders wait, do not."""
    printed = {n: row for n, row in TABLE_1["weekday"].items() if n != "original"}
    holds = [said.split()[0] for _, said in tables.verdicts(from_table(printed), "weekday")]
    assert holds == ["yes"] * 5
    worse = printed | {"O5": (0.6, 0.0, 0.0), "Lap": (1.5, -0.1, 0.5)}
    said = [said.split()[0] for _, said in tables.verdicts(from_table(worse), "weekday")]
    assert said == ["NO", "NO", "yes", "NO", "NO"]


def test_finished_fleets_are_kept(tmp_path: Path) -> None:
    """What was sized once is read again; other rules, limits and riders have other names."""
    job = Job("weekend", None)
    made = work(job, tmp_path)
    (file,) = tmp_path.glob("*.json")
    file.write_text(file.read_text().replace(f'"fleet": [{made.fleet[0]}', '"fleet": [77'))
    assert work(job, tmp_path).fleet[0] == 77
    others = [
        Job("weekend", None, period=None),
        Job("weekend", None, operations="16 seats"),
        Job("weekend", FLOOR),
    ]
    names = set()
    for other in (job, *others):
        _, legs = jobs.data_of(other)
        assert legs is not None
        names.add(jobs.key(other, legs, legs))
    assert len(names) == 4
    assert attempt(Job("weekend", "O5"), tmp_path, only_kept=True) is None


def test_another_mechanism_competes_by_one_registration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file with one line registers it; it has a row of its own, and is set beside O5."""
    file, text = tmp_path / "exact.py", tmp_path / "page.md"
    file.write_text(EXTRA)
    text.write_text("before\n<!-- transit: table -->\n<!-- end -->\nafter\n")
    given = [
        "--runs",
        "1",
        "--many",
        "2",
        "--days",
        "weekend",
        "--sections",
        "table",
        "--store",
        str(tmp_path / "kept"),
    ]
    given += ["--mechanisms", "O5,Exact", "--with", str(file), "--page", str(text)]
    assert transit.main(given) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("| Exact |"))
    assert row.split("|")[2].strip() == "0.00 ± 0.00"
    assert "Exact's error in shuttles is below O5's at ε = 1: yes" in out
    assert row in text.read_text()
    assert text.read_text().endswith("after\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--runs", "0"], "--runs 0"),
        (["--days", "monday"], "unknown day 'monday'"),
        (["--sections", "maps"], "unknown section 'maps'"),
        (["--mechanisms", "O9"], "unknown mechanism 'O9'"),
    ],
)
def test_bad_options_are_refused(given: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One clear line, exit code 2, and nothing is run."""
    assert transit.main(given) == 2
    assert message in capsys.readouterr().err


def test_pages_without_a_place_are_refused(tmp_path: Path) -> None:
    """A table goes only where its mark is, into a page that is there."""
    with pytest.raises(InputError, match="no place for 'tail'"):
        page.filled("<!-- transit: table -->\n<!-- end -->", {"tail": "x"})
    with pytest.raises(InputError, match="is not there"):
        page.fill(tmp_path / "none.md", {})


def test_a_reading_of_the_trees_explains_their_order() -> None:
    """As in the text, taller trees make more trips; by Hay's formula with one average fan-out, fewer, as published."""
    assert (tree_counts(5, AS_IN_TEXT, "1", 0) == counts_of("H5", "1", "weekday", AS_IS, 0)).all()
    assert (tree_counts(3, AS_IN_TEXT, "1", 2) == counts_of("H3", "1", "weekday", AS_IS, 2)).all()
    text, hay = trips(AS_IN_TEXT), trips(AVERAGE)
    assert text["H5"] > text["H4"] > text["H3"]
    assert hay["H5"] < hay["H4"] < hay["H3"]


def test_figures_are_drawn_of_what_is_there(tmp_path: Path) -> None:
    """A figure needs the real fleets alone; what was not run is not drawn."""
    pytest.importorskip("matplotlib")
    plan = Plan(["weekend"], ("O5", "Lap"), runs=1, many=1)
    wanted = [j for j in (*plan.epsilon(), *plan.tail()) if j.mechanism is None]
    found = {j: Outcome(1, 1, (10, 10), 100, 100) for j in wanted}
    found |= {Job("weekend", "Lap", "0.1"): Outcome(10**6, reason="more than 100,000 trips")}
    made = draw(Results(found, plan), tmp_path, ("epsilon", "tail"))
    assert [m.name for m in made] == ["transit-epsilon.png", "transit-tail.png"]
    assert all(m.read_bytes()[:4] == b"\x89PNG" for m in made)


def test_speed_sizes_as_many_trips_as_it_says() -> None:
    """Scaled and diluted demand have the trips asked for, on the same types or on more."""
    counts = demand("weekday")
    for trips_ in (speed.FEW, speed.MANY):
        assert speed.scaled(counts, trips_).sum() == speed.diluted(counts, trips_).sum() == trips_
    assert not speed.scaled(counts, speed.MANY)[counts == 0].any()
    assert (speed.diluted(counts, speed.MANY) > 0).sum() > 20 * (counts > 0).sum()
