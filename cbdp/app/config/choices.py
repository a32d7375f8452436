"""The tables of parts that a configuration chooses from. Each is imported when it is used, for some are slow to load."""

from __future__ import annotations

from typing import Any

from cbdp.parts import Parts

UNKNOWN = "?"  # what `cbdp init` writes where it cannot guess a column


def mechanisms() -> Parts[Any]:
    from cbdp.mechanisms import MECHANISMS

    return MECHANISMS


def budgets() -> Parts[Any]:
    from cbdp.privacy.budget import BUDGETS

    return BUDGETS


def laws() -> Parts[Any]:
    """Those that noise can be drawn of."""
    from cbdp.measuring.samplers import SAMPLERS

    return SAMPLERS


def formats() -> Parts[Any]:
    from cbdp.release.export import FORMATS

    return FORMATS


def presets() -> Parts[Any]:
    from cbdp.app.presets import PRESETS

    return PRESETS


def weights() -> tuple[str, ...]:
    from cbdp.estimate.compiler import WEIGHTS

    return WEIGHTS
