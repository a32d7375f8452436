"""A SUMO network: where its streets are, and which of them every vehicle can reach and leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.release.export.writing import needs

NO_PROJECTION = "!"
SAME_STREET = 25.0  # metres: streets that are hardly farther than the nearest one, say its other direction
FARTHEST = 2000.0  # metres from a stop to a street: beyond, the network is of another place


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
        found = []
        for px, py, name in zip(x.tolist(), y.tolist(), names, strict=True):
            away = np.full(len(self.edges), np.inf)
            np.minimum.at(away, self.edge, _away(self.piece, px, py))
            least = float(away.min())
            if not least <= FARTHEST:
                raise InputError(
                    f"the stop {name!r} is {least / 1000:,.0f} km away from all streets of {self.name}: give the network of the same "
                    "place, and stops with latitude and longitude in degrees"
                )
            found.append([self.edges[e] for e in np.flatnonzero(away <= least + SAME_STREET)])
        return found

    def _metres(self, lon: Floats, lat: Floats) -> tuple[Floats, Floats]:
        if self.projection == NO_PROJECTION:
            raise InputError(
                f"{self.name} does not say where on Earth it lies (its projection is '!'): give a CSV file with the columns place and "
                "edge (edges=…, or --edges), or build the network with a projection (netconvert --proj.utm)"
            )
        pyproj = needs("pyproj", "sumo")
        try:
            project = pyproj.Transformer.from_crs("EPSG:4326", self.projection, always_xy=True)
        except pyproj.exceptions.CRSError:
            raise InputError(
                f"{self.name} has the projection {self.projection!r}, which PROJ cannot read: give edges=…, or --edges"
            ) from None
        x, y = project.transform(lon, lat)
        return np.asarray(x) + self.offset[0], np.asarray(y) + self.offset[1]


def _away(piece: Floats, x: float, y: float) -> Floats:
    """The distance of a point from each piece of a straight line."""
    start, way = piece[:, :2], piece[:, 2:] - piece[:, :2]
    length = np.maximum((way**2).sum(axis=1), 1e-12)
    part = np.clip(((np.array([x, y]) - start) * way).sum(axis=1) / length, 0, 1)
    nearest = start + part[:, None] * way
    return np.asarray(np.hypot(nearest[:, 0] - x, nearest[:, 1] - y))


def streets(path: str | Path) -> Streets:
    """The streets of a SUMO network (.net.xml): those open to cars, in the largest part where all lead to all."""
    try:
        return _streets(path)
    except InputError:
        raise
    except (KeyError, ValueError, TypeError, IndexError) as wrong:
        raise InputError(
            f"{str(path)!r} is no SUMO network as netconvert makes it ({type(wrong).__name__}: {wrong})"
        ) from None


def _streets(path: str | Path) -> Streets:
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
    joined = _joined(list(shapes), links)
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


def _elements(file: Path) -> Iterable[Any]:
    try:
        for _, element in ET.iterparse(file):  # noqa: S314 - the user's own network
            if element.tag in ("location", "edge", "connection"):
                yield element
                element.clear()
    except (OSError, ET.ParseError):
        raise InputError(f"{str(file)!r} cannot be read as XML: give a SUMO network (.net.xml)") from None


def _shape(edge: Any) -> list[tuple[float, ...]]:
    """The line of the first lane that is open to cars."""
    for lane in edge.iter("lane"):
        allow, shut = (lane.attrib.get(name, "").split() for name in ("allow", "disallow"))
        if ({"passenger", "all"} & set(allow) or not allow) and not {"passenger", "all"} & set(shut):
            return [tuple(map(float, point.split(",")[:2])) for point in lane.attrib["shape"].split()]
    return []


def _pieces(shape: list[tuple[float, ...]]) -> Iterable[tuple[float, ...]]:
    return [(*a, *b) for a, b in zip(shape, [*shape[1:], shape[-1]], strict=True)][: max(1, len(shape) - 1)]


def _joined(edges: list[str], links: list[tuple[str, str]]) -> list[str]:
    """The edges of the largest part in which every edge leads to every other."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    at = {edge: n for n, edge in enumerate(edges)}
    ends = np.array([(at[a], at[b]) for a, b in links if a in at and b in at], dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(edges),) * 2)
    _, part = connected_components(graph, connection="strong")
    largest = int(np.bincount(part).argmax())
    return [edge for edge, p in zip(edges, part.tolist(), strict=True) if p == largest]
