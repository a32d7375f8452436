"""PRIVATE. From counts to measurements: here ε is spent. Nothing right of the wall may import it."""

from cbdp.measuring.dense import DENSE, measure, noisy, paid
from cbdp.privacy.entropy import Entropy, InsecureSeededEntropy, SystemEntropy

__all__ = ["DENSE", "Entropy", "InsecureSeededEntropy", "SystemEntropy", "measure", "noisy", "paid"]
