"""kepler.gl: one JSON file with the flows and how they are drawn; drop it on the page and the map is there."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cbdp.arrays import Floats
from cbdp.release.export.base import Format, open_text, provenance_lines
from cbdp.release.export.flows import Flows, drawn_flows, first_day, has_times, other_dimensions, period_begin
from cbdp.release.release import Release
from cbdp_features.places import Stops
from cbdp_features.tables import text_of

DATASET_NAME = "flows"
END_COLUMNS = {
    "lat0": "origin_lat",
    "lng0": "origin_lon",
    "lat1": "destination_lat",
    "lng1": "destination_lon",
}


@dataclass(frozen=True)
class Kepler(Format):
    name: ClassVar[str] = "kepler"
    ending: ClassVar[str] = ".kepler.json"
    about: ClassVar[str] = "kepler.gl: the flows and a map of them, in one JSON file"

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
        """Write a map that kepler.gl opens: flows by count, arcs (hidden at first), and a slider over time where there are periods.

        Where the release has no dates, the days start on 1 January 2001; the map's description says so.
        """
        flows, lon, lat = drawn_flows(release, places, level, intervals, (origin, destination))
        fields = _fields(flows)
        head = {"id": DATASET_NAME, "label": "Published trips", "color": [18, 147, 154]}
        with open_text(path) as out:
            out.write(
                f'{{"info":{json.dumps(_info(release, flows))},\n"config":{json.dumps(_config(release, flows, lon, lat))},\n'
            )
            out.write(
                f'"datasets":[{{"version":"v1","data":{json.dumps(head)[:-1]},"fields":{json.dumps(fields)},"allData":['
            )
            before = ""
            for row in _rows(release, flows, lon, lat):
                out.write(f"{before}\n{json.dumps(row, separators=(',', ':'))}")
                before = ","
            out.write("\n]}}]}\n")


def _info(release: Release, flows: Flows) -> dict[str, str]:
    lines = provenance_lines(release)
    title = lines.pop("title", "Published trips")
    words = [f"{name}: {value}" for name, value in lines.items()]
    if has_times(flows.periods) and not first_day(release)[1]:
        words.append("the dates are stand-ins, only the time of day is that of the trips")
    return {"app": "kepler.gl", "title": title, "description": "; ".join(words)}


def _fields(flows: Flows) -> list[dict[str, str]]:
    kinds = {"origin": "string", "destination": "string", **dict.fromkeys(END_COLUMNS.values(), "real")}
    kinds |= dict.fromkeys(other_dimensions(flows, {*kinds, "begins"}), "string")
    kinds |= {"begins": "timestamp"} if has_times(flows.periods) else {}
    kinds |= {"count": "integer"} | ({} if flows.low is None else {"low": "integer", "high": "integer"})
    formats = {"timestamp": "YYYY-M-D H:m:s"}
    return [{"name": n, "type": kind, "format": formats.get(kind, "")} for n, kind in kinds.items()]


def _rows(release: Release, flows: Flows, lon: Floats, lat: Floats) -> Iterator[list[Any]]:
    """In the order of the fields."""
    day, _ = first_day(release)
    timed = has_times(flows.periods)
    at = [[round(y, 7), round(x, 7)] for x, y in zip(lon.tolist(), lat.tolist(), strict=True)]
    for period, rows in flows.by_period():
        labels = [text_of(label) for _, label in period.labels]
        when = [*labels, *([period_begin(period, day)] if timed else [])]
        numbers = [v[rows].tolist() for v in (flows.count, flows.low, flows.high) if v is not None]
        ends = (flows.origin[rows].tolist(), flows.destination[rows].tolist())
        for o, d, *more in zip(*ends, *numbers, strict=True):
            yield [flows.texts[o], flows.texts[d], *at[o], *at[d], *when, *more]


def _config(release: Release, flows: Flows, lon: Floats, lat: Floats) -> dict[str, Any]:
    used = np.union1d(flows.origin, flows.destination)
    state = {"filters": _filters(release, flows), "layers": [_layer("flow"), _layer("arc")]}
    config = {
        "visState": state,
        "mapState": _view(lon[used], lat[used]),
        "mapStyle": {"styleType": "positron"},
    }
    return {"version": "v1", "config": config}


def _layer(kind: str) -> dict[str, Any]:
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


def _filters(release: Release, flows: Flows) -> list[dict[str, Any]]:
    """A slider over time that starts with all of it."""
    if not has_times(flows.periods):
        return []
    day, _ = first_day(release)
    start = dt.datetime.combine(day, dt.time(), dt.UTC).timestamp()
    ends = [int(1000 * (start + f(p.begin for p in flows.periods))) for f in (min, max)]
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
