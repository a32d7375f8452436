"""Every mechanism of the three papers, one class each with the same shape: features and ε in, `release(trips)`."""

from cbdp.mechanisms.base import Mechanism
from cbdp.mechanisms.constraint_based import ConstraintBased
from cbdp.mechanisms.hierarchical import Hierarchical, nested
from cbdp.mechanisms.laplace import Laplace
from cbdp.mechanisms.stability_histogram import StabilityHistogram
from cbdp.mechanisms.threshold_laplace import ThresholdLaplace

__all__ = [
    "ConstraintBased",
    "Hierarchical",
    "Laplace",
    "Mechanism",
    "StabilityHistogram",
    "ThresholdLaplace",
    "nested",
]
