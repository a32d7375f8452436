"""GeoJSON: a line from origin to destination for each flow, with its trips and period."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

from cbdp.io.export.flows import coordinates, flows
from cbdp.io.export.writing import text
from cbdp.io.labels import text_of
from cbdp.io.places import Stops
from cbdp.release import Release


def write(
    release: Release,
    path: Path,
    *,
    places: Stops | None = None,
    level: str | None = None,
    origin: str = "origin",
    destination: str = "destination",
) -> None:
    """Write a FeatureCollection of LineStrings, a line of text each."""
    made = flows(release, level=level, origin=origin, destination=destination)
    lon, lat = coordinates(release, made, places, level=level, origin=origin, destination=destination)
    points = [[round(x, 7), round(y, 7)] for x, y in zip(lon.tolist(), lat.tolist(), strict=True)]
    before = ""
    with text(path) as out:
        out.write('{"type":"FeatureCollection","features":[')
        for period, rows in made.by_period():
            when = {name: _value(label) for name, label in period.labels}
            columns = (made.origin[rows].tolist(), made.destination[rows].tolist(), made.count[rows].tolist())
            for o, d, count in zip(*columns, strict=True):
                flow = {
                    "type": "Feature",
                    "geometry": {"type": "LineString", "coordinates": [points[o], points[d]]},
                    "properties": {"origin": _value(made.ids[o]), "destination": _value(made.ids[d])}
                    | when
                    | {"count": count},
                }
                out.write(f"{before}\n{json.dumps(flow, ensure_ascii=True, separators=(',', ':'))}")
                before = ","
        out.write("\n]}\n")


def _value(label: Any) -> Any:
    """A label as JSON has it: numbers and text as they are."""
    plain = isinstance(label, str | int | float) and not isinstance(label, dt.date)
    return label if plain else text_of(label)
