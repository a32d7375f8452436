"""A release with other names for some values of its dimensions: what a stop was called before it got another name. Nothing else changes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from cbdp.features import SINGLETON, TOTAL, Dimension, Feature, FeatureDag, Universe
from cbdp.release.release import Release


def renamed(release: Release, names: Mapping[Hashable, Hashable]) -> Release:
    """The release with the new name of every value that has one, in all dimensions that hold the old one; counts stay where they are."""
    dag = _dag(release.features, names)
    estimate = None if release.estimate is None else replace(release.estimate, features=dag)
    levels = None if release.levels is None else _dag(release.levels, names)
    places = release.places
    if places is not None:
        places = replace(places, ids=tuple(names.get(stop, stop) for stop in places.ids))
    return replace(release, features=dag, estimate=estimate, levels=levels, places=places)


def _dag(features: FeatureDag, names: Mapping[Hashable, Hashable]) -> FeatureDag:
    universe = _universe(features.universe, names)
    between = [f for name, f in features.features.items() if name not in (SINGLETON, TOTAL)]
    return FeatureDag(universe, [Feature(f.name, by=list(f.by)) for f in between])


def _universe(universe: Universe, names: Mapping[Hashable, Hashable]) -> Universe:
    dims = {
        name: Dimension(
            [names.get(v, v) for v in dimension.values], edges=dimension.edges, **dimension.attributes
        )
        for name, dimension in universe.dimensions.items()
    }
    made = Universe(**dims)
    others = {name: a for name, a in universe.attributes.items() if name not in dims}
    return made._copy(attributes={**made.attributes, **others}, zeros=universe.zeros)
