"""Factors by sums: models corrected so that a margin's sums are met, as far as that predicts left-out leaves better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cbdp.arrays import Floats, Singles
from cbdp.estimate.posterior import passes
from cbdp.estimate.posterior.lattice import TINY
from cbdp.estimate.posterior.margins import Margin
from cbdp.estimate.posterior.models import Models
from cbdp.estimate.posterior.settings import TUNING
from cbdp.estimate.posterior.threads import each
from cbdp.privacy.laws import Law

Seen = tuple[Floats, Floats, Floats]  # by element: the factor seen, its precision, and the expected count

TRIED = np.array([(s, b) for s in TUNING.signal for b in TUNING.bunched])
RATE, NOISY, LEAVES, FIT = 0, 1, 2, 3  # columns of passes.by_fold
SUMS = 10  # numbers of `_tried`


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
    element, many = margin.of_leaves(), models.ranges(margin.size)
    looking = Looking(margin, element, models, noisy, variance, bunched)
    sums, kept = np.zeros((TUNING.folds, SUMS, len(TRIED))), list[Seen]()
    for here in many:
        kept, fits = looking.seen(*here)
        sums += each(_tried_all, zip(kept, fits, strict=True), len(noisy))
    best = _chosen(*_scores(sums))
    if best is None:
        return
    if len(many) > 1:
        parts = [looking.seen(*here)[0] for here in many]
        kept = [_joined([part[k] for part in parts]) for k in range(TUNING.folds)]
    off = None if rng is None else rng.standard_normal(margin.size)

    def factor(made: Seen) -> Floats:
        found: Floats = _shrunk(*made, *TRIED[best], TUNING.least_corrected)
        return found if off is None else _as_it_may_be(found, off, *made[1:], *TRIED[best])

    models.multiply(element, [factor(made) for made in kept], factor(looking.moved()))


@dataclass(frozen=True, eq=False)
class Looking:
    """What sums say of a margin's factors."""

    margin: Margin
    element: NDArray[np.int32]  # of each leaf
    models: Models
    noisy: NDArray[Any]
    variance: float
    bunched: float

    def seen(self, low: int, high: int) -> tuple[list[Seen], list[Floats]]:
        """Of some elements what each fold's model sees; and how well it predicts the leaves it has not seen (`passes.by_fold`)."""
        found = self.models.each(lambda k: self._by_fold(k, low, high))
        noisy, leaves = (np.sum([own[:, i] for _, own in found], axis=0) for i in (NOISY, LEAVES))
        made = []
        for outside, own in found:
            seen = outside, outside + own[:, RATE], noisy - own[:, NOISY], leaves - own[:, LEAVES]
            made.append(self._told(self.margin.known[low:high], self.margin.precision[low:high], *seen))
        return made, [own[:, FIT:] for _, own in found]

    def moved(self) -> Seen:
        """What the first model sees with moved tables."""
        size, models = self.margin.size, self.models
        noisy, leaves = passes.outside(self.element, self.noisy, models.fold, 0, size)
        moved = self.element, models.rate[0], models.off, models.fold, 0, size
        outside, inside = passes.outside_moved(*moved)
        known = self.margin.known + self.margin.moves
        return self._told(known, self.margin.precision, outside, outside + inside, noisy, leaves)

    def _by_fold(self, k: int, low: int, high: int) -> tuple[Floats, Floats]:
        models = self.models
        leaves = self.element, models.rate[k], models.fold, k, self.noisy
        made: tuple[Floats, Floats] = passes.by_fold(low, high, *leaves, self.variance, self.bunched)
        return made

    def _told(
        self, known: Floats, sure: Floats, outside: Floats, held: Floats, noisy: Floats, leaves: Floats
    ) -> Seen:
        """From the noisy counts outside of a fold, and from what is known of all leaves' sum."""
        spread = np.maximum(leaves * self.variance, TINY)
        precision = outside**2 / spread + held**2 * sure
        told = noisy * outside / spread + known * held * sure
        return np.divide(told, precision, out=np.ones(len(told)), where=precision > TINY), precision, held


def _tried_all(given: tuple[Seen, Floats]) -> Floats:
    made: Floats = _tried(*given[0], given[1], TRIED, TUNING.least_corrected)
    return made


def _joined(parts: Sequence[Seen]) -> Seen:
    ratio, precision, held = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ratio, precision, held


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


@njit(cache=True, nogil=True, fastmath=True)
def _tried(ratio, precision, held, fit, tried, least):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """SUMS × trials: what `_scores` needs of the factors f of each trial, before they are made to keep the total.

    With a factor r the weighted squared error of a left-out leaf changes by w (1 − r)(2y − m(1 + r)): an element's leaves enter by
    their sums of w y, w m, w²y², w²y m and w²m² alone (`fit`). Both it and its square are polynomials of r.
    """
    made = np.empty((SUMS, len(tried)))
    unsure, share = 1.0 / np.maximum(precision, TINY), 1.0 / np.maximum(held, TINY)
    a, b, c, d, e = fit[:, 0].copy(), fit[:, 1].copy(), fit[:, 2].copy(), fit[:, 3].copy(), fit[:, 4].copy()
    made[0], made[2], made[5] = held.sum(), 2.0 * a.sum() - b.sum(), 4.0 * c.sum() - 4.0 * d.sum() + e.sum()
    for t in range(len(tried)):
        signal, bunched = tried[t, 0], tried[t, 1]
        kept = linear = quadratic = one = two = three = four = 0.0
        for j in range(len(ratio)):
            doubt = unsure[j] + bunched * share[j]
            f = max(1.0 + signal / (signal + doubt) * (ratio[j] - 1.0), least)
            square = f * f
            kept += f * held[j]
            linear += a[j] * f
            quadratic += b[j] * square
            one += (4.0 * d[j] - 8.0 * c[j]) * f
            two += (4.0 * c[j] + 4.0 * d[j] - 2.0 * e[j]) * square
            three += d[j] * f * square
            four += e[j] * square * square
        made[1, t], made[3, t], made[4, t] = kept, -2.0 * linear, quadratic
        made[6, t], made[7, t], made[8, t], made[9, t] = one, two, -4.0 * three, four
    return made


def _scores(sums: Floats) -> tuple[Floats, Floats]:
    """By trial, the change of the weighted squared error on the left-out leaves, and the sum of its squares; `sums` are by fold."""
    held, after = sums[:, 0], sums[:, 1]
    r = held / after  # so that the total stays
    score = sums[:, 2] + r * (sums[:, 3] + r * sums[:, 4])
    square = sums[:, 5] + r * (sums[:, 6] + r * (sums[:, 7] + r * (sums[:, 8] + r * sums[:, 9])))
    return score.sum(axis=0), np.maximum(square, 0.0).sum(axis=0)
