"""The page of a comparison: what changed between releases, and what noise can explain."""

from __future__ import annotations

from cbdp.report.change.build import build

__all__ = ["build"]
