"""Taps of any fare system: a row for each tap, with a card, a time, a stop, and whether it is a tap-on or a tap-off."""

from __future__ import annotations

from cbdp.app.guessing.vocabulary import OFF_WORDS, ON_WORDS
from cbdp.app.presets.base import Columns, Preset
from cbdp.app.presets.tides import MISSING
from cbdp.trips.preparing import Linked

# how a tap is written; "Tap on", "tap-on", "tap_on" and "tapon" are one word
ON, OFF = ON_WORDS, OFF_WORDS
ALSO = {"on": ("tap", "touch", "tag"), "off": ("tap", "touch", "tag"), "in": ("tap", "check"), "out": ("tap", "check")}  # fmt: skip


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
                    for before in ALSO.get(word, ())
                    for mark in ("_", "-", "")
                ),
            ]
        )
    )


def _linked(columns: Columns, formats: tuple[str, ...]) -> Linked:
    return Linked(
        columns["person"],
        columns["time"],
        columns["stop"],
        columns["action"],
        spellings(ON),
        spellings(OFF),
        nobody=MISSING,
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
    prepare=_linked,
    yields={"origin": "origin", "destination": "destination", "time": None, "person": None},
    local=False,
    persons=True,
    hint="a public list of all stops (CSV, GTFS or GeoJSON), used or not",
)
