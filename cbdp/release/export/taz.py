"""Which streets of a SUMO network the trips of a place begin and end on: its traffic assignment zone (TAZ)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cbdp.errors import InputError
from cbdp.features.places import Stops, table_rows, text_of
from cbdp.release.export.flows import Flows, located, places_of
from cbdp.release.export.network import Streets
from cbdp.release.export.xml import quoted, sumo_id
from cbdp.release.labels import text_of as label_text
from cbdp.release.release import Release

Taz = Mapping[str, Mapping[str, float]]  # place → edge → weight


def taz_near(release: Release, made: Flows, streets: Streets, places: Stops | None) -> Taz:
    """The streets nearest to every stop; of a zone, those of all its stops, each as often as stops are there."""
    at = located(release, places)
    universe = release.features.universe
    stops: dict[str, dict[str, tuple[float, float]]] = {}
    _, ends = places_of(universe, made.ends)
    for name, place in zip((made.ends.origin, made.ends.destination), ends, strict=True):
        for value, p in zip(universe.dimensions[name].values, place.tolist(), strict=True):
            own = stops.setdefault(made.texts[p], {})
            if value in at and not np.isnan(at[value]).any():
                own[label_text(value)] = at[value]
    used = {made.texts[p] for p in np.union1d(made.origin, made.destination).tolist()}
    return {place: _streets_of(place, own, streets) for place, own in stops.items() if own or place in used}


def _streets_of(place: str, stops: Mapping[str, tuple[float, float]], streets: Streets) -> Counter[str]:
    if not stops:
        raise InputError(
            f"the place {place!r} has no coordinates: give its latitude and longitude, or edges=…"
        )
    lon, lat = (np.array([point[k] for point in stops.values()]) for k in (0, 1))
    return Counter(edge for near in streets.near(lon, lat, stops) for edge in near)


def taz_given(made: Flows, streets: Streets, path: str | Path) -> Taz:
    """The streets that a CSV file names: columns place, edge, and optionally weight."""
    rows = table_rows(text_of(Path(path)), Path(path))
    found: dict[str, dict[str, float]] = {}
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
        found.setdefault(row["place"], {})[row["edge"]] = _weight(row.get("weight") or "1", path)
    for p in np.union1d(made.origin, made.destination).tolist():
        if made.texts[p] not in found:
            raise InputError(
                f"{str(path)!r} has no edge of the place {made.texts[p]!r}, which has trips: add a row for it"
            )
    return found


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
        named = "" if sumo_id(place) == place else f" name={quoted(place)}"
        lines.append(f"    <taz id={quoted(sumo_id(place))}{named}>")
        for kind in ("tazSource", "tazSink"):
            lines += [
                f'      <{kind} id={quoted(edge)} weight="{weight:g}"/>' for edge, weight in edges.items()
            ]
        lines.append("    </taz>")
    return "\n".join([*lines, "  </tazs>", "</additional>", ""])
