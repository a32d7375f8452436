"""kepler.gl: one JSON file with the flows and how they are drawn; drop it on the page and the map is there."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cbdp.arrays import Floats
from cbdp.release.export.base import open_text
from cbdp.release.export.flows import LineFormat, LocatedFlows, other_dimensions
from cbdp_features.tables import text_of

DATASET_NAME = "flows"
END_COLUMNS = {
    "lat0": "origin_lat",
    "lng0": "origin_lon",
    "lat1": "destination_lat",
    "lng1": "destination_lon",
}


@dataclass(frozen=True)
class Kepler(LineFormat):
    """A map that kepler.gl opens: flows by count, arcs (hidden at first), and a slider over time where there are periods.

    Where the release has no dates, the days start on 1 January 2001; the map's description says so.
    """

    name: ClassVar[str] = "kepler"
    ending: ClassVar[str] = ".kepler.json"
    about: ClassVar[str] = "kepler.gl: the flows and a map of them, in one JSON file"

    def write_lines(self, drawn: LocatedFlows, path: Path) -> None:
        fields = _fields(drawn)
        title, description = drawn.title_and_description()
        info = {"app": "kepler.gl", "title": title, "description": description}
        head = {"id": DATASET_NAME, "label": "Published trips", "color": [18, 147, 154]}
        with open_text(path) as out:
            out.write(f'{{"info":{json.dumps(info)},\n"config":{json.dumps(_config(drawn))},\n')
            out.write(
                f'"datasets":[{{"version":"v1","data":{json.dumps(head)[:-1]},"fields":{json.dumps(fields)},"allData":['
            )
            before = ""
            for row in _rows(drawn):
                out.write(f"{before}\n{json.dumps(row, separators=(',', ':'))}")
                before = ","
            out.write("\n]}}]}\n")


def _fields(drawn: LocatedFlows) -> list[dict[str, str]]:
    kinds = {"origin": "string", "destination": "string", **dict.fromkeys(END_COLUMNS.values(), "real")}
    kinds |= dict.fromkeys(other_dimensions(drawn.flows, {*kinds, "begins"}), "string")
    kinds |= {"begins": "timestamp"} if drawn.has_times else {}
    kinds |= dict.fromkeys(drawn.flows.numbers, "integer")
    formats = {"timestamp": "YYYY-M-D H:m:s"}
    return [{"name": n, "type": kind, "format": formats.get(kind, "")} for n, kind in kinds.items()]


def _rows(drawn: LocatedFlows) -> Iterator[list[str | float]]:
    """In the order of the fields."""
    ids = drawn.flows.texts
    at = [[round(y, 7), round(x, 7)] for x, y in zip(drawn.lon.tolist(), drawn.lat.tolist(), strict=True)]
    for period, part in drawn.flows.by_period():
        when = [*(text_of(label) for _, label in period.labels), *drawn.begins(period)]
        for o, d, *numbers in drawn.flows.rows(part):
            yield [ids[o], ids[d], *at[o], *at[d], *when, *numbers]


def _config(drawn: LocatedFlows) -> dict[str, object]:
    used = drawn.flows.used
    state = {"filters": _filters(drawn), "layers": [_layer("flow"), _layer("arc")]}
    config = {
        "visState": state,
        "mapState": _view(drawn.lon[used], drawn.lat[used]),
        "mapStyle": {"styleType": "positron"},
    }
    return {"version": "v1", "config": config}


def _layer(kind: str) -> dict[str, object]:
    flow = kind == "flow"
    columns = END_COLUMNS | ({"count": "count"} if flow else {})
    config = {
        "dataId": DATASET_NAME,
        "label": "Flows" if flow else "Arcs",
        "columnMode": "LAT_LNG" if flow else "points",
        "columns": columns,
        "isVisible": flow,
        "visConfig": {"darkBaseMapEnabled": False} if flow else {"opacity": 0.5, "sizeRange": [0, 20]},
    }
    channels = {} if flow else {"sizeField": {"name": "count", "type": "integer"}, "sizeScale": "linear"}
    return {"id": f"cbdp-{kind}", "type": kind, "config": config, "visualChannels": channels}


def _filters(drawn: LocatedFlows) -> list[dict[str, object]]:
    """A slider over time that starts with all of it."""
    if not drawn.has_times:
        return []
    day, _ = drawn.first_day
    start = dt.datetime.combine(day, dt.time(), dt.UTC).timestamp()
    ends = [int(1000 * (start + f(p.begin for p in drawn.flows.periods))) for f in (min, max)]
    return [
        {"id": "cbdp-time", "dataId": [DATASET_NAME], "name": ["begins"], "type": "timeRange", "value": ends}
    ]


def _view(lon: Floats, lat: Floats) -> dict[str, float]:
    """The middle of the places that have trips, and a zoom at which all of them are seen."""
    if not len(lon):
        return {"latitude": 0, "longitude": 0, "zoom": 1}
    wide, tall = (max(float(np.ptp(v)), 0.002) for v in (lon, lat))
    zoom = min(math.log2(360 / wide) + 0.5, math.log2(170 / tall))
    middle = (float(v.min() + v.max()) / 2 for v in (lat, lon))
    return dict(zip(("latitude", "longitude"), (round(v, 6) for v in middle), strict=True)) | {
        "zoom": round(zoom, 2)
    }
