"""From measurements to an estimate: consistent, non-negative counts for every feature at once. Right of the wall."""

from cbdp.estimate.engine import Estimate, post_process

__all__ = ["Estimate", "post_process"]
