"""From measurements to an estimate: consistent, non-negative counts for every feature at once. Right of the wall."""

from typing import TYPE_CHECKING

from cbdp.estimation.engine import (
    ESTIMATORS,
    TOLERANCE,
    Estimate,
    Estimator,
    Program,
    check_prior,
    post_process,
)

if TYPE_CHECKING:
    from cbdp.estimation.intervals import Interval

__all__ = [
    "ESTIMATORS",
    "TOLERANCE",
    "Estimate",
    "Estimator",
    "Interval",
    "Program",
    "check_prior",
    "post_process",
]


def __getattr__(name: str) -> object:
    if name == "Interval":
        from cbdp.estimation.intervals import Interval

        return Interval
    raise AttributeError(f"module 'cbdp.estimation' has no attribute {name!r}")
