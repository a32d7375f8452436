"""The widest universe that tests use: 2^62 trip types."""

from __future__ import annotations

from functools import cache

from cbdp.features import Dimension, Feature, FeatureDag, Universe

LONG = Dimension(range(2**17))


@cache
def widest() -> FeatureDag:
    """2^62 types, with an attribute of a pair."""
    universe = Universe(x=LONG, origin=range(16), y=LONG, destination=range(16), time=range(8), z=LONG)
    universe = universe.with_attribute("mode", ["destination", "origin"], lambda d, o: d > o)
    return FeatureDag(
        universe, [Feature("time", by="time"), Feature("origin", by="origin"), Feature("mode", by="mode")]
    )
