"""Flowmap: the tables of locations and flows that Flowmap.blue and flowmap.gl draw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from csv import writer
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cbdp.release.export.base import provenance_lines
from cbdp.release.export.flows import LineFormat, LocatedFlows
from cbdp.text import cell_of


@dataclass(frozen=True)
class Flowmap(LineFormat):
    """A folder with locations (id, name, lat, lon), flows (origin, dest, count, time) and properties.

    `time` is when the period begins; where the release has no dates, the days start on 1 January 2001, and properties.csv says so.
    With `intervals`, flows also have low and high, which Flowmap.blue leaves aside.
    """

    name: ClassVar[str] = "flowmap"
    about: ClassVar[str] = "locations.csv, flows.csv and properties.csv for Flowmap.blue and flowmap.gl"

    def write_lines(self, drawn: LocatedFlows, path: Path) -> None:
        ids, names, lat, lon = drawn.flows.texts, drawn.place_names, drawn.lat, drawn.lon
        path.mkdir()
        located = ([ids[p], names[p], f"{lat[p]:.7f}", f"{lon[p]:.7f}"] for p in drawn.located.tolist())
        _write(path / "locations.csv", ["id", "name", "lat", "lon"], located)
        count, *ends = drawn.flows.numbers
        _write(
            path / "flows.csv",
            ["origin", "dest", count, *(["time"] if drawn.has_times else []), *ends],
            _rows(drawn),
        )
        _write(path / "properties.csv", ["property", "value"], _properties(drawn).items())


def _rows(drawn: LocatedFlows) -> Iterator[list[str | int]]:
    ids = drawn.flows.texts
    for period, part in drawn.flows.by_period():
        begins = drawn.begins(period)
        for o, d, count, *ends in drawn.flows.rows(part):
            yield [ids[o], ids[d], count, *begins, *ends]


def _properties(drawn: LocatedFlows) -> dict[str, str]:
    """The names that Flowmap.blue knows."""
    title, description = drawn.title_and_description("publisher", "contact")
    lines = provenance_lines(drawn.release)
    publisher = {"createdBy.name": lines["publisher"]} if "publisher" in lines else {}
    return {"title": title, "description": description, **publisher, "source.name": lines["source"]}


def _write(file: Path, head: list[str], rows: Iterable[Iterable[str | int]]) -> None:
    with file.open("x", newline="", encoding="utf-8") as out:
        table = writer(out, lineterminator="\n")
        table.writerow(map(cell_of, head))
        table.writerows(map(cell_of, row) for row in rows)
