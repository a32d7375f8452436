"""Which release of a series this is: the series' name and version, its calendar, and the period with its days. Public."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cbdp.errors import InputError

FINAL, PRELIMINARY = "final", "preliminary"
RUNNING = "running totals"  # what a ledger calls the stage of charges that pay no single release


@dataclass(frozen=True)
class InSeries:
    """A release's place in its series. Days are service days, both included."""

    name: str
    version: int
    calendar: str  # daily, weekly or monthly
    period: str  # 2026-03-02, 2026-W10, 2026-03
    first: dt.date
    last: dt.date
    stage: str = FINAL
    changes: tuple[str, ...] = ()  # since the version before, in words; what has kept its name is the same
    renamed: tuple[tuple[str, str], ...] = ()  # stops with another name since the version before: old, new
    days: str = ""  # how rows were given a service day; "" in releases of earlier versions of the program

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise InputError(f"series: the last day, {self.last}, is before the first, {self.first}")

    def json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "version": self.version,
            "calendar": self.calendar,
            "period": self.period,
            "first": self.first.isoformat(),
            "last": self.last.isoformat(),
            "stage": self.stage,
        } | {name: value for name, value in self._further().items() if value}

    def _further(self) -> dict[str, Any]:
        return {"changes": list(self.changes), "renamed": dict(self.renamed), "days": self.days}


def in_series(given: Mapping[str, Any] | None) -> InSeries | None:
    """What a manifest states; None where the release is of no series."""
    if given is None:
        return None
    try:
        days = {name: dt.date.fromisoformat(given[name]) for name in ("first", "last")}
    except ValueError:
        raise InputError(f"series: {given['first']!r} to {given['last']!r} are not days") from None
    renamed = tuple(given.get("renamed", {}).items())
    return InSeries(**{**given, **days, "changes": tuple(given.get("changes", ())), "renamed": renamed})
