"""The counting plan as SQL: joins, whole numbers, SHA-256 and windows, in the words that SQL engines share.

What they do not share is a `Dialect`. Queries are chains of common table expressions, one for each step of the plan:

    read → [at → day → [zone] → moment]* → coded → inside → (numbered → ticketed → chosen →) grouped

Tables of public keys lie beside the trips (`tables`), and, with persons, a table `secret` of one row and one column, `word`: the key.
"""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cbdp.features.calendar import DAY
from cbdp.trips.kinds import Kind
from cbdp.trips.plan import MOST_TRIPS, By, CountingPlan, Form, Moment, Way
from cbdp.trips.zones import FIRST_DAY, LAST_DAY

MICRO = 10**6
EARLIEST, LATEST = FIRST_DAY * DAY * MICRO, LAST_DAY * DAY * MICRO - 1
SECRET = "secret"  # noqa: S105 - the name of the table that holds the key
PERIODS = "period_of"  # the name of the table that says in which period a day lies

Named = Callable[[str], str]  # a table of ours → what stands after FROM for it
Numbered = tuple[
    tuple[str, str], ...
]  # what stands in a ticket between key and person: marks, each with a column of whole numbers


class Dialect(ABC):
    """How an engine says what is not said alike, of the fields of one plan in one source."""

    @abstractmethod
    def value(self, field: int, kind: Kind, by: By) -> str:
        """A field's key of a way: bytes, a whole number, a double; NULL where it has none."""

    @abstractmethod
    def instant(self, field: int, kind: Kind, form: Form) -> str:
        """Whole microseconds since 1970, floored, by a form that gives an instant."""

    @abstractmethod
    def day(self, field: int, kind: Kind, form: Form) -> str:
        """Days since 1970, by a form that gives a date."""

    @abstractmethod
    def second(self, field: int, kind: Kind, form: Form) -> str:
        """The second of the day, floored, by a form that gives a time of day or an hour."""

    @abstractmethod
    def person(self, field: int, kind: Kind) -> str:
        """A value that is equal for the trips of one person and no other, never by a collation; NULL for nobody."""

    @abstractmethod
    def ticket(self, field: int, kind: Kind, number: Numbered) -> str:
        """The ticket (cbdp.trips.tickets) as 64 hexadecimal digits, of the columns `person`, `word` and those that number a trip."""

    @abstractmethod
    def nobody_else(self, field: int, kind: Kind) -> str:
        """As `person`, in other words: for the invariants, which must not share the count's mistakes."""

    @abstractmethod
    def shown(self, field: int, kind: Kind) -> str:
        """A field as text for the curator's eyes; NULL where it is missing."""

    @abstractmethod
    def fits(self, text: str, pattern: str) -> str:
        """Whether a text as a whole fits a pattern."""

    @abstractmethod
    def digest(self, kinds: Sequence[Kind]) -> str:
        """A text of hexadecimal digits, at least 16, that is the same for rows whose fields are all the same."""

    @abstractmethod
    def huge(self, field: int, kind: Kind) -> str:
        """Whether a field that has no whole number of 64 bits is one of at least 2⁶³; empty where no value can be."""

    @abstractmethod
    def as_bytes(self, text: str) -> str:
        """A text as what is equal to itself alone, under any collation."""

    @abstractmethod
    def div(self, a: str, b: int) -> str:
        """A whole number, not negative, by another, rounded down."""

    def second_without_instant(self, second: str, instant: str) -> str:  # noqa: ARG002
        """A second of the day that is asked for only where there is no instant in range; elsewhere it may be NULL."""
        return second

    def wide(self, value: str) -> str:
        """A whole number in a type in which sums of them do not overflow."""
        return f"CAST({value} AS DECIMAL(38, 0))"

    def total(self, value: str) -> str:
        """The sum of whole numbers up to MOST_TRIPS, saturated there. Proof: docs/proofs/counting.md."""
        return f"CAST(LEAST(SUM({self.wide(value)}), {MOST_TRIPS}) AS BIGINT)"


@dataclass(frozen=True)
class Step:
    """A common table expression."""

    name: str
    text: str


def query(steps: Iterable[Step], last: str) -> str:
    return "WITH " + ",\n".join(f"{s.name} AS ({s.text})" for s in steps) + f"\n{last}"


def tables(plan: CountingPlan) -> dict[str, Any]:
    """The public tables that lie beside the trips: name → Arrow table. Keys are unique in each."""
    import pyarrow as pa

    found = {}
    for a, axis in enumerate(plan.axes):
        for w, way in enumerate(axis.ways):
            keys = pa.array(way.keys, pa.binary()) if way.by == "bytes" else pa.array(way.keys)
            found[f"way_{a}_{w}"] = pa.table({"look": keys, "code": pa.array(way.codes)})
    for z, zeros in enumerate(plan.zeros):
        found[f"zero_{z}"] = pa.table({"look": zeros.flat})
    for m, moment in enumerate(plan.moments):
        zone = plan.zones.get(moment.zone or "")
        if zone is not None and zone.fixed is None:
            columns = {"day": zone.day, "before": zone.before, "change": zone.change, "after": zone.after}
            found[f"zone_{m}"] = pa.table({f"zone_{name}": column for name, column in columns.items()})
    if (within := None if plan.bound is None else plan.bound.within) is not None:
        found[PERIODS] = pa.table({"look": within.keys, "period": within.periods})
    return found


# Steps


def read(
    plan: CountingPlan,
    say: Dialect,
    source: str,
    *,
    every: bool = False,
    more: Mapping[str, str] | None = None,
) -> Step:
    """All that is needed of a row, each as bytes, a whole number or a double; and `more` columns by their expressions."""
    columns: dict[str, str] = {}
    for axis in plan.axes:
        for way in axis.ways:
            if way.by not in ("second", "day"):
                columns[_key(way)] = say.value(way.of, plan.fields[way.of].kind, way.by)
    for m, moment in enumerate(plan.moments):
        columns |= _moment_columns(m, moment, plan.fields[moment.field].kind, say)
    if plan.weight is not None:
        columns["weight"] = weight(plan, say)
    if plan.bound is not None:
        columns["person"] = say.person(plan.bound.person, plan.fields[plan.bound.person].kind)
    if every:
        columns |= {f"shown_{i}": say.shown(i, f.kind) for i, f in enumerate(plan.fields)}
    columns |= more or {}
    listed = ", ".join(f"{text} AS {name}" for name, text in columns.items()) or "1 AS nothing"
    return Step("read_rows", f"SELECT {listed} FROM {source}")


def weight(plan: CountingPlan, say: Dialect) -> str:
    """The trips that a row stands for, saturated: a whole number beyond 64 bits is many, and no error. Proof: docs/proofs/counting.md."""
    assert plan.weight is not None
    kind = plan.fields[plan.weight].kind
    whole, huge = say.value(plan.weight, kind, "whole"), say.huge(plan.weight, kind)
    many = f" WHEN {whole} IS NULL AND {huge} THEN {MOST_TRIPS}" if huge else ""
    return f"CASE WHEN {whole} >= 0 THEN LEAST({whole}, {MOST_TRIPS}){many} END"


def _key(way: Way) -> str:
    return f"f{way.of}_{way.by}"


def _moment_columns(m: int, moment: Moment, kind: Kind, say: Dialect) -> dict[str, str]:
    texts: dict[str, list[str]] = {"us": [], "date": [], "time": []}
    for form in moment.forms:
        if form.gives in ("stamp", "epoch"):
            texts["us"].append(say.instant(moment.field, kind, form))
        elif form.gives == "date":
            texts["date"].append(say.day(moment.field, kind, form))
        else:
            texts["time"].append(say.second(moment.field, kind, form))
    columns = {name: first_of(parsed) for name, parsed in texts.items() if parsed}
    if "us" in columns and "time" in columns:
        columns["time"] = say.second_without_instant(columns["time"], columns["us"])
    return {f"m{m}_{name}": text for name, text in columns.items()}


def first_of(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"COALESCE({', '.join(texts)})"


def moments(plan: CountingPlan, say: Dialect, named: Named) -> list[Step]:
    """For every moment m the columns m_day and m_second, by the zone's clock."""
    steps: list[Step] = []
    for m, moment in enumerate(plan.moments):
        before = steps[-1].name if steps else "read_rows"
        steps += _moment(m, moment, plan, say, named, before)
    return steps


def _moment(
    m: int, moment: Moment, plan: CountingPlan, say: Dialect, named: Named, before: str
) -> list[Step]:
    gives = {form.gives for form in moment.forms}
    instant = bool(gives & {"stamp", "epoch"})
    steps = _instant(m, moment, plan, say, named, before) if instant else []
    early = f" - CASE WHEN m{m}_isecond < {moment.starts} THEN 1 ELSE 0 END" if moment.starts else ""
    day = [f"(m{m}_iday{early})"] if instant else []
    second = [f"m{m}_isecond"] if instant else []
    if "date" in gives:
        day.append(f"CASE WHEN m{m}_date BETWEEN {FIRST_DAY} AND {LAST_DAY - 1} THEN m{m}_date END")
    if gives & {"time", "hour"}:
        second.append(f"CASE WHEN m{m}_time BETWEEN 0 AND {DAY - 1} THEN m{m}_time END")
    none = "CAST(NULL AS BIGINT)"
    made = f"{first_of(day or [none])} AS m{m}_day, {first_of(second or [none])} AS m{m}_second"
    last = steps[-1].name if steps else before
    return [*steps, Step(f"moment_{m}", f"SELECT *, {made} FROM {last}")]


def _instant(
    m: int, moment: Moment, plan: CountingPlan, say: Dialect, named: Named, before: str
) -> list[Step]:
    """Day and second of an instant, both floored."""
    zone = plan.zones.get(moment.zone or "")
    table = zone is not None and zone.fixed is None
    moved = f" + {zone.fixed * MICRO}" if zone is not None and zone.fixed is not None else ""
    at, rest, day = f"m{m}_at", f"m{m}_rest", DAY * MICRO
    inside = f"CASE WHEN m{m}_us BETWEEN {EARLIEST} AND {LATEST} THEN m{m}_us{moved} END"
    u = "u" if table else "i"  # by UTC's clock, or by the one wanted
    split = f"{say.div(rest, MICRO)} AS m{m}_{u}second"
    steps = [
        Step(f"at_{m}", f"SELECT *, {inside} AS {at} FROM {before}"),
        Step(f"rest_{m}", f"SELECT *, MOD(MOD({at}, {day}) + {day}, {day}) AS {rest} FROM at_{m}"),
        # shifted by whole days, so that what is divided is not negative
        Step(
            f"split_{m}",
            f"SELECT *, {say.div(f'({at} - {rest} + {-FIRST_DAY * 2 * day})', day)} - {-FIRST_DAY * 2} AS m{m}_{u}day, "
            f"{split} FROM rest_{m}",
        ),
    ]
    if not table:
        return steps
    shift = f"CASE WHEN m{m}_usecond >= zone_change THEN zone_after ELSE zone_before END"
    join = f"LEFT JOIN {named(f'zone_{m}')} z ON z.zone_day = t.m{m}_uday"
    local, over = (
        f"m{m}_local",
        f"CASE WHEN m{m}_local < 0 THEN -1 WHEN m{m}_local >= {DAY} THEN 1 ELSE 0 END",
    )
    return [
        *steps,
        Step(f"local_{m}", f"SELECT t.*, m{m}_usecond + {shift} AS {local} FROM split_{m} t {join}"),
        Step(
            f"zoned_{m}",
            f"SELECT *, CASE WHEN {local} IS NOT NULL THEN m{m}_uday + {over} END AS m{m}_iday, "
            f"{local} - {DAY} * {over} AS m{m}_isecond FROM local_{m}",
        ),
    ]


def coded(plan: CountingPlan, say: Dialect, named: Named, before: str, *, every: bool = False) -> Step:
    """Codes c0, c1, … by the axes' ways; rows without a code drop out unless `every` one is wanted. Proof: docs/proofs/counting.md."""
    codes, joins, where = [], [], []
    for a, axis in enumerate(plan.axes):
        found = [f"w_{a}_{w}.code" for w in range(len(axis.ways))]
        inner = len(found) == 1 and not every
        for w, way in enumerate(axis.ways):
            on = f"w_{a}_{w}.look = {_looked_up(way, say)}"
            joins.append(f"{'JOIN' if inner else 'LEFT JOIN'} {named(f'way_{a}_{w}')} w_{a}_{w} ON {on}")
        code = first_of(found) if found else "CAST(NULL AS BIGINT)"
        codes.append(f"{code} AS c{a}")
        if not inner:
            where.append(f"{code} IS NOT NULL")
    carried = [f"t.{c}" for c in ("weight", "person") if has(plan, c)]
    if (day := bounded_by_day(plan)) is not None:
        carried.append(f"t.{day}")
    if every:
        carried = ["t.*"]
    where += [f"{c} IS NOT NULL" for c in carried]
    condition = f" WHERE {' AND '.join(where)}" if where and not every else ""
    return Step(
        "coded", f"SELECT {', '.join([*carried, *codes])} FROM {before} t {' '.join(joins)}{condition}"
    )


def has(plan: CountingPlan, column: str) -> bool:
    """Whether rows carry this column, `weight` or `person`."""
    return (plan.weight if column == "weight" else plan.bound) is not None


def has_period(plan: CountingPlan) -> bool:
    """Whether persons are bounded by periods."""
    return plan.bound is not None and plan.bound.within is not None


def bounded_by_day(plan: CountingPlan) -> str | None:
    """The column of the day that decides in which period a person is bounded; None where a code decides, or nothing."""
    within = None if plan.bound is None else plan.bound.within
    return None if within is None or within.moment is None else f"m{within.moment}_day"


def in_period(plan: CountingPlan, named: Named) -> str:
    """The join that finds a row's period; a row that has none drops out."""
    assert plan.bound is not None
    assert plan.bound.within is not None
    day = bounded_by_day(plan) or f"c{plan.bound.within.axis}"
    return f"JOIN {named(PERIODS)} p ON p.look = {day}"


def _looked_up(way: Way, say: Dialect) -> str:
    if way.by == "second":
        second = f"t.m{way.of}_second"
        return say.div(second, way.width) if way.width > 1 else second
    return f"t.m{way.of}_day" if way.by == "day" else f"t.{_key(way)}"


def inside(plan: CountingPlan, named: Named) -> Step:
    """The place of the codes in the product of the axes; structural zeros drop out."""
    joins, where = [], []
    for z, zeros in enumerate(plan.zeros):
        join = "LEFT JOIN" if zeros.out else "JOIN"
        joins.append(f"{join} {named(f'zero_{z}')} z{z} ON z{z}.look = {flat(zeros.axes, zeros.shape)}")
        where += [f"z{z}.look IS NULL"] if zeros.out else []
    columns = [c for c in ("weight", "person") if has(plan, c)]
    if has_period(plan):
        joins.append(in_period(plan, named))
        columns.append("p.period AS period")
    if plan.bound is not None and plan.bound.apart:
        axes = plan.bound.apart
        columns.append(f"{flat(axes, [plan.shape[a] for a in axes])} AS slot")
    columns.append(f"{flat(range(len(plan.axes)), plan.shape)} AS flat")
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    return Step("inside", f"SELECT {', '.join(columns)} FROM coded {' '.join(joins)}{condition}")


def flat(axes: Sequence[int], shape: Sequence[int]) -> str:
    text = f"c{axes[0]}"
    for axis, size in zip(axes[1:], shape[1:], strict=True):
        text = f"({text} * {size} + c{axis})"
    return text


def steps_inside(plan: CountingPlan, say: Dialect, source: str, named: Named) -> list[Step]:
    """From rows to (weight, person, flat) of all that is inside the universe."""
    moved = moments(plan, say, named)
    before = moved[-1].name if moved else "read_rows"
    return [read(plan, say, source), *moved, coded(plan, say, named, before), inside(plan, named)]


# Queries


def counts(plan: CountingPlan, say: Dialect, source: str, named: Named) -> str:
    """Rows (flat, n) without a bound; structural zeros are among them, and the driver drops those. Proof: docs/proofs/counting.md."""
    n = "COUNT(*)" if plan.weight is None else say.total("weight")
    weighty = "" if plan.weight is None else " HAVING MAX(weight) > 0"
    steps = steps_inside(replace(plan, zeros=()), say, source, named)
    return query(steps, f"SELECT flat, {n} AS n FROM inside GROUP BY flat{weighty}")


# Invariants: other words for what the count relies on


def weights(plan: CountingPlan, say: Dialect, source: str) -> str:
    """The sum of all weights that are counts."""
    assert plan.weight is not None
    kind = plan.fields[plan.weight].kind
    whole, huge = say.value(plan.weight, kind, "whole"), say.huge(plan.weight, kind)
    every = f"COALESCE({whole}, CASE WHEN {huge} THEN {MOST_TRIPS} END)" if huge else whole
    return f"SELECT SUM({say.wide('w')}) FROM (SELECT {every} AS w FROM {source}) r WHERE w > 0"
