"""GeoJSON: a line from origin to destination for each flow, with its trips and period."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cbdp.release.export.base import open_text, provenance
from cbdp.release.export.flows import LineFormat, LocatedFlows
from cbdp_features.tables import text_of


@dataclass(frozen=True)
class GeoJson(LineFormat):
    """A FeatureCollection of LineStrings, a line of text each; `about` is a foreign member (RFC 7946, 6.1)."""

    name: ClassVar[str] = "geojson"
    ending: ClassVar[str] = ".geojson"
    about: ClassVar[str] = "flows as lines from origin to destination"

    def write_lines(self, drawn: LocatedFlows, path: Path) -> None:
        flows = drawn.flows
        at = zip(drawn.lon.tolist(), drawn.lat.tolist(), strict=True)
        points = [_json([round(x, 7), round(y, 7)]) for x, y in at]
        ids = [_json(_value(label)) for label in flows.ids]
        before = ""
        with open_text(path) as out:
            out.write(f'{{"type":"FeatureCollection","about":{_json(provenance(drawn.release))},"features":[')
            for period, part in flows.by_period():
                labels = "".join(f"{_json(name)}:{_json(_value(label))}," for name, label in period.labels)
                for o, d, *numbers in flows.rows(part):
                    counts = ",".join(f'"{name}":{n}' for name, n in zip(flows.numbers, numbers, strict=True))
                    out.write(
                        f'{before}\n{{"type":"Feature","geometry":{{"type":"LineString","coordinates":[{points[o]},{points[d]}]}},'
                        f'"properties":{{"origin":{ids[o]},"destination":{ids[d]},{labels}{counts}}}}}'
                    )
                    before = ","
            out.write("\n]}\n")


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _value(label: Hashable) -> str | float:
    """A label as JSON has it: numbers and text as they are."""
    return label if isinstance(label, str | int | float) else text_of(label)
