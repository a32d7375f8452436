"""SUMO: tazRelation elements, an interval per period, as od2trips and marouter read them; with a network, all that they need."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cbdp.errors import InputError
from cbdp.features.places import Stops
from cbdp.release.export.base import Format
from cbdp.release.export.beside import texts
from cbdp.release.export.flows import Flows, flows
from cbdp.release.export.writing import final_path, text
from cbdp.release.export.xml import comment, quoted, sumo_id
from cbdp.release.release import Release

# od2trips makes an interval's id the type of its vehicles, and duarouter refuses types that nobody defined: this one always is
VEHICLES = "DEFAULT_VEHTYPE"
DEMAND, ZONES = "demand.xml", "taz.xml"


@dataclass(frozen=True)
class Sumo(Format):
    name: ClassVar[str] = "sumo"
    ending: ClassVar[str] = ".tazrelation.xml"
    about: ClassVar[str] = (
        "SUMO tazRelation: an interval per period; with a network, a folder that od2trips and duarouter run on"
    )

    def write(
        self,
        release: Release,
        path: Path,
        *,
        level: str | None = None,
        network: str | Path | None = None,
        edges: str | Path | None = None,
        places: Stops | None = None,
        origin: str = "origin",
        destination: str = "destination",
    ) -> None:
        """Write the trips from each district to each other. Districts (TAZ) have the ids of the release; spaces and signs that SUMO
        does not take in ids are written as %XX, and the TAZ then also has its id as `name`.

        Days and types of days follow each other, 24 hours apart. With `network` (a .net.xml), write a folder with the demand, the
        TAZ and configurations: run `od2trips -c od2trips.cfg`, then `duarouter -c duarouter.cfg`. A TAZ has the streets nearest to
        its stops, in the largest part of the network where all lead to all; or those that `edges` names (CSV: place, edge).
        """
        made = flows(release, level=level, origin=origin, destination=destination)
        if network is None:
            if edges is not None or places is not None:
                raise InputError(
                    "edges and places say where trips begin on a network: give network=…, or --network"
                )
            _write_demand(release, made, path)
            return
        from cbdp.release.export.network import streets
        from cbdp.release.export.taz import taz_given, taz_near, taz_xml

        known = streets(network)
        zones = taz_near(release, made, known, places) if edges is None else taz_given(made, known, edges)
        path.mkdir()
        _write_demand(release, made, path / DEMAND)
        for name, written in {ZONES: taz_xml(zones), **_configurations(path, Path(network))}.items():
            with text(path / name) as out:
                out.write(written)


def _write_demand(release: Release, made: Flows, path: Path) -> None:
    ids = [quoted(sumo_id(label)) for label in made.texts]
    with text(path) as out:
        out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n{comment(texts(release))}<data>\n')
        for period, rows in made.by_period():
            out.write(comment({"period": period.name}))
            out.write(f'  <interval id="{VEHICLES}" begin="{period.begin}" end="{period.end}">\n')
            columns = (made.origin[rows].tolist(), made.destination[rows].tolist(), made.count[rows].tolist())
            out.writelines(
                f'    <tazRelation from={ids[o]} to={ids[d]} count="{count}"/>\n'
                for o, d, count in zip(*columns, strict=True)
            )
            out.write("  </interval>\n")
        out.write("</data>\n")


def _configurations(folder: Path, network: Path) -> dict[str, str]:
    """What `od2trips -c` and `duarouter -c` take. Files are named as seen from where the folder will be; no schema is looked up on the web."""
    near = os.path.relpath(network.absolute(), final_path(folder))
    options = {
        "od2trips.cfg": {"taz-files": ZONES, "tazrelation-files": DEMAND, "output-file": "trips.xml"},
        "duarouter.cfg": {"net-file": near, "route-files": "trips.xml", "output-file": "routes.rou.xml"},
    }
    return {
        name: "".join(
            [
                '<?xml version="1.0" encoding="UTF-8"?>\n<configuration>\n',
                *(f"  <{key} value={quoted(value)}/>\n" for key, value in given.items()),
                '  <xml-validation value="never"/>\n</configuration>\n',
            ]
        )
        for name, given in options.items()
    }
