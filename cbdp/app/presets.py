"""Data presets: how files of a published specification are read, one small file each. `cbdp init --preset NAME` starts from one."""

from __future__ import annotations

from cbdp.config.guessing import ColumnsByRole, Preset, PresetColumns, apply_preset
from cbdp.config.vocabulary import OFF_WORDS, ON_WORDS
from cbdp.counting.linking import DatedTimes, LinkedTaps
from cbdp.parts import Parts, instance_of

PRESETS: Parts[Preset] = Parts(
    "data preset",
    "cbdp.presets",
    {
        "tides": "cbdp.app.presets:TIDES",
        "taps": "cbdp.app.presets:TAPS",
        "gtfs-ride": "cbdp.app.presets:GTFS_RIDE",
        "tlc": "cbdp.app.presets:TLC",
        "gbfs": "cbdp.app.presets:GBFS",
    },
    instance_of(Preset),
    base="cbdp.app.presets.Preset",
)


# Bike-share trips with the stations of a GBFS feed. GBFS itself has no trips; operators publish them under these names.


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


# GTFS-ride: trips of riders, whose times may go beyond 24:00.


DATE_FORMAT = ("%Y%m%d",)


def _dated(columns: ColumnsByRole, formats: tuple[str, ...]) -> DatedTimes | None:
    if "day" not in columns:
        return None
    kept = tuple(columns[role] for role in ("origin", "destination", "person"))
    return DatedTimes(columns["day"], columns["time"], kept, formats)


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
    time_format=DATE_FORMAT,
    prepare=_dated,
    yields={"origin": None, "destination": None, "time": "time", "day": "time", "person": None},
    persons=True,
    hint="the GTFS feed (zip, folder or stops.txt) that the file belongs to",
)


# TIDES fare transactions: taps of a fare card (or any other token), linked to trips.


TIDES_ON = ("enter", "transfer_entrance")
TIDES_OFF = ("exit", "transfer_exit")
MISSING_VALUES = ("NA", "NaN")  # what the specification writes for a missing value, besides nothing


def _tides_linked(columns: ColumnsByRole, formats: tuple[str, ...]) -> LinkedTaps:
    return LinkedTaps(
        columns["person"],
        columns["time"],
        columns["stop"],
        columns["action"],
        TIDES_ON,
        TIDES_OFF,
        nobody=MISSING_VALUES,
        formats=formats,
    )


TIDES = Preset(
    name="tides",
    about="a tap-on with the token's next tap-off is a trip; other taps are dropped",
    follows="TIDES 1.0, fare_transactions",
    columns={
        "person": ("token_id",),
        "time": ("event_timestamp",),
        "stop": ("stop_id",),
        "action": ("fare_action",),
    },
    prepare=_tides_linked,
    yields={"origin": "origin", "destination": "destination", "time": None, "person": None},
    local=False,
    persons=True,
    hint="the GTFS feed (zip, folder or stops.txt) whose stop_id the taps name",
)


# Taps of any fare system: a row for each tap, with a card, a time, a stop, and whether it is a tap-on or a tap-off.


# how a tap is written; "Tap on", "tap-on", "tap_on" and "tapon" are one word
TAP_ON, TAP_OFF = ON_WORDS, OFF_WORDS
VERBS_BEFORE = {"on": ("tap", "touch", "tag"), "off": ("tap", "touch", "tag"), "in": ("tap", "check"), "out": ("tap", "check")}  # fmt: skip


def spellings(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words, alone and behind what often stands before them.

    >>> spellings(("off",))[:5]
    ('off', 'tap_off', 'tap-off', 'tapoff', 'touch_off')
    """
    return tuple(
        dict.fromkeys(
            [
                *words,
                *(
                    f"{before}{mark}{word}"
                    for word in words
                    for before in VERBS_BEFORE.get(word, ())
                    for mark in ("_", "-", "")
                ),
            ]
        )
    )


def _taps_linked(columns: ColumnsByRole, formats: tuple[str, ...]) -> LinkedTaps:
    return LinkedTaps(
        columns["person"],
        columns["time"],
        columns["stop"],
        columns["action"],
        spellings(TAP_ON),
        spellings(TAP_OFF),
        nobody=MISSING_VALUES,
        formats=formats,
    )


TAPS = Preset(
    name="taps",
    about="a tap-on with the same card's next tap-off is a trip; other taps are dropped",
    follows="taps of any fare system",
    columns={
        "person": ("card_id", "card", "token_id"),
        "time": ("time", "tap_time", "timestamp"),
        "stop": ("stop_id", "stop", "station_id", "station", "location"),
        "action": ("tap", "action", "tap_type"),
    },
    prepare=_taps_linked,
    yields={"origin": "origin", "destination": "destination", "time": None, "person": None},
    local=False,
    persons=True,
    hint="a public list of all stops (CSV, GTFS or GeoJSON), used or not",
)


# NYC TLC trip records: yellow and green taxis, for-hire vehicles, high-volume for-hire services.


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


__all__ = ["PRESETS", "Preset", "PresetColumns", "apply_preset"]
