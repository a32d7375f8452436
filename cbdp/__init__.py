"""Publish origin–destination demand with differential privacy: consistent, non-negative, integer, certified.

Names are loaded when first used, so `import cbdp` and `cbdp --help` cost nothing.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

# In a checkout the packages behind `cbdp.features` and `cbdp.solvers` stand in features/ and solvers/ beside this one: it is theirs that
# belong to it, whatever else is installed. Once installed, all three stand side by side.
_TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - nothing else is loaded yet
for _name in ("solvers", "features"):
    _home = os.path.join(_TOP, _name)  # noqa: PTH118
    if _home not in sys.path and os.path.isdir(os.path.join(_home, f"cbdp_{_name}")):  # noqa: PTH112, PTH118
        sys.path.insert(0, _home)

__version__ = "0.2.0"

_HOME = {
    "Attribute": "cbdp.features",
    "Dimension": "cbdp.features",
    "Feature": "cbdp.features",
    "FeatureDag": "cbdp.features",
    "Universe": "cbdp.features",
    "days": "cbdp.features",
    "periods": "cbdp.features",
    "BudgetError": "cbdp.errors",
    "CbdpError": "cbdp.errors",
    "InputError": "cbdp.errors",
    "SolverError": "cbdp.errors",
    "Estimate": "cbdp.estimation",
    "post_process": "cbdp.estimation",
    "Measurement": "cbdp.privacy.measurement",
    "Ledger": "cbdp.ledger",
    "Person": "cbdp.privacy.unit",
    "Trip": "cbdp.privacy.unit",
    "Clock": "cbdp.counting",
    "Counts": "cbdp.counting",
    "count": "cbdp.counting",
    "measure": "cbdp.measuring",
    "ConstraintBased": "cbdp.mechanisms",
    "Hierarchical": "cbdp.mechanisms",
    "Laplace": "cbdp.mechanisms",
    "RunningTotals": "cbdp.mechanisms.continual",
    "StabilityHistogram": "cbdp.mechanisms",
    "ThresholdLaplace": "cbdp.mechanisms",
    "Release": "cbdp.release",
    "compare": "cbdp.release.comparison",
    "load": "cbdp.release",
    "export": "cbdp.release.export",
    "audit_release": "cbdp.app.audit",
    "epsilon_lower_bound": "cbdp.app.audit",
    "rho_lower_bound": "cbdp.app.audit",
}
# Tables of parts that stand on the wall or behind it: what stands right of it may ask for a part by name (`cbdp.parts.table_of`).
PART_TABLES = {
    "mechanisms": "cbdp.mechanisms:MECHANISMS",
    "presets": "cbdp.app.presets:PRESETS",
    "samplers": "cbdp.measuring.samplers:SAMPLERS",
}
_PACKAGES = (
    "app",
    "audit",
    "config",
    "counting",
    "datasets",
    "errors",
    "estimation",
    "features",
    "forecast",
    "ledger",
    "measuring",
    "mechanisms",
    "privacy",
    "release",
    "report",
    "rounding",
    "solvers",
    "transit",
)

if TYPE_CHECKING:
    from cbdp.app.audit import audit_release, epsilon_lower_bound, rho_lower_bound
    from cbdp.counting import Clock, Counts, count
    from cbdp.errors import BudgetError, CbdpError, InputError, SolverError
    from cbdp.estimation import Estimate, post_process
    from cbdp.features import Attribute, Dimension, Feature, FeatureDag, Universe, days, periods
    from cbdp.ledger import Ledger
    from cbdp.measuring import measure
    from cbdp.mechanisms import (
        ConstraintBased,
        Hierarchical,
        Laplace,
        StabilityHistogram,
        ThresholdLaplace,
    )
    from cbdp.mechanisms.continual import RunningTotals
    from cbdp.privacy.measurement import Measurement
    from cbdp.privacy.unit import Person, Trip
    from cbdp.release import Release, load
    from cbdp.release.comparison import compare
    from cbdp.release.export import export


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _PACKAGES:
        return import_module(f"cbdp.{name}")
    raise AttributeError(f"module 'cbdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])


__all__ = [
    "Attribute",
    "BudgetError",
    "CbdpError",
    "Clock",
    "ConstraintBased",
    "Counts",
    "Dimension",
    "Estimate",
    "Feature",
    "FeatureDag",
    "Hierarchical",
    "InputError",
    "Laplace",
    "Ledger",
    "Measurement",
    "Person",
    "Release",
    "RunningTotals",
    "SolverError",
    "StabilityHistogram",
    "ThresholdLaplace",
    "Trip",
    "Universe",
    "audit_release",
    "compare",
    "count",
    "days",
    "epsilon_lower_bound",
    "export",
    "load",
    "measure",
    "periods",
    "post_process",
    "rho_lower_bound",
]
