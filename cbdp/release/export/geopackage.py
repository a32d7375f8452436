"""GeoPackage 1.3: flows as lines and places as points in one SQLite file, for QGIS and every other GIS."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from cbdp.release.export.base import optional_library, provenance_lines
from cbdp.release.export.flows import LineFormat, LocatedFlows, wkb

GEOMETRY, ROW_ID = "geom", "fid"
# the same release gives the same bytes, so no file says when it was written
FIXED_MOMENT = {"OGR_CURRENT_DATE": "1970-01-01T00:00:00.000Z"}


@dataclass(frozen=True)
class GeoPackage(LineFormat):
    """The layers `flows` and `places`, in longitude and latitude, and the table `about`.

    A place has how many published trips begin (`departures`) and end (`arrivals`) there. Written by GDAL (pyogrio).
    """

    name: ClassVar[str] = "geopackage"
    ending: ClassVar[str] = ".gpkg"
    about: ClassVar[str] = "GeoPackage: the layers flows (lines) and places (points)"
    package: ClassVar[str | None] = "pyogrio"
    install: ClassVar[str] = "pip install 'cbdp[geo]'"

    def write_lines(self, drawn: LocatedFlows, path: Path) -> None:
        pyogrio = optional_library("pyogrio", "geo")
        work = path.with_name(f"{path.name}{self.ending}")  # GDAL warns of other endings
        before = {name: pyogrio.get_gdal_config_option(name) for name in FIXED_MOMENT}
        pyogrio.set_gdal_config_options(FIXED_MOMENT)
        try:
            for name, shape, tables in (
                ("flows", "LineString", drawn.tables(GEOMETRY, [ROW_ID])),
                ("places", "Point", iter([_places(drawn)])),
                ("about", None, iter([_about(provenance_lines(drawn.release))])),
            ):
                pyogrio.write_arrow(
                    _streamed(tables),
                    work,
                    layer=name,
                    driver="GPKG",
                    append=work.exists(),
                    geometry_name=shape and GEOMETRY,
                    geometry_type=shape,
                    crs=shape and "EPSG:4326",
                    dataset_options={}
                    if work.exists()
                    else {"VERSION": "1.3", "ADD_GPKG_OGR_CONTENTS": "NO"},
                    layer_options={"SPATIAL_INDEX": "NO"}
                    if shape
                    else {"DESCRIPTION": "what the release says about itself"},
                )
        finally:
            pyogrio.set_gdal_config_options(before)
        work.rename(path)


def _streamed(tables: Iterator[pa.Table]) -> pa.RecordBatchReader:
    first = next(tables)
    batches = (batch for table in itertools.chain([first], tables) for batch in table.to_batches())
    return pa.RecordBatchReader.from_batches(first.schema, batches)


def _places(drawn: LocatedFlows) -> pa.Table:
    flows, here = drawn.flows, drawn.located
    departures, arrivals = (
        np.bincount(end, flows.count, len(flows.ids)).astype(np.int64)
        for end in (flows.origin, flows.destination)
    )
    return pa.table(
        {
            "place": pa.array([flows.texts[p] for p in here.tolist()], pa.string()),
            "departures": departures[here],
            "arrivals": arrivals[here],
            GEOMETRY: wkb((drawn.lon[here], drawn.lat[here])),
        }
    )


def _about(lines: Mapping[str, str]) -> pa.Table:
    return pa.table({"name": list(lines), "value": list(lines.values())})
