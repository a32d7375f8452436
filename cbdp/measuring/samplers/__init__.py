"""Exact samplers, one file for each law that noise is drawn of."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module

from cbdp.errors import InputError
from cbdp.measuring.samplers.base import Sampler
from cbdp.privacy.laws import Law

TABLE = {  # law → its sampler
    "geometric": "cbdp.measuring.samplers.geometric:GeometricSampler",
    "rounded": "cbdp.measuring.samplers.rounded:RoundedSampler",
}


def sampler_of(law: Law) -> Sampler:
    """The sampler of a law."""
    if law.name not in TABLE:
        raise InputError(f"noise of law {law.name!r} is never drawn here: use {' or '.join(TABLE)}")
    module, _, name = TABLE[law.name].partition(":")
    made: Sampler = getattr(import_module(module), name)(Fraction(law.scale))
    return made


__all__ = ["Sampler", "sampler_of"]
