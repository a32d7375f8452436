"""What tests of the benchmark harness share: a tiny city, a user's own files, and a plug-in."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.registry import Setup, prepare

ROOT = Path(__file__).parents[1]

prepare(Setup())

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


def own_files(tmp_path: Path) -> None:
    """A user's stops, trips and configuration."""
    (tmp_path / "stops.csv").write_text("id,lat,lon,zone\nA,42.0,-83.0,n\nB,42.1,-83.0,s\n")
    rows = ["A,B,2026-03-02 08:10:00,x", "A,B,2026-03-02 08:20:00,x", "B,A,2026-03-02 09:00:00,y"]
    (tmp_path / "trips.csv").write_text("origin,destination,time,card\n" + "\n".join(rows) + "\n")
    (tmp_path / "own.toml").write_text(CONFIG)


PLUGIN = """
import os, signal, time
from pathlib import Path
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

def held(case):
    # once eleven runs have begun: for ever, or until the file `hold` is gone
    while Path({log!r}).with_name("hold").exists() and Path({log!r}).read_text().count("\\n") > 10:
        time.sleep(0.02)
    return case.truth

make("Quick", lambda case: case.truth)
make("Held", held)
make("Sleeper", lambda case: time.sleep(600))
make("Hog", lambda case: np.ones(2**27).sum() + case.truth)
make("Crash", lambda case: os.kill(os.getpid(), signal.SIGKILL))
make("Raises", lambda case: 1 / 0)
make("Shape", lambda case: case.truth[1:])
"""


def plugin(folder: Path) -> tuple[Setup, Path]:
    log = folder / "executions.txt"
    log.touch()
    (folder / "plugin.py").write_text(PLUGIN.format(log=str(log)))
    return Setup(plugins=(str(folder / "plugin.py"),)), log
