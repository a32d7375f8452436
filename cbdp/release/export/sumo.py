"""SUMO: tazRelation elements, an interval per period, as od2trips and marouter read them; with a network, all that they need."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree as ET

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.release.export.base import (
    Format,
    final_path,
    open_text,
    optional_library,
    provenance_lines,
    sumo_id,
    xml_attribute,
    xml_comment,
)
from cbdp.release.export.flows import Flows, flows_of, places_of, stop_coordinates
from cbdp.release.release import Release
from cbdp_features.places import Stops, stops_text, table_rows
from cbdp_features.tables import text_of as label_text

# od2trips makes an interval's id the type of its vehicles, and duarouter refuses types that nobody defined: this one always is
VEHICLE_TYPE = "DEFAULT_VEHTYPE"
DEMAND_FILE, TAZ_FILE = "demand.xml", "taz.xml"


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
        origin: str | None = None,
        destination: str | None = None,
    ) -> None:
        """Write the trips from each district to each other. Districts (TAZ) have the ids of the release; spaces and signs that SUMO
        does not take in ids are written as %XX, and the TAZ then also has its id as `name`.

        Days and types of days follow each other, 24 hours apart. With `network` (a .net.xml), write a folder with the demand, the
        TAZ and configurations: run `od2trips -c od2trips.cfg`, then `duarouter -c duarouter.cfg`. A TAZ has the streets nearest to
        its stops, in the largest part of the network where all lead to all; or those that `edges` names (CSV: place, edge).
        """
        flows = flows_of(release, level=level, origin=origin, destination=destination)
        if network is None:
            if edges is not None or places is not None:
                raise InputError(
                    "edges and places say where trips begin on a network: give network=…, or --network"
                )
            _write_demand(release, flows, path)
            return

        streets = read_streets(network)
        zones = (
            nearest_taz(release, flows, streets, places) if edges is None else read_taz(flows, streets, edges)
        )
        path.mkdir()
        _write_demand(release, flows, path / DEMAND_FILE)
        for name, written in {TAZ_FILE: taz_xml(zones), **_configurations(path, Path(network))}.items():
            with open_text(path / name) as out:
                out.write(written)


def _write_demand(release: Release, flows: Flows, path: Path) -> None:
    ids = [xml_attribute(sumo_id(label)) for label in flows.texts]
    with open_text(path) as out:
        out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n{xml_comment(provenance_lines(release))}<data>\n')
        for period, rows in flows.by_period():
            out.write(xml_comment({"period": period.name}))
            out.write(f'  <interval id="{VEHICLE_TYPE}" begin="{period.begin}" end="{period.end}">\n')
            out.writelines(
                f'    <tazRelation from={ids[o]} to={ids[d]} count="{count}"/>\n'
                for o, d, count in flows.rows(rows)
            )
            out.write("  </interval>\n")
        out.write("</data>\n")


def _configurations(folder: Path, network: Path) -> dict[str, str]:
    """What `od2trips -c` and `duarouter -c` take. Files are named as seen from where the folder will be; no schema is looked up on the web."""
    near = os.path.relpath(network.absolute(), final_path(folder))
    options = {
        "od2trips.cfg": {"taz-files": TAZ_FILE, "tazrelation-files": DEMAND_FILE, "output-file": "trips.xml"},
        "duarouter.cfg": {"net-file": near, "route-files": "trips.xml", "output-file": "routes.rou.xml"},
    }
    return {
        name: "".join(
            [
                '<?xml version="1.0" encoding="UTF-8"?>\n<configuration>\n',
                *(f"  <{key} value={xml_attribute(value)}/>\n" for key, value in settings.items()),
                '  <xml-validation value="never"/>\n</configuration>\n',
            ]
        )
        for name, settings in options.items()
    }


# A SUMO network: where its streets are, and which of them every vehicle can reach and leave


NO_PROJECTION = "!"
SAME_STREET_METRES = (
    25.0  # metres: streets that are hardly farther than the nearest one, say its other direction
)
MAX_STREET_METRES = 2000.0  # metres from a stop to a street: beyond, the network is of another place


@dataclass(frozen=True, eq=False)
class Streets:
    """The edges of a network that cars use and that all lead to each other, as pieces of straight lines (metres)."""

    name: str
    edges: tuple[str, ...]
    piece: Floats = field(repr=False)  # piece × (x0, y0, x1, y1)
    edge: Ints = field(repr=False)  # of each piece
    offset: tuple[float, float]
    projection: str  # as PROJ writes it, or "!"

    def near(self, lon: Floats, lat: Floats, names: Iterable[str]) -> list[list[str]]:
        """For each place, the nearest street in both directions."""
        x, y = self._metres(lon, lat)
        nearest = []
        for px, py, name in zip(x.tolist(), y.tolist(), names, strict=True):
            away = np.full(len(self.edges), np.inf)
            np.minimum.at(away, self.edge, _distance_to_pieces(self.piece, px, py))
            least = float(away.min())
            if not least <= MAX_STREET_METRES:
                raise InputError(
                    f"the stop {name!r} is {least / 1000:,.0f} km away from all streets of {self.name}: give the network of the same "
                    "place, and stops with latitude and longitude in degrees"
                )
            nearest.append([self.edges[e] for e in np.flatnonzero(away <= least + SAME_STREET_METRES)])
        return nearest

    def _metres(self, lon: Floats, lat: Floats) -> tuple[Floats, Floats]:
        if self.projection == NO_PROJECTION:
            raise InputError(
                f"{self.name} does not say where on Earth it lies (its projection is '!'): give a CSV file with the columns place and "
                "edge (edges=…, or --edges), or build the network with a projection (netconvert --proj.utm)"
            )
        pyproj = optional_library("pyproj", "sumo")
        try:
            project = pyproj.Transformer.from_crs("EPSG:4326", self.projection, always_xy=True)
        except pyproj.exceptions.CRSError:
            raise InputError(
                f"{self.name} has the projection {self.projection!r}, which PROJ cannot read: give edges=…, or --edges"
            ) from None
        x, y = project.transform(lon, lat)
        return np.asarray(x) + self.offset[0], np.asarray(y) + self.offset[1]


def _distance_to_pieces(piece: Floats, x: float, y: float) -> Floats:
    """The distance of a point from each piece of a straight line."""
    start, way = piece[:, :2], piece[:, 2:] - piece[:, :2]
    length = np.maximum((way**2).sum(axis=1), 1e-12)
    part = np.clip(((np.array([x, y]) - start) * way).sum(axis=1) / length, 0, 1)
    nearest = start + part[:, None] * way
    return np.asarray(np.hypot(nearest[:, 0] - x, nearest[:, 1] - y))


def read_streets(path: str | Path) -> Streets:
    """The streets of a SUMO network (.net.xml): those open to cars, in the largest part where all lead to all."""
    try:
        return _streets_of_network(path)
    except InputError:
        raise
    except (KeyError, ValueError, TypeError, IndexError) as wrong:
        raise InputError(
            f"{str(path)!r} is no SUMO network as netconvert makes it ({type(wrong).__name__}: {wrong})"
        ) from None


def _streets_of_network(path: str | Path) -> Streets:
    file = Path(path)
    shapes: dict[str, list[tuple[float, ...]]] = {}
    links: list[tuple[str, str]] = []
    location: Mapping[str, str] = {}
    for element in _elements(file):
        if element.tag == "location":
            location = dict(element.attrib)
        elif element.tag == "edge" and "function" not in element.attrib and (shape := _shape(element)):
            shapes[element.attrib["id"]] = shape
        elif element.tag == "connection":
            links.append((element.attrib["from"], element.attrib["to"]))
    if not location or not shapes:
        raise InputError(
            f"{str(path)!r} is no SUMO network with streets for cars: give a .net.xml that netconvert made"
        )
    joined = _largest_strong_component(list(shapes), links)
    pieces = [(n, piece) for n, edge in enumerate(joined) for piece in _pieces(shapes[edge])]
    x, y = (float(v) for v in location["netOffset"].split(","))
    return Streets(
        file.name,
        tuple(joined),
        np.array([piece for _, piece in pieces]),
        np.array([n for n, _ in pieces], dtype=np.int64),
        (x, y),
        location["projParameter"],
    )


def _elements(file: Path) -> Iterable[ET.Element]:
    try:
        for _, element in ET.iterparse(file):  # noqa: S314 - the user's own network
            if element.tag in ("location", "edge", "connection"):
                yield element
                element.clear()
    except (OSError, ET.ParseError):
        raise InputError(f"{str(file)!r} cannot be read as XML: give a SUMO network (.net.xml)") from None


def _shape(edge: ET.Element) -> list[tuple[float, ...]]:
    """The line of the first lane that is open to cars."""
    for lane in edge.iter("lane"):
        allow, shut = (lane.attrib.get(name, "").split() for name in ("allow", "disallow"))
        if ({"passenger", "all"} & set(allow) or not allow) and not {"passenger", "all"} & set(shut):
            return [tuple(map(float, point.split(",")[:2])) for point in lane.attrib["shape"].split()]
    return []


def _pieces(shape: list[tuple[float, ...]]) -> Iterable[tuple[float, ...]]:
    return [(*a, *b) for a, b in zip(shape, [*shape[1:], shape[-1]], strict=True)][: max(1, len(shape) - 1)]


def _largest_strong_component(edges: list[str], links: list[tuple[str, str]]) -> list[str]:
    """The edges of the largest strongly connected component: every edge leads to every other."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    at = {edge: n for n, edge in enumerate(edges)}
    ends = np.array([(at[a], at[b]) for a, b in links if a in at and b in at], dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(edges),) * 2)
    _, part = connected_components(graph, connection="strong")
    largest = int(np.bincount(part).argmax())
    return [edge for edge, p in zip(edges, part.tolist(), strict=True) if p == largest]


# Which streets of a SUMO network the trips of a place begin and end on: its traffic assignment zone (TAZ)


Taz = Mapping[str, Mapping[str, float]]  # place → edge → weight


def nearest_taz(release: Release, flows: Flows, streets: Streets, places: Stops | None) -> Taz:
    """The streets nearest to every stop; of a zone, those of all its stops, each as often as stops are there."""
    at = stop_coordinates(release, flows.ends, places)
    universe = release.features.universe
    stops: dict[str, dict[str, tuple[float, float]]] = {}
    _, ends = places_of(universe, flows.ends)
    for name, place in zip((flows.ends.origin, flows.ends.destination), ends, strict=True):
        for value, p in zip(universe.dimensions[name].values, place.tolist(), strict=True):
            stops_here = stops.setdefault(flows.texts[p], {})
            if not np.isnan(at[value]).any():
                stops_here[label_text(value)] = at[value]
    used = {flows.texts[p] for p in flows.used.tolist()}
    return {
        place: _streets_of(place, stops_here, streets)
        for place, stops_here in stops.items()
        if stops_here or place in used
    }


def _streets_of(place: str, stops: Mapping[str, tuple[float, float]], streets: Streets) -> Counter[str]:
    if not stops:
        raise InputError(
            f"the place {place!r} has no coordinates: give its latitude and longitude, or edges=…"
        )
    lon, lat = (np.array([point[k] for point in stops.values()]) for k in (0, 1))
    return Counter(edge for near in streets.near(lon, lat, stops) for edge in near)


def read_taz(flows: Flows, streets: Streets, path: str | Path) -> Taz:
    """The streets that a CSV file names: columns place, edge, and optionally weight."""
    rows = table_rows(stops_text(Path(path)), Path(path))
    taz: dict[str, dict[str, float]] = {}
    for row in rows:
        if "place" not in row or "edge" not in row:
            raise InputError(
                f"{str(path)!r} has the columns {', '.join(row)}: it needs place and edge, and may have weight"
            )
        if row["edge"] not in streets.edges:
            raise InputError(
                f"{str(path)!r} has the edge {row['edge']!r}, which is not in {streets.name}, is not open to cars, or is cut off from "
                "its other streets: give another one"
            )
        taz.setdefault(row["place"], {})[row["edge"]] = _weight(row.get("weight") or "1", path)
    for p in flows.used.tolist():
        if flows.texts[p] not in taz:
            raise InputError(
                f"{str(path)!r} has no edge of the place {flows.texts[p]!r}, which has trips: add a row for it"
            )
    return taz


def _weight(text: str, path: str | Path) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 < weight < float("inf"):
        raise InputError(f"{str(path)!r} has the weight {text!r}: give a number above 0")
    return weight


def taz_xml(zones: Taz) -> str:
    """The zones as od2trips, duarouter and sumo read them."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<additional>", "  <tazs>"]
    for place, edges in zones.items():
        named = "" if sumo_id(place) == place else f" name={xml_attribute(place)}"
        lines.append(f"    <taz id={xml_attribute(sumo_id(place))}{named}>")
        for kind in ("tazSource", "tazSink"):
            lines += [
                f'      <{kind} id={xml_attribute(edge)} weight="{weight:g}"/>'
                for edge, weight in edges.items()
            ]
        lines.append("    </taz>")
    return "\n".join([*lines, "  </tazs>", "</additional>", ""])
