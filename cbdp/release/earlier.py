"""Earlier published releases as a prior for the next one: post-processing, which spends nothing.

The prior is worked out before the next trips are counted, from noisy answers that are published. The weights lie in the next release's
folder, and its recipe states which releases they were learnt from, by hash: whoever has those can work them out again, and whoever has the
folder alone can call `finish` again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.estimate.earlier import Learnt, learnt
from cbdp.release.loading import load
from cbdp.release.release import Release
from cbdp.release.saving import MANIFEST
from cbdp.release.universe_files import universe_hash


@dataclass(frozen=True, eq=False)
class EarlierPrior:
    """Weights for every trip type, and which releases they were learnt from, for the recipe."""

    weights: Floats = field(repr=False)
    source: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """What `ConstraintBased` is given."""
        return {"prior": self.weights, "prior_source": self.source}


def earlier_prior(alike: Sequence[str | Path], others: Sequence[str | Path] = ()) -> EarlierPrior:
    """A prior from the folders of earlier releases: of the same kind of day, and of others.

    >>> earlier_prior([])
    Traceback (most recent call last):
    cbdp.errors.InputError: there is no earlier release to learn from: leave the prior out
    """
    held = [[(Path(f), load(f)) for f in folders] for folders in (alike, others)]
    every = [release for side in held for _, release in side]
    if not every:
        raise InputError("there is no earlier release to learn from: leave the prior out")
    _check_alike([(path, release) for side in held for path, release in side])
    same, rest = ([release.measurements for _, release in side] for side in held)
    found = learnt(every[0].features, same, rest)
    stated = [[_stated(path, release) for path, release in side] for side in held]
    return EarlierPrior(found.weights, _source(found, *stated))


def _check_alike(held: Sequence[tuple[Path, Release]]) -> None:
    first = universe_hash(held[0][1].features.universe)
    for path, release in held:
        if universe_hash(release.features.universe) != first:
            raise InputError(f"the release {str(path)!r} has another universe than the others: leave it out")


def _stated(path: Path, release: Release) -> dict[str, str]:
    digest = hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest()
    named = {"period": release.series.period} if release.series is not None else {}
    return {**named, "manifest_sha256": digest}


def _source(found: Learnt, alike: list[dict[str, str]], others: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "earlier_releases": alike,
        "of_another_kind": others,
        "share_of_the_same_kind": round(found.share, 6),
        "effective_days": round(found.effective_days, 3),
        "day_to_day_variance": round(found.varies, 3),
        "tables_persist": round(found.tables, 6),
        "types_persist": round(found.persists, 6),
    }
