"""Mechanisms for the page on accuracy: answers that cost little thought, the census's top-down fit, and ours."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cbdp
from benchmarks.harness.mechanisms import ITERATIONS, pgm_estimate, rounded, simulated
from benchmarks.harness.registry import Case, NotPossibleError, Run, mechanism
from cbdp.estimation.gls import Tree, tree_of
from cbdp.features import SINGLETON, TOTAL, FeatureDag
from cbdp.mechanisms import ConstraintBased, nested
from cbdp.privacy.entropy import InsecureSeededEntropy

Floats = NDArray[np.float64]


# Answers that say one thing


@mechanism("zeros", group="simple", what="all zeros: spends nothing")
def zeros(case: Case, epsilon: str) -> Run:  # noqa: ARG001 - every mechanism takes both
    return lambda _: np.zeros(len(case.truth))


def spread(case: Case, epsilon: str, *, feature: str) -> Run:
    """One noisy table, at 0 at least, spread evenly over its types."""
    dag = case.features
    if feature not in dag:
        raise NotPossibleError(f"{case.name} has no feature {feature!r}")
    element = dag.cells.element_of_cell[feature][dag.cell_of_leaf]
    types = np.bincount(element, minlength=dag.size(feature))

    def run(seed: int) -> Any:
        source = InsecureSeededEntropy(seed)
        (noisy,) = cbdp.measure(case.counts, dag, epsilon, only=[feature], entropy=source)
        return rounded(case, (np.maximum(noisy.values, 0) / types)[element])

    return run


mechanism("uniform in zone", group="simple", what="the noisy zone table with all of ε, spread evenly")(
    partial(spread, feature="zone")
)
mechanism("total only", group="simple", what="the noisy total with all of ε, spread evenly")(
    partial(spread, feature=TOTAL)
)


# From the top

LEAVES = Fraction(4, 5)


def mostly_leaves(features: FeatureDag, epsilon: str) -> dict[str, Fraction]:
    """Four fifths of ε for the types, the rest in equal parts."""
    whole, rest = Fraction(epsilon), (1 - LEAVES) / (len(features.features) - 1)
    return {name: whole * (LEAVES if name == SINGLETON else rest) for name in features.features}


def top_down(case: Case, epsilon: str, *, level: int, leafy: bool = False) -> Run:
    """As the census's TopDown algorithm: the total first, then each node's children to fit what it got."""
    dag = nested(case.level(level))
    tree = tree_of(dag)
    budget: Any = mostly_leaves(dag, epsilon) if leafy else "uniform"

    def run(seed: int) -> Any:
        measured = cbdp.measure(case.counts, dag, epsilon, budget, entropy=InsecureSeededEntropy(seed))
        answers = {m.feature: m.values.astype(float) for m in measured}
        return rounded(case, fit_down(tree, [answers[n] for n in dag.features]))

    return run


for _level in (4, 5):
    mechanism(
        f"TopDown {_level}",
        group="simple",
        what=f"non-negative least squares from the top down the tree of H{_level}, ε in equal parts",
    )(partial(top_down, level=_level))
mechanism(
    "TopDown 80 % leaves",
    group="simple",
    what="the same down the tree of H4, four fifths of ε on the types, the rest in equal parts",
)(partial(top_down, level=4, leafy=True))


def fit_down(tree: Tree, noisy: list[Floats]) -> Floats:
    """The leaves: level by level the closest non-negative children that add up to their parent."""
    fitted = np.maximum(noisy[0], 0.0)
    for parent, wanted in zip(tree.parent, noisy[1:], strict=True):
        fitted = closest(parent, wanted, fitted)
    return fitted


def closest(parent: NDArray[Any], wanted: Floats, total: Floats) -> Floats:
    """The closest non-negative numbers to those wanted, with a given sum for each parent: x = max(0, wanted − t).

    In descending order children stay as long as they lie above the t at which those so far add up to the total.
    """
    order = np.lexsort((-wanted, parent))
    group, value = parent[order], wanted[order]
    start = np.searchsorted(group, np.arange(len(total)))
    running = np.concatenate([[0.0], np.cumsum(value)])
    place = np.arange(len(value)) - start[group] + 1
    t = (running[1:] - running[start[group]] - total[group]) / place
    kept = np.bincount(group[value > t], minlength=len(total))
    last = np.minimum(start + np.maximum(kept, 1) - 1, len(t) - 1)
    made: Floats = np.maximum(0.0, wanted - np.where(kept > 0, t[last], np.inf)[parent])
    return made


# private-pgm with another budget


@mechanism(
    "mbi 80 % leaves",
    group="simple",
    what=f"mbi with four fifths of ε on the types, the rest in equal parts; {ITERATIONS:,} iterations",
    needs="mbi",
    most_runs=2,
)
def leafy_pgm(case: Case, epsilon: str) -> Run:
    estimate = pgm_estimate(case, epsilon, mostly_leaves(case.features, epsilon))
    return lambda seed: rounded(case, estimate(seed))


# Ours

TARGETS = ("leaves", "tables", "balanced")
LACKS = (
    ""
    if "estimator" in ConstraintBased.__dataclass_fields__
    else "ConstraintBased has no posterior estimator"
)


def posterior(case: Case, epsilon: str, *, target: str) -> Run:
    asked: Any = {"estimator": "posterior", "budget": target}
    return simulated(ConstraintBased(case.features, epsilon, case.unit, **asked), case)


for _target in TARGETS:
    mechanism(
        f"P {_target}",
        group="ours",
        what=f"constraint-based, posterior estimator, budget {_target!r}",
        lacks=LACKS,
    )(partial(posterior, target=_target))
