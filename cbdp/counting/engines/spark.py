"""Apache Spark, classic and Connect: trips are counted on the cluster that holds them. Executors need no Python, and the driver sees counts alone.

Nothing relies on the session's settings: SQL is written so that it means the same with ANSI mode or without, in any time zone, under any
collation. Only what makes planning fast is set, and set back (`PLANNING_SETTINGS`). The key goes into the plan as the one row of a local
relation, which Spark prints in no plan and no event log.
"""

from __future__ import annotations

import logging
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeGuard

from cbdp.arrays import Ints
from cbdp.counting import columns
from cbdp.counting import files as on_disk
from cbdp.counting.columns import Schema, check_distinct
from cbdp.counting.engines import Engine
from cbdp.counting.engines.dialects import SPARK_TEMPLATES
from cbdp.counting.engines.duckdb import split_url
from cbdp.counting.engines.sql_source import Answer, TemplateSource, unique_name
from cbdp.counting.plan import CountingPlan, Field
from cbdp.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

# What Spark opens: DataFrames, and URLs that name a cluster and a table. Opening looks at schemas alone.
#
# spark://host:7077::parquet:/data/trips     a folder or file of Parquet (or orc:, delta:, iceberg:), on a standalone cluster
# spark://host:7077::hive.rides.trips        a table of the session's catalogs
# spark://yarn::…   spark://local[4]::…      another master
# spark://::…                                the session that runs already, or as spark-defaults.conf has it
# sc://host:15002::…                         Spark Connect


SPARK_SCHEMES = ("spark", "sc")
STORED_TABLE = re.compile(r"(parquet|orc|delta|iceberg):(.+)", re.DOTALL)
MASTER_URL = re.compile(r"local(\[.*\])?|yarn")

StopSession = Callable[[], None]


@dataclass(frozen=True)
class OpenedFrame:
    """A DataFrame whose schema is known, and what to look at again when it has been counted."""

    frame: DataFrame
    schema: Schema
    changed: Callable[[], tuple[str, ...]] = field(default=tuple)


def is_frame(trips: object) -> TypeGuard[DataFrame]:
    """Whether these are a DataFrame of Spark, classic or Connect; nothing is imported for it."""
    kind = type(trips)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")


@contextmanager
def open_spark(trips: object, needed: Sequence[str] | None) -> Iterator[OpenedFrame]:
    """Open a DataFrame or a URL. A session that is made for it ends with it."""
    if is_frame(trips):
        yield OpenedFrame(trips, Schema("the DataFrame", spark_types(trips.schema)))
        return
    assert isinstance(trips, str)
    place, table = split_url(trips)
    session, stop = session_of(place)
    try:
        yield _open_table(session, table, needed)
    finally:
        stop()


def session_of(place: str) -> tuple[SparkSession, StopSession]:
    """The session at a place, and how to end it: one that was there before is left alone. The place may hold a token."""
    scheme, _, where = place.partition("://")
    try:
        return _connect(place) if scheme == "sc" else _classic(where)
    except ImportError as missing:
        raise InputError(
            f"Spark needs a package that is not installed ({missing.name}): pip install 'cbdp[spark]'"
        ) from None
    except InputError:
        raise
    except Exception as wrong:  # noqa: BLE001 - of many kinds, and their text may quote a token
        hint = "it needs Java 17 or newer, and a master that answers"
        raise InputError(f"no Spark session could be opened ({type(wrong).__name__}): {hint}") from None


def _connect(place: str) -> tuple[SparkSession, StopSession]:
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(place).create()
    return session, session.stop


def _classic(where: str) -> tuple[SparkSession, StopSession]:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    master = where if not where or MASTER_URL.fullmatch(where) else f"spark://{where}"
    there = SparkContext._active_spark_context
    if there is not None and master and there.master != master:
        raise InputError(
            f"this process has a Spark session on {there.master!r} already, and can have no second one: stop it first, "
            "or write 'spark://::' for the session that runs"
        )
    builder = SparkSession.builder.appName("cbdp")
    session = (builder.master(master) if master and there is None else builder).getOrCreate()
    return session, session.stop if there is None else lambda: None


def _open_table(session: SparkSession, table: str, needed: Sequence[str] | None) -> OpenedFrame:
    stored = STORED_TABLE.fullmatch(table)
    label = f"the table {table!r}"
    try:
        if stored is None:
            frame = session.table(table)
            return OpenedFrame(frame, Schema(label, spark_types(frame.schema)))
        return _open_stored(session, stored[1], stored[2], needed, label)
    except InputError:
        raise
    except Exception as wrong:  # noqa: BLE001 - of many kinds, and their text may quote a token
        kind = getattr(wrong, "getCondition", lambda: None)() or type(wrong).__name__
        raise InputError(
            f"{label} cannot be opened by Spark ({kind}): check its name, and the session's packages"
        ) from None


def _open_stored(
    session: SparkSession, kind: str, path: str, needed: Sequence[str] | None, label: str
) -> OpenedFrame:
    """A file or folder. Where this machine sees it, each file is counted once, whatever links lead to it."""
    if set("*?[]{},") & set(path):
        raise InputError(
            f"{path!r} is a pattern, which may find a file twice: name one folder, file or table"
        )
    here = Path(path.removeprefix("file://").removeprefix("file:"))
    read = session.read.format(kind)
    if kind != "parquet" or not here.exists():
        frame = read.load(path)
        return OpenedFrame(frame, Schema(label, spark_types(frame.schema)))
    files = on_disk.find_files(here)
    if needed is not None:
        columns.check_alike(files.paths, needed)
    frame = read.load([f"file://{p.resolve()}" for p in files.paths])
    return OpenedFrame(
        frame, Schema(files.label, spark_types(frame.schema), notes=files.notes), files.changed
    )


def spark_types(schema: StructType) -> dict[str, pa.DataType]:
    """Column → Arrow type."""
    check_distinct(schema.fieldNames())
    return {f.name: _arrow_type(f.dataType) for f in schema.fields}


def _arrow_type(kind: DataType) -> pa.DataType:
    """A TIMESTAMP of Spark is an instant, and has no zone of its own: it is UTC until the clock says otherwise."""
    import pyarrow as pa

    name = kind.typeName()
    if name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    simple = {"byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64()}
    simple |= {"float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(), "void": pa.null()}
    simple |= {
        "timestamp": pa.timestamp("us", "UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "date": pa.date32(),
    }
    simple |= {"string": pa.string(), "char": pa.string(), "varchar": pa.string(), "binary": pa.binary()}
    return simple.get(name, pa.time64("us") if name.startswith("time(") else pa.list_(pa.null()))


# The engine


SAMPLE_IN_PLAN = re.compile(r"^[\s:+|-]*Sample ", re.MULTILINE)
RANDOM_FUNCTIONS = re.compile(
    r"\b(rand|randn|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id)\("
)
MAX_ROWS_AT_ONCE = 4_000_000  # rows of an answer that come to the driver at once
PLANNING_SETTINGS = {
    # what follows from long expressions, and filters made of it: minutes for texts that are times
    "spark.sql.constraintPropagation.enabled": "false",
}
MAX_BROADCAST_ROWS = 2_000_000  # rows of a table that every executor may hold


@dataclass(frozen=True)
class Spark(Engine):
    """A Spark session, classic or Connect."""

    name: ClassVar[str] = "spark"
    about: ClassVar[str] = (
        "on an Apache Spark cluster: DataFrames, spark:// and sc:// URLs of Parquet, Delta and catalog tables"
    )

    def opens(self, trips: object) -> bool:
        url = isinstance(trips, str) and trips.partition("://")[0] in SPARK_SCHEMES and "://" in trips
        return url or is_frame(trips)

    @contextmanager
    def open(self, trips: object, needed: Sequence[str] | None = None) -> Iterator[SparkSource]:
        with (
            _quiet_loggers(),
            open_spark(trips, needed) as opened,
            _planning_settings(opened.frame.sparkSession),
        ):
            source = SparkSource(opened)
            try:
                yield source
            finally:
                source.close()


def open_frame(frame: DataFrame) -> AbstractContextManager[SparkSource]:
    """A DataFrame, for who has one."""
    return Spark().open(frame)


class SparkSource(TemplateSource):
    """Trips that are open in Spark."""

    def __init__(self, opened: OpenedFrame) -> None:
        super().__init__(opened.schema, SPARK_TEMPLATES, opened.changed)
        self._frame, self._session = opened.frame, opened.frame.sparkSession
        self._views: list[str] = []
        self._stored: list[DataFrame] = []  # frames that executors hold on their disks
        self._fields: tuple[tuple[Field, ...], str] | None = None

    def count(self, plan: CountingPlan, key: bytes | None) -> Iterator[tuple[Ints, Ints]]:
        if plan.bound is not None and _is_random(self._frame):
            raise InputError(
                f"{self.schema.label} draws at random (rand, sample, uuid): a task that runs again would draw again, and count "
                "another sample of a person's trips. Save it as a table first, and count that"
            )
        return super().count(plan, key)

    def rows(self) -> int:
        with self._reading():
            return int(self._frame.count())

    def _trips(self, plan: CountingPlan) -> tuple[str, list[str]]:
        """The trips as a view whose columns have names of ours, so that none of theirs is in a query's text."""
        if self._fields is None or self._fields[0] is not plan.fields:
            columns = [SPARK_TEMPLATES.identifier(f.name) for f in plan.fields]
            names = [f"v{i}" for i in range(len(columns))]
            self._fields = plan.fields, self._view("trips", self._frame.select(*columns).toDF(*names))
        return self._fields[1], [f"v{i}" for i in range(len(plan.fields))]

    def _put(self, name: str, table: pa.Table) -> str:
        frame = self._session.createDataFrame(table)
        return self._view(name, frame.hint("broadcast") if len(table) <= MAX_BROADCAST_ROWS else frame)

    def _view(self, name: str, frame: DataFrame) -> str:
        unique = unique_name(name)
        frame.createOrReplaceTempView(unique)
        self._views.append(unique)
        return unique

    def _drop(self, name: str) -> None:
        if name in self._views:
            self._views.remove(name)
            self._session.catalog.dropTempView(name)

    def _keep(self, query: str) -> str:
        name = self._view("kept", self._session.sql(query))
        self._store(self._session.table(name))
        return name

    def _store(self, frame: DataFrame) -> DataFrame:
        """A frame whose rows executors write to their disks when it is first read. What is lost of it is made again, and is the same."""
        from pyspark.storagelevel import StorageLevel

        try:
            stored = frame.persist(StorageLevel.DISK_ONLY)
        except Exception:  # noqa: BLE001 - sessions without a cluster of their own cannot; then it is made again each time
            return frame
        self._stored.append(stored)
        return stored

    def _rows(self, query: str) -> Answer:
        table = self._session.sql(query).toArrow()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def _batches(
        self, query: str, most: int | None = None, *, by: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """An answer in slices, one of which the driver holds at a time."""
        frame = self._session.sql(query)
        order = frame.columns if by else []
        if most is not None and most <= MAX_ROWS_AT_ONCE:
            yield from frame.toArrow().to_batches()
            return
        frame = self._store(frame)
        try:
            slices = max(1, math.ceil(frame.count() / MAX_ROWS_AT_ONCE))
            who = by or ", ".join(SPARK_TEMPLATES.identifier(column) for column in frame.columns)
            for n in range(slices):
                part = frame.where(f"PMOD(XXHASH64({who}), {slices}) = {n}")
                yield from (part.orderBy(*order) if order else part).toArrow().to_batches()
        finally:
            self._release(frame)

    def _release(self, frame: DataFrame) -> None:
        if any(frame is other for other in self._stored):
            self._stored = [other for other in self._stored if other is not frame]
            frame.unpersist()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (InputError, AssertionError, AttributeError, NameError, TypeError):
            raise
        except Exception as wrong:  # noqa: BLE001 - of many kinds, and their text may quote private values
            kind = getattr(wrong, "getCondition", lambda: None)() or type(wrong).__name__
            raise InputError(
                f"{self.schema.label} could not be counted by Spark ({kind}): its own log says why"
            ) from None

    def close(self) -> None:
        with self._reading():
            for frame in [*self._stored]:
                self._release(frame)
            for view in [*self._views]:
                self._drop(view)


def _is_random(frame: DataFrame) -> bool:
    """Whether a frame's own query is known to give other rows each time."""
    if hasattr(frame, "_jdf"):
        plan = frame._jdf.queryExecution().analyzed()
        return not plan.deterministic() or SAMPLE_IN_PLAN.search(plan.toString()) is not None
    text = frame._explain_string(extended=True)  # of Connect, whose plans are elsewhere
    return SAMPLE_IN_PLAN.search(text) is not None or RANDOM_FUNCTIONS.search(text) is not None


@contextmanager
def _planning_settings(session: SparkSession) -> Iterator[None]:
    """With the settings of PLANNING; a session that lets nobody set them goes without."""
    before = {}
    for name, value in PLANNING_SETTINGS.items():
        with suppress(Exception):
            before[name] = session.conf.get(name, None)
            session.conf.set(name, value)
    try:
        yield
    finally:
        for name, was in before.items():
            with suppress(Exception):
                session.conf.unset(name) if was is None else session.conf.set(name, was)


@contextmanager
def _quiet_loggers() -> Iterator[None]:
    """Without Spark's Python loggers, which write errors with the values that caused them, nor its remarks on versions."""
    loggers = [logging.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
            yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was
