"""From measurements to measurements: the noisy leaves replaced by their posterior means and variances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimate.compiler import merge
from cbdp.estimate.posterior.benchmarking import benchmarked
from cbdp.estimate.posterior.lattice import lattice
from cbdp.estimate.posterior.leaves import ExpectedLeaves, leaf_law
from cbdp.estimate.posterior.margins import margins, of_rate_model
from cbdp.estimate.posterior.models import folds_of
from cbdp.estimate.posterior.rates import expected, total_of
from cbdp.estimate.posterior.settings import TUNING
from cbdp.estimate.posterior.shared import measured_sums, moved_tables, moves_of, without_shared_errors
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.progress import tell


def expected_leaves(
    features: FeatureDag,
    measurements: Sequence[Measurement],
    *,
    prior: Floats | None = None,
) -> Measurement:
    """The expected count of every trip type given all noisy answers, and its variance.

    `prior` are public weights, one for each trip type: how trips are thought to be spread before anything was measured.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> noisy = [cbdp.Measurement("singleton", [20, -1, 0, 40], 1), cbdp.Measurement("time", [21, 39], 1)]
    >>> made = expected_leaves(features, noisy)
    >>> made.feature, bool((made.values >= 0).all())
    ('singleton', True)
    """
    _, told = _found(features, measurements, prior)
    return Measurement(SINGLETON, told.mean, variance=told.variance)


def drawn_leaves(
    features: FeatureDag,
    measurements: Sequence[Measurement],
    rng: np.random.Generator,
    *,
    prior: Floats | None = None,
) -> Ints:
    """The count of every trip type as it may be, given all noisy answers: one draw of rates, and of counts about them.

    Expected counts are smoother than true ones. These are about as rough, so that the same mechanism, run on them, errs about as much.
    """
    (drawn, mean), told = _found(features, measurements, prior, rng)
    moved = drawn * (told.mean / np.maximum(mean, TUNING.certain))
    whole = np.floor(moved)
    made: Ints = (whole + (rng.random(len(moved)) < moved - whole)).astype(np.int64)
    return made


def _found(
    features: FeatureDag,
    measurements: Sequence[Measurement],
    prior: Floats | None,
    rng: np.random.Generator | None = None,
) -> tuple[tuple[Floats, Floats], ExpectedLeaves]:
    """With `rng`, drawn counts, and the means of their law; and expected counts without the errors that they share."""
    leaves = _leaves(features, measurements)
    tables = merge(features, (m for m in measurements if m.feature != SINGLETON and len(m.values)))
    measurements = [*tables.values(), leaves]
    sums = measured_sums(features, measurements)
    assert leaves.noise is not None
    noisy = leaves.values
    table = lattice(noisy, leaves.noise)
    lattice_margins = margins(features, measurements, moves_of(sums))
    unmeasured = [m for m in lattice_margins if not m.asked]
    found = expected(
        noisy,
        folds_of(features.universe),
        of_rate_model(lattice_margins),
        (total_of(measurements), total_of(moved_tables(measurements, sums))),
        table,
        prior,
        lambda done: tell("expected counts", done),
        rng,
    )
    law = leaf_law(noisy, found.rate, table)
    first = law.expected(noisy)
    means_of_law = first.mean
    drawn = first.mean if rng is None else law.drawn(noisy, rng)
    first = told = benchmarked(unmeasured, noisy, table.variance, first)
    if sums:
        cells = features.cell_of_leaf, features.cells.size
        told = without_shared_errors(sums, *cells, first, first.lever * found.follows, again=True)
    return (drawn, means_of_law), told


def _leaves(features: FeatureDag, measurements: Sequence[Measurement]) -> Measurement:
    found = [m for m in measurements if m.feature == SINGLETON]
    if len(found) != 1:
        raise InputError(
            f"'singleton' is measured {len(found)} times: estimator 'posterior' needs one noisy count of every trip type"
        )
    if found[0].scale is None:
        raise InputError(
            "the noise of 'singleton' has no scale: estimator 'posterior' needs it; give one, or use 'projection'"
        )
    whole = merge(features, found)[SINGLETON]
    if whole.elements is not None:
        raise InputError(
            f"'singleton' is measured in {len(whole.values):,} of {features.universe.size:,} trip types: "
            "estimator 'posterior' needs a noisy count of each"
        )
    return replace(whole, scale=found[0].scale, law=found[0].law)
