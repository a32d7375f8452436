"""Apache Spark: trips are counted on the cluster that holds them. Executors need no Python, and the driver sees counts alone.

Nothing relies on the session's settings: SQL is written so that it means the same with ANSI mode or without, in any time zone, under any
collation. Only what makes planning fast is set, and set back (`PLANNING`). The key goes into the plan as the one row of a local relation, which Spark prints in no plan and no event log.
"""

from __future__ import annotations

import logging
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.trips.engines import spark_open
from cbdp.trips.engines.base import Engine
from cbdp.trips.engines.spark_open import OpenedFrame
from cbdp.trips.engines.sql_source import SqlSource, unique
from cbdp.trips.engines.words import SPARK
from cbdp.trips.plan import CountingPlan

SAMPLE = re.compile(r"^[\s:+|-]*Sample ", re.MULTILINE)
RANDOM = re.compile(
    r"\b(rand|randn|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id)\("
)
SLICE = 4_000_000  # rows of an answer that come to the driver at once
PLANNING = {
    # what follows from long expressions, and filters made of it: minutes for texts that are times
    "spark.sql.constraintPropagation.enabled": "false",
}
SMALL = 2_000_000  # rows of a table that every executor may hold


@dataclass(frozen=True)
class Spark(Engine):
    """A Spark session, classic or Connect."""

    name: ClassVar[str] = "spark"
    about: ClassVar[str] = (
        "on an Apache Spark cluster: DataFrames, spark:// and sc:// URLs of Parquet, Delta and catalog tables"
    )

    def opens(self, trips: Any) -> bool:
        url = isinstance(trips, str) and trips.partition("://")[0] in spark_open.SCHEMES and "://" in trips
        return url or spark_open.is_frame(trips)

    @contextmanager
    def open(self, trips: Any, wanted: Sequence[str] | None = None) -> Iterator[SparkSource]:
        with _quiet(), spark_open.opened(trips, wanted) as found, _planning(found.frame.sparkSession):
            source = SparkSource(found)
            try:
                yield source
            finally:
                source.close()


def open_frame(frame: Any) -> AbstractContextManager[SparkSource]:
    """A DataFrame, for who has one."""
    return Spark().open(frame)


class SparkSource(SqlSource):
    """Trips that are open in Spark."""

    def __init__(self, found: OpenedFrame) -> None:
        super().__init__(found.schema, SPARK, found.changed)
        self._frame, self._session = found.frame, found.frame.sparkSession
        self._views: list[str] = []
        self._stored: list[Any] = []  # frames that executors hold on their disks
        self._fields: tuple[Any, str] | None = None

    def count(self, plan: CountingPlan, key: bytes | None) -> Iterator[tuple[Ints, Ints]]:
        if plan.bound is not None and _draws(self._frame):
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
            columns = [SPARK.identifier(f.name) for f in plan.fields]
            names = [f"v{i}" for i in range(len(columns))]
            self._fields = plan.fields, self._view("trips", self._frame.select(*columns).toDF(*names))
        return self._fields[1], [f"v{i}" for i in range(len(plan.fields))]

    def _put(self, name: str, table: Any) -> str:
        frame = self._session.createDataFrame(table)
        return self._view(name, frame.hint("broadcast") if len(table) <= SMALL else frame)

    def _view(self, name: str, frame: Any) -> str:
        made = unique(name)
        frame.createOrReplaceTempView(made)
        self._views.append(made)
        return made

    def _drop(self, name: str) -> None:
        if name in self._views:
            self._views.remove(name)
            self._session.catalog.dropTempView(name)

    def _keep(self, query: str) -> str:
        name = self._view("kept", self._session.sql(query))
        self._store(self._session.table(name))
        return name

    def _store(self, frame: Any) -> Any:
        """A frame whose rows executors write to their disks when it is first read. What is lost of it is made again, and is the same."""
        from pyspark.storagelevel import StorageLevel

        try:
            stored = frame.persist(StorageLevel.DISK_ONLY)
        except Exception:  # noqa: BLE001 - sessions without a cluster of their own cannot; then it is made again each time
            return frame
        self._stored.append(stored)
        return stored

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        table = self._session.sql(query).toArrow()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def _batches(self, query: str, most: int | None = None, *, by: str | None = None) -> Iterator[Any]:
        """An answer in slices, one of which the driver holds at a time."""
        frame = self._session.sql(query)
        order = frame.columns if by else []
        if most is not None and most <= SLICE:
            yield from frame.toArrow().to_batches()
            return
        frame = self._store(frame)
        try:
            slices = max(1, math.ceil(frame.count() / SLICE))
            who = by or ", ".join(SPARK.identifier(column) for column in frame.columns)
            for n in range(slices):
                part = frame.where(f"PMOD(XXHASH64({who}), {slices}) = {n}")
                yield from (part.orderBy(*order) if order else part).toArrow().to_batches()
        finally:
            self._release(frame)

    def _release(self, frame: Any) -> None:
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


def _draws(frame: Any) -> bool:
    """Whether a frame's own query is known to give other rows each time."""
    if hasattr(frame, "_jdf"):
        plan = frame._jdf.queryExecution().analyzed()
        return not plan.deterministic() or SAMPLE.search(plan.toString()) is not None
    text = frame._explain_string(extended=True)  # of Connect, whose plans are elsewhere
    return SAMPLE.search(text) is not None or RANDOM.search(text) is not None


@contextmanager
def _planning(session: Any) -> Iterator[None]:
    """With the settings of PLANNING; a session that lets nobody set them goes without."""
    before = {}
    for name, value in PLANNING.items():
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
def _quiet() -> Iterator[None]:
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
