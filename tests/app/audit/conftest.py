"""Honest releases, and copies of them to be tampered with."""

from __future__ import annotations

from audited import folder, made, made_by_projection, projected

__all__ = ["folder", "made", "made_by_projection", "projected"]
