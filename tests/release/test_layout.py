"""What stands in which file: the same numbers under the same labels, for every program."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from released import city_features, made_by, release_of, same

import cbdp
from cbdp.errors import InputError
from cbdp.privacy.accounting import DPCost, PrivacyGuarantee
from cbdp.release.files import load
from cbdp.release.layout import check_writable
from cbdp.release.release import Release
from cbdp.release.serialization import Recipe


def test_a_label_that_no_file_holds_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """The message names the label; so does the check that can be made before any ε is spent."""
    dag = cbdp.FeatureDag(cbdp.Universe(a=[frozenset("x"), frozenset("y")]), [])
    with pytest.raises(InputError, match="frozenset"):
        check_writable(dag)
    with pytest.raises(InputError, match="frozenset"):
        made_by(cbdp.ConstraintBased(dag, 1)).save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["count", "noisy", "low", "estimate"])
def test_a_dimension_named_like_a_column_is_refused(name: str) -> None:
    """Two columns of one name could not be told apart."""
    with pytest.raises(InputError, match=f"{name!r}.*rename"):
        check_writable(cbdp.FeatureDag(cbdp.Universe(**{name: ["x"]}), []))


def test_a_tree_s_measurements_keep_the_labels_they_were_made_of(tmp_path: Path) -> None:
    """Levels of a tree have a feature's name but other elements, or another order: each noisy count keeps its own key."""
    mechanism = cbdp.Hierarchical(city_features(), 1)
    release = made_by(mechanism)
    saved = release.save(tmp_path / "out")
    tree = mechanism.measured_features
    for m, entry in zip(release.measurements, saved.manifest["measurements"], strict=True):
        table = pq.read_table(saved.path / entry["file"]).to_pydict()
        keys = tree.partition(m.feature).keys()
        wanted = dict(zip(zip(*keys.values(), strict=True), m.values.tolist(), strict=True))
        found = dict(zip(zip(*(table[n] for n in keys), strict=True), table["noisy"], strict=True))
        assert found == wanted
    zone = pq.read_table(saved.path / "features" / "zone.parquet").to_pydict()
    assert set(zone["noisy"]) == {None}


def test_tables_say_what_the_release_says(tmp_path: Path) -> None:
    """By label, not by place: counts, noisy counts, estimates and intervals in the files are those of the release."""
    release = release_of("constraint-based")
    release.save(tmp_path / "out")
    trips = pq.read_table(tmp_path / "out" / "trips.parquet").to_pylist()
    assert {(r["origin"], r["destination"], r["time"]): r["count"] for r in trips} == {
        release.features.universe.unrank(int(i)): int(v)
        for i, v in zip(release.index, release.value, strict=True)
    }
    assert all(r["count"] > 0 for r in trips)
    for m in release.measurements:
        name = m.feature
        table = pq.read_table(tmp_path / "out" / "features" / f"{name}.parquet")
        keys = release.features.partition(name).keys()
        assert table.column_names == [*keys, "noisy", "scale", "estimate", "count", "low", "high"]
        assert {n: table[n].to_pylist() for n in keys} == keys
        assert table["noisy"].to_pylist() == m.values.tolist()
        assert set(table["scale"].to_pylist()) == {float(m.scale)}
        assert table["estimate"].to_pylist() == release.estimate.counts(name).tolist()
        assert table["count"].to_pylist() == release.counts(name).tolist()
        if name in release.intervals:
            assert table["low"].to_pylist() == release.intervals[name].low.tolist()
            assert table["high"].to_pylist() == release.intervals[name].high.tolist()


def test_other_programs_see_plain_columns(tmp_path: Path) -> None:
    """pandas, polars and DuckDB read text as text and whole numbers as whole numbers, and find the same total."""
    duckdb = pytest.importorskip("duckdb")
    release = release_of("constraint-based")
    path = release.save(tmp_path / "out").path / "trips.parquet"
    frame, table = pd.read_parquet(path), pl.read_parquet(path)
    assert table.schema == {
        "origin": pl.String,
        "destination": pl.String,
        "time": pl.String,
        "count": pl.Int64,
    }
    assert frame["count"].dtype == np.int64
    assert not isinstance(frame["origin"].dtype, pd.CategoricalDtype)
    ((total,),) = duckdb.read_parquet(str(path)).aggregate("sum(count)").fetchall()
    assert int(total) == frame["count"].sum() == table["count"].sum() == release.total


def test_a_sparse_release_lists_what_was_published_about_types_only(tmp_path: Path) -> None:
    """In a universe of 9·10⁸ types the files hold the types above the floors, and the floor of every cell."""
    n = 30_000
    ends = {"origin": range(n), "destination": range(n)}
    universe = cbdp.Universe(**{k: cbdp.Dimension(v, zone=[i % 3 for i in v]) for k, v in ends.items()})
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("zone", by=["origin.zone", "destination.zone"])])
    mechanism = cbdp.ConstraintBased(dag, 30)
    release = mechanism.release({"origin": list(range(500)), "destination": list(range(500, 1000))})
    saved = release.save(tmp_path / "out")
    back = load(tmp_path / "out")
    measured = next(m for m in back.measurements if m.feature == "singleton")
    original = next(m for m in release.measurements if m.feature == "singleton")
    assert same(measured.elements, original.elements)
    assert same(measured.floor, original.floor)
    assert same(back.index, release.index)
    assert same(back.estimate.solution.leaves, release.estimate.solution.leaves)
    floors = pq.read_table(tmp_path / "out" / "features" / "floors.parquet")
    assert floors["floor"].to_pylist() == original.floor.tolist()
    assert floors.column_names == ["origin.zone", "destination.zone", "floor"]
    rows = pq.read_metadata(tmp_path / "out" / "features" / "singleton.parquet").num_rows
    assert rows == len(np.union1d(original.elements, release.estimate.index))
    assert sum(f["bytes"] for n, f in saved.manifest["files"].items() if "universe" not in n) < 10**6


def test_tables_of_more_than_one_piece(tmp_path: Path) -> None:
    """A million and more types, in pieces of a row group: none is lost, twice or out of order."""
    universe = cbdp.Universe(origin=[f"s{i}" for i in range(1100)], destination=range(1000))
    index = np.arange(universe.size, dtype=np.int64)
    claim = PrivacyGuarantee(cbdp.Trip(), DPCost("all", Fraction(1)))
    release = Release(cbdp.FeatureDag(universe, []), Recipe("by hand"), claim, index, index % 9 + 1)
    path = release.save(tmp_path / "out").path / "trips.parquet"
    assert pq.read_metadata(path).num_row_groups == 2
    back = load(tmp_path / "out")
    assert same(back.index, index)
    assert same(back.value, release.value)
    table = pq.read_table(path)
    assert table["origin"][-1].as_py() == "s1099"
    assert table["destination"].to_pylist()[:1001] == [*range(1000), 0]
