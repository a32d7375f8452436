"""TIDES fare transactions: taps of a fare card (or any other token), linked to trips."""

from __future__ import annotations

from cbdp.app.presets.base import Columns, Preset
from cbdp.trips.preparing import Linked

ON = ("enter", "transfer_entrance")
OFF = ("exit", "transfer_exit")
MISSING = ("NA", "NaN")  # what the specification writes for a missing value, besides nothing


def _linked(columns: Columns, formats: tuple[str, ...]) -> Linked:
    return Linked(
        columns["person"],
        columns["time"],
        columns["stop"],
        columns["action"],
        ON,
        OFF,
        nobody=MISSING,
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
    prepare=_linked,
    yields={"origin": "origin", "destination": "destination", "time": None, "person": None},
    local=False,
    persons=True,
    hint="the GTFS feed (zip, folder or stops.txt) whose stop_id the taps name",
)
