"""The hierarchical mechanism of Hay and others on a tree of features: the paper's H3, H4 and H5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from cbdp.errors import InputError
from cbdp.estimate.tree import least_squares, tree_of
from cbdp.features import SINGLETON, TOTAL, Feature, FeatureDag
from cbdp.measuring.dense import measure, shares
from cbdp.measuring.noise import Entropy
from cbdp.mechanisms.base import Mechanism
from cbdp.privacy.budget import Budget, Sequential, Spend
from cbdp.release.release import Claim, Release, from_leaves
from cbdp.trips.count import Counts


def nested(features: FeatureDag, levels: Sequence[str] | None = None) -> FeatureDag:
    """A tree made of crossing features: each level splits the one above by one more feature.

    The paper's H5 is time, then zones within time, then modes within zones: `nested(features)` of the preset `odmts`.
    Given to `ConstraintBased` it makes the flat-QP twins of the hierarchical mechanism (O5(a) and O5(b)).
    """
    chosen = [n for n in features.features if n not in (SINGLETON, TOTAL)] if levels is None else list(levels)
    by: list[str] = []
    made = []
    for name in chosen:
        if name not in features:
            raise InputError(f"unknown feature {name!r}: there are {', '.join(features.features)}")
        by += [a for a in features.features[name].by if a not in by]
        made.append(Feature(name, by=tuple(by)))
    return FeatureDag(features.universe, made)


@dataclass(frozen=True)
class Hierarchical(Mechanism):
    """Noise on every node of a tree, then the closed form that makes parents the sums of their children.

    The tree is `nested(features, levels)`. `root` says whether the total is measured (Hay and others leave it out);
    `prune` sets nodes that come out non-positive, and all below them, to zero.
    """

    name: ClassVar[str] = "hierarchical"

    levels: Sequence[str] | None = None
    budget: Budget = "geometric"
    root: bool = False
    prune: bool = True

    def check(self) -> None:
        shares(self.tree_features, self.spent, self.budget, self._measured)

    @cached_property
    def tree_features(self) -> FeatureDag:
        return nested(self.features, self.levels)

    @property
    def _measured(self) -> list[str]:
        return [n for n in self.tree_features.features if self.root or n != TOTAL]

    def claim(self) -> Claim:
        spends = shares(self.tree_features, self.spent, self.budget, self._measured).items()
        return Claim(self.protects, Sequential(tuple(Spend(name, part) for name, part in spends), "levels"))

    def run(self, counts: Counts, entropy: Entropy) -> Release:
        dag = self.tree_features
        measured = measure(counts, dag, self.spent, self.budget, only=self._measured, entropy=entropy)
        answers = {m.feature: m for m in measured}
        levels = list(dag.features)
        noisy = [answers[n].values if n in answers else np.zeros(dag.size(n)) for n in levels]
        variance = [float(answers[n].variance[0]) if n in answers else np.inf for n in levels]
        leaves = least_squares(tree_of(dag), noisy, variance, prune=self.prune)[-1]
        whole = from_leaves(leaves)
        return Release(
            self.features, self.name, self.claim(), *whole, measured, secure=entropy.secure, levels=dag
        )
