"""What the commands are told: the city, which trips, and how fleets are sized and run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cbdp.errors import InputError
from cbdp.transit.units import KM, UNITS

BUILT_IN = "built-in"
PERIOD = 1800


@dataclass(frozen=True)
class FleetRules:
    """The options of `cbdp fleet size` and `cbdp fleet compare`; a plug-in of None is the built-in one."""

    city: str | None = None  # None: the stops of the trips themselves
    lines: str | None = None
    times: str | None = None
    zones: str | None = None
    units: str = KM
    speed: float | None = None
    detour: float | None = None
    hours: str | None = None
    only: Sequence[str] = ()
    limit: int = 180
    period: int = PERIOD  # 0: the limit holds for the whole hours only
    seed: int = 0
    sizer: str | None = None
    dispatcher: str | None = None
    modes: str | None = None

    def __post_init__(self) -> None:
        for name in ("limit", "period"):
            if getattr(self, name) < 0:
                raise InputError(f"--{name} {getattr(self, name)}: give seconds, at least 0")
        if self.units not in UNITS:
            raise InputError(
                f"--units {self.units}: give {' or '.join(UNITS)}; degrees need no unit, but columns called lat and lon"
            )

    @property
    def promise(self) -> str:
        """What a fleet is sized for, in words."""
        parts = f", in each {self.period / 60:g} minutes" if self.period else ""
        return f"sized for a mean wait of at most {self.limit} s in every zone{parts}"


def see_working_folder(*plugins: str | None) -> None:
    """Plug-ins may be modules of the working folder; installed ones come first. Where none is named, nothing there is ever loaded."""
    here = str(Path.cwd())
    if here not in sys.path and any(name is not None and ":" in name for name in plugins):
        sys.path.append(here)
