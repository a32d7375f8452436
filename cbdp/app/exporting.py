"""`cbdp export`: a release in the format of another program. What a format can be told is its own to say."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbdp.errors import InputError

if TYPE_CHECKING:
    from cbdp.features.places import Stops
    from cbdp.release import Release

CONFIDENCE = 0.9
OPTIONS = {
    "level": "add stops up to this attribute, for example zone",
    "zones": "omx: a file with the zones of another program, one on each line or in the column zone: matrices get their order, "
    "and those without trips",
    "places": "stops with coordinates (CSV, GTFS or GeoJSON), where the release has none",
    "network": "sumo: a network (.net.xml); writes a folder that od2trips and duarouter run on",
    "edges": "sumo: the streets of each place (CSV: place, edge) instead of those nearest to its stops",
    "mode": "matsim: the mode of all trips, where the release has none",
    "crs": "matsim: the coordinate system of x and y, for example EPSG:32617 (metres); by default longitude and latitude",
    "origin": "the dimension with the origins, if it is not called origin",
    "destination": "the dimension with the destinations, if it is not called destination",
}
FILES = ("zones", "network", "edges")


def main(argv: Sequence[str]) -> int:
    """`cbdp export` with these arguments."""
    options = vars(_parser().parse_args(argv))
    from cbdp.mechanisms import load
    from cbdp.release.export import FORMATS, export

    chosen = FORMATS.get(options["format"] or _named(options["out"]))
    given: dict[str, Any] = {
        name: options[name] for name in (*OPTIONS, "intervals") if options[name] is not None
    }
    chosen.check_options(given)
    release = load(options["release"])
    if "places" in given:
        given["places"] = _places(release, given["places"], given.get("origin", "origin"))
    print(export(release, options["out"], chosen, **given))
    return 0


def _named(out: str) -> str:
    """The format that the ending of a file's name says."""
    from cbdp.release.export import FORMATS

    endings = {FORMATS.get(name).ending: name for name in FORMATS.table if FORMATS.get(name).ending}
    found = max((e for e in endings if out.lower().endswith(e)), key=len, default=None)
    if found is None:
        raise InputError(
            f"--out {out}: its ending names no format (known are {', '.join(endings)}): say which with --format"
        )
    return endings[found]


def _parser() -> argparse.ArgumentParser:
    from cbdp.release.export import FORMATS

    parser = argparse.ArgumentParser(
        prog="cbdp export", description="Write a release in the format of another program; spends nothing."
    )
    parser.add_argument("release", help="folder of a release")
    parser.add_argument(
        "--format",
        help=f"{', '.join(FORMATS.names())} (default: what the ending of --out says, for example .omx)",
    )
    parser.add_argument(
        "--out", required=True, help="where to write it: a file or a folder that does not exist yet"
    )
    parser.add_argument(
        "--intervals",
        type=float,
        nargs="?",
        const=CONFIDENCE,
        metavar="CONFIDENCE",
        help=f"also low and high of every count, at this confidence (default: {CONFIDENCE})",
    )
    for name, about in OPTIONS.items():
        parser.add_argument(f"--{name}", metavar="FILE" if name in (*FILES, "places") else None, help=about)
    return parser


def _places(release: Release, path: str, origin: str) -> Stops:
    from cbdp.features.places import stops

    dimensions = release.features.universe.dimensions
    whole = origin in dimensions and all(isinstance(v, int) for v in dimensions[origin].values)
    return stops(Path(path), ids=int if whole else str)
