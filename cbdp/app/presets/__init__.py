"""Data presets: how files of a published specification are read, one small file each. `cbdp init --preset NAME` starts from one."""

from __future__ import annotations

from cbdp.app.presets.base import Preset, Settled, settled
from cbdp.parts import Parts, instance_of

PRESETS: Parts[Preset] = Parts(
    "data preset",
    "cbdp.presets",
    {
        "tides": "cbdp.app.presets.tides:TIDES",
        "taps": "cbdp.app.presets.taps:TAPS",
        "gtfs-ride": "cbdp.app.presets.gtfs_ride:GTFS_RIDE",
        "tlc": "cbdp.app.presets.tlc:TLC",
        "gbfs": "cbdp.app.presets.gbfs:GBFS",
    },
    instance_of(Preset),
    base="cbdp.app.presets.Preset",
)

__all__ = ["PRESETS", "Preset", "Settled", "settled"]
