"""Where ε is spent: exact counts in, noisy answers out. The last step left of the wall."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from cbdp.budget import Budget, Number, Sequential, Spend, positive, split
from cbdp.counts import Counts
from cbdp.errors import InputError
from cbdp.features import FeatureDag
from cbdp.measurement import Measurement
from cbdp.noise import DiscreteLaplace, Entropy, SystemEntropy


def shares(
    features: FeatureDag, epsilon: Number, budget: Budget, only: Sequence[str] | None = None
) -> dict[str, Fraction]:
    """What each measured feature gets of ε, coarse ones first."""
    measured = list(features.features) if only is None else list(only)
    for name in measured:
        if name not in features:
            raise InputError(f"unknown feature {name!r}: there are {', '.join(features.features)}")
    measured.sort(key=lambda n: (features.size(n), list(features.features).index(n)))
    return split(measured, positive(epsilon), budget)


def measure(
    counts: Counts,
    features: FeatureDag,
    epsilon: Number,
    budget: Budget = "uniform",
    *,
    only: Sequence[str] | None = None,
    entropy: Entropy | None = None,
    backend: Literal["cbdp", "opendp"] = "cbdp",
) -> list[Measurement]:
    """Noisy answers to every feature (or `only` some), together ε-differentially private.

    A feature partitions the trips, so one unit changes its counts by at most the unit's sensitivity Δ, and two-sided
    geometric noise of scale Δ/ε_i on them is ε_i-differentially private; answers about the same trips compose.
    """
    if counts.universe.size != features.universe.size:
        raise InputError(f"the counts are of {counts.universe!r}, the features of {features.universe!r}")
    source = entropy or SystemEntropy()
    answers = []
    for name, share in shares(features, epsilon, budget, only).items():
        scale = Fraction(counts.unit.sensitivity) / share
        truth = counts.of(features, name)
        law = DiscreteLaplace(scale)
        noise = (
            law.sample(len(truth), source) if backend == "cbdp" else law.sample(len(truth), backend=backend)
        )
        answers.append(Measurement(name, truth + noise, scale=scale, epsilon=share))
    return answers


def composition(measurements: Sequence[Measurement]) -> Sequential:
    """What the measurements cost together, with the argument."""
    return Sequential(tuple(Spend(m.feature, m.epsilon or Fraction(0)) for m in measurements), "features")
