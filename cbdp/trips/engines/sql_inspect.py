"""Inspections as SQL: why rows are dropped, and examples of them. Private answers, for the curator's eyes."""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

from cbdp.trips.engines.base import COUNTED, MISSING, OUTSIDE, UNKNOWN, UNREAD
from cbdp.trips.engines.sql import (
    Dialect,
    Named,
    Step,
    coded,
    first_of,
    flat,
    has,
    has_period,
    in_period,
    moments,
    query,
    read,
)
from cbdp.trips.kinds import TEXT
from cbdp.trips.plan import CountingPlan
from cbdp.trips.written import OFFSET


def statuses(plan: CountingPlan, say: Dialect, source: str, named: Named) -> str:
    """Rows (s0, s1, …, zero, nobody, weightless, undated, rows, trips): how many rows share each combination."""
    joins = [
        f"LEFT JOIN {named(f'zero_{z}')} z{z} ON z{z}.look = {flat(zeros.axes, zeros.shape)}"
        for z, zeros in enumerate(plan.zeros)
    ]
    zero = [f"(z{z}.look IS {'NOT ' if zeros.out else ''}NULL)" for z, zeros in enumerate(plan.zeros)]
    all_in = " AND ".join(f"c{a} IS NOT NULL" for a in range(len(plan.axes)))
    columns = [f"{_status(plan, a)} AS s{a}" for a in range(len(plan.axes))]
    columns.append(f"CASE WHEN {all_in} AND ({' OR '.join(zero) or '1 = 0'}) THEN 1 ELSE 0 END AS zero")
    for name, column in (("nobody", "person"), ("weightless", "weight")):
        none = f"CASE WHEN {column} IS NULL THEN 1 ELSE 0 END" if has(plan, column) else "0"
        columns.append(f"{none} AS {name}")
    joins += [f"LEFT {in_period(plan, named)}"] if has_period(plan) else []
    columns.append(f"{'CASE WHEN p.look IS NULL THEN 1 ELSE 0 END' if has_period(plan) else '0'} AS undated")
    columns.append(f"{'COALESCE(weight, 0)' if has(plan, 'weight') else '1'} AS trips")
    marked = Step("marked", f"SELECT {', '.join(columns)} FROM coded {' '.join(joins)}")
    groups = ", ".join([*(f"s{a}" for a in range(len(plan.axes))), "zero", "nobody", "weightless", "undated"])
    last = f"SELECT {groups}, COUNT(*) AS n, {say.total('trips')} AS trips FROM marked GROUP BY {groups}"
    return query([*_every(plan, say, source, named), marked], last)


def examples(
    plan: CountingPlan, say: Dialect, source: str, named: Named, axis: int, status: int, most: int
) -> str:
    """Rows (value, n): the commonest values of an axis' column that have this status."""
    shown = f"shown_{plan.axes[axis].field}"
    where = f"{_status(plan, axis)} = {status} AND {shown} IS NOT NULL"
    last = f"SELECT MIN({shown}) AS value, COUNT(*) AS n FROM coded WHERE {where} GROUP BY {say.as_bytes(shown)} ORDER BY n DESC, value LIMIT {most}"
    return query(_every(plan, say, source, named), last)


def by_day(plan: CountingPlan, say: Dialect, source: str, named: Named) -> str | None:
    """Rows (day, rows, rows whose text states an offset from UTC), by the first moment that tells a day; None where none does."""
    dated = [m for m, t in enumerate(plan.moments) if {f.gives for f in t.forms} & {"stamp", "epoch", "date"}]
    if not dated:
        return None
    stated = {f"m{m}_stated": _states_offset(plan, say, m) for m in dated if _may_state(plan, m)}
    steps = [read(plan, say, source, more=stated), *moments(plan, say, named)]
    day = first_of([f"m{m}_day" for m in dated])
    zoned = " + ".join(stated) or "0"
    days = f"SELECT {day} AS day, CASE WHEN {zoned} > 0 THEN 1 ELSE 0 END AS zoned FROM {steps[-1].name}"
    last = f"SELECT day, COUNT(*) AS n, SUM(zoned) AS zoned FROM ({days}) d WHERE day IS NOT NULL GROUP BY day ORDER BY day"
    return query(steps, last)


def _may_state(plan: CountingPlan, moment: int) -> bool:
    """Whether a moment is read from text that may end in an offset."""
    read_as = plan.moments[moment]
    return plan.fields[read_as.field].kind.name == TEXT and any(
        form.written is not None and "z" in form.written.parts for form in read_as.forms
    )


def _states_offset(plan: CountingPlan, say: Dialect, moment: int) -> str:
    place = plan.moments[moment].field
    return f"CASE WHEN {say.fits(say.shown(place, plan.fields[place].kind), OFFSET)} THEN 1 ELSE 0 END"


def copies(plan: CountingPlan, say: Dialect, source: str, named: Named, digits: int) -> str:  # noqa: ARG001
    """Rows (k, groups): how many groups of k rows are alike in all fields; of all groups those whose digest begins with so many zeros."""
    rows = f"SELECT {say.digest([f.kind for f in plan.fields])} AS digest FROM {source}"
    some = f" WHERE SUBSTR(digest, 1, {digits}) = '{'0' * digits}'" if digits else ""
    groups = f"SELECT COUNT(*) AS k FROM ({rows}) r{some} GROUP BY digest"
    return f"SELECT k, COUNT(*) AS n FROM ({groups}) g GROUP BY k ORDER BY k"


def _every(plan: CountingPlan, say: Dialect, source: str, named: Named) -> list[Step]:
    moved = moments(plan, say, named)
    before = moved[-1].name if moved else "read_rows"
    return [read(plan, say, source, every=True), *moved, coded(plan, say, named, before, every=True)]


def _status(plan: CountingPlan, axis: int) -> str:
    ways = plan.axes[axis].ways
    if not ways:
        return str(MISSING)
    timed = [w for w in ways if w.by in ("second", "day")]
    known = " OR ".join(f"m{w.of}_{w.by} IS NOT NULL" for w in timed)
    other = f"CASE WHEN {known} THEN {OUTSIDE} ELSE {UNREAD} END" if timed else str(UNKNOWN)
    shown = f"shown_{plan.axes[axis].field}"
    return (
        f"CASE WHEN c{axis} IS NOT NULL THEN {COUNTED} WHEN {shown} IS NULL THEN {MISSING} ELSE {other} END"
    )
