"""What Spark opens: DataFrames, and URLs that name a cluster and a table. Opening looks at schemas alone.

spark://host:7077::parquet:/data/trips     a folder or file of Parquet (or orc:, delta:, iceberg:), on a standalone cluster
spark://host:7077::hive.rides.trips        a table of the session's catalogs
spark://yarn::…   spark://local[4]::…      another master
spark://::…                                the session that runs already, or as spark-defaults.conf has it
sc://host:15002::…                         Spark Connect
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbdp.errors import InputError
from cbdp.trips import files as on_disk
from cbdp.trips.engines import arrow
from cbdp.trips.engines.duckdb_open import split_url
from cbdp.trips.kinds import Schema, check_distinct

SCHEMES = ("spark", "sc")
STORED = re.compile(r"(parquet|orc|delta|iceberg):(.+)", re.DOTALL)
MASTERS = re.compile(r"local(\[.*\])?|yarn")

Stop = Callable[[], None]


@dataclass(frozen=True)
class OpenedFrame:
    """A DataFrame whose schema is known, and what to look at again when it has been counted."""

    frame: Any
    schema: Schema
    changed: Callable[[], tuple[str, ...]] = field(default=tuple)


def is_frame(trips: Any) -> bool:
    """Whether these are a DataFrame of Spark, classic or Connect; nothing is imported for it."""
    kind = type(trips)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")


@contextmanager
def opened(trips: Any, wanted: Sequence[str] | None) -> Iterator[OpenedFrame]:
    """Open a DataFrame or a URL. A session that is made for it ends with it."""
    if is_frame(trips):
        yield OpenedFrame(trips, Schema("the DataFrame", kinds_of(trips.schema)))
        return
    place, table = split_url(trips)
    session, stop = session_of(place)
    try:
        yield _table(session, table, wanted)
    finally:
        stop()


def session_of(place: str) -> tuple[Any, Stop]:
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


def _connect(place: str) -> tuple[Any, Stop]:
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(place).create()
    return session, session.stop


def _classic(where: str) -> tuple[Any, Stop]:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    master = where if not where or MASTERS.fullmatch(where) else f"spark://{where}"
    there = SparkContext._active_spark_context
    if there is not None and master and there.master != master:
        raise InputError(
            f"this process has a Spark session on {there.master!r} already, and can have no second one: stop it first, "
            "or write 'spark://::' for the session that runs"
        )
    builder = SparkSession.builder.appName("cbdp")
    session = (builder.master(master) if master and there is None else builder).getOrCreate()
    return session, session.stop if there is None else lambda: None


def _table(session: Any, table: str, wanted: Sequence[str] | None) -> OpenedFrame:
    stored = STORED.fullmatch(table)
    label = f"the table {table!r}"
    try:
        if stored is None:
            frame = session.table(table)
            return OpenedFrame(frame, Schema(label, kinds_of(frame.schema)))
        return _stored(session, stored[1], stored[2], wanted, label)
    except InputError:
        raise
    except Exception as wrong:  # noqa: BLE001 - of many kinds, and their text may quote a token
        kind = getattr(wrong, "getCondition", lambda: None)() or type(wrong).__name__
        raise InputError(
            f"{label} cannot be opened by Spark ({kind}): check its name, and the session's packages"
        ) from None


def _stored(session: Any, kind: str, path: str, wanted: Sequence[str] | None, label: str) -> OpenedFrame:
    """A file or folder. Where this machine sees it, each file is counted once, whatever links lead to it."""
    if set("*?[]{},") & set(path):
        raise InputError(
            f"{path!r} is a pattern, which may find a file twice: name one folder, file or table"
        )
    here = Path(path.removeprefix("file://").removeprefix("file:"))
    read = session.read.format(kind)
    if kind != "parquet" or not here.exists():
        frame = read.load(path)
        return OpenedFrame(frame, Schema(label, kinds_of(frame.schema)))
    found = on_disk.find(here)
    if wanted is not None:
        arrow.check_alike(found.paths, wanted)
    frame = read.load([f"file://{p.resolve()}" for p in found.paths])
    return OpenedFrame(frame, Schema(found.label, kinds_of(frame.schema), notes=found.notes), found.changed)


def kinds_of(schema: Any) -> dict[str, Any]:
    """Column → Arrow type."""
    check_distinct(schema.fieldNames())
    return {f.name: _arrow(f.dataType) for f in schema.fields}


def _arrow(kind: Any) -> Any:
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
