"""The curve of the day as a text, and what is odd about it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from cbdp.app.inspecting.cause import Cause
from cbdp.app.inspecting.reading import TripReading
from cbdp.app.printing import aligned
from cbdp.features import Dimension
from cbdp.features.calendar import DAY
from cbdp.trips import Inspection
from cbdp.trips.engines.base import OUTSIDE
from cbdp.trips.inspect import REASONS
from cbdp.trips.kinds import STAMP, TEXT, kind_of

WIDTH, ROWS = 40, 48
HOUR = 3600
QUIET = 4  # hours that a city sleeps
ENOUGH = 500  # trips from which a curve says anything


def chart(values: Sequence[tuple[str, int]]) -> list[str]:
    """Bars, a line each; of many values, several share a line.

    >>> for line in chart([("07:00", 20), ("08:00", 40)]):
    ...     print(line)
    07:00  20  ████████████████████
    08:00  40  ████████████████████████████████████████
    """
    each = -(-len(values) // ROWS)
    merged = [
        (str(values[n][0]), sum(trips for _, trips in values[n : n + each]))
        for n in range(0, len(values), each)
    ]
    top = max((trips for _, trips in merged), default=0) or 1
    rows = [(label, f"{trips:,}", "█" * round(WIDTH * trips / top)) for label, trips in merged]
    return aligned(rows, right=[1])


def hours_of(dimension: Dimension, values: Sequence[tuple[str, int]]) -> list[float] | None:
    """Trips in each hour of the day, if the periods cover all of it."""
    edges = dimension.edges
    if edges is None or edges[0] > 0 or edges[-1] < DAY:
        return None
    hours = [0.0] * 24
    for (begin, end), (_, trips) in zip(itertools.pairwise(edges), values, strict=True):
        for hour in range(24):
            shared = max(0, min(end, (hour + 1) * HOUR) - max(begin, hour * HOUR))
            hours[hour] += trips * shared / (end - begin)
    return hours


def quietest(hours: Sequence[float]) -> int:
    """When the quietest hours of the day begin."""
    return min(range(24), key=lambda h: sum(hours[(h + n) % 24] for n in range(QUIET)))


def curve_causes(reading: TripReading, found: Inspection) -> Iterator[Cause]:
    yield from _outside(reading, found)
    dimension = reading.universe.dimensions.get("time")
    hours = None if dimension is None else hours_of(dimension, found.by["time"])
    if hours is None or sum(hours) < ENOUGH:
        return
    kind = kind_of(reading.schema.kinds[reading.columns["time"]])
    begin = quietest(hours)
    known = kind.name == STAMP and kind.zone is not None
    if not 6 <= begin <= 20 or kind.name not in (STAMP, TEXT):
        return
    shown = f"{begin}:00 to {(begin + QUIET) % 24}:00"
    stated = reading.clock.timezone
    if stated is not None:
        if not known:
            what = f"the quietest hours are {shown}: times without an offset were taken for UTC and moved to {stated}"
            yield Cause(
                found.read, what, "if they are those of the clock on the wall already, leave timezone out"
            )
        return
    says = f"column {reading.columns['time']!r} states {kind.zone}; " if known else ""
    yield Cause(
        found.read,
        f"{says}the quietest hours are {shown}: times may be in UTC or in another zone",
        'state where the clock is: timezone = "America/Los_Angeles" (with the name of yours)',
    )


def _outside(reading: TripReading, found: Inspection) -> Iterator[Cause]:
    for dropped in found.dropped:
        if dropped.reason == REASONS[OUTSIDE] and dropped.rows * 10 > found.read:
            listed = reading.universe.dimensions[str(dropped.dimension)].values
            span = "" if found.first is None else f"; the trips are from {found.first} to {found.last}"
            setting = "universe.days" if str(dropped.dimension) == "day" else f"universe.{dropped.dimension}"
            yield Cause(
                dropped.rows,
                f"many rows of column {dropped.column!r} are outside {setting} ({listed[0]} … {listed[-1]})",
                f"if that is not meant, widen {setting}{span}",
            )
