"""Runs of the benchmark harness: limits that hold, kills after which it resumes."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from harness_cases import ROOT, own_files, plugin

from benchmarks.harness import data, registry, runner, tables
from benchmarks.harness.registry import MECHANISMS, prepare
from benchmarks.harness.specs import ERRORS, Experiment, Limits, Spec
from benchmarks.harness.store import DIED, FAILED, MEMORY, NOT_POSSIBLE, OK, TIME, Row, Store

# Running: plug-ins, limits, resuming


def _executed(log: Path) -> Counter[str]:
    return Counter(line.rsplit(" ", 1)[0] for line in log.read_text().splitlines())


@pytest.mark.slow
@pytest.mark.usefixtures("plugged")
def test_a_run_beyond_its_limits_is_a_result(tmp_path: Path) -> None:
    """Time, memory, death, errors and wrong shapes are told apart; they stop neither the others nor a second start."""
    setup, log = plugin(tmp_path)
    prepare(setup)
    store, patient, limits = Store(tmp_path / "store"), Limits(200.0, 200 * 2**20), Limits(5.0, 200 * 2**20)
    names = ("Quick", "Sleeper", "Hog", "Crash", "Raises", "Shape", "O5")
    specs = Experiment("limits", ("tiny",), names, ("1",), 2).specs()
    runner.run([s for s in specs if s.mechanism != "Sleeper"], store, setup, patient, 1)
    specs += Experiment("limits", ("tiny",), ("Quick",), ("2",), 2).specs()  # after the one that is too slow
    rows, absent = runner.run(specs, store, setup, limits, 2)
    found = tables.summarise(rows)
    status = {group[2]: summary.status for group, summary in found.items()}
    assert absent == {}
    assert status == {
        "Quick": OK, "Sleeper": TIME, "Hog": MEMORY, "Crash": DIED, "Raises": FAILED, "Shape": FAILED, "O5": OK
    }  # fmt: skip
    detail = {group[2]: summary.detail for group, summary in found.items()}
    assert detail["Sleeper"] == "not done in 5 s"
    assert detail["Hog"] == "needs more than 200 MiB"
    assert detail["Crash"] == "killed by SIGKILL"
    assert "ZeroDivisionError" in detail["Raises"]
    assert [found[ERRORS, "tiny", "Quick", epsilon].runs for epsilon in ("1", "2")] == [2, 2]
    assert found[ERRORS, "tiny", "Quick", "1"].numbers["rmse/singleton"].mean == 0
    text = tables.by_epsilon(found, ERRORS, "tiny", names, ("1",), "rmse/singleton").markdown()
    assert "| Sleeper | over time |" in text
    assert "| Hog | over memory |" in text
    assert {row[0].split(" · ")[1] for row in tables.failures(found).rows} == set(names) - {"Quick", "O5"}

    before = _executed(log)
    assert max(n for run, n in before.items() if not run.startswith("Quick")) == 1
    assert not [
        run for run in before if run.endswith(" 1") and not run.startswith("Quick")
    ]  # no second seed of what failed
    again, _ = runner.run(specs, store, setup, limits, 2)
    assert _executed(log) == before
    assert tables.summarise(again).keys() == found.keys()
    _, left = runner.finished(runner.possible(specs)[0], store, Limits(25.0, 400 * 2**20))
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
    specs = Experiment("resume", ("tiny",), ("Held",), ("1", "0.1"), 12).specs()
    runner.run(specs, Store(Path(sys.argv[2])), setup, jobs=2)
"""


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def _wait(until: object, seconds: float = 200.0) -> None:
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="workers are told of their runner's death by Linux")
def test_a_killed_run_resumes_without_repeating_what_is_done(tmp_path: Path) -> None:
    """After SIGKILL half way the workers die too; the next start does what is left, and only that."""
    setup, log = plugin(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), setup.plugins[0], str(tmp_path / "store")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    store, hold = Store(tmp_path / "store"), tmp_path / "hold"
    hold.touch()
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as first:
        _wait(lambda: first.poll() is not None or len(store.parts()) >= 8)
        first.send_signal(signal.SIGKILL)
    hold.unlink()  # whoever was at a run ends it, and finds nobody to tell
    workers = {int(line.split()[-1]) for line in log.read_text().splitlines()}
    _wait(lambda: not any(map(_alive, workers)))
    done = {f"Held {row.spec.seed}" for row in store.rows()}
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
    # a run that was under way may still have been stored after this test looked: then it is not repeated
    assert 24 <= sum(_executed(log).values()) <= executed + 24 - len(stored)


def test_results_are_kept_for_the_code_that_made_them(tmp_path: Path, plugged: object) -> None:
    """Another plug-in text is another version, so its results are not taken for the old ones."""
    setup, _ = plugin(tmp_path)
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
    own_files(tmp_path)
    command = [sys.executable, "-c", LOADS, str(tmp_path / "own.toml")]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = done.stdout.split()
    assert "cbdp.release.files" in loaded
    assert [m for m in loaded if registry.aside(m.removeprefix("cbdp."))] == []


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
