"""How releases differ: changes with intervals and verdicts, for many rows at once."""

from __future__ import annotations

from cbdp.release.change.comparison import CHANCE, CHANGED, NOISE, UNTOLD, Compared, compare

__all__ = ["CHANCE", "CHANGED", "NOISE", "UNTOLD", "Compared", "compare"]
