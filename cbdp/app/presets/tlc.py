"""NYC TLC trip records: yellow and green taxis, for-hire vehicles, high-volume for-hire services."""

from __future__ import annotations

from cbdp.app.presets.base import Preset

TLC = Preset(
    name="tlc",
    about="taxi zones of pick-up and drop-off, pick-up time; no persons are known",
    follows="NYC TLC data dictionaries of yellow, green, FHV and HVFHV trips, March 2025",
    columns={
        "origin": ("PULocationID", "PUlocationID"),
        "destination": ("DOLocationID", "DOlocationID"),
        "time": ("tpep_pickup_datetime", "lpep_pickup_datetime", "pickup_datetime"),
    },
    stop_columns={"id": "LocationID", "name": "Zone"},
    zone="Borough",
    hint="taxi_zone_lookup.csv",
)
