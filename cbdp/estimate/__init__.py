"""From measurements to an estimate: consistent, non-negative counts for every feature at once. Right of the wall."""

from typing import TYPE_CHECKING

from cbdp.estimate.base import Estimator, Program
from cbdp.estimate.engine import ESTIMATORS, TOLERANCE, check_prior, post_process
from cbdp.estimate.estimate import Estimate

if TYPE_CHECKING:
    from cbdp.estimate.intervals import Interval

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
        from cbdp.estimate.intervals import Interval

        return Interval
    raise AttributeError(f"module 'cbdp.estimate' has no attribute {name!r}")
