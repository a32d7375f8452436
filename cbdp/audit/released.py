"""What a release of ours publishes, as tables that an attacker meets: counts, and the noisy answers beside them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.audit.tables import CountTable, PublishedTables, Sum
from cbdp.estimate.estimate import LISTED
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.laws import Law
from cbdp.privacy.measurement import Measurement
from cbdp.release.release import Release

MEASURED = (
    " (measured)"  # after a feature's name: its noisy answers, where they are published beside the counts
)


def from_release(release: Release) -> PublishedTables:
    """What a release of ours publishes: every feature's counts, and the noisy measurements where it has any.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.ConstraintBased(features, epsilon=1).simulate(trips, seed=0)
    >>> [table.name for table in from_release(release).tables][:3]
    ['total', 'time', 'singleton']
    """
    features = release.features
    names = list(release.tables) or [n for n in features.features if features.size(n) <= LISTED]
    tables = [_published(release, name) for name in names]
    sums = _sums(features, names, "", exact=not release.tables)
    tree = release.levels or features
    measured = [m for m in release.measurements if m.floor is None]
    # A feature may be measured twice: each measurement has its own name, and sums hold for the first of them.
    tables = _unique([*tables, *(_measured(tree, m) for m in measured)])
    whole = [m.feature for m in measured if m.elements is None]
    sums += _sums(tree, list(dict.fromkeys(whole)), MEASURED, exact=False)
    claim = release.claim
    epsilon = float(claim.cost.epsilon) if claim.holds else None
    delta = float(claim.cost.delta) if claim.holds else 0.0
    return PublishedTables(tuple(tables), epsilon, delta, (), tuple(sums))


def declared_law(measured: Measurement) -> Law | None:
    """The law that a measurement declares for its noise; None where it has none, or a variance that contradicts it."""
    law = measured.noise
    if law is None:
        return None
    law = law.times(1.0)  # the scale as a float, so that equal scales are equal laws
    variance = measured.variance
    if variance is None or not len(variance):
        return law
    return law if np.isclose(float(variance[0]), law.variance(), rtol=1e-6, atol=0) else None


def _published(release: Release, name: str) -> CountTable:
    """A feature's published counts. Counts that were post-processed have no noise law of their own."""
    features = release.features
    own = release.recipe.tables.get(name) if name in release.tables else None
    return CountTable(
        name,
        _keys(features, name),
        np.asarray(release.counts(name), dtype=np.float64),
        None if own is None else own.law.times(1.0),
        None if own is None else own.threshold,
        own is None or not own.skips_zeros,
        features.size(name),
        canonical=True,
        derived=name not in release.tables,
    )


def _measured(tree: FeatureDag, m: Measurement) -> CountTable:
    keys = _keys(tree, m.feature)
    if m.elements is not None:
        keys = {name: column[m.elements] for name, column in keys.items()}
    return CountTable(
        m.feature + MEASURED,
        keys,
        np.asarray(m.values, dtype=np.float64),
        declared_law(m),
        universe=tree.size(m.feature),
        closed=m.elements is None,
        canonical=True,
        may_be_exact=False,
    )


def _keys(features: FeatureDag, name: str) -> dict[str, NDArray[Any]]:
    if name == SINGLETON:
        universe = features.universe
        codes = universe.unrank_codes(np.arange(universe.size, dtype=np.int64))
        pairs = zip(universe.dimensions.items(), codes, strict=True)
        return {n: _labels(d.values)[c] for (n, d), c in pairs}
    partition = features.partition(name)
    return {
        a.name: _labels(a.labels)[c]
        for a, c in zip(partition.attributes, partition.label_codes(), strict=True)
    }


def _labels(values: Sequence[Hashable]) -> NDArray[Any]:
    """Labels as an array of text, so that they can be sorted and compared whatever they are."""
    return np.array([str(v) for v in values])


def _unique(tables: Sequence[CountTable]) -> list[CountTable]:
    seen: dict[str, int] = {}
    made = []
    for table in tables:
        seen[table.name] = seen.get(table.name, 0) + 1
        again = seen[table.name]
        made.append(table if again == 1 else replace(table, name=f"{table.name} {again}"))
    return made


def _sums(features: FeatureDag, names: Sequence[str], suffix: str, *, exact: bool) -> list[Sum]:
    """The sums among some features' tables: from each to the next coarser ones."""
    return [
        Sum(coarse + suffix, fine + suffix, features.map_elements(fine, coarse), exact)
        for fine in names
        for coarse in names
        if fine != coarse and features.size(fine) > features.size(coarse) and features.refines(fine, coarse)
    ]
