"""GeoPackage 1.3: flows as lines and places as points in one SQLite file, for QGIS and every other GIS."""

from __future__ import annotations

import datetime as dt
import sqlite3
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from cbdp.arrays import Floats
from cbdp.release.export.base import Format, provenance_lines
from cbdp.release.export.flows import Flows, decoded_table, drawn_flows, flow_tables, wkb_lines
from cbdp.release.release import Release
from cbdp_features.places import Stops
from cbdp_features.tables import text_of

APPLICATION_ID, USER_VERSION = 0x47504B47, 10300  # "GPKG", 1.3.0
GEOMETRY_HEADER = b"GP" + struct.pack("<BBi", 0, 1, 4326)  # no envelope, little-endian
FIXED_TIMESTAMP = (
    "1970-01-01T00:00:00.000Z"  # the same release gives the same bytes, so no file says when it was written
)
RESERVED_COLUMNS = ("fid", "geom")
WGS84 = (
    'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563,AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],'
    'PRIMEM["Greenwich",0,AUTHORITY["EPSG","8901"]],UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]],'
    'AUTHORITY["EPSG","4326"]]'
)
SCHEMA_SQL = """
CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL,
  organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
CREATE TABLE gpkg_contents (table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE,
  description TEXT DEFAULT '', last_change DATETIME NOT NULL, min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE,
  srs_id INTEGER, CONSTRAINT fk_gc_r_srs_id FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL UNIQUE, column_name TEXT NOT NULL, geometry_type_name TEXT NOT NULL,
  srs_id INTEGER NOT NULL, z TINYINT NOT NULL, m TINYINT NOT NULL, CONSTRAINT pk_geom_cols PRIMARY KEY (table_name, column_name),
  CONSTRAINT fk_gc_tn FOREIGN KEY (table_name) REFERENCES gpkg_contents(table_name),
  CONSTRAINT fk_gc_srs FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE about (id INTEGER PRIMARY KEY, name TEXT NOT NULL, value TEXT NOT NULL);
"""
REFERENCE_SYSTEMS = [
    ("WGS 84 geodetic", 4326, "EPSG", 4326, WGS84, "longitude and latitude in degrees"),
    (
        "Undefined cartesian SRS",
        -1,
        "NONE",
        -1,
        "undefined",
        "undefined cartesian coordinate reference system",
    ),
    (
        "Undefined geographic SRS",
        0,
        "NONE",
        0,
        "undefined",
        "undefined geographic coordinate reference system",
    ),
]


@dataclass(frozen=True)
class GeoPackage(Format):
    name: ClassVar[str] = "geopackage"
    ending: ClassVar[str] = ".gpkg"
    about: ClassVar[str] = "GeoPackage: the layers flows (lines) and places (points)"

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
        """Write the layers `flows` and `places`, in longitude and latitude, and the table `about`.

        A place has how many published trips begin (`departures`) and end (`arrivals`) there.
        """
        flows, lon, lat = drawn_flows(release, places, level, intervals, (origin, destination))
        with sqlite3.connect(path) as out:
            out.executescript(
                f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={USER_VERSION};{SCHEMA_SQL}"
            )
            out.executemany("INSERT INTO gpkg_spatial_ref_sys VALUES (?,?,?,?,?,?)", REFERENCE_SYSTEMS)
            out.executemany("INSERT INTO about (name, value) VALUES (?,?)", provenance_lines(release).items())
            out.execute(
                "INSERT INTO gpkg_contents VALUES ('about','attributes','about','what the release says about itself',?,"
                "NULL,NULL,NULL,NULL,NULL)",
                [FIXED_TIMESTAMP],
            )
            _write_flows(out, flows, lon, lat)
            _write_places(out, flows, lon, lat)
        out.close()


def _write_flows(out: sqlite3.Connection, flows: Flows, lon: Floats, lat: Floats) -> None:
    used = np.union1d(flows.origin, flows.destination)
    for rows, table in flow_tables(flows, RESERVED_COLUMNS):
        shown = decoded_table(table)
        if rows.start == 0:
            _layer(out, "flows", "LINESTRING", shown.schema, (lon[used], lat[used]))
        size = 41
        raw = wkb_lines(lon, lat, flows, rows).tobytes()
        shapes = (GEOMETRY_HEADER + raw[k : k + size] for k in range(0, len(raw), size))
        _insert(out, "flows", shapes, shown)


def _write_places(out: sqlite3.Connection, flows: Flows, lon: Floats, lat: Floats) -> None:
    here = np.flatnonzero(np.isfinite(lon))
    leaves, comes = (
        np.bincount(end, flows.count, len(flows.ids)).astype(np.int64)
        for end in (flows.origin, flows.destination)
    )
    table = pa.table(
        {
            "place": pa.array([flows.texts[p] for p in here.tolist()], pa.string()),
            "departures": pa.array(leaves[here]),
            "arrivals": pa.array(comes[here]),
        }
    )
    _layer(out, "places", "POINT", table.schema, (lon[here], lat[here]))
    points = zip(lon[here].tolist(), lat[here].tolist(), strict=True)
    _insert(out, "places", (GEOMETRY_HEADER + struct.pack("<BIdd", 1, 1, x, y) for x, y in points), table)


def _layer(
    out: sqlite3.Connection, name: str, shape: str, schema: pa.Schema, at: tuple[Floats, Floats]
) -> None:
    columns = ", ".join(f"{_quoted(field.name)} {_type(field.type)}" for field in schema)
    out.execute(
        f"CREATE TABLE {name} (fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, geom {shape}, {columns})"
    )
    box = [float(f(v)) if len(v) else None for f in (np.min, np.max) for v in at]
    out.execute(
        "INSERT INTO gpkg_contents VALUES (?,'features',?,'',?,?,?,?,?,4326)",
        [name, name, FIXED_TIMESTAMP, *box],
    )
    out.execute("INSERT INTO gpkg_geometry_columns VALUES (?,'geom',?,4326,0,0)", [name, shape])


def _insert(out: sqlite3.Connection, name: str, shapes: Iterator[bytes], table: pa.Table) -> None:
    columns = ", ".join(_quoted(n) for n in table.column_names)
    marks = ",".join("?" * (1 + table.num_columns))
    values = zip(shapes, *([_value(v) for v in c.to_pylist()] for c in table.columns), strict=True)
    out.executemany(f"INSERT INTO {name} (geom, {columns}) VALUES ({marks})", values)  # noqa: S608 - quoted above


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _type(arrow_type: pa.DataType) -> str:
    if pa.types.is_date(arrow_type):
        return "DATE"
    if pa.types.is_boolean(arrow_type):
        return "BOOLEAN"
    return (
        "INTEGER"
        if pa.types.is_integer(arrow_type)
        else "DOUBLE"
        if pa.types.is_floating(arrow_type)
        else "TEXT"
    )


def _value(value: Any) -> Any:
    plain = isinstance(value, str | int | float) or value is None
    return value if plain else value.isoformat() if isinstance(value, dt.date) else text_of(value)
