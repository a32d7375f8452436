"""The mechanisms that are compared: the papers', their variants, and peers where their packages are installed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cbdp
from benchmarks.ablation.case import TREE_ROWS, weights
from benchmarks.harness.registry import Answer, Case, Run, mechanism
from cbdp.estimation.gls import tree_least_squares, tree_of
from cbdp.features import SINGLETON, TOTAL, FeatureDag
from cbdp.mechanisms import (
    ConstraintBased,
    Hierarchical,
    Laplace,
    StabilityHistogram,
    ThresholdLaplace,
    nested,
    of,
)
from cbdp.mechanisms.base import Mechanism
from cbdp.numbers import exact_number
from cbdp.privacy.budget import BudgetLike
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.release.release import Release
from cbdp.rounding.controlled import round_trips

ITERATIONS = 5_000  # of mirror descent: with the default 1,000 it looks converged and is near uniform


def simulated(made: Mechanism, case: Case) -> Run:
    return lambda seed: made.simulate(case.counts, seed)


@mechanism("Lap", group="paper", what="Laplace noise on every type, clipped at 0 and rounded")
def lap(case: Case, epsilon: str) -> Run:
    return simulated(Laplace(case.features, epsilon, case.unit), case)


def tree(case: Case, epsilon: str, *, level: int, budget: str, prune: bool) -> Run:
    made = Hierarchical(case.level(level), epsilon, case.unit, budget=budget, prune=prune)
    return simulated(made, case)


def _register_trees() -> None:
    for level, budget, prune in itertools.product((3, 4, 5), ("geometric", "uniform"), (True, False)):
        text = budget == "geometric" and prune
        ending = ("" if budget == "geometric" else " uniform") + ("" if prune else " unpruned")
        mechanism(
            f"H{level}{ending}",
            group="paper" if text else "trees",
            what=f"hierarchical, {level} levels, {budget} budget, {'pruned' if prune else 'not pruned'}",
        )(partial(tree, level=level, budget=budget, prune=prune))


def papers(features: FeatureDag, epsilon: str, unit: Any, weights: str = "size") -> ConstraintBased:
    """The paper's configuration: ε in equal parts, and the closest consistent counts to the noisy ones themselves."""
    return ConstraintBased(features, epsilon, unit, weights=weights, preset="paper")


def flat(case: Case, epsilon: str, *, level: int) -> Run:
    return simulated(papers(case.level(level), epsilon, case.unit), case)


def ablated(case: Case, epsilon: str, *, row: str) -> Run:
    """The rows of Table 2 as benchmarks.ablation reads them: QP on a tree or flat, uniform weights or by size."""
    given = case.level(5)
    chosen = nested(given) if row in TREE_ROWS else given
    return simulated(papers(chosen, epsilon, case.unit, weights(row)), case)


def _register_programs() -> None:
    for level in (3, 4, 5):
        mechanism(f"O{level}", group="paper", what=f"constraint-based, {level} features")(
            partial(flat, level=level)
        )
    for row, what in (
        ("O5(a)", "QP on a tree, uniform weights"),
        ("O5(b)", "QP on a tree, weights by size"),
        ("O5(c)", "flat QP, uniform weights"),
    ):
        mechanism(row, group="ablation", what=what)(partial(ablated, row=row))


_register_trees()
_register_programs()


@mechanism(
    "Stability",
    what="stability histogram: noise on non-zero counts, threshold; (ε, δ) with δ = 1/8,000,000 a table",
)
def stability(case: Case, epsilon: str) -> Run:
    return simulated(StabilityHistogram(case.features, epsilon, case.unit), case)


@mechanism("Threshold", what="Laplace noise on every table, counts below 18 suppressed, zeros perturbed")
def threshold(case: Case, epsilon: str) -> Run:
    return simulated(ThresholdLaplace(case.features, epsilon, case.unit, zeros="perturbed"), case)


@mechanism(
    "Threshold skip", what="the same with zeros left out, as Opal's second algorithm: not private for any ε"
)
def threshold_skip(case: Case, epsilon: str) -> Run:
    return simulated(ThresholdLaplace(case.features, epsilon, case.unit), case)


# Peers


@mechanism(
    "mbi",
    group="peers",
    what=f"private-pgm on O5's measurements, mirror descent, {ITERATIONS:,} iterations in double precision; rounded as O5 is",
    needs="mbi",
    most_runs=2,
)
def private_pgm(case: Case, epsilon: str) -> Run:
    estimate = pgm_estimate(case, epsilon)
    return lambda seed: rounded(case, estimate(seed))


def rounded(case: Case, values: NDArray[np.float64]) -> Answer:
    """An estimate that is not negative, made whole as O5's is: every table's counts rounded down or up."""
    here = np.flatnonzero(values > 0)
    whole = round_trips(case.features, here, values[here])
    made = np.zeros(len(values), dtype=np.int64)
    made[whole.index] = whole.value
    return Answer(made, values)


def pgm_estimate(
    case: Case, epsilon: str, budget: BudgetLike = "uniform"
) -> Callable[[int], NDArray[np.float64]]:
    """One attribute with a value per trip type: the features are linear queries of it, as they are for us."""
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)  # mbi warns of it
    mbi = import_module("mbi")
    dag = case.features
    domain = mbi.Domain(("type",), (dag.universe.size,))
    queries = {name: _query(case, name) for name in dag.features}

    def estimate(seed: int) -> NDArray[np.float64]:
        measured = cbdp.measure(case.counts, dag, epsilon, budget, entropy=InsecureSeededEntropy(seed))
        answers = [
            mbi.LinearMeasurement(
                m.values.astype(float),
                ("type",),
                stddev=math.sqrt(float(m.variance[0])),
                query=queries[m.feature],
            )
            for m in measured
        ]
        total = max(1.0, float(next(m.values[0] for m in measured if m.feature == TOTAL)))
        model = mbi.estimation.MirrorDescent().estimate(domain, answers, known_total=total, iters=ITERATIONS)
        return np.asarray(model.project(("type",)).datavector(), dtype=float)

    return estimate


def _query(case: Case, name: str) -> Callable[[Any], Any]:
    segment_sum = import_module("jax").ops.segment_sum
    if name == SINGLETON:
        return lambda factor: factor.datavector()
    dag = case.features
    element = dag.cells.element_of_cell[name][dag.cell_of_leaf]
    return lambda factor: segment_sum(factor.datavector(), element, num_segments=dag.size(name))


@mechanism(
    "OpenDP tree",
    group="peers",
    what="OpenDP's consistent b-ary tree over the types in their order; its noise has no seed",
    needs="opendp",
    most_runs=10,
)
def opendp_tree(case: Case, epsilon: str) -> Run:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    leaves = len(case.truth)
    branching = dp.t.choose_branching_factor(size_guess=leaves)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    counted = dp.t.make_b_ary_tree(*space, leaf_count=leaves, branching_factor=branching)
    levels = counted.map(case.unit.sensitivity)
    measurement = counted >> dp.m.then_laplace(scale=levels / float(exact_number(epsilon)))
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching)
    truth = case.counts.dense().tolist()
    return lambda _: np.array(consistent(measurement(truth)))


# What was there before clipping and rounding: made again from the measurements, so that no timing includes it


def before_rounding(release: Release, published: NDArray[np.int64]) -> NDArray[Any]:
    """The leaves before they were made whole and non-negative; the published ones where nothing else is known."""
    if release.estimate is not None:
        return np.asarray(release.estimate.counts(SINGLETON))
    made = of(release)
    if isinstance(made, Laplace):
        noisy = release.measurements[0]
        return published if noisy.elements is not None else np.asarray(noisy.values)
    if isinstance(made, Hierarchical):
        dag = made.measured_features
        answers = {m.feature: m for m in release.measurements}
        noisy_levels = [answers[n].values if n in answers else np.zeros(dag.size(n)) for n in dag.features]
        variance = [float(answers[n].variance[0]) if n in answers else math.inf for n in dag.features]
        return tree_least_squares(tree_of(dag), noisy_levels, variance, prune=made.prune)[-1]
    return published
