"""PRIVATE. From counts to measurements: here ε is spent. Nothing right of the wall may import it."""

from cbdp.measuring.dense import measure, measure_above

__all__ = ["measure", "measure_above"]
