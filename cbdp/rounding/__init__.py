"""From an estimate to whole trips that add up at every level: one ordered table of roundings. Right of the wall."""

from __future__ import annotations

from cbdp.parts import Parts, instance_of
from cbdp.rounding.base import Rounding
from cbdp.rounding.whole import Exactness, Rounded

ROUNDINGS: Parts[Rounding] = Parts(
    "rounding",
    "cbdp.rounding",
    {
        "few": "cbdp.rounding.few:Few",
        "nearest": "cbdp.rounding.nearest:Nearest",
    },
    instance_of(Rounding),
    base="cbdp.rounding.Rounding",
)
get = ROUNDINGS.get
known = ROUNDINGS.known

__all__ = ["ROUNDINGS", "Exactness", "Rounded", "Rounding", "get", "known"]
