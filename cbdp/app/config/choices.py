"""The tables of parts that a configuration chooses from. Each is imported when it is used, for some are slow to load."""

from __future__ import annotations

from typing import Any

from cbdp.parts import Parts, table_of

UNKNOWN = "?"  # what `cbdp init` writes where it cannot guess a column


def mechanisms() -> Parts[Any]:
    return table_of("mechanisms")


def budgets() -> Parts[Any]:
    from cbdp.privacy.budget import BUDGETS

    return BUDGETS


def laws() -> Parts[Any]:
    """Those that noise can be drawn of."""
    return table_of("samplers")


def formats() -> Parts[Any]:
    from cbdp.release.export import FORMATS

    return FORMATS


def presets() -> Parts[Any]:
    return table_of("presets")


def weights() -> tuple[str, ...]:
    from cbdp.estimate.compiler import WEIGHTS

    return WEIGHTS
