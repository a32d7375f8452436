"""PRIVATE. From counts to measurements: here ε is spent. Nothing right of the wall may import it.

The wall (docs/explanation/wall.md) parts code that may see trips or counts, on its left, from code that may not.
"""

from cbdp.measuring.answers import MAX_DENSE_TRIP_TYPES, cost_argument, measure, noisy_counts
from cbdp.privacy.entropy import Entropy, InsecureSeededEntropy, SystemEntropy

__all__ = [
    "MAX_DENSE_TRIP_TYPES",
    "Entropy",
    "InsecureSeededEntropy",
    "SystemEntropy",
    "cost_argument",
    "measure",
    "noisy_counts",
]
