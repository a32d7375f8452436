"""The stops of a release where they are, with the trips that start or end there."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cbdp.arrays import Floats
from cbdp.release.published import Published
from cbdp.release.roles import roles


@dataclass(frozen=True, eq=False)
class Placed:
    """Stops of either end of a trip: their labels, places (nan: unknown), and how many published trips start or end there."""

    labels: tuple[Hashable, ...]
    lat: Floats = field(repr=False)
    lon: Floats = field(repr=False)
    trips: Floats = field(repr=False)

    def of(self, labels: Sequence[Hashable]) -> tuple[Floats, Floats]:
        """The places of some stops."""
        where = {label: place for place, label in enumerate(self.labels)}
        here = np.array([where[label] for label in labels], dtype=np.int64)
        return self.lat[here], self.lon[here]


def placed(published: Published) -> Placed:
    """The stops between which trips are counted, each once."""
    ends, universe = roles(published.dag).ends, published.dag.universe
    release, places = published.release, published.places
    assert ends is not None
    codes = dict(zip(universe.dimensions, universe.unrank_codes(release.index), strict=True))
    trips: dict[Hashable, float] = {}
    for end in ends:
        values = universe.dimension(end).values
        many = (
            np.bincount(codes[end], release.value, len(values))
            if len(release.value)
            else np.zeros(len(values))
        )
        for value, n in zip(values, many.tolist(), strict=True):
            trips[value] = trips.get(value, 0.0) + n
    known = {} if places is None else {stop: i for i, stop in enumerate(places.ids)}
    texts = {str(stop): i for stop, i in known.items()}
    at = [known.get(label, texts.get(str(label))) for label in trips]
    lat, lon = (
        np.array([np.nan if i is None or held is None else float(held[i]) for i in at], dtype=np.float64)
        for held in (None if places is None else places.lat, None if places is None else places.lon)
    )
    return Placed(tuple(trips), lat, lon, np.array(list(trips.values()), dtype=np.float64))
