"""Published trips as flows from place to place, period by period."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.features import Dimension, Universe
from cbdp.features.calendar import WEEK, day_dimension
from cbdp.features.places import Stops
from cbdp.release.labels import text_of
from cbdp.release.release import Release
from cbdp.release.when import days_in

DAY = 86_400
DAYS = (
    "weekday",
    *WEEK,
    "weekend",
)  # types of days follow each other in this order, others as they are listed
MOST = 100_000  # periods


@dataclass(frozen=True)
class Period:
    """One combination of the values of all dimensions but origin and destination, and the seconds it lasts."""

    labels: tuple[tuple[str, Hashable], ...]
    begin: int
    end: int

    @property
    def name(self) -> str:
        return " ".join(text_of(label) for _, label in self.labels) or "trips"


@dataclass(frozen=True)
class Ends:
    """Where flows begin and end: the two dimensions, or an attribute of both."""

    origin: str = "origin"
    destination: str = "destination"
    level: str | None = None

    @property
    def attributes(self) -> tuple[str, str]:
        """The attributes that name the places.

        >>> Ends(level="zone").attributes
        ('origin.zone', 'destination.zone')
        """
        ending = "" if self.level is None else f".{self.level}"
        return f"{self.origin}{ending}", f"{self.destination}{ending}"


@dataclass(frozen=True, eq=False)
class Flows:
    """Trips between places, in order of period, origin and destination; one row for each that has any."""

    ends: Ends
    ids: tuple[Hashable, ...]  # of the places: stops or zones
    periods: tuple[Period, ...]
    period: Ints = field(repr=False)
    origin: Ints = field(repr=False)
    destination: Ints = field(repr=False)
    count: Ints = field(repr=False)
    # a row of the published trips that is in each; the only one unless zones were added up
    first: Ints = field(repr=False)
    low: Ints | None = field(default=None, repr=False)  # the ends of the counts' intervals, where asked for
    high: Ints | None = field(default=None, repr=False)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The ids as text; two that would look the same are refused."""
        texts = tuple(text_of(label) for label in self.ids)
        if len(set(texts)) < len(texts):
            twice = next(t for t in texts if texts.count(t) > 1)
            raise InputError(f"two places would both be called {twice!r}: rename one")
        return texts

    def by_period(self) -> Iterator[tuple[Period, slice]]:
        """Every period, also those without trips, and its rows."""
        ends = np.searchsorted(self.period, np.arange(len(self.periods) + 1))
        for period, (a, b) in zip(self.periods, itertools.pairwise(ends.tolist()), strict=True):
            yield period, slice(a, b)


def flows(
    release: Release,
    *,
    level: str | None = None,
    origin: str = "origin",
    destination: str = "destination",
) -> Flows:
    """The published trips by period, origin and destination; with `level`, between the zones of that attribute."""
    universe = release.features.universe
    names = list(universe.dimensions)
    for end in (origin, destination):
        if end not in names:
            raise InputError(
                f"the release has no dimension {end!r} (it has {', '.join(names)}): "
                "this format needs trips from an origin to a destination; name those dimensions with origin and destination"
            )
    codes = dict(zip(names, universe.unrank_codes(release.index), strict=True))
    ends = Ends(origin, destination, level)
    ids, (start, finish) = places_of(universe, ends)
    others = [n for n in names if n not in (origin, destination)]
    number = np.zeros(len(release.index), dtype=np.int64)
    for n in others:
        number = number * len(universe.dimensions[n]) + codes[n]
    columns = (number, start[codes[origin]], finish[codes[destination]])
    listed = _periods({n: universe.dimensions[n] for n in others})
    return Flows(ends, ids, listed, *_added(columns, release.value))


def places_of(universe: Universe, ends: Ends) -> tuple[tuple[Hashable, ...], tuple[Ints, Ints]]:
    """The ids of all places, and where each value of the two dimensions is among them."""
    for name, end in zip(ends.attributes, (ends.origin, ends.destination), strict=True):
        if name not in universe.attributes or universe.attributes[name].of != (end,):
            raise InputError(
                f"the release has no attribute {name!r} of {end!r}: there are {', '.join(universe.attributes)}"
            )
    first, second = (universe.attributes[name] for name in ends.attributes)
    ids = tuple(dict.fromkeys((*first.labels, *second.labels)))
    place = {label: p for p, label in enumerate(ids)}
    found = [np.array([place[v] for v in a.labels], dtype=np.int64)[a.codes] for a in (first, second)]
    return ids, (found[0], found[1])


def _periods(dimensions: dict[str, Dimension]) -> tuple[Period, ...]:
    if math.prod(len(d) for d in dimensions.values()) > MOST:
        raise InputError(
            f"{' × '.join(dimensions)} make more than {MOST:,} periods, too many for this format: choose another one"
        )
    clock = next((n for n, d in dimensions.items() if d.edges is not None), None)
    days = day_dimension({n: d for n, d in dimensions.items() if n != clock})
    starts = {n: _days(d, apart=n == days) for n, d in dimensions.items() if n != clock}
    found = []
    for place in itertools.product(*(range(len(d)) for d in dimensions.values())):
        at = dict(zip(dimensions, place, strict=True))
        edges = dimensions[clock].edges if clock is not None else None
        begin, end = (0, DAY) if clock is None or edges is None else edges[at[clock] : at[clock] + 2]
        later = DAY * sum(first[at[n]] for n, first in starts.items())
        labels = tuple((n, d.values[at[n]]) for n, d in dimensions.items())
        found.append(Period(labels, begin + later, end + later))
    return tuple(found)


def _days(dimension: Dimension, *, apart: bool) -> Sequence[int]:
    """How many days after the first each value is: dates by the calendar, types of days one after the other; else the same day."""
    dates = days_in(dimension)
    if dates is not None:
        return [(day - min(dates)).days for day in dates]
    if not apart:
        return [0] * len(dimension)
    known = set(dimension.values) <= set(DAYS)
    order = sorted(dimension.values, key=lambda v: DAYS.index(str(v))) if known else dimension.values
    return [order.index(v) for v in dimension.values]


def _added(columns: tuple[Ints, Ints, Ints], value: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Rows in order, those alike added up."""
    order = np.lexsort(columns[::-1])
    ordered = [c[order] for c in columns]
    new = np.ones(len(order), dtype=bool)
    if len(order):
        new[1:] = np.any([c[1:] != c[:-1] for c in ordered], axis=0)
    starts = np.flatnonzero(new)
    sums = np.add.reduceat(value[order], starts) if len(starts) else value[:0]
    period, origin, destination = (c[starts] for c in ordered)
    return period, origin, destination, sums, order[starts]


def located(release: Release, places: Stops | None) -> dict[Hashable, tuple[float, float]]:
    """Longitude and latitude of the stops, as given or else as published; NaN where there are none."""
    known = places or release.places
    if known is None:
        raise InputError(
            "the release has no coordinates: give places=cbdp.features.places.stops(…), or --places FILE"
        )
    return dict(zip(known.ids, zip(known.lon.tolist(), known.lat.tolist(), strict=True), strict=True))


def coordinates(release: Release, made: Flows, places: Stops | None) -> tuple[Floats, Floats]:
    """Longitude and latitude of each place; of a zone, the mean of its stops'. Those that no trip uses may have none (NaN)."""
    at = located(release, places)
    universe = release.features.universe
    _, ends = places_of(universe, made.ends)
    sums = np.zeros((len(made.ids), 3))
    for name, place in zip((made.ends.origin, made.ends.destination), ends, strict=True):
        found = np.array([at.get(v, (np.nan, np.nan)) for v in universe.dimensions[name].values])
        here = ~np.isnan(found).any(axis=1)
        np.add.at(sums, place[here], np.column_stack([found[here], np.ones(here.sum())]))
    used = np.union1d(made.origin, made.destination)
    lost = used[sums[used, 2] == 0]
    if len(lost):
        raise InputError(
            f"the place {made.ids[lost[0]]!r} has no coordinates: give its latitude and longitude"
        )
    mean = np.where(sums[:, 2:] > 0, sums[:, :2] / np.maximum(sums[:, 2:], 1), np.nan)
    return mean[:, 0], mean[:, 1]


def labels_at(release: Release, attribute: str, rows: Ints) -> list[Hashable] | None:
    """The labels that some rows of the published trips have of an attribute; None if there is no such attribute."""
    universe = release.features.universe
    if attribute not in universe.attributes:
        return None
    held = universe.attributes[attribute]
    codes = dict(zip(universe.dimensions, universe.unrank_codes(release.index[rows]), strict=True))
    return [held.labels[c] for c in held.codes[tuple(codes[d] for d in held.of)].tolist()]
