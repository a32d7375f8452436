"""Earlier releases of the series as a prior for the next, where the configuration says how many (`series.earlier`).

Only what is published is used, so nothing is spent. Weekdays learn from weekdays above all, weekends from weekends.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.app.plan.periods import series_of
from cbdp.app.plan.slots import shape_of
from cbdp.app.series.pending import charges_of
from cbdp.errors import InputError
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.ledger import Ledger
from cbdp.release.earlier import earlier_prior
from cbdp.release.saving import MANIFEST

if TYPE_CHECKING:
    from cbdp.app.plan import Plan

SATURDAY = 5


def with_earlier(plan: Plan) -> Plan:
    """The plan with a prior from the releases before its period; as it is where none is wanted, or there is none yet."""
    wanted = series_of(plan.config).earlier
    if not wanted:
        return plan
    mechanism = plan.mechanism
    with plan.config.source.at("series", "earlier"):
        if not isinstance(mechanism, ConstraintBased):
            raise InputError(f"{mechanism.name} has no use for earlier releases: leave it out")
        found = _earlier(plan)[-wanted:]
        if not found:
            return plan
        alike, others = ([path for day, path in found if _kind(plan, day) is same] for same in _kinds(plan))
        prior = earlier_prior(alike, others)
    return replace(plan, mechanism=replace(mechanism, **prior.settings))


def _earlier(plan: Plan) -> list[tuple[dt.date, Path]]:
    """The first day and the folder of every release of the series that ended before, in order; of two stages the later one."""
    slot = plan.slot
    assert slot is not None
    if not Ledger.started(plan.account.path):
        return []
    series, shape = series_of(plan.config), shape_of(plan.features)
    held: dict[dt.date, Path] = {}
    with Ledger.view(plan.account.path) as ledger:
        for charge in charges_of(ledger, series.name, plan.dataset):
            covers, done = charge.covers, ledger.finished(charge.request)
            if covers is None or covers.first is None or covers.last is None or done is None:
                continue
            same = charge.part is not None and charge.part.shape == shape
            if same and covers.last < slot.first and (Path(done.path) / MANIFEST).is_file():
                held[covers.first] = Path(done.path)
    return sorted(held.items())


def _kinds(plan: Plan) -> tuple[bool, bool]:
    """The kind of the plan's own day, and the other."""
    assert plan.slot is not None
    own = _kind(plan, plan.slot.first)
    return own, not own


def _kind(plan: Plan, day: dt.date) -> bool:
    """Whether a day is on a weekend; weeks and months are all of one kind."""
    return series_of(plan.config).calendar == "daily" and day.weekday() >= SATURDAY
