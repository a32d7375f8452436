"""Publish origin–destination demand with differential privacy: consistent, non-negative, integer, certified.

Names are loaded when first used, so `import cbdp` and `cbdp --help` cost nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Attribute": "cbdp.features",
    "Dimension": "cbdp.features",
    "Feature": "cbdp.features",
    "FeatureDag": "cbdp.features",
    "Universe": "cbdp.features",
    "periods": "cbdp.features",
    "CbdpError": "cbdp.errors",
    "Estimate": "cbdp.engine",
    "post_process": "cbdp.engine",
    "Measurement": "cbdp.measurement",
    "Counts": "cbdp.counts",
    "count": "cbdp.counts",
    "measure": "cbdp.measuring",
    "Person": "cbdp.unit",
    "Trip": "cbdp.unit",
    "ConstraintBased": "cbdp.mechanisms",
    "Hierarchical": "cbdp.mechanisms",
    "Laplace": "cbdp.mechanisms",
    "StabilityHistogram": "cbdp.mechanisms",
    "ThresholdLaplace": "cbdp.mechanisms",
    "Release": "cbdp.release",
}
_MODULES = (
    "budget",
    "compiler",
    "datasets",
    "engine",
    "errors",
    "features",
    "mechanisms",
    "noise",
    "problem",
    "release",
    "solution",
    "solvers",
)

if TYPE_CHECKING:
    from cbdp.counts import Counts, count
    from cbdp.engine import Estimate, post_process
    from cbdp.errors import CbdpError
    from cbdp.features import Attribute, Dimension, Feature, FeatureDag, Universe, periods
    from cbdp.measurement import Measurement
    from cbdp.measuring import measure
    from cbdp.mechanisms import ConstraintBased, Hierarchical, Laplace, StabilityHistogram, ThresholdLaplace
    from cbdp.release import Release
    from cbdp.unit import Person, Trip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"cbdp.{name}")
    raise AttributeError(f"module 'cbdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_MODULES])


__all__ = [
    "Attribute",
    "CbdpError",
    "ConstraintBased",
    "Counts",
    "Dimension",
    "Estimate",
    "Feature",
    "FeatureDag",
    "Hierarchical",
    "Laplace",
    "Measurement",
    "Person",
    "Release",
    "StabilityHistogram",
    "ThresholdLaplace",
    "Trip",
    "Universe",
    "count",
    "measure",
    "periods",
    "post_process",
]
