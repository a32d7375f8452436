"""A release in the formats of others. Whole trips stay whole, ids stay ids, and origins stay origins."""

from __future__ import annotations

from pathlib import Path

from cbdp.errors import InputError
from cbdp.parts import Parts, instance_of
from cbdp.release.export.base import Format, new_target
from cbdp.release.release import Release

FORMATS: Parts[Format] = Parts(
    "format",
    "cbdp.export",
    {
        "csv": "cbdp.release.export.csv:Csv",
        "omx": "cbdp.release.export.omx:Omx",
        "geojson": "cbdp.release.export.geojson:GeoJson",
        "geopackage": "cbdp.release.export.geopackage:GeoPackage",
        "geoparquet": "cbdp.release.export.geoparquet:GeoParquet",
        "flowmap": "cbdp.release.export.flowmap:Flowmap",
        "kepler": "cbdp.release.export.kepler:Kepler",
        "matsim": "cbdp.release.export.matsim:Matsim",
        "sumo": "cbdp.release.export.sumo:Sumo",
        "xarray": "cbdp.release.export.xarray:Xarray",
    },
    instance_of(Format),
    base="cbdp.release.export.Format",
)


def export(
    release: Release | str | Path,
    path: str | Path,
    format: str | Format | type[Format],  # noqa: A002 - the word users know
    **options: object,
) -> Path:
    """Write a release, or the one in a folder, in one of `FORMATS`; return where it is.

    `level="zone"` adds stops up to the attributes origin.zone and destination.zone. `intervals=0.9` adds low and high of every count
    at that confidence. `places` are stops with coordinates, where the release has none. `origin` and `destination` name those
    dimensions if they have other names. Other options, and which format has which, are in the formats' own `write`. Names of formats
    may be in any case. A path that exists is refused, and what fails leaves nothing.

    >>> import tempfile, cbdp
    >>> stops = ["A", "B"]
    >>> features = cbdp.FeatureDag(cbdp.Universe(origin=stops, destination=stops), [])
    >>> made = cbdp.ConstraintBased(features, epsilon=1).simulate({"origin": ["A"] * 9, "destination": ["B"] * 9}, 3)
    >>> out = export(made, Path(tempfile.mkdtemp()) / "tables", "CSV", intervals=0.9)
    >>> sorted(file.name for file in out.iterdir())
    ['about.json', 'features', 'od.csv', 'trips.csv']
    """
    chosen = FORMATS.get(format)
    chosen.check_options(options)
    if not isinstance(release, Release):
        from cbdp.release.files import load

        release = load(release)
    target = Path(path)
    with new_target(target) as work:
        chosen.write(release, work, **options)
    return target


def ending_format(out: str) -> str:
    """The format that the ending of a file's name says."""
    endings = {FORMATS.get(name).ending: name for name in FORMATS.table if FORMATS.get(name).ending}
    ending = max((e for e in endings if out.lower().endswith(e)), key=len, default=None)
    if ending is None:
        raise InputError(
            f"--out {out}: its ending names no format (known are {', '.join(endings)}): say which with --format"
        )
    return endings[ending]


__all__ = ["FORMATS", "Format", "export"]
