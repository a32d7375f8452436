"""GeoParquet 1.1: a table of flows with their lines, for GeoPandas, DuckDB, QGIS and R.

Written by pyarrow: a Parquet file with well-known binary and one key of metadata. pyogrio's wheels have no Parquet driver.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow.parquet as pq

from cbdp.release.export.base import provenance
from cbdp.release.export.flows import LineFormat, LocatedFlows

GEOMETRY = "geometry"


@dataclass(frozen=True)
class GeoParquet(LineFormat):
    """A row per flow: origin, destination, the other dimensions, count and, with `intervals`, low and high, and its line.

    Coordinates are longitude and latitude (OGC:CRS84, the format's default). The file's metadata has what the release says about
    itself under the key `about`.
    """

    name: ClassVar[str] = "geoparquet"
    ending: ClassVar[str] = ".parquet"
    about: ClassVar[str] = "GeoParquet: flows as lines, in one table"

    def write_lines(self, drawn: LocatedFlows, path: Path) -> None:
        used = drawn.flows.used
        lon, lat = drawn.lon[used], drawn.lat[used]
        box = {"bbox": [lon.min(), lat.min(), lon.max(), lat.max()]} if len(used) else {}
        column = {"encoding": "WKB", "geometry_types": ["LineString"]} | box
        geo = {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: column}}
        metadata = {
            "geo": json.dumps(geo),
            "about": json.dumps(provenance(drawn.release), ensure_ascii=False),
        }
        tables = drawn.tables(GEOMETRY)
        first = next(tables).replace_schema_metadata(metadata)
        with pq.ParquetWriter(path, first.schema) as writer:
            writer.write_table(first)
            for table in tables:
                writer.write_table(table.replace_schema_metadata(metadata))
