"""Where taps are made: a dot for every stop, as large as its count. For universes with one place, where no arrow can be drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from cbdp.release.counted import PLACES
from cbdp.release.framing import frame
from cbdp.release.published import Grouped, Published
from cbdp.release.roles import Roles
from cbdp.report.nodes import called
from cbdp.report.text import named

Chart = dict[str, Any]

CELLS = 100_000  # counts of all periods together


def dots(published: Published, parts: Roles, time: str | None) -> Chart | None:
    """Stops with their names and places, and their counts in all and by period; None where no place is known."""
    place = next((n for n in published.dag.universe.dimensions if n in PLACES), None)
    if parts.ends is not None or place is None or published.places is None:
        return None
    where = {str(stop): i for i, stop in enumerate(published.places.ids)}
    at = [where.get(label) for label in published.labels(place)]
    lat, lon = (
        np.array([np.nan if i is None else float(held[i]) for i in at])
        for held in (published.places.lat, published.places.lon)
    )
    whole = published.grouped(place)
    shown = frame(lat, lon, whole.counts.astype(np.float64))
    if shown is None:
        return None
    kept = np.flatnonzero(shown.holds(lat, lon))
    each = None
    if time is not None and len(kept) * published.many(time) <= CELLS:
        each = published.grouped(place, time)
    periods = range(0 if each is None else each.counts.shape[1])
    names, (zones, zone) = named(published, place), _zones(published, place)
    stops = [(names[i], round(float(lat[i]), 6), round(float(lon[i]), 6), zone[i]) for i in kept.tolist()]
    return {
        "stops": [list(stop) for stop in stops],
        "zones": zones,
        "called": called(zones, stops),
        "counts": [_ends(whole, kept), *(_ends(each, (kept, t)) for t in periods if each is not None)],
        "exact": whole.exact,
        "exact_each": each is not None and each.exact,
        "frame": [round(c, 6) for c in (shown.south, shown.west, shown.north, shown.east)],
        "outside": shown.outside,
        "outside_share": shown.share,
    }


def _zones(published: Published, place: str) -> tuple[list[str], list[int]]:
    """The zones of the stops, where the universe has them, and each stop's."""
    attribute = published.dag.universe.attributes.get(f"{place}.zone")
    if attribute is None:
        return [], [-1] * published.many(place)
    return [str(label) for label in attribute.labels], attribute.codes.tolist()


def _ends(grouped: Grouped, chosen: Any) -> Chart:
    made = {"count": grouped.counts[chosen].tolist()}
    if grouped.low is not None and grouped.high is not None:
        made |= {"low": grouped.low[chosen].tolist(), "high": grouped.high[chosen].tolist()}
    return made
