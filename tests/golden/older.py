"""Folders that an earlier version wrote, which later ones have to read: one release and one series of three days, each with its ledger.

They are packed, for reports are large. To write them anew, in a checkout of that version (0.2.0 is commit 1b4831f), with this folder's
parent on the path after it:

    PYTHONPATH=.:LATER/tests python -m golden.older /srv/city

The folder's path stands in the ledgers, so it should say nothing of anybody's machine.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

from golden import inputs
from golden.ways import Case, steady

WRITTEN = Path(__file__).parent / "written_by_0_2_0"
NAMES = ("release", "series")

CONFIG = """
[data]
id = "old {name}"
trips = "trips.csv"
stops = "stops.csv"
columns = {{ origin = "from_stop", destination = "to_stop", time = "left_at", person = "card" }}

[universe]
time = {{ start = "06:00", end = "12:00", every = "2h" }}
zones = {{ column = "zone" }}
modes = {{ distance_km = [2, 5] }}
origin_is_destination = false

[[feature]]
name = "zone"
by = ["origin.zone", "destination.zone", "time"]

[[feature]]
name = "mode"
by = ["mode", "time"]

[privacy]
ledger = "ledger.sqlite"
unit = {{ person = "card", max_trips = 2, per = "day" }}
"""
RELEASE = CONFIG.format(name="city") + "epsilon = 1\ncap = 20\n"
SERIES = CONFIG.format(name="days") + (
    'rho = 0.5\nlaw = "gaussian"\ncap = { per_day = 4, per_30_days = 600 }\n'
    '\n[series]\ncalendar = "daily"\nstart = 2026-03-02\nearlier = 2\n'
    '\n[output]\npath = "releases/{period}"\n'
)


def write(folder: Path) -> None:
    """With the version that is installed."""
    for name, config in zip(NAMES, (RELEASE, SERIES), strict=True):
        run = Case(f"older {name}", folder / name)
        run.write("stops.csv", inputs.stops_csv())
        run.write("trips.csv", inputs.trips_csv(5))
        run.write("cbdp.toml", config)
        if name == "release":
            run.run("release", "cbdp.toml", "--create-ledger")
        else:
            (run.folder / "releases").mkdir()
            run.run("series", "run", "cbdp.toml", "--until", "2026-03-04", "--create-ledger")


def pack(folder: Path) -> None:
    WRITTEN.mkdir(exist_ok=True)
    for name in NAMES:
        with tarfile.open(WRITTEN / f"{name}.tar.xz", "w:xz", format=tarfile.PAX_FORMAT) as packed:
            packed.add(folder / name, name, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def unpack(name: str, folder: Path) -> Path:
    with tarfile.open(WRITTEN / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder / name


if __name__ == "__main__":
    with steady():
        write(Path(sys.argv[1]))
    pack(Path(sys.argv[1]))
