"""Bike-share trips with the stations of a GBFS feed. GBFS itself has no trips; operators publish them under these names."""

from __future__ import annotations

from cbdp.app.presets.base import Preset

GBFS = Preset(
    name="gbfs",
    about="start and end station, start time, member where it is known",
    follows="the monthly trip files of GBFS systems (started_at, start_station_id, …); stations as in GBFS 1.0 to 3.0",
    columns={
        "origin": ("start_station_id", "from_station_id", "start station id"),
        "destination": ("end_station_id", "to_station_id", "end station id"),
        "time": ("started_at", "start_time", "starttime"),
        "person": ("member_id", "user_id", "rider_id"),
    },
    optional=frozenset({"person"}),
    hint="station_information.json of the system's GBFS feed, or a CSV of stations",
)
