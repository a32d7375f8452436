"""Counting millions of generated trips on a Spark cluster of this machine's own, while one of its executors is killed.

Claim: a lost executor changes no count, and the driver needs no memory for rows (docs/explanation/counting.md).

python -m benchmarks cluster [--trips 50] [--folder /tmp]

A standalone master and two workers, processes on loopback. The driver is a process of its own, so that its peak memory (Python's and the
JVM's) is known. Trips must be those of DuckDB in one process; with one key, persons' trips too, with the executor and without.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cbdp
from benchmarks.harness import loopback
from benchmarks.harness.markdown import figure, markdown

STOPS, CARDS_EACH, FILES = 300, 40, 16
PERSON = cbdp.Person("card", 20)
TASKS = 61  # of every stage that reads a shuffle, and of no other
MOST_MB = 1000  # that a driver may take
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # so that a stage has as many tasks as it is told
    "spark.sql.shuffle.partitions": str(TASKS),
    "spark.executor.memory": "1500m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
}


@dataclass(frozen=True)
class Run:
    """One count, on the cluster or in this process."""

    name: str
    seconds: float
    python_mb: float
    jvm_mb: float
    types: int
    trips: int
    same: str  # a hash of all counts: equal for equal counts
    lost: str = ""


class Key:
    """One key for all runs. Not secret: it is for comparing them."""

    secure = False

    def words(self, n: int, bits: int) -> Any:
        return np.arange(n, dtype=f"u{bits // 8}")


def write(folder: Path, trips: int) -> None:
    """Trips of a month between stops, by cards with forty trips on average: a function of their numbers alone."""
    import duckdb

    each = -(-trips // FILES)
    with duckdb.connect() as engine:
        for part in range(FILES):
            rows = f"SELECT range AS i FROM range({part * each}, {min(trips, (part + 1) * each)})"  # noqa: S608
            stop = "'ST' || lpad((hash(i, {n}) % {stops})::VARCHAR, 5, '0')"
            made = f"""SELECT {stop.format(n=1, stops=STOPS + 20)} AS origin, {stop.format(n=2, stops=STOPS)} AS destination,
                make_timestamp(1772323200000000 + (hash(i, 3) % {31 * 86400})::BIGINT * 1000000) AS start,
                'C' || (hash(i, 4) % {max(1, trips // CARDS_EACH)})::VARCHAR AS card FROM ({rows})"""  # noqa: S608
            engine.execute(f"COPY ({made}) TO '{folder / f'trips-{part:02d}.parquet'}' (FORMAT parquet)")


def universe() -> cbdp.Universe:
    stops = [f"ST{n:05d}" for n in range(STOPS)]
    made = cbdp.Universe(origin=stops, destination=stops, time=cbdp.periods("00:00", "24:00", "1h"))
    return made.without_equal("origin", "destination")


def count(name: str, trips: Any, unit: Any, spark: Any = None, killer: loopback.Killer | None = None) -> Run:
    """One count, timed."""
    start = time.perf_counter()
    clock = cbdp.Clock("America/Los_Angeles")
    counts = cbdp.count(trips, universe(), columns={"time": "start"}, unit=unit, clock=clock, entropy=Key())
    seconds = time.perf_counter() - start
    lost = ""
    if killer is not None:
        killer.stop()
        failed, anew = killer.repeated() if killer.killed else (0, 0)
        lost = (
            f"killed after {killer.done}: {failed} tasks failed, {anew} stages begun anew"
            if killer.killed
            else "NOTHING"
        )
    own = _peak_mb(os.getpid())  # not what getrusage tells: that holds what the parent had before
    jvm = _peak_mb(spark.sparkContext._gateway.proc.pid) if spark is not None else 0.0
    same = hashlib.sha256(counts.index.tobytes() + counts.value.tobytes()).hexdigest()
    return Run(name, seconds, own, jvm, len(counts.index), int(counts.value.sum()), same, lost)


def _peak_mb(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM"))


def driver(master: str, folder: str, what: str) -> Run:
    """What the driver's process does."""
    spark = loopback.session(master, **SETTINGS)
    try:
        loopback.await_executors(spark, 2)
        trips = spark.read.parquet(f"{folder}/*.parquet")
        if what == "trips":
            return count("Spark, trips", trips, "trip", spark)
        if what == "persons":
            return count("Spark, persons", trips, PERSON, spark)
        killer = loopback.Killer(spark, TASKS)
        killer.start()
        return count("Spark, persons, an executor killed", trips, PERSON, spark, killer)
    finally:
        spark.stop()


def driven(master: str, folder: Path, what: str) -> Run:
    made = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.cluster",
            "--driver",
            what,
            "--master",
            master,
            "--folder",
            str(folder),
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Run(**json.loads(made.stdout.splitlines()[-1]))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks cluster", description=__doc__)
    parser.add_argument("--trips", type=float, default=50, help="millions of trips")
    parser.add_argument("--folder", type=Path, help="where the trips are written; removed afterwards")
    parser.add_argument("--driver", help=argparse.SUPPRESS)
    parser.add_argument("--master", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.driver:
        print(json.dumps(asdict(driver(options.master, str(options.folder), options.driver))))
        return 0
    if reason := loopback.missing():
        print(reason, file=sys.stderr)
        return 2
    trips = round(options.trips * 10**6)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print(f"writing {trips:,} trips …", file=sys.stderr, flush=True)
        write(Path(folder), trips)
        return _compare(Path(folder), trips)


def _compare(folder: Path, trips: int) -> int:
    runs = [count("DuckDB, trips", str(folder), "trip"), count("DuckDB, persons", str(folder), PERSON)]
    with loopback.cluster(memory="1900m") as there:
        for what in ("trips", "persons", "killed"):
            print(f"Spark, {what} …", file=sys.stderr, flush=True)
            runs.append(driven(there.master, folder, what))
    here, persons, spark_trips, spark_persons, killed = runs
    head = ["", "seconds", "driver: Python MB", "driver: JVM MB", "trip types", "trips kept"]
    rows = [[r.name, *map(figure, (r.seconds, r.python_mb, r.jvm_mb, r.types, r.trips))] for r in runs]
    print(f"{trips:,} trips, two executors of one core each.\n\n{markdown(head, rows)}\n")
    kept = {
        "trips: the same counts as DuckDB's": spark_trips.same == here.same,
        "persons: the same counts as DuckDB's, with the same key": spark_persons.same == persons.same,
        f"an executor {killed.lost}": killed.lost.startswith("killed"),
        "persons: the same counts with an executor killed": killed.same == persons.same,
        f"drivers take less than {MOST_MB} MB": all(r.python_mb + r.jvm_mb < MOST_MB for r in runs[2:]),
    }
    print("\n".join(f"- {text}: {'yes' if held else 'NO'}" for text, held in kept.items()))
    return 0 if all(kept.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
