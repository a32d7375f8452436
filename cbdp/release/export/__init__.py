"""A release in the formats of others. Whole trips stay whole, ids stay ids, and origins stay origins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cbdp.parts import Parts, instance_of
from cbdp.release.export.base import Format
from cbdp.release.export.writing import fresh
from cbdp.release.release import Release

FORMATS: Parts[Format] = Parts(
    "format",
    "cbdp.export",
    {
        "csv": "cbdp.release.export.csv:Csv",
        "omx": "cbdp.release.export.omx:Omx",
        "geojson": "cbdp.release.export.geojson:GeoJson",
        "matsim": "cbdp.release.export.matsim:Matsim",
        "sumo": "cbdp.release.export.sumo:Sumo",
        "xarray": "cbdp.release.export.xarray:Xarray",
    },
    instance_of(Format),
    base="cbdp.release.export.Format",
)


def export(release: Release | str | Path, path: str | Path, format: Any, **options: Any) -> Path:  # noqa: A002 - the word users know
    """Write a release, or the one in a folder, in one of `FORMATS`; return where it is.

    `level="zone"` adds stops up to the attributes origin.zone and destination.zone (omx, geojson, sumo). `origin` and
    `destination` name those dimensions if they have other names, and `places` are stops with coordinates, where
    the release has none (geojson, matsim). A path that exists is refused, and what fails leaves nothing.
    """
    chosen = FORMATS.get(format)
    chosen.check_options(options)
    if not isinstance(release, Release):
        from cbdp.release.loading import load

        release = load(release)
    target = Path(path)
    with fresh(target) as work:
        chosen.write(release, work, **options)
    return target


__all__ = ["FORMATS", "Format", "export"]
