"""GeoParquet, read by GeoPandas, and by DuckDB as a plain table."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from exported import PLACES, city_release, mechanism_release

from cbdp.release.export import export


def test_flows_are_read_by_geopandas(tmp_path: Path) -> None:
    """A line per flow from its origin's longitude and latitude to its destination's, ids as numbers, whole trips."""
    geopandas = pytest.importorskip("geopandas", reason="no reader: pip install geopandas")
    release, trips = city_release(places=PLACES)
    path = export(release, tmp_path / "out.parquet", "GeoParquet")
    flows = geopandas.read_parquet(path)
    assert flows.crs == "OGC:CRS84"
    found = {
        tuple(row[:3]): row[3]
        for row in flows[["origin", "destination", "time", "count"]].to_numpy().tolist()
    }
    assert found == trips
    at = {s: (x, y) for s, x, y in zip(PLACES.ids, PLACES.lon, PLACES.lat, strict=True)}
    for o, d, line in zip(flows["origin"], flows["destination"], flows.geometry, strict=True):
        assert list(line.coords) == [at[o], at[d]]
    held = json.loads(pq.read_schema(path).metadata[b"geo"])["columns"]["geometry"]
    assert held["bbox"] == pytest.approx(flows.total_bounds.tolist())
    assert set(held["geometry_types"]) == set(flows.geom_type)


def test_it_is_a_table_for_everybody_else(tmp_path: Path) -> None:
    """DuckDB sums it without knowing of geometry; with intervals it has the release's answers; the file says what it is."""
    release = mechanism_release()
    path = export(release, tmp_path / "out.parquet", "geoparquet", level="zone", intervals=0.9)
    flows = duckdb.read_parquet(str(path))
    (sums,) = flows.aggregate(
        "sum(count), count(*) FILTER (low <= count AND count <= high), count(*)"
    ).fetchall()
    assert sums[0] == release.total
    assert sums[1] == sums[2]
    answer = release.ask(by=["origin.zone", "destination.zone", "time"])
    held = pq.read_table(path).to_pydict()
    found = set(zip(*(held[n] for n in ("origin", "destination", "time", "low", "high")), strict=True))
    rows = zip(
        *(answer[n] for n in ("origin.zone", "destination.zone", "time", "low", "high", "count")), strict=True
    )
    assert found == {row[:5] for row in rows if row[5] > 0}
    assert json.loads(pq.read_schema(path).metadata[b"about"])["simulation"] is True
