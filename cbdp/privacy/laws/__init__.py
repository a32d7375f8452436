"""The laws of noise as public mathematics: mass, tails, variance, quantiles. One file each; samplers are in measuring/."""

from __future__ import annotations

from fractions import Fraction

from cbdp.parts import Parts, subclass_of
from cbdp.privacy.laws.base import Law

LAWS: Parts[type[Law]] = Parts(
    "noise law",
    "cbdp.laws",
    {
        "geometric": "cbdp.privacy.laws.geometric:Geometric",
        "gaussian": "cbdp.privacy.laws.gaussian:Gaussian",
        "rounded": "cbdp.privacy.laws.rounded:RoundedLaplace",
        "laplace": "cbdp.privacy.laws.continuous:ContinuousLaplace",
    },
    subclass_of(Law),
    base="cbdp.privacy.laws.Law",
)


def law_of(name: str, scale: Fraction | float) -> Law:
    """The law of this name with this scale.

    >>> law_of("geometric", 2).half_width(0.9)
    5
    """
    return LAWS.get(name)(scale)


def recognised(scale: Fraction | float, variance: float | None) -> Law | None:
    """The law for whole counts that has this scale and variance; without a variance, the geometric one.

    >>> recognised(2, law_of("gaussian", 2).variance()).name
    'gaussian'
    """
    for name in ("geometric", "rounded", "gaussian"):
        law = law_of(name, scale)
        if variance is None or abs(law.variance() - variance) <= 1e-6 * variance:
            return law
    return None


__all__ = ["LAWS", "Law", "law_of", "recognised"]
