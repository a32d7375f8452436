"""PRIVATE. From rows to counts: what is here sees trips, and nothing right of the wall may import it."""

from cbdp.trips.count import Counts, count
from cbdp.trips.sources import Clock

__all__ = ["Clock", "Counts", "count"]
