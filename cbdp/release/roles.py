"""Which dimensions and attributes of any universe play which part in the pictures: time, two ends, zones, shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cbdp.features import FeatureDag, Universe
from cbdp.features.dimension import Dimension

TIMES = ("time", "period", "hour", "departure")
ENDS = (("origin", "destination"), ("from", "to"), ("start", "end"))
BARS = 24  # labels up to which an attribute is shown as bars
CHARTS = 3


@dataclass(frozen=True)
class Roles:
    """Names of attributes; None where the universe has nothing of the kind."""

    time: str | None
    ends: tuple[str, str] | None  # the dimensions a trip leads from and to
    zones: tuple[str, str] | None  # the same attribute of both
    shares: tuple[str, ...]  # modes, kinds, days


def roles(dag: FeatureDag) -> Roles:
    """The parts that the features' own attributes play.

    >>> from cbdp.features import opal
    >>> roles(opal(Universe(tap=["on", "off"], time=["08:00", "08:15"], location=["Manly", "Quay"])))
    Roles(time='time', ends=None, zones=None, shares=('tap', 'location'))
    """
    universe = dag.universe
    time, ends = _time(universe), ends_of(universe)
    zones = _zones(dag, ends)
    taken = {time, *(ends or ()), *(zones or ())}
    named = [name for feature in dag.features.values() for name in feature.by]
    every = dict.fromkeys([*named, *(n for n, a in universe.attributes.items() if len(a.of) > 1)])
    few = [n for n in every if n not in taken and 1 < len(universe.attribute(n).labels) <= BARS]
    if ends is not None:  # a zone of one end alone is in the matrix already
        few = [n for n in few if universe.attribute(n).of not in ((ends[0],), (ends[1],))]
    few.sort(key=lambda name: "mode" not in name.lower())
    return Roles(time, ends, zones, tuple(few[:CHARTS]))


def _time(universe: Universe) -> str | None:
    binned = [n for n, d in universe.dimensions.items() if d.edges is not None]
    named = [n for n in universe.dimensions if n.lower() in TIMES]
    return next(iter(binned + named), None)


def ends_of(universe: Universe) -> tuple[str, str] | None:
    """The dimensions that a trip leads from and to: by their names, or because both have the same values."""
    for pair in ENDS:
        if all(end in universe.dimensions for end in pair):
            return pair
    names = list(universe.dimensions)
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            if universe.dimensions[first].values == universe.dimensions[second].values:
                return first, second
    return None


def _zones(dag: FeatureDag, ends: tuple[str, str] | None) -> tuple[str, str] | None:
    """An attribute that both ends have; one that a feature groups by comes first, of those the coarsest."""
    if ends is None:
        return None
    universe = dag.universe
    both = [
        (n, f"{ends[1]}.{n.partition('.')[2]}")
        for n, a in universe.attributes.items()
        if a.of == (ends[0],) and n.startswith(f"{ends[0]}.")
    ]
    both = [pair for pair in both if pair[1] in universe.attributes]
    used = [pair for pair in both if any(set(pair) <= set(f.by) for f in dag.features.values())]
    return min(used or both, key=lambda p: len(universe.attribute(p[0]).labels), default=None)


def period_names(dimension: Dimension) -> list[str]:
    """Periods by both their ends where these are known, other values by themselves."""
    edges = dimension.edges
    if edges is None or len(edges) != len(dimension) + 1:
        return [str(value) for value in dimension.values]
    return [f"{clock(a)}–{clock(b)}" for a, b in pairwise(edges)]


def clock(second: int) -> str:
    """A second of the day as it is read off a clock.

    >>> clock(6 * 3600 + 1800), clock(61)
    ('06:30', '00:01:01')
    """
    text = f"{second // 3600:02d}:{second // 60 % 60:02d}"
    return f"{text}:{second % 60:02d}" if second % 60 else text


def listed(names: Sequence[str]) -> str:
    """Names as a part of a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
