"""Flowmap: the tables of locations and flows that Flowmap.blue and flowmap.gl draw."""

from __future__ import annotations

from collections.abc import Iterable
from csv import writer
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cbdp.release.export.base import Format, provenance_lines
from cbdp.release.export.flows import Flows, drawn_flows, first_day, has_times, period_begin
from cbdp.release.release import Release
from cbdp.text import cell_of
from cbdp_features.places import Stops
from cbdp_features.tables import text_of


@dataclass(frozen=True)
class Flowmap(Format):
    name: ClassVar[str] = "flowmap"
    about: ClassVar[str] = "locations.csv, flows.csv and properties.csv for Flowmap.blue and flowmap.gl"

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
        """Write a folder with locations (id, name, lat, lon), flows (origin, dest, count, time) and properties.

        `time` is when the period begins; where the release has no dates, the days start on 1 January 2001, and properties.csv says so.
        With `intervals`, flows also have low and high, which Flowmap.blue leaves aside.
        """
        flows, lon, lat = drawn_flows(release, places, level, intervals, (origin, destination))
        names = _names(release, places, flows)
        here = np.flatnonzero(np.isfinite(lon)).tolist()
        path.mkdir()
        located = ([flows.texts[p], names[p], f"{lat[p]:.7f}", f"{lon[p]:.7f}"] for p in here)
        _write(path / "locations.csv", ["id", "name", "lat", "lon"], located)
        head = ["origin", "dest", "count", *(["time"] if has_times(flows.periods) else [])]
        _write(
            path / "flows.csv",
            [*head, *([] if flows.low is None else ["low", "high"])],
            _rows(release, flows),
        )
        _write(path / "properties.csv", ["property", "value"], _properties(release, flows).items())


def _names(release: Release, places: Stops | None, flows: Flows) -> list[str]:
    stops = places or release.places
    called = {} if stops is None else dict(zip(map(text_of, stops.ids), stops.names, strict=True))
    return [called.get(text, text) for text in flows.texts]


def _rows(release: Release, flows: Flows) -> Iterable[list[Any]]:
    day, _ = first_day(release)
    timed = has_times(flows.periods)
    for period, rows in flows.by_period():
        when = [period_begin(period, day)] if timed else []
        numbers = [v[rows].tolist() for v in (flows.low, flows.high) if v is not None]
        columns = (flows.origin[rows].tolist(), flows.destination[rows].tolist(), flows.count[rows].tolist())
        for o, d, count, *more in zip(*columns, *numbers, strict=True):
            yield [flows.texts[o], flows.texts[d], count, *when, *more]


def _properties(release: Release, flows: Flows) -> dict[str, str]:
    """The names that Flowmap.blue knows."""
    lines = provenance_lines(release)
    title = lines.pop("title", "Published trips")
    words = [f"{name}: {value}" for name, value in lines.items() if name not in ("publisher", "contact")]
    if has_times(flows.periods) and not first_day(release)[1]:
        words.append("the dates are stand-ins, only the time of day is that of the trips")
    publisher = {"createdBy.name": lines["publisher"]} if "publisher" in lines else {}
    return {"title": title, "description": "; ".join(words), **publisher, "source.name": lines["source"]}


def _write(file: Path, head: list[str], rows: Iterable[Any]) -> None:
    with file.open("x", newline="", encoding="utf-8") as out:
        table = writer(out, lineterminator="\n")
        table.writerow(map(cell_of, head))
        table.writerows(map(cell_of, row) for row in rows)
