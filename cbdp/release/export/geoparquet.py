"""GeoParquet 1.1: a table of flows with their lines, for GeoPandas, DuckDB, QGIS and R."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cbdp.release.export.base import Format, provenance
from cbdp.release.export.flows import Flows, decoded_table, drawn_flows, flow_tables, wkb_lines
from cbdp.release.release import Release
from cbdp_features.places import Stops

GEOMETRY = "geometry"


@dataclass(frozen=True)
class GeoParquet(Format):
    name: ClassVar[str] = "geoparquet"
    ending: ClassVar[str] = ".parquet"
    about: ClassVar[str] = "GeoParquet: flows as lines, in one table"

    def write(
        self,
        release: Release,
        path: Path,
        *,
        places: Stops | None = None,
        level: str | None = None,
        intervals: float | None = None,
        origin: str = "origin",
        destination: str = "destination",
    ) -> None:
        """Write a row per flow: its line, origin, destination, the other dimensions, count and, with `intervals`, low and high.

        Coordinates are longitude and latitude (OGC:CRS84, the format's default). The file's metadata has what the release says about
        itself under the key `about`.
        """
        flows, lon, lat = drawn_flows(release, places, level, intervals, (origin, destination))
        metadata = {
            "geo": json.dumps(_geo(lon, lat, flows)),
            "about": json.dumps(provenance(release), ensure_ascii=False),
        }
        writer: Any = None
        for rows, table in flow_tables(flows, [GEOMETRY]):
            shown = decoded_table(table).append_column(GEOMETRY, _binary(wkb_lines(lon, lat, flows, rows)))
            writer = writer or pq.ParquetWriter(path, shown.schema.with_metadata(metadata))
            writer.write_table(shown.replace_schema_metadata(metadata))
        writer.close()


def _geo(lon: Any, lat: Any, flows: Flows) -> dict[str, Any]:
    used = np.union1d(flows.origin, flows.destination)
    box = [f(v[used]) for f in (np.min, np.max) for v in (lon, lat)] if len(used) else None
    column = {"encoding": "WKB", "geometry_types": ["LineString"]} | (
        {"bbox": [float(v) for v in box]} if box else {}
    )
    return {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: column}}


def _binary(shapes: Any) -> pa.Array:
    """Rows of the same number of bytes as an Arrow array."""
    size = shapes.dtype.itemsize
    ends = np.arange(len(shapes) + 1, dtype=np.int32) * size
    return pa.Array.from_buffers(
        pa.binary(), len(shapes), [None, pa.py_buffer(ends), pa.py_buffer(shapes.tobytes())]
    )
