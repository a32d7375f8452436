"""datapackage.json, read and validated by the Frictionless package itself: descriptor, schemas, and all data against them."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from released import MECHANISMS, release_of
from spoken_about import FULL

import cbdp

frictionless = pytest.importorskip("frictionless")


def check(folder: Path) -> dict[str, int]:
    """Refuse what Frictionless finds wrong; the rows of each resource that it read."""
    report = frictionless.Package(str(folder / "datapackage.json")).validate()
    assert report.valid, report.flatten(["name", "type", "message"])
    return {task.place: task.stats["rows"] for task in report.tasks}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_frictionless_reads_every_mechanism_s_files(name: str, tmp_path: Path) -> None:
    """Every Parquet file is a resource, and all its rows pass its schema: types, and keys that are unique."""
    release_of(name).save(tmp_path / "out")
    rows = check(tmp_path / "out")
    files = sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*.parquet"))
    assert sorted(rows) == files
    assert all(rows[path] == pq.read_metadata(tmp_path / "out" / path).num_rows for path in files)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_labels_of_all_kinds_pass(tmp_path: Path) -> None:
    """Whole numbers, dates, truth values, and labels of several kinds at once, under names that no file system likes."""
    universe = cbdp.Universe(
        **{
            "Von/Nach 1": [1, 2],
            "day": [dt.date(2026, 3, 2), dt.date(2026, 3, 3)],
            "peak": [True, False],
            "mixed": ["A", 7],
            "at": [dt.time(8), dt.time(9, 30)],
        }
    )
    dag = cbdp.FeatureDag(
        universe, [cbdp.Feature("Von Nach?", by="Von/Nach 1"), cbdp.Feature("tag", by="day")]
    )
    cbdp.ConstraintBased(dag, 1).release(np.full(32, 5)).save(tmp_path / "out")
    rows = check(tmp_path / "out")
    assert len(rows) == 10
    named = {
        r["name"] for r in json.loads((tmp_path / "out" / "datapackage.json").read_text("utf-8"))["resources"]
    }
    assert len(named) == len(rows)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_wrong_data_are_found(tmp_path: Path) -> None:
    """The schema is worth something: a text among counts, or a row twice, does not pass."""
    import pyarrow as pa

    release_of("laplace").save(tmp_path / "out")
    path = tmp_path / "out" / "trips.parquet"
    held = pq.read_table(path)
    pq.write_table(pa.concat_tables([held, held.slice(0, 1)]), path)
    report = frictionless.Package(str(tmp_path / "out" / "datapackage.json")).validate()
    assert "primary-key" in {kind for (kind,) in report.flatten(["type"])}
    words = held.set_column(held.schema.get_field_index("count"), "count", pa.array(["many"] * len(held)))
    pq.write_table(words, path)
    report = frictionless.Package(str(tmp_path / "out" / "datapackage.json")).validate()
    assert "type-error" in {kind for (kind,) in report.flatten(["type"])}


def test_what_the_publisher_says_is_in_it(tmp_path: Path) -> None:
    """Under the names that Data Packages have; the licence by the identifier that catalogues know."""
    replace(release_of("laplace"), about=FULL).save(tmp_path / "out")
    package = frictionless.Package(str(tmp_path / "out" / "datapackage.json"))
    assert package.title == "Trips -- all of them"
    assert package.licenses[0]["name"] == "CC-BY-4.0"
    assert package.contributors[0]["title"] == "Transit “Authority”"
    assert package.custom["about"]["period"] == {"first": "2026-03-01", "last": "2026-03-31"}
    assert package.custom["privacy"]["epsilon"] == 1.0
