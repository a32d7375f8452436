"""Exact samplers, one file for each law that noise is drawn from."""

from __future__ import annotations

from fractions import Fraction

from cbdp.errors import InputError
from cbdp.measuring.samplers.base import Sampler
from cbdp.parts import Parts, subclass_of
from cbdp.privacy.laws import Law

SAMPLERS: Parts[type[Sampler]] = Parts(
    "sampler",
    "cbdp.samplers",
    {  # law → its sampler
        "geometric": "cbdp.measuring.samplers.geometric:GeometricSampler",
        "gaussian": "cbdp.measuring.samplers.gaussian:GaussianSampler",
        "rounded": "cbdp.measuring.samplers.rounded:RoundedSampler",
    },
    subclass_of(Sampler),
    base="cbdp.measuring.samplers.Sampler",
)


def sampler_of(law: Law) -> Sampler:
    """The sampler of a law.

    >>> from fractions import Fraction
    >>> from cbdp.privacy.entropy import SystemEntropy
    >>> from cbdp.privacy.laws import law_of
    >>> sampler_of(law_of("geometric", Fraction(2))).sample(4, SystemEntropy()).shape
    (4,)
    """
    if law.name not in SAMPLERS.table and law.name not in SAMPLERS.known():
        raise InputError(
            f"noise of law {law.name!r} is never drawn here: use {' or '.join(SAMPLERS.known())}"
        )
    return SAMPLERS.get(law.name)(Fraction(law.scale))


__all__ = ["SAMPLERS", "Sampler", "sampler_of"]
