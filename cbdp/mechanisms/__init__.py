"""Every mechanism is two functions and a recipe. On the wall: `measure` sees counts, `finish` sees measurements only.

All have the same shape: features and ε in the constructor, `release(trips)` out.
"""

from __future__ import annotations

from cbdp.mechanisms.base import Mechanism
from cbdp.mechanisms.constraint_based import ConstraintBased
from cbdp.mechanisms.hierarchical import Hierarchical, nested
from cbdp.mechanisms.laplace import Laplace
from cbdp.mechanisms.threshold import StabilityHistogram, ThresholdLaplace
from cbdp.parts import Parts, subclass_of
from cbdp.release import Release

MECHANISMS: Parts[type[Mechanism]] = Parts(
    "mechanism",
    "cbdp.mechanisms",
    {
        "constraint-based": "cbdp.mechanisms.constraint_based:ConstraintBased",
        "laplace": "cbdp.mechanisms.laplace:Laplace",
        "hierarchical": "cbdp.mechanisms.hierarchical:Hierarchical",
        "stability-histogram": "cbdp.mechanisms.threshold:StabilityHistogram",
        "threshold-laplace": "cbdp.mechanisms.threshold:ThresholdLaplace",
    },
    subclass_of(Mechanism),
    base="cbdp.mechanisms.Mechanism",
)


def of(release: Release) -> Mechanism:
    """The mechanism that made a release, built again from its recipe.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.ConstraintBased(features, epsilon=1).simulate(trips, seed=0)
    >>> cbdp.mechanisms.of(release) == cbdp.ConstraintBased(features, epsilon=1)
    True
    """
    return MECHANISMS.installed(release.recipe.mechanism).from_recipe(release)


__all__ = [
    "MECHANISMS",
    "ConstraintBased",
    "Hierarchical",
    "Laplace",
    "Mechanism",
    "StabilityHistogram",
    "ThresholdLaplace",
    "nested",
    "of",
]
