"""GTFS-ride: trips of riders, whose times may go beyond 24:00."""

from __future__ import annotations

from cbdp.app.presets.base import Columns, Preset
from cbdp.trips.preparing import Dated

DAY = ("%Y%m%d",)


def _dated(columns: Columns, formats: tuple[str, ...]) -> Dated | None:
    if "day" not in columns:
        return None
    kept = tuple(columns[role] for role in ("origin", "destination", "person"))
    return Dated(columns["day"], columns["time"], kept, formats)


GTFS_RIDE = Preset(
    name="gtfs-ride",
    about="boarding and alighting stop, service date and boarding time of each rider",
    follows="GTFS-ride of 1 January 2018, rider_trip.txt",
    columns={
        "origin": ("boarding_stop_id",),
        "destination": ("alighting_stop_id",),
        "day": ("service_date", "boarding_date"),
        "time": ("boarding_time",),
        "person": ("rider_id",),
    },
    optional=frozenset({"day"}),
    time_format=DAY,
    prepare=_dated,
    yields={"origin": None, "destination": None, "time": "time", "day": "time", "person": None},
    persons=True,
    hint="the GTFS feed (zip, folder or stops.txt) that the file belongs to",
)
