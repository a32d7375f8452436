"""H5 under any reading: noisy answers on a tree, and the consistent tree made of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np

import cbdp
from benchmarks.ablation.case import EPSILONS, Case, Floats, Levels
from cbdp.estimation.gls import Tree, bottom_up, tree_of
from cbdp.features import SINGLETON, FeatureDag
from cbdp.numbers import exact_number
from cbdp.privacy.budget import allocate
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp_solvers.problem import bincount

# The choices that the paper's text leaves open, or that an implementation may have made otherwise, for H5


@dataclass(frozen=True)
class Reading:
    """One way to read the hierarchical mechanism. The defaults are the paper's text, and `cbdp.Hierarchical`."""

    budget: str = "geometric"  # most for the leaves; or "most for the root", or "uniform"
    root: bool = False  # measured
    prune: str = "T1"  # or "final values", "T1, children only", "none"
    order: str = "zones first"
    doubled: bool = False  # noise as if one trip changed every level by 2
    fan_out: str = "any"  # least squares; or Hay's formula with the "own", "average" or "largest" fan-out

    def __str__(self) -> str:
        names = {
            "budget": f"budget {self.budget}", "root": "root measured", "prune": f"pruning: {self.prune}",
            "order": self.order, "doubled": "noise doubled", "fan_out": f"Hay's formula, {self.fan_out} fan-out",
        }  # fmt: skip
        return "; ".join(names[name] for name in self.changes) or "as in the text"

    @property
    def changes(self) -> list[str]:
        """What is read otherwise than the text says."""
        return [f.name for f in fields(self) if getattr(self, f.name) != f.default]


AS_IN_TEXT = Reading()
SINGLE = (
    AS_IN_TEXT,
    Reading(budget="uniform"),
    Reading(budget="most for the root"),
    Reading(root=True),
    Reading(prune="none"),
    Reading(prune="final values"),
    Reading(prune="T1, children only"),
    Reading(order="modes first"),
    Reading(doubled=True),
    Reading(fan_out="own"),
    Reading(fan_out="average"),
    Reading(fan_out="largest"),
)
EVERY = tuple(
    Reading(*choice)
    for choice in itertools.product(
        ("geometric", "most for the root", "uniform"),
        (False, True),
        ("T1", "final values", "T1, children only", "none"),
        ("zones first", "modes first"),
        (False, True),
        ("any", "own", "average", "largest"),
    )
)


def noisy_tree(case: Case, reading: Reading, epsilon: str, seed: int) -> tuple[Tree, Levels, list[float]]:
    """The tree, its noisy answers by level, and their variances (infinite: not measured)."""
    dag = case.trees[reading.order]
    levels = list(dag.features)
    measured = levels if reading.root else levels[1:]
    spent = exact_number(epsilon) / (2 if reading.doubled else 1)
    budget = by_budget(dag, reading, spent, measured)
    found = cbdp.measure(case.counts, dag, spent, budget, only=measured, entropy=InsecureSeededEntropy(seed))
    answers = {m.feature: m for m in found}
    noisy = [answers[n].values.astype(float) if n in answers else np.zeros(dag.size(n)) for n in levels]
    variance = [float(answers[n].variance[0]) if n in answers else math.inf for n in levels]
    return tree_of(dag), noisy, variance


def by_budget(dag: FeatureDag, reading: Reading, spent: Fraction, measured: list[str]) -> dict[str, Fraction]:
    named = "uniform" if reading.budget == "uniform" else "geometric"
    budget = allocate(dag, spent, named, measured)
    if reading.budget == "most for the root":
        return dict(zip(budget, reversed(budget.values()), strict=True))
    return budget


def children(tree: Tree, level: int) -> Floats:
    return np.bincount(tree.parent[level], minlength=tree.sizes[level]).astype(float)


def sums(tree: Tree, level: int, below: Floats) -> Floats:
    return bincount(tree.parent[level], below, tree.sizes[level])


def by_level(tree: Tree, leaves: Floats) -> Levels:
    made = [leaves]
    for level in range(len(tree.parent) - 1, -1, -1):
        made.insert(0, sums(tree, level, made[0]))
    return made


def assumed(tree: Tree, level: int, fan_out: str) -> Floats:
    """The fan-out that Hay's formula is given for each node of a level."""
    if fan_out == "own":
        return children(tree, level)
    every = [children(tree, at) for at in range(len(tree.parent))]
    one = np.mean([c.mean() for c in every]) if fan_out == "average" else max(c.max() for c in every)
    return np.full(tree.sizes[level], float(one))


def hay(tree: Tree, noisy: Levels, variance: Sequence[float], fan_out: str) -> Levels:
    """T₁ by the formula for a regular tree of fan-out k with equal noise on every level."""
    values = [noisy[-1]]
    for level in range(len(tree.parent) - 1, -1, -1):
        height = len(tree.parent) - level + 1
        k = np.maximum(assumed(tree, level, fan_out), 1 + 1e-6)  # the formula divides by zero at k = 1
        own = (k**height - k ** (height - 1)) / (k**height - 1)
        below = sums(tree, level, values[0])
        if math.isinf(variance[level]):
            values.insert(0, below)
        else:
            values.insert(0, own * noisy[level] + (k ** (height - 1) - 1) / (k**height - 1) * below)
    return values


def hand_down(tree: Tree, values: Levels, share: Levels, reading: Reading) -> Levels:
    """The consistent tree: what a node has beyond its children's sum goes to its living children by their share."""
    prune, deep = reading.prune.startswith("T1"), reading.prune == "T1"
    final = [np.maximum(values[0], 0.0) if prune else values[0]]
    living = final[0] > 0 if prune else np.ones(1, dtype=bool)
    for level, parent in enumerate(tree.parent):
        positive = values[level + 1] > 0 if prune else np.ones(len(parent), dtype=bool)
        alive = positive & living[parent]
        living = alive if deep else positive
        kept, part = np.where(alive, values[level + 1], 0.0), np.where(alive, share[level + 1], 0.0)
        exact = reading.fan_out in ("any", "own")
        total = sums(tree, level, part) if exact else assumed(tree, level, reading.fan_out)
        missing = final[-1] - sums(tree, level, kept)
        rate = np.divide(missing, total, out=np.zeros_like(missing), where=total > 0)
        final.append(kept + part * rate[parent])
    return final


def cut(tree: Tree, final: Levels) -> Levels:
    """Non-positive nodes, and all below them, set to zero; nothing is handed on."""
    made, alive = [np.maximum(final[0], 0.0)], final[0] > 0
    for level, parent in enumerate(tree.parent):
        alive = alive[parent] & (final[level + 1] > 0)
        made.append(np.where(alive, final[level + 1], 0.0))
    return made


def fit(tree: Tree, noisy: Levels, variance: Sequence[float], reading: Reading) -> Levels:
    if reading.fan_out == "any":
        values, share = bottom_up(tree, noisy, variance)
    else:
        values = hay(tree, noisy, variance, reading.fan_out)
        share = [np.ones(len(v)) for v in values]
    final = hand_down(tree, values, share, reading)
    return cut(tree, final) if reading.prune == "final values" else final


def check_base(case: Case) -> None:
    """The reading "as in the text" is `cbdp.Hierarchical`, number for number."""
    for epsilon, seed in itertools.product(EPSILONS, range(10)):
        tree, noisy, variance = noisy_tree(case, AS_IN_TEXT, epsilon, seed)
        leaves = np.maximum(np.rint(fit(tree, noisy, variance, AS_IN_TEXT)[-1]), 0)
        if (leaves != case.mechanism("H5", epsilon).simulate(case.truth, seed).counts(SINGLETON)).any():
            raise AssertionError("the ablation's own tree and cbdp.Hierarchical disagree: mend one of them")
