"""The table of engines: who opens what, and that another package's engine is asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cbdp
from cbdp.counting.engines import ENGINES, Engine, Source, engine_for
from cbdp.errors import InputError


def test_what_lies_in_memory_or_on_disk_is_duckdbs() -> None:
    """Files, columns, the usual tables and its own URLs; no other engine is asked, nor installed packages searched."""
    table = pa.table({"stop": ["A"]})
    for trips in (
        "t.parquet",
        Path("t.csv"),
        ["a.csv", "b.csv"],
        "duckdb:///x.db::t",
        {"stop": ["A"]},
        table,
        table.to_reader(),
        pd.DataFrame({"stop": ["A"]}),
        pl.DataFrame(table),
    ):
        assert engine_for(trips).name == "duckdb"


@pytest.mark.parametrize("trips", [7, object(), None, [], [1, 2]])
def test_what_is_no_table_is_one_clear_error(trips: Any) -> None:
    """It names the type and says what is possible."""
    with pytest.raises(InputError, match=f"trips of type {type(trips).__name__} cannot be read as a table"):
        cbdp.count(trips, cbdp.Universe(stop=["A"]))


class Elsewhere(Engine):
    """An engine of another package: it hands its trips to DuckDB."""

    name: ClassVar[str] = "elsewhere"
    about: ClassVar[str] = "a test"

    def opens(self, trips: Any) -> bool:
        return isinstance(trips, str) and trips.startswith("elsewhere://")

    @contextmanager
    def open(self, trips: Any, wanted: Any = None) -> Iterator[Source]:
        with ENGINES.get("duckdb").open({"stop": ["A"] * int(trips.rpartition("/")[2])}, wanted) as source:
            yield source


def test_an_engine_of_another_package_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It registers in the entry-point group `cbdp.engines`, and its URLs are counted."""
    module = ModuleType("their_engines")
    module.__dict__["Elsewhere"] = Elsewhere
    monkeypatch.setitem(sys.modules, "their_engines", module)
    entry = EntryPoint("elsewhere", "their_engines:Elsewhere", "cbdp.engines")
    monkeypatch.setattr("cbdp.parts.entry_points", lambda group: [entry] if group == entry.group else [])
    assert cbdp.count("elsewhere://city/12", cbdp.Universe(stop=["A"])).value.tolist() == [12]
