"""How rows are given a service day, and whether all releases of a ledger do it alike.

A ledger adds up by service day what releases cost one person. If one series' days begin at midnight and another's at four, what a person does on one day
of the first lies on two days of the second, and costs more there than the ledger says. So releases of near days must read days alike.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.errors import CbdpError, InputError
from cbdp.features import Universe
from cbdp.privacy.ledger import Charge, Covers, Ledger
from cbdp.release.loading import read_manifest
from cbdp.release.series import RUNNING
from cbdp.trips import Clock, Schema, planning
from cbdp.trips.kinds import DATE, NOTHING, OTHER, REAL, STAMP, TEXT, TIME, TRUTH, WHOLE, kind_of
from cbdp.trips.ways import moves_days

if TYPE_CHECKING:
    from cbdp.app.config import Config

NEAR = dt.timedelta(days=3)  # no zone and no start of a day moves a trip further
WRITTEN = "as they are written"
ZONED, ZONELESS = "time stamps that have a zone", "time stamps without a zone"
TEXT_TIMES, TEXT_DATES = f"{TEXT} that is dates with times", f"{TEXT} that is dates alone"
KINDS = (TEXT_TIMES, TEXT_DATES, ZONED, ZONELESS, TEXT, DATE, TIME, WHOLE, REAL, TRUTH, NOTHING, OTHER)
_READING = re.compile(
    rf"of column (.*?)(?: with ({'|'.join(KINDS)}))?, times ([^,]*), days from ([^,]*) on", re.DOTALL
)


@dataclass(frozen=True)
class DayReading:
    """How rows are given a service day: by which column, of which kind, in which zone, from which time on.

    >>> text = "of column 'at' with dates, times as they are written, days from 04:00 on"
    >>> DayReading.of(text).kind, str(DayReading.of(text)) == text
    ('dates', True)
    """

    column: str  # with the written forms of its times
    kind: str  # one of KINDS; "" in what versions up to 0.2 wrote
    zone: str
    starts: str

    def __str__(self) -> str:
        kind = f" with {self.kind}" if self.kind else ""
        return f"of column {self.column}{kind}, times {self.zone}, days from {self.starts} on"

    @classmethod
    def of(cls, text: str) -> DayReading | None:
        found = _READING.fullmatch(text)
        return None if found is None else cls(found[1], found[2] or "", found[3], found[4])

    def agrees(self, before: DayReading) -> bool:
        """Whether no trip can have one day here and another there, as far as both say it.

        What earlier versions wrote names no kind, and no zone that the column has by its type.
        """
        if (self.column, self.starts) != (before.column, before.starts):
            return False
        if NOTHING in (self.kind, before.kind):  # no row has a day
            return self.zone == before.zone or WRITTEN in (self.zone, before.zone)
        if before.kind:
            return (self.kind, self.zone) == (before.kind, before.zone)
        typed = before.zone == WRITTEN and self.kind == ZONED
        texts = self.kind.startswith(TEXT) and {self.zone, before.zone} == {WRITTEN, "UTC"}  # read alike
        return self.zone == before.zone or typed or texts


def service_days(
    columns: Mapping[str, str],
    universe: Universe,
    clock: Clock,
    schema: Schema | None,
    *,
    pinned: bool = False,
) -> str:
    """In words: which column, what it holds, in which zone (as stated, or as the column's type has it), from which time on.

    In a series (`pinned`), texts are read as dates or as times where these could be on different days.
    """
    column = planning.dated_column(columns, universe)
    kind = kind_of(schema.kinds[column]) if schema is not None and column in schema.kinds else None
    form = "" if clock.format is None else f" ({clock.format})"
    name = "" if kind is None else ZONED if kind.zone else ZONELESS if kind.name == STAMP else kind.name
    if name == TEXT and pinned and moves_days(clock):
        name = TEXT_TIMES if planning.is_timed(column, columns, universe) else TEXT_DATES
    typed = None if kind is None else kind.zone
    return str(DayReading(f"{column!r}{form}", name, clock.timezone or typed or WRITTEN, clock.day_starts))


def check_alike(config: Config, covers: Covers, path: Path) -> None:
    """Refuse a release whose days are read in another way than those of other releases near it, before a row is read."""
    if not covers.days or not path.parent.is_dir() or not Ledger.started(path):
        return
    own = None if config.series is None else config.series.name
    with Ledger.view(path) as ledger:
        for charge in ledger.charges():
            same = charge.part is not None and charge.part.series == own and charge.dataset == config.data.id
            if same or not _near(charge, covers):  # a series by itself: `series.continuity`
                continue
            before = read_as(charge, ledger)
            if before and not alike(before, covers.days, same_data=charge.dataset == config.data.id):
                raise _refusal(config, charge, before, covers.days)


def _near(charge: Charge, covers: Covers) -> bool:
    other = charge.covers
    if other is None or (charge.part and charge.part.stage == RUNNING):
        return False
    if other.first is None or other.last is None or covers.first is None or covers.last is None:
        return True  # it may be about any day
    return other.first <= covers.last + NEAR and covers.first <= other.last + NEAR


def read_as(charge: Charge, ledger: Ledger) -> str:
    """As the charge states it; of those that earlier versions made, as the release does, if it can be read."""
    stated, done = "" if charge.covers is None else charge.covers.days, ledger.finished(charge.request)
    if stated or done is None:
        return stated
    try:
        return str((read_manifest(Path(done.path)).get("series") or {}).get("days", ""))
    except CbdpError:
        return ""


def alike(before: str, now: str, *, same_data: bool = True) -> bool:
    """Of the same trips everything is read alike. Other trips have columns of their own; their zone is compared where both state one."""
    one, two = DayReading.of(before), DayReading.of(now)
    if before == now or one is None or two is None:
        return before == now
    if same_data:
        return two.agrees(one)
    return one.starts == two.starts and (one.zone == two.zone or WRITTEN in (one.zone, two.zone))


def _refusal(config: Config, charge: Charge, before: str, now: str) -> InputError:
    whose = f"the series {charge.part.series!r}" if charge.part else "another release"
    return config.source.error(
        ("data",),
        f"the ledger also holds {whose} of near days, which reads a trip's day {before}, and here it is read {now}: one day of a person would "
        "lie on two days there, and cost more than the ledger says. Write the same data.timezone, data.day_starts and column of the day in both, or "
        "leave three days between them",
    )
