"""What the columns of the trips and of the stops seem to be: the trips are opened, and no row of them is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cbdp.app.guessing import Guess, guess_of
from cbdp.trips import schema_of


def guess(trips: Sequence[str], stops: str | Path | None = None) -> Guess:
    """What the columns of the trips (by their names and types) and of the stops (by their values too) seem to be."""
    return guess_of(schema_of(trips[0] if len(trips) == 1 else list(trips)), stops)
