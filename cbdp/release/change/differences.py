"""What two sets of independent unbiased answers tell about the change between them: its interval, its chance, and ratios.

Variances add up, and so do the laws: the interval is read off the law of the difference and is shorter than the sum of both
intervals by about a third. Ratios use Fieller's construction: a ratio r fits if the second less r times the first is within its noise of
zero. A first count that may be zero leaves the ratio without an upper end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cbdp.arrays import Floats
from cbdp.estimate.tails import Error, together

NEARLY = 1e-6  # of a trip


@dataclass(frozen=True, eq=False)
class Answers:
    """Unbiased answers, and the law of their errors; `told` where there is one."""

    value: Floats = field(repr=False)
    error: Error
    told: NDArray[np.bool_] = field(repr=False)


def ends(first: Answers, second: Answers, risk: float) -> tuple[Floats, Floats]:
    """The least and the largest change that fits what was measured, in whole trips."""
    error = together([first.error, second.error])
    reach = error.reach(risk)
    # noise of whole numbers: as much probability lies within k as within k + 1/2 of the law without gaps
    whole = np.ceil(reach - 0.5 - NEARLY)
    half = np.where(error.whole, whole, np.maximum(reach, whole))
    change = second.value - first.value
    return np.ceil(change - half - NEARLY), np.floor(change + half + NEARLY)


def chance(first: Answers, second: Answers) -> Floats:
    """How often noise alone makes a difference of this size or larger where there is no change."""
    change = np.abs(second.value - first.value)
    # half a trip for the gaps between whole numbers; where sums are weighted it is on the safe side
    known = (first.error.variance == 0) & (second.error.variance == 0)
    size = np.where(known, change, np.maximum(change - 0.5, 0.0))
    return together([first.error, second.error]).beyond(size)


def ratio_ends(first: Answers, second: Answers, risk: float) -> tuple[Floats, Floats]:
    """The least and the largest ratio of the second to the first that fits; infinite where the first may be zero."""
    square = _deviations(first, second, risk) ** 2
    one, two = first.value, second.value
    a = one**2 - square * first.error.variance
    c = two**2 - square * second.error.variance
    b = one * two
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    sure_one, sure_two = (a > 0) & (one > 0), (c > 0) & (two > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(sure_two, c / (b + root), 0.0)
        high = np.where(sure_one, (b + root) / a, np.inf)
    return np.maximum(np.nan_to_num(low), 0.0), np.maximum(np.nan_to_num(high, nan=np.inf, posinf=np.inf), 0)


def _deviations(first: Answers, second: Answers, risk: float) -> Floats:
    """How many deviations the noise of any mixture of both reaches: no further than the worst of its parts or the normal law."""
    worst = np.full(len(first.value), -float(ndtri(risk / 2)))
    for side in (first, second):
        deviation = np.sqrt(side.error.variance)
        with np.errstate(invalid="ignore", divide="ignore"):
            worst = np.fmax(worst, np.where(deviation > 0, side.error.reach(risk) / deviation, 0.0))
    return worst
