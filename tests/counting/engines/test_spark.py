"""Spark counts on a real cluster as DuckDB does, whatever its settings, its collations and its luck."""

from __future__ import annotations

import os
import re
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from counting.engines import contract, on_page
from counting.making import ORIGINS, as_dict, same

import cbdp
from benchmarks.harness import loopback
from cbdp.counting import Clock
from cbdp.counting.engines import spark as engine
from cbdp.counting.engines.spark import session_of
from cbdp.counting.plan import make_plan
from cbdp.errors import InputError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # the first of them starts the cluster
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def few() -> contract.Case:
    """Persons of some rows, where it is not the reading of rows that is tried."""
    universe = cbdp.Universe(origin=ORIGINS, destination=contract.LABELS)
    return contract.Case(contract.stamped(800), universe, unit=cbdp.Person("card", 4))


def laid(spark: Any, table: pa.Table, folder: Path) -> Any:
    pa.parquet.write_table(table, folder / "trips.parquet")
    return spark.read.parquet(str(folder / "trips.parquet"))


@pytest.mark.parametrize("name", contract.CASES)
def test_spark_counts_as_duckdb_does(name: str, spark: Any, tmp_path: Path) -> None:
    """The same counts and the same persons' trips, of rows that are read in every way."""
    case = contract.CASES[name]()
    frame = laid(spark, case.table, tmp_path)
    folded = [f"COLLATE({c}, 'UTF8_LCASE') AS {c}" if c in case.folded else c for c in frame.columns]
    inspected = name in ("weights", "real persons", "collated persons")
    contract.check(case, frame.selectExpr(*folded) if case.folded else frame, inspected=inspected)


# A lost executor


def test_a_lost_executor_changes_nothing(spark: Any, cluster: loopback.Cluster) -> None:
    """One of the two is killed while persons of 200,000 rows are bounded: tasks run again, and the counts are the same."""
    tasks = 17
    rows = spark.range(200_000, numPartitions=4).selectExpr(
        "CONCAT('s', PMOD(XXHASH64(id), 50)) AS stop", "PMOD(XXHASH64(id, 7), 4000) AS card"
    )
    trips = rows.repartition(tasks, "stop", "card")
    universe, unit = cbdp.Universe(stop=[f"s{i}" for i in range(40)]), cbdp.Person("card", 20)
    settings = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": tasks,
        "spark.sql.codegen.wholeStage": "true",
    }
    with _set(spark, {**settings, "spark.sql.codegen.factoryMode": "FALLBACK"}):
        wanted = cbdp.count(trips, universe, unit=unit, entropy=contract.Fixed())
        for _ in range(5):  # a count may be over before the killer has looked
            before, killer = (
                len(_events(cluster)),
                loopback.Killer(spark, tasks, nth=2),
            )  # the first sends rows to their persons, the second bounds them
            killer.start()
            try:
                found = cbdp.count(trips, universe, unit=unit, entropy=contract.Fixed())
            finally:
                killer.stop()
            assert same(wanted, found)
            if killer.killed is not None:
                break
    assert killer.killed is not None, "the count was over before an executor could be killed"
    # Spark tells of what happened some time after it happened
    loopback.wait(lambda: sum(killer.repeated()) > 0, "no task was done again")
    lost = re.compile(rb'"Reason":"(ExecutorLostFailure|FetchFailed)"')
    loopback.wait(lambda: lost.search(_events(cluster)[before:]), "no task was lost with it")
    assert 78_000 < found.value.sum() <= 20 * 4_000
    loopback.await_executors(spark, 2)


def _events(cluster: loopback.Cluster) -> bytes:
    """What Spark has written down of all that was done, by now."""
    return _files(cluster.folder / "events", "events*")


def _files(folder: Path, names: str = "*") -> bytes:
    return b"".join(p.read_bytes() for p in sorted(folder.rglob(names)) if p.is_file())


class _set:  # noqa: N801 - reads as a word
    """Settings of a session, for a while."""

    def __init__(self, spark: Any, settings: dict[str, Any]) -> None:
        self.spark, self.settings = spark, settings

    def __enter__(self) -> None:
        self.before = {name: self.spark.conf.get(name) for name in self.settings}
        for name, value in self.settings.items():
            self.spark.conf.set(name, str(value))

    def __exit__(self, *_: object) -> None:
        for name, value in self.before.items():
            self.spark.conf.set(name, value)


# Who is who


def test_rows_that_are_alike_to_a_collation_are_told_apart(spark: Any) -> None:
    """`ab` and `AB` are two persons, `A` and `a` two stops, in columns that ignore case; empty text is nobody."""
    rows = {"stop": ["A", "a"] * 500, "card": ["ab", "AB", "AB", "ab"] * 249 + ["", "", None, None]}
    frame = spark.createDataFrame(pa.table(rows)).selectExpr(
        "COLLATE(stop, 'UTF8_LCASE') AS stop", "COLLATE(card, 'UTF8_LCASE_RTRIM') AS card"
    )
    assert frame.select("stop").distinct().count() == 1
    universe = cbdp.Universe(stop=["A", "a"])
    assert as_dict(cbdp.count(frame, universe), universe) == {("A",): 500, ("a",): 500}
    ask = {"unit": cbdp.Person("card", 4), "entropy": contract.Fixed()}
    kept = cbdp.count(frame, universe, **ask)
    assert kept.value.sum() == 8
    assert same(kept, cbdp.count(pa.table(rows), universe, **ask))


def test_instants_that_a_clock_shows_alike_are_two_persons(spark: Any) -> None:
    """At the end of summer time an hour comes twice, in the session's zone."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        cells = ("00:30:00Z", "01:30:00Z", "02:30:00+02:00")
        rows = " UNION ALL ".join(f"SELECT 'A' AS stop, TIMESTAMP '2026-10-25 {c}' AS card" for c in cells)
        found = cbdp.count(
            spark.sql(rows), cbdp.Universe(stop=["A", "B"]), unit=cbdp.Person("card", 1)
        )  # the first and the last are one instant
        assert found.value.tolist() == [2]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_bytes_that_are_no_text_stop_nothing(spark: Any, tmp_path: Path) -> None:
    """Invalid UTF-8 is an unknown stop, no time, and a person like others, told apart by its bytes."""
    values = pa.array([b"A", b"\xff\xfe", b"A", b"\xff", b"A", b"\xff"], pa.binary()).view(pa.string())
    cards = pa.array([b"\xff", b"\xff", b"\xfe", b"x", b"\xff", b"x"], pa.binary()).view(pa.string())
    times = pa.array([b"08:00", b"08:00", b"\xff08:00", b"08:00", b"08:30", b""], pa.binary()).view(
        pa.string()
    )
    frame = laid(spark, pa.table({"stop": values, "card": cards, "time": times}), tmp_path)
    universe = cbdp.Universe(stop=["A"], time=cbdp.periods("08:00", "09:00", "1h"))
    assert as_dict(cbdp.count(frame, universe), universe) == {("A", "08:00"): 2}
    assert as_dict(cbdp.count(frame, universe, unit=cbdp.Person("card", 1)), universe) == {("A", "08:00"): 1}


def test_nothing_but_the_rows_decides(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one key, any partitions, any order and any slices of the answer give the same counts; another key gives others."""
    case = few()
    frame = laid(spark, case.table, tmp_path)
    wanted = case.count(case.table)
    monkeypatch.setattr(engine, "MAX_ROWS_AT_ONCE", len(wanted.index) // 2)
    for trips in (frame.repartition(13, "start"), frame.orderBy("origin")):
        assert same(wanted, case.count(trips))
    other = cbdp.count(frame, case.universe, columns=case.columns, clock=case.clock, unit=case.unit)
    assert other.secure
    assert not same(wanted, other)
    assert other.value.sum() == wanted.value.sum()


def test_the_trips_of_each_person_come_together(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they come in slices: each person begins once, and no trip is lost."""
    monkeypatch.setattr(engine, "MAX_ROWS_AT_ONCE", 50)
    rows = {"stop": ["A", "a"] * 200, "card": [f"c{i % 23}" for i in range(400)]}
    with engine.Spark().open(spark.createDataFrame(pa.table(rows))) as source:
        plan = make_plan(source.schema, cbdp.Universe(stop=["A", "a"]), None, cbdp.Person("card", 3), Clock())
        batches = list(source.by_person(plan))
    assert len(batches) > 3
    assert sum(int(begins.sum()) for begins, _ in batches) == 23
    assert sum(len(flat) for _, flat in batches) == 400


@pytest.mark.parametrize("how", ["rand", "sample", "uuid"])
def test_a_frame_that_draws_bounds_no_persons(how: str, spark: Any) -> None:
    """A task that runs again would draw again: it is refused for persons, and counts trips."""
    frame = spark.createDataFrame(pa.table({"stop": ["A"] * 100, "card": ["x"] * 100}))
    made = {
        "rand": lambda: frame.where("RAND() < 2"),
        "sample": lambda: frame.sample(fraction=0.999, seed=1),
        "uuid": lambda: frame.selectExpr("stop", "CONCAT(card, LEFT(UUID(), 0)) AS card"),
    }[how]()
    universe = cbdp.Universe(stop=["A"])
    with pytest.raises(InputError, match=r"draws at random .* Save it as a table first"):
        cbdp.count(made, universe, unit=cbdp.Person("card", 1))
    assert 80 < cbdp.count(made, universe).value.sum() <= 100


# What stays behind


def test_nothing_of_ours_stays(spark: Any, tmp_path: Path) -> None:
    """Views are dropped, what executors kept is released, and settings are as they were, also after an error."""
    planning = "spark.sql.constraintPropagation.enabled"
    before = spark.conf.get(planning)
    case = few()
    case.count(laid(spark, case.table, tmp_path))
    with pytest.raises(InputError, match="could not be counted by Spark"):
        cbdp.count(_failing(spark), cbdp.Universe(stop=["A"]), unit=cbdp.Person("n", 2))
    assert [view.name for view in spark.catalog.listTables() if view.name.startswith("cbdp_")] == []
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == 0
    assert spark.conf.get(planning) == before


def _failing(spark: Any) -> Any:
    frame = spark.createDataFrame(pa.table({"stop": ["A"], "card": ["SECRET-417"]}))
    return frame.selectExpr("stop", "RAISE_ERROR(card) AS n")


def test_an_error_quotes_no_cell(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """A frame that fails on a row stops the count; neither the message nor the screen says anything of the row."""
    with pytest.raises(InputError, match="could not be counted by Spark") as caught:
        cbdp.count(_failing(spark), cbdp.Universe(stop=["A"]), unit=cbdp.Person("n", 2))
    shown = "".join(traceback.format_exception(caught.value)) + "".join(capfd.readouterr())
    assert "SECRET" not in shown


def test_the_key_is_in_no_plan_and_no_event(spark: Any, cluster: loopback.Cluster, tmp_path: Path) -> None:
    """All that Spark writes down of a count, in plans and in its event log, holds the key in no spelling."""
    case = few()
    frame = laid(spark, case.table, tmp_path)
    case.count(frame)
    with engine.Spark().open(frame) as source:
        plan = make_plan(source.schema, case.universe, case.columns, case.unit, case.clock)
        source._lay(plan)
        source._lay_secret(contract.KEY)
        query = spark.sql(source._read(plan, partial(source._kept_query, plan)))
        plans = "\n".join(query._jdf.queryExecution().explainString(mode) for mode in _modes(spark))
    loopback.wait(lambda: b"sha2(concat(word" in _events(cluster), "Spark wrote down no count")
    events = _events(cluster)
    assert "sha2(concat(word" in plans
    assert not [
        s for s in contract.spellings(contract.KEY) if s in events.lower() or s in plans.encode().lower()
    ]


def _modes(spark: Any) -> list[Any]:
    mode = spark._jvm.org.apache.spark.sql.execution.ExplainMode
    return [mode.fromString(name) for name in ("extended", "formatted", "codegen", "cost")]


# URLs


def test_a_url_opens_tables_on_the_cluster(spark: Any, cluster: loopback.Cluster, tmp_path: Path) -> None:
    """Files and tables by name; a link leads to no second file, and the session that was there stays."""
    case = few()
    (tmp_path / "trips").mkdir()
    frame = laid(spark, case.table, tmp_path / "trips")
    (tmp_path / "trips" / "again.parquet").symlink_to(tmp_path / "trips" / "trips.parquet")
    contract.check(case, f"{cluster.master}::parquet:{tmp_path / 'trips'}")
    contract.check(case, f"spark://::parquet:file://{tmp_path / 'trips'}")
    frame.createOrReplaceTempView("some_trips")
    contract.check(case, f"{cluster.master}::some_trips")
    spark.catalog.dropTempView("some_trips")
    assert spark.range(3).count() == 3


def test_the_page_on_databases_is_followed(spark: Any, cluster: loopback.Cluster, tmp_path: Path) -> None:
    """What it shows for a cluster works on one."""
    (tmp_path / "trips").mkdir()
    laid(spark, pa.Table.from_pylist(on_page.trips()), tmp_path / "trips")
    real = f"{cluster.master}::parquet:{tmp_path / 'trips'}"
    on_page.assert_read(on_page.follow("spark://host:7077::parquet:/data/trips", real, tmp_path))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("{master}::parquet:/no/such/folder", "cannot be opened by Spark .*PATH_NOT_FOUND"),
        ("{master}::no_such_table", "the table 'no_such_table' cannot be opened by Spark"),
        ("{master}::delta:/data", "cannot be opened by Spark .*session's packages"),
        ("{master}::parquet:/data/*.parquet", "is a pattern, which may find a file twice"),
        ("{master}", "names no table"),
        ("spark://elsewhere:7077::trips", "has a Spark session on .* already"),
        ("spark://local[2]::trips", "has a Spark session on .* already"),
    ],
)
def test_a_bad_url_is_one_clear_line(url: str, message: str, spark: Any, cluster: loopback.Cluster) -> None:
    """What is wrong with a URL is said at once, and nothing else of Spark's."""
    with pytest.raises(InputError, match=message) as caught:
        cbdp.count(url.format(master=cluster.master), cbdp.Universe(stop=["A"]))
    assert "\n" not in str(caught.value)


def test_a_frame_through_ibis_is_counted_on_its_cluster(spark: Any, tmp_path: Path) -> None:
    """An Ibis table of Spark is a frame of Spark."""
    ibis = pytest.importorskip("ibis")
    case = few()
    laid(spark, case.table, tmp_path).createOrReplaceTempView("ibis_trips")
    with _set(spark, {"spark.sql.session.timeZone": "UTC"}):  # Ibis sets it, and more
        table = ibis.pyspark.connect(spark).table("ibis_trips")
        contract.check(case, table)
    spark.catalog.dropTempView("ibis_trips")


# Spark Connect


@pytest.fixture
def remote(spark: Any) -> str:
    """The address of the Spark Connect server."""
    pytest.importorskip("grpc", reason="no Spark Connect: pip install 'cbdp[spark]'")
    port = int(spark.conf.get("spark.connect.grpc.binding.port"))
    loopback.wait(lambda: loopback.listens(port), "Spark Connect did not start")
    return f"sc://{loopback.LOOPBACK}:{port}"


def test_spark_connect_counts_alike(remote: str, cluster: loopback.Cluster, tmp_path: Path) -> None:
    """Through Connect, where plans are sent and not shared: the same counts, and no key in what the server writes down."""
    url, user = remote, "hunter" + "2"
    before = len(_events(cluster))
    case = contract.CASES["persons"]()
    pa.parquet.write_table(case.table, tmp_path / "trips.parquet")
    contract.check(case, f"{url}/;user_id={user}::parquet:{tmp_path / 'trips.parquet'}")
    loopback.wait(lambda: b"sha2(concat(word" in _events(cluster)[before:], "Spark wrote down no count")
    written = _events(cluster)
    assert not [s for s in contract.spellings(contract.KEY) if s in written.lower()]
    session, stop = session_of(url)
    draws = session.range(9).selectExpr("'A' AS stop", "CAST(RAND() AS STRING) AS card")
    with pytest.raises(InputError, match="draws at random"):
        cbdp.count(draws, cbdp.Universe(stop=["A"]), unit=cbdp.Person("card", 1))
    stop()
    with pytest.raises(InputError, match="cannot be opened") as caught:
        cbdp.count(f"{url}/;user_id={user}::no_such_table", cbdp.Universe(stop=["A"]))
    assert user not in "".join(traceback.format_exception(caught.value))
    pa.parquet.write_table(pa.Table.from_pylist(on_page.trips()), tmp_path / "page.parquet")
    shown = on_page.follow(
        "sc://host:15002::warehouse.trips", f"{url}::parquet:{tmp_path / 'page.parquet'}", tmp_path
    )
    on_page.assert_read(shown)


def test_no_java_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Java, or without a master that answers, it says what is needed."""
    from cbdp.counting.engines import spark

    def fails(_: str) -> Any:
        raise RuntimeError(
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number: token=hunter2"
        )

    monkeypatch.setattr(spark, "_classic", fails)
    with pytest.raises(InputError, match=r"no Spark session could be opened .*Java 17") as caught:
        cbdp.count(f"spark://local[1]::parquet:{tmp_path}", cbdp.Universe(stop=["A"]))
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_the_skip_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without Java these tests skip, and name the package."""
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "openjdk-17-jre-headless" in str(loopback.missing())
