"""MATSim: a population with one person per trip, from an activity at its origin to one at its destination."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.release.export.base import (
    Format,
    open_text,
    optional_library,
    provenance_lines,
    xml_attribute,
    xml_comment,
    xml_text,
)
from cbdp.release.export.flows import Period, flows_of, labels_at, place_coordinates
from cbdp.release.release import Release
from cbdp_features.places import Stops
from cbdp_features.tables import text_of

POPULATION_HEAD = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE population SYSTEM "http://www.matsim.org/files/dtd/population_v6.dtd">
"""
WGS84_CODE = "EPSG:4326"
MATSIM_MODES = frozenset({"bike", "car", "drt", "pt", "ride", "taxi", "truck", "walk"})
GOLDEN_RATIO = (math.sqrt(5) - 1) / 2  # its multiples spread most evenly modulo 1 (Kronecker sequence)


@dataclass(frozen=True)
class Matsim(Format):
    name: ClassVar[str] = "matsim"
    ending: ClassVar[str] = ".plans.xml"
    about: ClassVar[str] = "MATSim population: a person per trip"

    def write(
        self,
        release: Release,
        path: Path,
        *,
        places: Stops | None = None,
        mode: str | None = None,
        crs: str = WGS84_CODE,
        origin: str | None = None,
        destination: str | None = None,
    ) -> None:
        """Write a person per trip. x and y are in the coordinate system `crs`, and the file says so.

        MATSim measures in metres: give the `crs` of its network, say EPSG:32617, or let MATSim convert (it does where the file says
        EPSG:4326, longitude and latitude, and its configuration's `global.coordinateSystem` says another). Departures are evenly spaced over each period, those of one origin spread over all of it. Legs have the mode given, or else the one of MATSim that comes nearest to the
        label of the universe's attribute `mode` (the label itself is an attribute of the person), or "pt".
        """
        flows = flows_of(release, origin=origin, destination=destination)
        lon, lat = place_coordinates(release, flows, places)
        points = _points(lon, lat, crs)
        starts, ends = ([_about(end, label) for label in flows.ids] for end in ("origin", "destination"))
        labels = labels_at(release, "mode", flows.first) if mode is None else None
        legs = [(xml_attribute(mode or "pt"), "")] * len(flows.count)
        if labels is not None:
            legs = [(xml_attribute(matsim_mode(text_of(n))), _about("mode", n)) for n in labels]
        number = 0
        with open_text(path) as out:
            out.write(POPULATION_HEAD + xml_comment(provenance_lines(release)) + _root(crs))
            for period, rows in flows.by_period():
                when = "".join(_about(name, label) for name, label in period.labels)
                times = departures(period, int(flows.count[rows].sum())).tolist()
                done = 0
                for (o, d, count), (leg, label) in zip(flows.rows(rows), legs[rows], strict=True):
                    about = starts[o] + ends[d] + when + label
                    for time in times[done : done + count]:
                        number += 1
                        out.write(_person(number, about, points[o], points[d], time, leg))
                    done += count
            out.write("</population>\n")


def _root(crs: str) -> str:
    named = (
        f'<attribute name="coordinateReferenceSystem" class="java.lang.String">{xml_text(crs)}</attribute>'
    )
    return f"<population>\n<attributes>\n{named}\n</attributes>\n"


def _points(lon: Floats, lat: Floats, crs: str) -> list[str]:
    if crs == WGS84_CODE:
        return [f'x="{x:.7f}" y="{y:.7f}"' for x, y in zip(lon.tolist(), lat.tolist(), strict=True)]
    pyproj = optional_library("pyproj", "matsim")
    try:
        project = pyproj.Transformer.from_crs(WGS84_CODE, crs, always_xy=True)
    except pyproj.exceptions.CRSError:
        raise InputError(f"unknown coordinate system {crs!r}: write it like EPSG:32617") from None
    east, north = project.transform(lon, lat)
    return [f'x="{x:.2f}" y="{y:.2f}"' for x, y in zip(east.tolist(), north.tolist(), strict=True)]


def departures(period: Period, trips: int) -> Ints:
    """Times evenly spaced over a period, in whole seconds, in an order that spreads neighbours far apart.

    >>> departures(Period((), 0, 100), 5).tolist()
    [10, 70, 30, 90, 50]
    """
    step = max(1, round(trips * GOLDEN_RATIO))
    while math.gcd(step, max(trips, 1)) > 1:
        step += 1
    place = np.arange(trips, dtype=np.int64) * step % max(trips, 1)
    return period.begin + (2 * place + 1) * (period.end - period.begin) // (2 * max(trips, 1))


def matsim_mode(label: str) -> str:
    """A mode that MATSim can route: a shuttle alone is `drt`; with buses it feeds transit, `pt`, as does what has no name in MATSim.

    >>> [matsim_mode(label) for label in ("walk", "shuttle to next zone", "shuttle-bus-shuttle", "rail")]
    ['walk', 'drt', 'pt', 'pt']
    """
    if label in MATSIM_MODES:
        return label
    return "drt" if "shuttle" in label and "bus" not in label else "pt"


def _about(name: str, label: Hashable) -> str:
    return f'<attribute name={xml_attribute(name)} class="java.lang.String">{xml_text(text_of(label))}</attribute>'


def _person(number: int, about: str, start: str, finish: str, time: int, mode: str) -> str:
    clock = f"{time // 3600:02d}:{time // 60 % 60:02d}:{time % 60:02d}"
    return (
        f'<person id="trip-{number}"><attributes>{about}</attributes><plan selected="yes">'
        f'<activity type="origin" {start} end_time="{clock}"/><leg mode={mode}/>'
        f'<activity type="destination" {finish}/></plan></person>\n'
    )
