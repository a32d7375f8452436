"""The service days that a count is restricted to: one release of a series looks at one period, and at no other row.

The restriction is one more axis of the counting plan, with a single code for the days inside. A row on another day, or on none that is
known, finds no code and is dropped before persons are bounded, as if it were not there.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import numpy as np

from cbdp.errors import InputError
from cbdp.trips.plan import Axis, Way
from cbdp.trips.zones import EPOCH

NAME = "days of the release"


@dataclass(frozen=True)
class Days:
    """Service days from a first to a last, both included."""

    first: dt.date
    last: dt.date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise InputError(f"days end on {self.last}, which is before their start {self.first}")

    def axis(self, field: int, moment: int) -> Axis:
        """An axis of one code that the rows of these days have, by the day of a moment."""
        numbers = range((self.first - EPOCH).days, (self.last - EPOCH).days + 1)
        keys = np.fromiter(numbers, np.int64)
        return Axis(NAME, 1, field, (Way("day", moment, keys, np.zeros(len(keys), dtype=np.int64)),))

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"
