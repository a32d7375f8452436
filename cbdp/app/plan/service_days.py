"""How rows are given a service day, and whether all releases of a ledger do it alike.

A ledger adds up by service day what releases cost one person. If one series' days begin at midnight and another's at four, what a person does on one day
of the first lies on two days of the second, and costs more there than the ledger says. So releases of near days must read days alike.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.errors import CbdpError, InputError
from cbdp.features import Universe
from cbdp.privacy.ledger import Charge, Covers, Ledger
from cbdp.release.loading import read_manifest
from cbdp.release.series import RUNNING
from cbdp.trips import Clock, Schema, planning
from cbdp.trips.kinds import kind_of

if TYPE_CHECKING:
    from cbdp.app.config import Config

NEAR = dt.timedelta(days=3)  # no zone and no start of a day moves a trip further
WRITTEN = "as they are written"


def service_days(columns: Mapping[str, str], universe: Universe, clock: Clock, schema: Schema | None) -> str:
    """In words: which column, in which zone (as stated, or as the column's type has it), from which time on."""
    column = planning.dated_column(columns, universe)
    typed = schema and column in schema.kinds and kind_of(schema.kinds[column]).zone
    form = "" if clock.format is None else f" ({clock.format})"
    return f"of column {column!r}{form}, times {clock.timezone or typed or WRITTEN}, days from {clock.day_starts} on"


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
            if before and not _alike(before, covers.days, same_data=charge.dataset == config.data.id):
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


def _alike(one: str, two: str, *, same_data: bool) -> bool:
    """Of the same trips everything is read alike. Other trips have columns of their own; their zone is compared where both state one."""
    if same_data or one == two:
        return one == two
    zones, starts = zip(
        *(text.partition(", times ")[2].partition(", days from ")[::2] for text in (one, two)), strict=True
    )
    return starts[0] == starts[1] and (zones[0] == zones[1] or WRITTEN in zones)


def _refusal(config: Config, charge: Charge, before: str, now: str) -> InputError:
    whose = f"the series {charge.part.series!r}" if charge.part else "another release"
    return config.source.error(
        ("data",),
        f"the ledger also holds {whose} of near days, which reads a trip's day {before}, and here it is read {now}: one day of a person would "
        "lie on two days there, and cost more than the ledger says. Write the same data.timezone, data.day_starts and column of the day in both, or "
        "leave three days between them",
    )
