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
    "load": "cbdp.io.files",
    "export": "cbdp.io.export",
    "Clock": "cbdp.io.trips",
    "Ledger": "cbdp.ledger",
}
_MODULES = (
    "audit",
    "budget",
    "compiler",
    "config",
    "datasets",
    "engine",
    "errors",
    "explain",
    "features",
    "intervals",
    "io",
    "ledger",
    "mechanisms",
    "noise",
    "planning",
    "problem",
    "publish",
    "release",
    "report",
    "rounding",
    "solution",
    "solvers",
    "transit",
)

if TYPE_CHECKING:
    from cbdp.counts import Counts, count
    from cbdp.engine import Estimate, post_process
    from cbdp.errors import CbdpError
    from cbdp.features import Attribute, Dimension, Feature, FeatureDag, Universe, periods
    from cbdp.io.export import export
    from cbdp.io.files import load
    from cbdp.io.trips import Clock
    from cbdp.ledger import Ledger
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
    "Clock",
    "ConstraintBased",
    "Counts",
    "Dimension",
    "Estimate",
    "Feature",
    "FeatureDag",
    "Hierarchical",
    "Laplace",
    "Ledger",
    "Measurement",
    "Person",
    "Release",
    "StabilityHistogram",
    "ThresholdLaplace",
    "Trip",
    "Universe",
    "count",
    "export",
    "load",
    "measure",
    "periods",
    "post_process",
]
