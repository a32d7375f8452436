"""Whether the next release belongs to the series: same universe and features as before, periods that do not overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.app.plan.periods import series_of
from cbdp.app.plan.slots import shape_of
from cbdp.errors import CbdpError
from cbdp.privacy.ledger import Charge, Ledger
from cbdp.release.loading import load

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.features import FeatureDag

SHOWN = 3  # values of a dimension that an error names


def charges_of(ledger: Ledger, name: str, dataset: str) -> list[Charge]:
    """The charges of one series."""
    return [
        c for c in ledger.charges() if c.part is not None and c.part.series == name and c.dataset == dataset
    ]


def check_continuity(plan: Plan) -> None:
    """Refuse a release that would make another series of it. Nothing is spent."""
    if not Ledger.started(plan.account.path):
        return
    series = series_of(plan.config)
    with Ledger.view(plan.account.path) as ledger:
        earlier = charges_of(ledger, series.name, plan.dataset)
        _check_periods(plan, earlier)
        _check_version(plan, earlier)
        same = [c for c in earlier if c.part and c.part.version == series.version]
        if any(c.part.shape != shape_of(plan.features) for c in same if c.part):
            raise plan.config.source.error(("series", "version"), _changed(plan, ledger, same))


def with_changes(plan: Plan) -> Plan:
    """The plan with what has changed since the version before, as the last release of that one tells."""
    version = series_of(plan.config).version
    if version == 1 or not Ledger.started(plan.account.path):
        return plan
    with Ledger.view(plan.account.path) as ledger:
        earlier = charges_of(ledger, series_of(plan.config).name, plan.dataset)
        before = [c for c in reversed(earlier) if c.part and c.part.version == version - 1]
        return replace(plan, changes=tuple(_differences(plan, ledger, before)))


def _check_periods(plan: Plan, earlier: Sequence[Charge]) -> None:
    slot = plan.slot
    assert slot is not None
    for charge in earlier:
        covers, part = charge.covers, charge.part
        if covers is None or part is None or covers.first is None or covers.last is None:
            continue
        apart = covers.last < slot.first or slot.last < covers.first
        if not apart and (covers.first, covers.last) != (slot.first, slot.last):
            raise plan.config.source.error(
                ("series", "calendar"),
                f"the period {slot.period} ({slot.first} to {slot.last}) overlaps {part.period} ({covers.first} to {covers.last}), "
                "which was charged before: keep calendar and start as they were, or give this series another name",
            )


def _check_version(plan: Plan, earlier: Sequence[Charge]) -> None:
    series = series_of(plan.config)
    latest = max((c.part.version for c in earlier if c.part), default=0)
    if series.version < latest or (latest and series.version > latest + 1):
        raise plan.config.source.error(
            ("series", "version"),
            f"version is {series.version}, and the last release is of version {latest}: write {latest}, or {latest + 1} "
            "if universe or features have changed",
        )


def _changed(plan: Plan, ledger: Ledger, same: Sequence[Charge]) -> str:
    series = series_of(plan.config)
    found = "; ".join(_differences(plan, ledger, same)) or "the universe or the features"
    return (
        f"what is counted has changed since the first release of version {series.version} of the series: {found}. Undo that, or "
        f"write version = {series.version + 1} to go on with the new one"
    )


def _differences(plan: Plan, ledger: Ledger, same: Sequence[Charge]) -> list[str]:
    """What has changed, as a release of that version tells; nothing if none can be read."""
    for charge in same:
        done = ledger.finished(charge.request)
        if done is not None:
            try:
                return list(differences(load(Path(done.path)).features, plan.features))
            except (CbdpError, OSError):
                continue
    return []


def differences(before: FeatureDag, after: FeatureDag) -> Iterator[str]:
    """How universe and features differ, in words."""
    old, new = before.universe.dimensions, after.universe.dimensions
    for name in [*old, *(n for n in new if n not in old)]:
        if name not in new or name not in old:
            yield f"the dimension {name!r} is {'gone' if name in old else 'new'}"
            continue
        added = [v for v in new[name].values if v not in set(old[name].values)]
        gone = [v for v in old[name].values if v not in set(new[name].values)]
        if added:
            yield f"{name} has {_named(added)} more"
        if gone:
            yield f"{name} has {_named(gone)} less"
        if not added and not gone and new[name].values != old[name].values:
            yield f"the values of {name} are in another order"
    tables, others = ({n: set(f.by) for n, f in dag.features.items()} for dag in (before, after))
    for name in [*tables, *(n for n in others if n not in tables)]:
        if name not in others or name not in tables:
            yield f"the table {name!r} is {'gone' if name in tables else 'new'}"
        elif tables[name] != others[name]:
            yield f"the table {name!r} is by {', '.join(sorted(others[name]))}, and was by {', '.join(sorted(tables[name]))}"


def _named(values: Sequence[object]) -> str:
    shown = ", ".join(repr(v) for v in values[:SHOWN])
    more = "" if len(values) <= SHOWN else f" and {len(values) - SHOWN} others"
    return f"{len(values)} value{'s' * (len(values) > 1)} ({shown}{more})"
