"""SUMO: tazRelation elements, an interval per period, as od2trips and marouter read them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cbdp.release.export.base import Format
from cbdp.release.export.beside import texts
from cbdp.release.export.flows import flows
from cbdp.release.export.writing import text
from cbdp.release.export.xml import comment, quoted
from cbdp.release.release import Release


@dataclass(frozen=True)
class Sumo(Format):
    name: ClassVar[str] = "sumo"
    about: ClassVar[str] = "SUMO tazRelation: an interval per period"

    def write(
        self,
        release: Release,
        path: Path,
        *,
        level: str | None = None,
        origin: str = "origin",
        destination: str = "destination",
    ) -> None:
        """Write the trips from each district to each other. Districts (TAZ) have the ids of the release, unchanged."""
        made = flows(release, level=level, origin=origin, destination=destination)
        ids = [quoted(label) for label in made.texts]
        with text(path) as out:
            out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n{comment(texts(release))}<data>\n')
            for period, rows in made.by_period():
                out.write(
                    f'  <interval id={quoted(period.name)} begin="{period.begin}" end="{period.end}">\n'
                )
                columns = (
                    made.origin[rows].tolist(),
                    made.destination[rows].tolist(),
                    made.count[rows].tolist(),
                )
                out.writelines(
                    f'    <tazRelation from={ids[o]} to={ids[d]} count="{count}"/>\n'
                    for o, d, count in zip(*columns, strict=True)
                )
                out.write("  </interval>\n")
            out.write("</data>\n")
