"""What a release counts, as a word: trips, or taps where a row has one place and not two."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cbdp.features import Universe
from cbdp.release.roles import ends_of

TAP = "tap"  # the dimension that tells tap-ons from tap-offs, and where they were made: as `cbdp init` names them
PLACES = ("location", "stop", "station")
KINDS = ("on", "off")


@dataclass(frozen=True)
class Noun:
    """A word for one, and for many.

    >>> TAPS.number(1), TAPS.number(2000)
    ('1 tap', '2,000 taps')
    """

    one: str
    many: str

    def number(self, n: float) -> str:
        return f"{n:,.0f} {self.one if n == 1 else self.many}"

    def say(self, text: str) -> str:
        """A sentence about trips, with this word in place of theirs.

        >>> TAPS.say("Trips are protected: each trip counts.")
        'Taps are protected: each tap counts.'
        """
        return re.sub(
            r"\b([Tt])rip(s?)\b",
            lambda found: _cased(self.many if found[2] else self.one, found[1] == "T"),
            text,
        )


TRIPS, TAPS = Noun("trip", "trips"), Noun("tap", "taps")


def counted(universe: Universe) -> Noun:
    """Trips lead from one place to another. Where there is one place alone, and `tap` or `location` names it, taps are counted.

    >>> counted(Universe(location=["Manly", "Quay"], time=["08:00", "08:15"])).many
    'taps'
    >>> counted(Universe(tap=["on"], location=["Manly", "Quay"])).many
    'tap-ons'
    >>> counted(Universe(origin=["Manly", "Quay"], destination=["Manly", "Quay"])).many
    'trips'
    """
    if ends_of(universe) is not None or not {TAP, PLACES[0]} & set(universe.dimensions):
        return TRIPS
    kinds = [str(v) for v in universe.dimensions[TAP].values] if TAP in universe.dimensions else []
    if len(kinds) == 1 and kinds[0] in KINDS:
        return Noun(f"tap-{kinds[0]}", f"tap-{kinds[0]}s")
    return TAPS


def _cased(word: str, capital: bool) -> str:
    return f"{word[0].upper()}{word[1:]}" if capital else word
