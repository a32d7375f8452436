"""A release in the formats of others. Whole trips stay whole, ids stay ids, and origins stay origins."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from cbdp.errors import InputError
from cbdp.release.release import Release

# format → where its writer is, and what it writes
FORMATS = {
    "csv": ("cbdp.release.export.csv", "a folder with the trips and a table per feature"),
    "omx": (
        "cbdp.release.export.omx",
        "Open Matrix: a matrix per period, and the ids of its rows and columns",
    ),
    "geojson": ("cbdp.release.export.geojson", "flows as lines from origin to destination"),
    "matsim": ("cbdp.release.export.matsim", "MATSim population: a person per trip"),
    "sumo": ("cbdp.release.export.sumo", "SUMO tazRelation: an interval per period"),
    "xarray": ("cbdp.release.export.xarray", "NetCDF of an xarray Dataset"),
}


def export(release: Release | str | Path, path: str | Path, format: str, **options: Any) -> Path:  # noqa: A002 - the word users know
    """Write a release, or the one in a folder, in one of `FORMATS`; return where it is.

    `level="zone"` adds stops up to the attributes origin.zone and destination.zone (omx, geojson, sumo). `origin` and
    `destination` name those dimensions if they have other names, and `places` are stops with coordinates, where
    the release has none (geojson, matsim). A path that exists is refused, and what fails leaves nothing.
    """
    if format not in FORMATS:
        raise InputError(f"unknown format {format!r}: choose one of {', '.join(FORMATS)}")
    write: Callable[..., None] = import_module(FORMATS[format][0]).write
    known = list(signature(write).parameters)[2:]
    for option in options:
        if option not in known:
            raise InputError(f"{format} has no option {option!r}: it has {', '.join(known) or 'none'}")
    if not isinstance(release, Release):
        from cbdp.release.loading import load

        release = load(release)
    from cbdp.release.export.writing import fresh

    target = Path(path)
    with fresh(target) as work:
        write(release, work, **options)
    return target


__all__ = ["FORMATS", "export"]
