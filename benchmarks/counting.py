"""Counting millions of generated trips in Parquet or CSV, next to a bare SELECT … GROUP BY of the same columns in DuckDB.

Claim: counting trips takes about as much CPU time as a bare query of the same columns, bounding persons about three times as much (docs/explanation/counting.md).

python -m benchmarks counting [--trips 100] [--runs 3] [--folder /tmp] [--csv]

With --csv the bare query reads 83 stations and stamps as text, and keeps at most four trips of a card each day, as ours does.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import cbdp
from benchmarks.harness.markdown import figure, markdown
from benchmarks.harness.measure import measure
from cbdp.privacy.unit import UnitLike

STOPS = 2000
DAYS = 31
TRIPS_OF_A_CARD = 40
MAX_TRIPS = 4
ZONE = "America/Los_Angeles"
ROWS = 1_000_000  # written at once
MEMORY_MB = 2000  # what DuckDB may hold, in the bare query as in ours
MOST = {"trips": 1.5, "persons": 3.0}  # times the bare query
MOST_BYTES = 4 * 10**9
STATIONS = 83  # of the CSV
TRIPS_OF_A_CSV_CARD = 12
MOST_CSV = 2.0  # times the bare query


@dataclass(frozen=True)
class Work:
    """Something to measure: what it is, what it is compared with, and the most it may take of that."""

    name: str
    run: Callable[[Path], Callable[[], int]]
    bare: str | None = None
    most: float = 0.0


@dataclass(frozen=True)
class Run:
    seconds: float
    cpu: float
    peak: int  # bytes
    trips: int


def stops() -> list[str]:
    return [f"ST{n:05d}" for n in range(STOPS)]


def write(path: Path, trips: int) -> None:
    """Trips between stops of very unequal use, over a month, by cards with forty trips on average."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    use = 1 / np.arange(1, STOPS + 1)
    use /= use.sum()
    named = np.array(stops())
    kinds = {
        "origin": pa.string(),
        "destination": pa.string(),
        "start": pa.timestamp("us"),
        "card": pa.string(),
    }
    with parquet.ParquetWriter(path, pa.schema(list(kinds.items()))) as writer:
        for begin in range(0, trips, ROWS):
            n = min(ROWS, trips - begin)
            seconds = 1_772_323_200 + rng.integers(0, DAYS * 86400, n)
            cards = rng.integers(0, max(1, trips // TRIPS_OF_A_CARD), n).astype(str)
            columns = (
                named[rng.choice(STOPS, n, p=use)],
                named[rng.choice(STOPS, n, p=use)],
                seconds * 10**6,
                np.char.add("C", np.char.zfill(cards, 11)),
            )
            arrays = [pa.array(c).cast(k) for c, k in zip(columns, kinds.values(), strict=True)]
            writer.write_table(pa.table(arrays, names=list(kinds)))


def write_csv(path: Path, trips: int) -> None:
    """Trips between stations, over a month, by cards with twelve trips on average, with stamps like "2026-03-01 08:14:00"."""
    import duckdb

    columns = (
        f"'C' || lpad((hash(i * 7 + 1) % {trips // TRIPS_OF_A_CSV_CARD + 1})::VARCHAR, 7, '0') AS card, "
        f"strftime(TIMESTAMP '2026-03-01' + to_seconds((hash(i * 3 + 2) % {DAYS * 86400})::BIGINT), '%Y-%m-%d %H:%M:%S') AS start, "
        f"'M' || lpad((hash(i * 5 + 3) % {STATIONS})::VARCHAR, 2, '0') AS origin, "
        f"'M' || lpad((hash(i * 11 + 4) % {STATIONS})::VARCHAR, 2, '0') AS destination"
    )
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT {columns} FROM range({trips}) t(i)) TO '{path}' (HEADER)")  # noqa: S608


def bare(columns: str) -> Callable[[Path], Callable[[], int]]:
    """The plain query, its answer fetched in batches as ours is."""

    def prepared(path: Path) -> Callable[[], int]:
        import duckdb

        def work() -> int:
            with duckdb.connect(
                config={"memory_limit": f"{MEMORY_MB}MB", "temp_directory": str(path.parent)}
            ) as db:
                db.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
                chosen = f"SELECT {columns}, count(*) AS n FROM read_parquet('{path}') GROUP BY ALL"  # noqa: S608
                return sum(
                    int(batch.column("n").to_numpy().sum())
                    for batch in db.sql(chosen).to_arrow_reader(1_000_000)
                )

        return work

    return prepared


def counted(unit: UnitLike, zone: str | None = None) -> Callable[[Path], Callable[[], int]]:
    """Ours: no trip starts where it ends, hours of the day, and the clock of a zone."""

    def prepared(path: Path) -> Callable[[], int]:
        universe = cbdp.Universe(
            origin=stops(), destination=stops(), time=cbdp.periods("00:00", "24:00", "1h")
        )
        universe = universe.without_equal("origin", "destination")

        def work() -> int:
            counts = cbdp.count(path, universe, columns={"time": "start"}, unit=unit, clock=cbdp.Clock(zone))
            return int(counts.value.sum())

        return work

    return prepared


def bare_csv(rows: str) -> Callable[[Path], Callable[[], int]]:
    """The plain query on a CSV, by the types that DuckDB finds."""

    def prepared(path: Path) -> Callable[[], int]:
        import duckdb

        def work() -> int:
            with duckdb.connect() as db:
                db.execute("SET enable_progress_bar = false")
                source = rows.format(f"read_csv('{path}')")
                chosen = (
                    f"SELECT origin, destination, hour(start) AS h, count(*) AS n FROM {source} GROUP BY ALL"  # noqa: S608
                )
                return int(db.sql(chosen).fetchnumpy()["n"].sum())

        return work

    return prepared


def counted_csv(unit: UnitLike) -> Callable[[Path], Callable[[], int]]:
    """Ours, of the same rows, once the code is loaded."""

    def prepared(path: Path) -> Callable[[], int]:
        columns = {"time": "start", "day": "start"}
        stations = [f"M{n:02}" for n in range(STATIONS)]
        universe = cbdp.Universe(
            origin=stations, destination=stations, time=cbdp.periods("00:00", "24:00", "1h")
        )

        def work() -> int:
            return int(cbdp.count(path, universe, columns=columns, unit=unit).value.sum())

        few = path.with_name("few.csv")  # loads the code, which takes a second of CPU
        few.write_text("card,start,origin,destination\nC1,2026-03-01 08:14:00,M01,M02\n", "utf-8")
        cbdp.count(few, universe, columns=columns, unit=unit)
        return work

    return prepared


PERSON = cbdp.Person("card", MAX_TRIPS)
DAY_OF_A_PERSON = cbdp.Person("card", MAX_TRIPS, "day")
LEAST_HASHES = (
    "(SELECT *, row_number() OVER (PARTITION BY card, start::DATE ORDER BY md5(card || start || origin)) AS r "  # noqa: S608
    f"FROM {{}}) WHERE r <= {MAX_TRIPS}"
)
WORKS = (
    Work("SELECT of trips", bare("origin, destination, hour(start)")),
    Work("count of trips", counted("trip"), "SELECT of trips", MOST["trips"]),
    Work("SELECT in a zone", bare(f"origin, destination, hour(timezone('{ZONE}', timezone('UTC', start)))")),
    Work("count of trips in a zone", counted("trip", ZONE), "SELECT in a zone", MOST["trips"]),
    Work("SELECT with cards", bare("card, origin, destination, hour(start)")),
    Work("count of persons", counted(PERSON), "SELECT with cards", MOST["persons"]),
)
CSV_WORKS = (
    Work("SELECT of trips, CSV", bare_csv("{}")),
    Work("count of trips, CSV", counted_csv("trip"), "SELECT of trips, CSV", MOST_CSV),
    Work("SELECT of four of a card's day, CSV", bare_csv(LEAST_HASHES)),
    Work(
        "count of persons, CSV",
        counted_csv(DAY_OF_A_PERSON),
        "SELECT of four of a card's day, CSV",
        MOST_CSV,
    ),
)


def timed(name: str, path: Path) -> Callable[[], Run]:
    """What a process of its own measures."""
    todo = next(work for work in (*WORKS, *CSV_WORKS) if work.name == name).run(path)

    def once() -> Run:
        start, before = time.perf_counter(), _cpu()
        trips = todo()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return Run(time.perf_counter() - start, _cpu() - before, peak, trips)

    return once


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def runs_of(work: Work, path: Path, times: int, limit: float) -> list[Run]:
    found = []
    for _ in range(times):
        made = measure(timed, work.name, path, limit=limit, repeats=1)
        if made.failure is not None:
            raise SystemExit(f"{work.name}: {made.failure}")
        found.append(made.value)
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks counting", description=__doc__)
    parser.add_argument("--trips", type=float, default=10, help="millions of trips")
    parser.add_argument("--runs", type=int, default=3, help="of each; the median is told")
    parser.add_argument("--folder", type=Path, help="where the trips are written; removed afterwards")
    parser.add_argument("--csv", action="store_true", help="trips in a CSV instead of Parquet")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds that each run may take")
    options = parser.parse_args(argv)
    trips = round(options.trips * 10**6)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / ("trips.csv" if options.csv else "trips.parquet")
        print(f"writing {trips:,} trips …", file=sys.stderr, flush=True)
        (write_csv if options.csv else write)(path, trips)
        return _compare(CSV_WORKS if options.csv else WORKS, path, options.runs, options.limit)


def _compare(works: Sequence[Work], path: Path, times: int, limit: float) -> int:
    rows, kept, of = [], [], {}
    for work in works:
        print(f"{work.name} …", file=sys.stderr, flush=True)
        found = runs_of(work, path, times, limit)
        seconds, cpu = (statistics.median(getattr(r, n) for r in found) for n in ("seconds", "cpu"))
        peak = max(r.peak for r in found)
        of[work.name] = seconds, cpu
        ratios = [seconds / of[work.bare][0], cpu / of[work.bare][1]] if work.bare else [float("nan")] * 2
        rows.append([work.name, *map(figure, (seconds, cpu)), *map(figure, ratios), figure(peak / 10**6)])
        if work.bare:
            kept.append((f"{work.name}: at most {work.most} × {work.bare}, by CPU", ratios[1] <= work.most))
            kept.append((f"{work.name}: at most {figure(MOST_BYTES / 10**6)} MB", peak <= MOST_BYTES))
    print(markdown(["", "seconds", "CPU seconds", "× the SELECT", "× its CPU", "peak MB"], rows))
    print("\n" + "\n".join(f"- {text}: {'yes' if held else 'NO'}" for text, held in kept))
    return 0 if all(held for _, held in kept) else 1
