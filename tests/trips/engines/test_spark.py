"""Spark counts on a real cluster as DuckDB does, under any settings, and keeps no trace of a key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from trips.engines import contract

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def laid(spark: Any, table: pa.Table, folder: Path) -> Any:
    pa.parquet.write_table(table, folder / "trips.parquet")
    return spark.read.parquet(str(folder / "trips.parquet"))


@pytest.mark.parametrize("name", contract.CASES)
def test_spark_counts_as_duckdb_does(name: str, spark: Any, tmp_path: Path) -> None:
    """The same counts and the same persons' trips, of rows that are read in every way."""
    case = contract.CASES[name]()
    contract.check(case, laid(spark, case.table, tmp_path), inspected=name in ("weights", "persons"))
