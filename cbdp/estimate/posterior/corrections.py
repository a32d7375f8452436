"""Factors by sums: models corrected so that a margin's sums are met, as far as that predicts left-out leaves better."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cbdp.estimate.posterior import passes
from cbdp.estimate.posterior.lattice import TINY
from cbdp.estimate.posterior.margins import Margin
from cbdp.estimate.posterior.models import Models
from cbdp.estimate.posterior.settings import TUNING
from cbdp.privacy.laws import Law

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Seen = tuple[Floats, Floats, Floats]  # by element: the factor seen, its precision, and the expected count

TRIED = np.array([(s, b) for s in TUNING.signal for b in TUNING.bunched])
RATE, NOISY, LEAVES, FIT = 0, 1, 2, 3  # columns of passes.by_fold


def bunched_by(noisy: NDArray[Any], rate: Singles, law: Law) -> float:
    """How much more than Poisson counts vary about their rate; 1 where that cannot be told from noise."""
    variance = law.variance()
    total, squares = passes.missed(noisy, rate)
    extra = squares - len(noisy) * variance
    chance = math.sqrt((law.excess_kurtosis + 2.0) * len(noisy)) * variance  # of squares of the noise
    return max(1.0, extra / max(total, 1.0)) if extra > TUNING.bunched_sure * chance else 1.0


def corrected(
    margin: Margin,
    models: Models,
    noisy: NDArray[Any],
    variance: float,
    bunched: float,
    rng: np.random.Generator | None,
) -> None:
    """Correct the models so that the margin's sums are met, as far as that predicts left-out leaves better."""
    element, fold = margin.of_leaves(), models.fold
    found = models.each(
        lambda k: passes.by_fold(element, models.rate[k], fold, k, noisy, variance, bunched, margin.size)
    )
    others, many = (np.sum([own[:, i] for _, own in found], axis=0) for i in (NOISY, LEAVES))

    def seen(k: int, outside: Floats, held: Floats, known: Floats) -> Seen:
        own = found[k][1]
        spread = np.maximum((many - own[:, LEAVES]) * variance, TINY)
        precision = outside**2 / spread + held**2 * margin.precision
        told = (others - own[:, NOISY]) * outside / spread + known * held * margin.precision
        return np.divide(told, precision, out=np.ones(margin.size), where=precision > TINY), precision, held

    def scored(k: int) -> tuple[Seen, Floats]:
        outside, own = found[k]
        made = seen(k, outside, outside + own[:, RATE], margin.known)
        return made, _scores(*made, own[:, FIT:], TRIED, TUNING.least_corrected)

    tried = models.each(scored)
    best = _chosen(*np.sum([scores for _, scores in tried], axis=0))
    if best is None:
        return
    off = None if rng is None else rng.standard_normal(margin.size)

    def factor(made: Seen) -> Floats:
        found: Floats = _shrunk(*made, *TRIED[best], TUNING.least_corrected)
        return found if off is None else _as_it_may_be(found, off, *made[1:], *TRIED[best])

    outside, inside = passes.outside_moved(element, models.rate[0], models.off, fold, 0, margin.size)
    moved = factor(seen(0, outside, outside + inside, margin.known + margin.moves))
    models.multiply(element, [factor(made) for made, _ in tried], moved)


def _as_it_may_be(
    factor: Floats, off: Floats, precision: Floats, held: Floats, signal: float, bunched: float
) -> Floats:
    """The factors, off by so many of their deviations; the total stays."""
    doubt = 1.0 / np.maximum(precision, TINY) + bunched / np.maximum(held, TINY)
    deviation = np.sqrt(signal * doubt / (signal + doubt))
    made: Floats = np.maximum(factor + deviation * off, TUNING.least_corrected)
    made *= held.sum() / max(float(made @ held), TINY)
    return made


def _chosen(score: Floats, square: Floats) -> int | None:
    """The trial that predicts left-out leaves best; None where that may be chance."""
    best = int(np.argmin(score))
    return best if score[best] < -TUNING.correction_sure * math.sqrt(square[best]) else None


@njit(cache=True, nogil=True)
def _shrunk(ratio, precision, held, signal, bunched, least):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """By element, the factor seen, drawn towards 1 by how unsure it is; the total stays."""
    made = np.empty(len(ratio))
    before, after = 0.0, 0.0
    for j in range(len(ratio)):
        doubt = 1.0 / max(precision[j], TINY) + bunched / max(held[j], TINY)
        made[j] = max(1.0 + signal / (signal + doubt) * (ratio[j] - 1.0), least)
        before += held[j]
        after += made[j] * held[j]
    for j in range(len(ratio)):
        made[j] *= before / after
    return made


@njit(cache=True, nogil=True)
def _scores(ratio, precision, held, fit, tried, least):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """By trial, the change of the weighted squared error on the left-out leaves, and the sum of its squares.

    With a factor r the error of a leaf changes by w (1 − r)(2y − m(1 + r)): an element's leaves enter by their sums of w y, w m, w²y²,
    w²y m and w²m² alone (`fit`), so that trials need no pass over the leaves.
    """
    made = np.zeros((2, len(tried)))
    for t in range(len(tried)):
        factor = _shrunk(ratio, precision, held, tried[t, 0], tried[t, 1], least)
        for j in range(len(factor)):
            less, more = 1.0 - factor[j], 1.0 + factor[j]
            made[0, t] += less * (2.0 * fit[j, 0] - more * fit[j, 1])
            made[1, t] += less * less * (4.0 * fit[j, 2] - 4.0 * more * fit[j, 3] + more * more * fit[j, 4])
    return made
