"""GeoJSON: a line from origin to destination for each flow, with its trips and period."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from cbdp.release.export.base import Format, open_text, provenance
from cbdp.release.export.flows import Flows, drawn_flows
from cbdp.release.release import Release
from cbdp_features.places import Stops
from cbdp_features.tables import text_of


@dataclass(frozen=True)
class GeoJson(Format):
    name: ClassVar[str] = "geojson"
    ending: ClassVar[str] = ".geojson"
    about: ClassVar[str] = "flows as lines from origin to destination"

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
        """Write a FeatureCollection of LineStrings, a line of text each; `about` is a foreign member (RFC 7946, 6.1)."""
        flows, lon, lat = drawn_flows(release, places, level, intervals, (origin, destination))
        points = [_json([round(x, 7), round(y, 7)]) for x, y in zip(lon.tolist(), lat.tolist(), strict=True)]
        ids = [_json(_value(label)) for label in flows.ids]
        before = ""
        with open_text(path) as out:
            words = provenance(release)
            about = f'"about":{_json(words)},' if words else ""
            out.write(f'{{"type":"FeatureCollection",{about}"features":[')
            for period, rows in flows.by_period():
                when = "".join(f"{_json(name)}:{_json(_value(label))}," for name, label in period.labels)
                ends = (flows.origin[rows].tolist(), flows.destination[rows].tolist())
                for o, d, numbers in zip(*ends, _numbers(flows, rows), strict=True):
                    out.write(
                        f'{before}\n{{"type":"Feature","geometry":{{"type":"LineString","coordinates":[{points[o]},{points[d]}]}},'
                        f'"properties":{{"origin":{ids[o]},"destination":{ids[d]},{when}{numbers}}}}}'
                    )
                    before = ","
            out.write("\n]}\n")


def _numbers(flows: Flows, rows: slice) -> list[str]:
    """The count of each flow and, where asked for, the ends of its interval."""
    if flows.low is None or flows.high is None:
        return [f'"count":{count}' for count in flows.count[rows].tolist()]
    numbers = (values[rows].tolist() for values in (flows.count, flows.low, flows.high))
    return [f'"count":{count},"low":{low},"high":{high}' for count, low, high in zip(*numbers, strict=True)]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _value(label: Any) -> Any:
    """A label as JSON has it: numbers and text as they are."""
    plain = isinstance(label, str | int | float) and not isinstance(label, dt.date)
    return label if plain else text_of(label)
