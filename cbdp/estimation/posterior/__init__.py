"""The empirical-Bayes estimator: noisy leaves replaced by posterior means and variances, then reconciled with the tables.

docs/explanation/estimator.md has it as a numbered algorithm; in its order the modules are `likelihood` (step 1, and 6), `margins` and
`rate_model` (2 to 5), `benchmarking` (7 and 9) and `shared_errors` (8); `kernels` are the compiled loops. Where trip types are too many to
list, `sparse` does the same with `censored` counts and `effects` of stops and pairs. `settings` has every number that was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation.compiler import compile as compiled
from cbdp.estimation.compiler import merge_measurements
from cbdp.estimation.engine import Estimate, Estimator, Program, certify_estimate
from cbdp.estimation.posterior.benchmarking import Benchmarks, benchmarked
from cbdp.estimation.posterior.likelihood import LeafPosterior, count_likelihood, leaf_prior
from cbdp.estimation.posterior.margins import margins, rate_model_margins
from cbdp.estimation.posterior.rate_model import ExpectedTotals, expected_total, fit_rates, fold_of_types
from cbdp.estimation.posterior.settings import TUNING
from cbdp.estimation.posterior.shared_errors import (
    measured_sums,
    perturbed_tables,
    subtract_shared_errors,
    table_perturbations,
)
from cbdp.estimation.posterior.sparse import posterior_thresholds, reconcile_sparse
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement, ThresholdedAnswer
from cbdp.progress import tell


def expected_leaves(
    features: FeatureDag,
    measurements: Sequence[Measurement],
    *,
    prior: Floats | None = None,
) -> Measurement:
    """The expected count of every trip type given all noisy answers, and its variance: steps 1 to 8 of docs/explanation/estimator.md.

    `prior` are public weights, one for each trip type: how trips are thought to be spread before anything was measured.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> noisy = [cbdp.Measurement("singleton", [20, -1, 0, 40], 1), cbdp.Measurement("time", [21, 39], 1)]
    >>> made = expected_leaves(features, noisy)
    >>> made.feature, bool((made.values >= 0).all())
    ('singleton', True)
    """
    _, posterior = _posterior_leaves(features, measurements, prior)
    return Measurement(SINGLETON, posterior.mean, variance=posterior.variance)


def sampled_leaves(
    features: FeatureDag,
    measurements: Sequence[Measurement],
    rng: np.random.Generator,
    *,
    prior: Floats | None = None,
) -> Ints:
    """An approximate posterior draw of every trip type's count, given all noisy answers: of the rates, and of counts about them.

    Expected counts are smoother than true ones. These are about as rough, so that the same mechanism, run on them, errs about as much.
    """
    (drawn, mean), posterior = _posterior_leaves(features, measurements, prior, rng)
    scaled = drawn * (posterior.mean / np.maximum(mean, TUNING.min_variance))
    whole = np.floor(scaled)
    counts: Ints = (whole + (rng.random(len(scaled)) < scaled - whole)).astype(np.int64)
    return counts


def _posterior_leaves(
    features: FeatureDag,
    measurements: Sequence[Measurement],
    prior: Floats | None,
    rng: np.random.Generator | None = None,
) -> tuple[tuple[Floats, Floats], LeafPosterior]:
    """With `rng`, drawn counts and the means that they are drawn about; and posterior means without the errors that they share."""
    leaves = _noisy_leaves(features, measurements)
    tables = merge_measurements(
        features, (m for m in measurements if m.feature != SINGLETON and len(m.values))
    )
    measurements = [*tables.values(), leaves]
    sums = measured_sums(features, measurements)
    assert leaves.noise is not None
    noisy = leaves.values
    table = count_likelihood(noisy, leaves.noise)
    lattice_margins = margins(features, measurements, table_perturbations(sums))
    without_table = [m for m in lattice_margins if not m.measured_directly]
    fitted = fit_rates(
        noisy,
        fold_of_types(features.universe),
        rate_model_margins(lattice_margins),
        ExpectedTotals(expected_total(measurements), expected_total(perturbed_tables(measurements, sums))),
        table,
        prior,
        lambda done: tell("expected counts", done),
        rng,
    )
    prior_of_counts = leaf_prior(noisy, fitted.rate, table)
    independent = prior_of_counts.expected(noisy)
    drawn = independent.mean if rng is None else prior_of_counts.drawn(noisy, rng)
    posterior = benchmarked(without_table, noisy, table.variance, independent)
    if sums:
        cells = features.cell_of_leaf, features.cells.size
        mean_response = posterior.rate_sensitivity * fitted.log_rate_response
        posterior = subtract_shared_errors(sums, *cells, posterior, mean_response, refit=True)
    return (drawn, independent.mean), posterior


def _noisy_leaves(features: FeatureDag, measurements: Sequence[Measurement]) -> Measurement:
    answers = [m for m in measurements if m.feature == SINGLETON]
    if len(answers) != 1:
        raise InputError(
            f"'singleton' is measured {len(answers)} times: estimator 'posterior' needs one noisy count of every trip type"
        )
    if answers[0].scale is None:
        raise InputError(
            "the noise of 'singleton' has no scale: estimator 'posterior' needs it; give one, or use 'projection'"
        )
    whole = merge_measurements(features, answers)[SINGLETON]
    if whole.elements is not None:
        raise InputError(
            f"'singleton' is measured in {len(whole.values):,} of {features.universe.size:,} trip types: "
            "estimator 'posterior' needs a noisy count of each"
        )
    return replace(whole, scale=answers[0].scale, law=answers[0].law)


@dataclass(frozen=True)
class Posterior(Estimator):
    """The default: each noisy leaf is replaced by its expected value and variance, then the program reconciles all.

    At low ε a projection keeps the maxima of the noise; an expected value does not (docs/explanation/accuracy.md).

    >>> import cbdp
    >>> cbdp.estimation.ESTIMATORS.get("posterior") == Posterior()
    True
    """

    name: ClassVar[str] = "posterior"
    about: ClassVar[str] = "the expected count of every trip type given all noisy answers, made consistent"
    weights: ClassVar[str] = "inverse-variance"
    takes_weights: ClassVar[bool] = False
    takes_prior: ClassVar[bool] = True
    expects: ClassVar[bool] = True
    compiled: ClassVar[tuple[str, ...]] = (
        *(
            f"cbdp.estimation.posterior.{name}"
            for name in ("kernels", "likelihood", "rate_model", "shared_errors", "benchmarking", "margins")
        ),
        "cbdp.privacy.convolution",
    )

    revealed: int = TUNING.revealed  # trip types up to which all noisy counts are asked for

    def estimate(
        self, features: FeatureDag, measurements: Sequence[Measurement], program: Program
    ) -> Estimate:
        leaves = expected_leaves(features, measurements, prior=program.prior)
        tables = [m for m in measurements if m.feature != SINGLETON]
        tell("solving")
        measured = merge_measurements(features, (m for m in measurements if len(m.values)))
        problem = Benchmarks(features, measured).hold(compiled(features, [*tables, leaves], self.weights))
        warm = None if program.warm_start is None else program.warm_start.solution
        solution = program.solver.solve(problem, warm)
        return certify_estimate(features, problem, solution, program.solver, program.tolerance)

    def estimate_above(
        self, features: FeatureDag, tables: Sequence[Measurement], leaves: ThresholdedAnswer, program: Program
    ) -> Estimate:
        leaves.lower(posterior_thresholds(features, tables, leaves, self.revealed))
        revealed = leaves.measurement()
        if revealed.floor is None:  # every type is revealed
            return self.estimate(features, [*tables, revealed], program)
        tell("solving")
        return reconcile_sparse(features, tables, revealed, program)

    def drawn(
        self, features: FeatureDag, measurements: Sequence[Measurement], prior: Floats | None, seed: int
    ) -> Ints:
        return sampled_leaves(features, measurements, np.random.default_rng(seed), prior=prior)


__all__ = ["Posterior", "expected_leaves"]
