"""From measurements to measurements: the noisy leaves replaced by their posterior means and variances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.estimate.compiler import merge
from cbdp.estimate.posterior.lattice import lattice
from cbdp.estimate.posterior.leaves import posterior
from cbdp.estimate.posterior.margins import margins
from cbdp.estimate.posterior.rates import expected, total_of
from cbdp.estimate.posterior.settings import TUNING
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.progress import tell
from cbdp.solvers.problem import bincount

Floats = NDArray[np.float64]


def expected_leaves(
    features: FeatureDag,
    measurements: Sequence[Measurement],
    *,
    prior: Floats | None = None,
) -> Measurement:
    """The expected count of every trip type given all noisy answers, and its variance.

    `prior` are public weights, one for each trip type: how trips are thought to be spread before anything was measured.
    """
    leaves = _leaves(features, measurements)
    tables = merge(features, (m for m in measurements if m.feature != SINGLETON and len(m.values)))
    measurements = [*tables.values(), leaves]
    law = leaves.noise
    assert law is not None
    noisy = leaves.values.astype(float)
    table = lattice(noisy, law)
    codes = features.universe.unrank_codes(np.arange(features.universe.size))
    rate = expected(noisy, codes, margins(features, measurements), total_of(measurements), table, prior, _say)
    found = posterior(noisy, rate, table)
    mean = _raked(features, measurements, found.mean, found.variance)
    return Measurement(SINGLETON, mean, variance=found.variance)


def _say(done: float) -> None:
    tell("expected counts", done)


def _raked(
    features: FeatureDag, measurements: Sequence[Measurement], mean: Floats, variance: Floats
) -> Floats:
    """Leaves whose sum misses a well-measured count by more than both claim share an error: take it away.

    The program that reconciles leaves and features takes the leaves' errors for independent, and would believe their sums.
    Leaves bear it by their variance: those that are known well stay. Coarse features come last, so that theirs hold.
    """
    whole = [
        m for m in measurements if m.feature != SINGLETON and m.variance is not None and m.elements is None
    ]
    for m in sorted(whole, key=lambda m: -len(m.values)):
        inside = features.cells.element_of_cell[m.feature][features.cell_of_leaf]
        size = len(m.values)
        held, spread = bincount(inside, mean, size), bincount(inside, variance, size)
        assert m.variance is not None
        missed = m.values - held
        clear = m.variance <= np.minimum((TUNING.clear * held) ** 2, spread)
        told = clear & (missed**2 > TUNING.raking_sure**2 * (m.variance + spread))
        if told.any():
            mean = _shifted(
                mean, variance, inside, np.where(told, np.maximum(m.values, TUNING.least_left * held), held)
            )
    return mean


def _shifted(mean: Floats, variance: Floats, inside: NDArray[Any], wanted: Floats) -> Floats:
    """Leaves moved in proportion to their variance until they add up as wanted; none falls below a part of itself."""
    shift, moved = np.zeros(len(wanted)), mean
    for _ in range(TUNING.raking_rounds):
        moved = mean + shift[inside] * variance
        free = moved > TUNING.least_left * mean
        moved = np.where(free, moved, TUNING.least_left * mean)
        lacking = wanted - bincount(inside, moved, len(wanted))
        if np.abs(lacking).max() <= TUNING.raking_near * (1.0 + np.abs(wanted).max()):
            break
        shift += lacking / np.maximum(
            bincount(inside, np.where(free, variance, 0.0), len(wanted)), TUNING.certain
        )
    return moved


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
