"""A release is paid for before noise is drawn, published whole or not at all, and paid for once: whenever it dies."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cbdp
from cbdp.app import cli
from cbdp.app.config import read
from cbdp.app.plan import plan
from cbdp.app.publish import publish
from cbdp.mechanisms.base import Mechanism
from cbdp.privacy.ledger import Ledger
from cbdp.release.saving import leftovers, save
from cbdp.release.loading import load

KILLS = int(os.environ.get("CBDP_KILLS", "12"))  # 200 for the long run
# where a run may die: the modules that publish and save, and every module of the ledger
WATCHED = (
    inspect.getfile(publish),
    inspect.getfile(save),
    str(Path(inspect.getfile(Ledger)).parent) + os.sep,
)

CONFIG = """
[data]
trips = "trips.parquet"
stops = "stops.csv"
id = "a small city"
columns = { origin = "from", destination = "to", time = "at" }

[universe]
time = { start = "06:00", end = "12:00", every = "2h" }
zones = { column = "zone" }
origin_is_destination = false

[[feature]]
name = "zone"
by = ["origin.zone", "destination.zone", "time"]

[[feature]]
name = "time"
by = ["time"]

[privacy]
epsilon = 1
unit = "trip"
budget = "uniform"
ledger = "ledger.sqlite"
cap = 1000

[mechanism]
name = "constraint-based"

[output]
path = "release"
"""


def trips(n: int = 300) -> pa.Table:
    rng = np.random.default_rng(5)
    seconds = rng.integers(0, 24 * 3600, n)
    start = np.datetime64("2026-03-02T00:00:00")
    return pa.table(
        {
            "from": [f"S{i}" for i in rng.integers(0, 7, n)],  # S6 is no stop
            "to": [f"S{i}" for i in rng.integers(0, 6, n)],
            "at": pa.array(start + seconds.astype("timedelta64[s]")),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(trips(), tmp_path / "trips.parquet")
    rows = [
        f"S{i},stop {i},{42.2 + i / 100},{-83.7 + i / 80},{'north' if i < 3 else 'south'}" for i in range(6)
    ]
    (tmp_path / "stops.csv").write_text("\n".join(["id,name,lat,lon,zone", *rows]) + "\n")
    (tmp_path / "cbdp.toml").write_text(CONFIG)
    return tmp_path


def planned(folder: Path):
    return plan(read(folder / "cbdp.toml"))


def entries(folder: Path) -> list[tuple[str, dict]]:
    """The ledger's events, verified; none before it exists."""
    if not Ledger.started(folder / "ledger.sqlite"):
        return []
    with Ledger.view(folder / "ledger.sqlite") as ledger:
        try:
            ledger.verify()
        except cbdp.CbdpError:
            if ledger.entries():
                raise
        return [(e.event, dict(e.fields)) for e in ledger.entries()]


def test_a_release_is_charged_once_and_found_again(folder: Path) -> None:
    """The second identical request costs nothing and changes nothing; the files agree with the ledger."""
    first = publish(planned(folder))
    before = {p: p.read_bytes() for p in sorted(first.path.rglob("*")) if p.is_file()}
    again = publish(planned(folder))
    assert first.fresh
    assert not again.fresh
    assert before == {p: p.read_bytes() for p in sorted(first.path.rglob("*")) if p.is_file()}
    assert [event for event, _ in entries(folder)] == ["opened", "reserved", "released"]
    with Ledger.view(folder / "ledger.sqlite") as ledger:
        assert ledger.spent.epsilon == 1
        assert ledger.contains(load(first.path).manifest["ledger"]["head"])


def test_published_numbers_add_up(folder: Path) -> None:
    """Every table's counts sum to the trips, and lie inside their intervals."""
    publish(planned(folder))
    release = load(folder / "release")
    total = int(pq.read_table(folder / "release" / "trips.parquet")["count"].to_numpy().sum())
    for name in ("total", "time", "zone", "singleton"):
        table = pq.read_table(folder / "release" / "features" / f"{name}.parquet")
        assert table["count"].to_numpy().sum() == total
        assert (release.counts(name) >= 0).all()
        if name != "singleton":
            assert (table["low"].to_numpy() <= table["count"].to_numpy()).all()
            assert (table["count"].to_numpy() <= table["high"].to_numpy()).all()


def test_an_output_folder_of_others_is_left_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit 2, nothing spent, nothing written."""
    (folder / "release").mkdir()
    (folder / "release" / "mine").write_text("x")
    assert cli.main(["release", str(folder / "cbdp.toml")]) == 2
    said = capsys.readouterr().err
    assert "exists already" in said
    assert said.count("\n") == 1
    assert not (folder / "ledger.sqlite").exists()


def test_a_changed_manifest_is_noticed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stored release that is not the one that was published is not handed out as it."""
    publish(planned(folder))
    manifest = folder / "release" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"cbdp"', '"cbdq"', 1))
    assert cli.main(["release", str(folder / "cbdp.toml")]) == 2
    assert "not the one that was released" in capsys.readouterr().err
    assert [event for event, _ in entries(folder)] == ["opened", "reserved", "released"]


def test_what_is_over_the_cap_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The third charge of 400 against a cap of 1000 spends and writes nothing."""
    text = CONFIG.replace("epsilon = 1\n", "epsilon = 400\n")
    for run, ok in enumerate((True, True, False)):
        (folder / "cbdp.toml").write_text(
            text.replace('path = "release"', f'path = "release{run}"').replace("06:00", f"0{2 * run}:00")
        )
        assert cli.main(["release", str(folder / "cbdp.toml")]) == (0 if ok else 2)
    assert "does not fit" in capsys.readouterr().err
    assert not (folder / "release2").exists()
    assert [event for event, _ in entries(folder)].count("reserved") == 2


def test_what_can_fail_fails_before_anything_is_spent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that cannot be drawn, found out by the rehearsal, costs nothing."""

    def broken(*_: object, **__: object) -> str:
        raise cbdp.CbdpError("no report today")

    monkeypatch.setattr("cbdp.report.build", broken)
    with pytest.raises(cbdp.CbdpError, match="no report today"):
        publish(planned(folder))
    assert not (folder / "ledger.sqlite").exists()
    assert not list(folder.glob(".release*"))


def test_an_export_that_cannot_be_is_refused_before_anything_is_spent(folder: Path) -> None:
    """Flows on a map need coordinates: without them nothing is charged and nothing written."""
    (folder / "stops.csv").write_text("id,zone\n" + "".join(f"S{i},z\n" for i in range(6)))
    (folder / "cbdp.toml").write_text(CONFIG + 'export = ["geojson"]\n')
    with pytest.raises(cbdp.CbdpError, match="coordinates"):
        publish(planned(folder))
    assert not (folder / "ledger.sqlite").exists()
    assert not (folder / "release").exists()


def test_exports_lie_beside_the_release(folder: Path) -> None:
    """What the configuration asks for is written once, and again only if it is gone."""
    (folder / "cbdp.toml").write_text(CONFIG + 'export = ["csv"]\n')
    publish(planned(folder))
    assert (folder / "release-csv").exists()
    shutil.rmtree(folder / "release-csv")
    assert not publish(planned(folder)).fresh
    assert (folder / "release-csv").exists()


def test_tables_that_disagree_are_released_without_intervals(folder: Path) -> None:
    """A histogram whose tables do not add up has no intervals to simulate; what was paid for is published."""
    text = CONFIG.replace("epsilon = 1\n", "epsilon = 1\ndelta = 1e-6\ncap_delta = 1e-3\n")
    (folder / "cbdp.toml").write_text(text.replace('"constraint-based"', '"stability-histogram"'))
    assert publish(planned(folder)).fresh
    assert [event for event, _ in entries(folder)] == ["opened", "reserved", "released"]
    load(folder / "release")


@pytest.mark.slow
def test_two_requests_for_one_folder_pay_once(folder: Path) -> None:
    """Of two configurations that name the same folder the second to come is refused before it is charged."""
    other = folder / "other.toml"
    other.write_text(CONFIG.replace("epsilon = 1\n", "epsilon = 2\n"))
    commands = [[sys.executable, "-m", "cbdp", "release", str(f)] for f in (folder / "cbdp.toml", other)]
    running = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for c in commands]
    told = [process.communicate()[1].decode() for process in running]
    assert sorted(process.returncode for process in running) == [0, 2], told
    assert [event for event, _ in entries(folder)].count("reserved") == 1


def test_a_manifest_that_contradicts_its_files_is_refused(folder: Path) -> None:
    """A smaller ε written into the manifest alone is found out when the release is read."""
    publish(planned(folder))
    manifest = folder / "release" / "manifest.json"
    said = json.loads(manifest.read_text())
    said["universe"]["dimensions"][0]["size"] += 1
    manifest.write_text(json.dumps(said))
    with pytest.raises(cbdp.CbdpError, match="universe"):
        load(folder / "release")


def test_a_mechanism_that_promises_nothing_does_not_release(folder: Path) -> None:
    """A release needs a claim that holds."""
    one = planned(folder)
    claim = replace(one.mechanism.claim(), holds=False, caveat="zeros are not perturbed")

    class Empty(type(one.mechanism)):  # type: ignore[misc]
        def claim(self):
            return claim

    with pytest.raises(cbdp.CbdpError, match="studied"):
        publish(replace(one, mechanism=Empty(one.features, 1)))
    assert not (folder / "ledger.sqlite").exists()


def test_rows_in_other_order_and_rows_outside_change_no_byte(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a fixed noise source the published files depend on nothing but the trips inside the universe."""
    table = trips()
    order = np.random.default_rng(1).permutation(table.num_rows)
    outside = pa.table(
        {"from": ["nowhere", "S1", None], "to": ["S1", "S1", "S2"], "at": table["at"].slice(0, 3)}
    )
    seeded = cbdp.measuring.noise.InsecureSeededEntropy
    monkeypatch.setattr(seeded, "secure", True)  # a test's pretence: nothing else is published from a seed
    monkeypatch.setattr("cbdp.mechanisms.base.SystemEntropy", lambda: seeded(3))
    found = []
    for rows in (table, pa.concat_tables([table.take(order), outside])):
        pq.write_table(rows, folder / "trips.parquet")
        publish(planned(folder))
        (folder / "ledger.sqlite").unlink()
        manifest = load(folder / "release").manifest
        files = {
            str(p.relative_to(folder)): p.read_bytes()
            for p in sorted((folder / "release").rglob("*.parquet"))
        }
        found.append((files, {k: v for k, v in manifest.items() if k not in ("ledger", "files")}))
        shutil.rmtree(folder / "release")
    assert found[0] == found[1]


def run_and_die(folder: Path, at: int | None) -> int:
    """Publish in a child that kills itself after so many lines of the watched modules; lines run if it survived."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child:
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            lines = pipe.read()
        os.waitpid(child, 0)
        return int(lines or -1)
    lines = itertools.count(1)
    seen = [0]
    watched: dict[str, bool] = {}  # by file, so that each of the many calls elsewhere costs a look-up

    def trace(frame, event, _):
        file = frame.f_code.co_filename
        if file not in watched:
            watched[file] = file.startswith(WATCHED)
        if not watched[file]:
            return None
        if event == "line":
            seen[0] = next(lines)
            if seen[0] == at:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    draw = Mechanism.release

    def noted(self, *args, **kwargs):
        with (folder / "draws").open("a") as out:
            out.write("noise\n")
            out.flush()
            os.fsync(out.fileno())
        return draw(self, *args, **kwargs)

    Mechanism.release = noted  # type: ignore[method-assign]
    code = 1
    try:
        sys.settrace(trace)
        publish(planned(folder))
        sys.settrace(None)
        os.write(write_end, str(seen[0]).encode())
        code = 0
    finally:
        os._exit(code)


def draws(folder: Path) -> int:
    return (folder / "draws").read_text().count("noise") if (folder / "draws").exists() else 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_instant(folder: Path) -> None:
    """Never noise without a charge, never two releases for one, never half a release; the next run ends it."""
    lines = run_and_die(folder, None)
    assert lines > 200
    assert draws(folder) == 1
    rng = random.Random(7)
    for kill in range(KILLS):
        for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "draws"):
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / "release", ignore_errors=True)
        at = rng.randrange(1, lines) if kill else lines - 1
        deaths = 1 + (kill % 3 == 0)  # sometimes the next run dies too
        for _ in range(deaths):
            run_and_die(folder, at)
            events = [event for event, _ in entries(folder)]
            assert draws(folder) <= events.count("reserved")
            if (folder / "release").exists():
                load(folder / "release")  # whole, its hashes right
        run_and_die(folder, None)
        told = entries(folder)
        events = [event for event, _ in told]
        assert events.count("released") == 1, (at, events)
        assert events.count("reserved") <= deaths + 1
        assert draws(folder) <= events.count("reserved")
        head = load(folder / "release").manifest["ledger"]["head"]
        with Ledger.view(folder / "ledger.sqlite") as ledger:
            assert ledger.contains(head)
        assert not leftovers(folder / "release")


@pytest.mark.slow
def test_killed_from_outside(folder: Path) -> None:
    """The command itself, killed by the clock at a few instants, then run to its end."""
    command = [sys.executable, "-m", "cbdp", "release", str(folder / "cbdp.toml")]
    start = time.perf_counter()
    for part in (0.3, 0.6, 0.9):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(part * 4)
        process.kill()
        process.wait()
        entries(folder)
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    events = [event for event, _ in entries(folder)]
    assert events.count("released") == 1
    assert time.perf_counter() > start
    load(folder / "release")
