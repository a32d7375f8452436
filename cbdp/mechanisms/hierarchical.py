"""The hierarchical mechanism of Hay, Rastogi, Miklau and Suciu 2010 on a tree of features: H3, H4 and H5 of Fioretto, Lee and Van Hentenryck 2018.

Use it to compare with, or where features form one tree and an estimate in closed form, without a solver, is wanted. Features that cross must be
nested first (`nested`), and every trip type is listed: there is no sparse form. Counts below zero are cut off, which invents trips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from cbdp.counting import Counts
from cbdp.errors import InputError
from cbdp.estimation.gls import tree_least_squares, tree_of
from cbdp.features import SINGLETON, TOTAL, Feature, FeatureDag
from cbdp.measuring import cost_argument, measure
from cbdp.mechanisms.base import AdditiveNoiseMechanism
from cbdp.parts import setting
from cbdp.privacy.accounting import PrivacyGuarantee, Sequential
from cbdp.privacy.budget import BudgetLike, allocate
from cbdp.privacy.entropy import Entropy
from cbdp.privacy.measurement import NoisyAnswer, PlannedAnswer, tables_and_leaves
from cbdp.release import Release
from cbdp.release.release import from_leaves


def nested(features: FeatureDag, levels: Sequence[str] | None = None) -> FeatureDag:
    """A tree made of crossing features: each level splits the one above by one more feature.

    The paper's H5 is time, then zones within time, then modes within zones: `nested(features)` of the preset `odmts`.
    Given to `ConstraintBased` it makes the flat-QP twins of the hierarchical mechanism (O5(a) and O5(b)).

    >>> import cbdp
    >>> from cbdp.mechanisms import nested
    >>> universe = cbdp.Universe(stop=["A", "B"], time=["am", "pm"])
    >>> crossing = cbdp.FeatureDag(universe, [cbdp.Feature("time", by=["time"]), cbdp.Feature("stop", by=["stop"])])
    >>> list(nested(crossing, ["time", "stop"]).features)
    ['total', 'time', 'stop', 'singleton']
    """
    chosen = [n for n in features.features if n not in (SINGLETON, TOTAL)] if levels is None else list(levels)
    by: list[str] = []
    nested_features = []
    for name in chosen:
        if name not in features:
            raise InputError(f"unknown feature {name!r}: there are {', '.join(features.features)}")
        by += [a for a in features.features[name].by if a not in by]
        nested_features.append(Feature(name, by=tuple(by)))
    return FeatureDag(features.universe, nested_features)


@dataclass(frozen=True)
class Hierarchical(AdditiveNoiseMechanism):
    """Noise on every node of a tree, then the closed form that makes parents the sums of their children.

    The closed form is the least-squares solution of Hay and others 2010 (their Theorem 3), for any fan-out and any noise.
    The tree is `nested(features, levels)`. `root` says whether the total is measured (Hay and others leave it out);
    `prune` sets nodes whose estimate from their own subtree is not positive, and all below them, to zero; counts are sums of the leaves that
    remain.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.Hierarchical(features, epsilon=1).release(trips)
    >>> bool(release.counts("time").sum() == release.counts("total")[0])
    True
    """

    name: ClassVar[str] = "hierarchical"
    about: ClassVar[str] = "noise on a tree of features, made consistent in closed form (Hay and others)"

    levels: Sequence[str] | None = setting("the features of the tree, from the top", "names")
    budget: BudgetLike = "geometric"
    root: bool = setting("whether the total is measured", "flag", default=False)
    prune: bool = setting("whether what is below a non-positive node is 0", "flag", default=True)

    def check(self) -> None:
        self._shares()

    @cached_property
    def measured_features(self) -> FeatureDag:
        return nested(self.features, self.levels)

    @property
    def _measured(self) -> list[str]:
        return [n for n in self.measured_features.features if self.root or n != TOTAL]

    def _shares(self) -> dict[str, Fraction]:
        return allocate(self.measured_features, self.amount, self.budget, self._measured)

    def claim(self) -> PrivacyGuarantee:
        spends = tuple(self.spend(name, part) for name, part in self._shares().items())
        return PrivacyGuarantee(self.protected, self.stated(Sequential(spends, "levels")))

    def answers(self) -> tuple[PlannedAnswer, ...]:
        return tuple(
            PlannedAnswer(name, share, self.noise_for(name, share)) for name, share in self._shares().items()
        )

    def measure(self, counts: Counts, entropy: Entropy) -> list[NoisyAnswer]:
        return measure(
            counts, self.measured_features, budget=self._shares(), only=self._measured,
            entropy=entropy, sparse=False, law=self.law, **cost_argument(self, self.amount),
        )  # fmt: skip

    def finish(self, answers: Sequence[NoisyAnswer]) -> Release:
        dag, (measured, _) = self.measured_features, tables_and_leaves(answers)
        by_name = {m.feature: m for m in measured}
        levels = list(dag.features)
        noisy = [by_name[n].values if n in by_name else np.zeros(dag.size(n)) for n in levels]
        variance = [float(by_name[n].variance[0]) if n in by_name else np.inf for n in levels]
        leaves = tree_least_squares(tree_of(dag), noisy, variance, prune=self.prune)[-1]
        return self.publication(*from_leaves(leaves), measured, levels=dag)
