"""Leaves as they are to be expected given every noisy answer: post-processing, to be reconciled by the engine's QP.

At low ε a projection keeps the maxima of the noise; an expected value does not. See docs/accuracy.md.
"""

from cbdp.estimate.posterior.estimate import expected_leaves

__all__ = ["expected_leaves"]
