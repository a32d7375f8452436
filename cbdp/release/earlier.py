"""Earlier published releases as a prior for the next one: post-processing, which spends nothing.

The prior is worked out before the next trips are counted, from noisy answers that are published. The weights lie in the next release's
folder, and its recipe states which releases they were learnt from, by hash: whoever has those can work them out again, and whoever has the
folder alone can call `finish` again. Where stops got other names in between, `with_renamed_values` gives earlier releases the new ones first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.estimation.prior import PriorOfEarlierDays, prior_of_earlier_days
from cbdp.features import SINGLETON, TOTAL, Dimension, Feature, FeatureDag, Universe
from cbdp.release.files import MANIFEST, load
from cbdp.release.layout import universe_hash
from cbdp.release.release import Release

if TYPE_CHECKING:
    from cbdp.release.manifest_model import EarlierRelease


class PriorSettings(TypedDict):
    """What `ConstraintBased` is given of a prior."""

    prior: Floats
    prior_source: Mapping[str, object]


@dataclass(frozen=True, eq=False)
class EarlierPrior:
    """Weights for every trip type, and which releases they were learnt from, for the recipe."""

    weights: Floats = field(repr=False)
    source: Mapping[str, float | list[EarlierRelease]]

    @property
    def settings(self) -> PriorSettings:
        """What `ConstraintBased` is given."""
        return {"prior": self.weights, "prior_source": self.source}


def earlier_prior(alike: Sequence[str | Path], others: Sequence[str | Path] = ()) -> EarlierPrior:
    """A prior from the folders of earlier releases: of the same kind of day, and of others.

    >>> earlier_prior([])
    Traceback (most recent call last):
    cbdp.errors.InputError: there is no earlier release to learn from: leave the prior out
    """
    sides = [[(Path(f), load(f)) for f in folders] for folders in (alike, others)]
    every = [release for side in sides for _, release in side]
    if not every:
        raise InputError("there is no earlier release to learn from: leave the prior out")
    _check_alike([(path, release) for side in sides for path, release in side])
    same, rest = ([release.measurements for _, release in side] for side in sides)
    prior = prior_of_earlier_days(every[0].features, same, rest)
    stated = [[_prior_statement(path, release) for path, release in side] for side in sides]
    return EarlierPrior(prior.weights, _prior_source(prior, *stated))


def _check_alike(releases: Sequence[tuple[Path, Release]]) -> None:
    first = universe_hash(releases[0][1].features.universe)
    for path, release in releases:
        if universe_hash(release.features.universe) != first:
            raise InputError(f"the release {str(path)!r} has another universe than the others: leave it out")


def _prior_statement(path: Path, release: Release) -> EarlierRelease:
    digest = hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest()
    if release.series is None:
        return {"manifest_sha256": digest}
    return {"period": release.series.period, "manifest_sha256": digest}


def _prior_source(
    prior: PriorOfEarlierDays, alike: list[EarlierRelease], others: list[EarlierRelease]
) -> dict[str, float | list[EarlierRelease]]:
    return {
        "earlier_releases": alike,
        "of_another_kind": others,
        "share_of_the_same_kind": round(prior.share, 6),
        "effective_days": round(prior.effective_days, 3),
        "day_to_day_variance": round(prior.varies, 3),
        "tables_persist": round(prior.tables, 6),
        "types_persist": round(prior.persists, 6),
    }


# Values that got another name


def with_renamed_values(release: Release, names: Mapping[Hashable, Hashable]) -> Release:
    """The release with the new name of every value that has one, in all dimensions that hold the old one; counts stay where they are."""
    dag = _renamed_dag(release.features, names)
    estimate = None if release.estimate is None else replace(release.estimate, features=dag)
    levels = None if release.levels is None else _renamed_dag(release.levels, names)
    places = release.places
    if places is not None:
        places = replace(places, ids=tuple(names.get(stop, stop) for stop in places.ids))
    return replace(release, features=dag, estimate=estimate, levels=levels, places=places)


def _renamed_dag(features: FeatureDag, names: Mapping[Hashable, Hashable]) -> FeatureDag:
    universe = _renamed_universe(features.universe, names)
    between = [f for name, f in features.features.items() if name not in (SINGLETON, TOTAL)]
    return FeatureDag(universe, [Feature(f.name, by=list(f.by)) for f in between])


def _renamed_universe(universe: Universe, names: Mapping[Hashable, Hashable]) -> Universe:
    dims = {
        name: Dimension(
            [names.get(v, v) for v in dimension.values], edges=dimension.edges, **dimension.attributes
        )
        for name, dimension in universe.dimensions.items()
    }
    renamed = Universe(**dims)
    others = {name: a for name, a in universe.attributes.items() if name not in dims}
    return renamed._copy(attributes={**renamed.attributes, **others}, zeros=universe.zeros)
