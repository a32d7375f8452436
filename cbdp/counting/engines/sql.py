"""The counting plan as SQL, in the words that engines share: joins, whole numbers, SHA-256 and windows; and inspections in the same words.

What they do not share is a `Dialect`. Queries are chains of common table expressions, one for each step of the plan:

    read → [at → day → [zone] → moment]* → coded → inside → (numbered → ticketed → chosen →) grouped

Tables of public keys lie beside the trips (`lookup_tables`), and, with persons, a table `secret` of one row and one column, `word`: the key.
"""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cbdp.counting.clock import ENDS_IN_OFFSET_PATTERN, FIRST_DAY, LAST_DAY
from cbdp.counting.columns import TEXT, ColumnKind
from cbdp.counting.engines import COUNTED, MISSING, OUTSIDE, UNKNOWN, UNREAD
from cbdp.counting.plan import SATURATED_COUNT, ClockField, ClockForm, CountingPlan, KeyKind, Lookup
from cbdp_features.calendar import SECONDS_PER_DAY

if TYPE_CHECKING:
    import pyarrow as pa

MICROSECONDS_PER_SECOND = 10**6
EARLIEST_MICROSECOND, LATEST_MICROSECOND = (
    FIRST_DAY * SECONDS_PER_DAY * MICROSECONDS_PER_SECOND,
    LAST_DAY * SECONDS_PER_DAY * MICROSECONDS_PER_SECOND - 1,
)
SECRET_TABLE = "secret"  # noqa: S105 - the name of the table that holds the key
PERIOD_TABLE = "period_of"  # the name of the table that says in which period a day lies

TableSource = Callable[[str], str]  # a table of ours → what stands after FROM for it
NumberedLookup = tuple[
    tuple[str, str], ...
]  # what stands in a ticket between key and person: marks, each with a column of whole numbers


class Dialect(ABC):
    """How an engine says what is not said alike, of the fields of one plan in one source."""

    @abstractmethod
    def value(self, field: int, kind: ColumnKind, by: KeyKind) -> str:
        """A field's key of a way: bytes, a whole number, a double; NULL where it has none."""

    @abstractmethod
    def instant(self, field: int, kind: ColumnKind, form: ClockForm) -> str:
        """Whole microseconds since 1970, floored, by a form that gives an instant."""

    @abstractmethod
    def day(self, field: int, kind: ColumnKind, form: ClockForm) -> str:
        """Days since 1970, by a form that gives a date."""

    @abstractmethod
    def second(self, field: int, kind: ColumnKind, form: ClockForm) -> str:
        """The second of the day, floored, by a form that gives a time of day or an hour."""

    @abstractmethod
    def person(self, field: int, kind: ColumnKind) -> str:
        """A value that is equal for the trips of one person and no other, never by a collation; NULL for nobody."""

    @abstractmethod
    def ticket(self, field: int, kind: ColumnKind, number: NumberedLookup) -> str:
        """The ticket (cbdp.counting.bounding) as 64 hexadecimal digits, of the columns `person`, `word` and those that number a trip."""

    @abstractmethod
    def nobody_else(self, field: int, kind: ColumnKind) -> str:
        """As `person`, in other words: for the invariants, which must not share the count's mistakes."""

    @abstractmethod
    def shown(self, field: int, kind: ColumnKind) -> str:
        """A field as text for the curator's eyes; NULL where it is missing."""

    @abstractmethod
    def fits(self, text: str, pattern: str) -> str:
        """Whether a text as a whole fits a pattern."""

    @abstractmethod
    def digest(self, kinds: Sequence[ColumnKind]) -> str:
        """A text of hexadecimal digits, at least 16, that is the same for rows whose fields are all the same."""

    @abstractmethod
    def huge(self, field: int, kind: ColumnKind) -> str:
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
        """The sum of whole numbers up to SATURATED_COUNT, saturated there. Proof: docs/proofs/counting.md."""
        return f"CAST(LEAST(SUM({self.wide(value)}), {SATURATED_COUNT}) AS BIGINT)"


@dataclass(frozen=True)
class Step:
    """A common table expression."""

    name: str
    text: str


def query(steps: Iterable[Step], last: str) -> str:
    return "WITH " + ",\n".join(f"{s.name} AS ({s.text})" for s in steps) + f"\n{last}"


def lookup_tables(plan: CountingPlan) -> dict[str, pa.Table]:
    """The public tables that lie beside the trips: name → Arrow table. Keys are unique in each."""
    import pyarrow as pa

    tables = {}
    for a, axis in enumerate(plan.axes):
        for w, way in enumerate(axis.ways):
            keys = pa.array(way.keys, pa.binary()) if way.by == "bytes" else pa.array(way.keys)
            tables[f"way_{a}_{w}"] = pa.table({"look": keys, "code": pa.array(way.codes)})
    for z, zeros in enumerate(plan.zeros):
        tables[f"zero_{z}"] = pa.table({"look": zeros.flat})
    for m, moment in enumerate(plan.moments):
        zone = plan.zones.get(moment.zone or "")
        if zone is not None and zone.fixed is None:
            columns = {"day": zone.day, "before": zone.before, "change": zone.change, "after": zone.after}
            tables[f"zone_{m}"] = pa.table({f"zone_{name}": column for name, column in columns.items()})
    if (within := None if plan.bound is None else plan.bound.within) is not None:
        tables[PERIOD_TABLE] = pa.table({"look": within.keys, "period": within.periods})
    return tables


# Steps


def read_step(
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
        columns["weight"] = weight_expression(plan, say)
    if plan.bound is not None:
        columns["person"] = say.person(plan.bound.person, plan.fields[plan.bound.person].kind)
    if every:
        columns |= {f"shown_{i}": say.shown(i, f.kind) for i, f in enumerate(plan.fields)}
    columns |= more or {}
    listed = ", ".join(f"{text} AS {name}" for name, text in columns.items()) or "1 AS nothing"
    return Step("read_rows", f"SELECT {listed} FROM {source}")


def weight_expression(plan: CountingPlan, say: Dialect) -> str:
    """The trips that a row stands for, saturated: a whole number beyond 64 bits is many, and no error. Proof: docs/proofs/counting.md."""
    assert plan.weight is not None
    kind = plan.fields[plan.weight].kind
    whole, huge = say.value(plan.weight, kind, "whole"), say.huge(plan.weight, kind)
    many = f" WHEN {whole} IS NULL AND {huge} THEN {SATURATED_COUNT}" if huge else ""
    return f"CASE WHEN {whole} >= 0 THEN LEAST({whole}, {SATURATED_COUNT}){many} END"


def _key(way: Lookup) -> str:
    return f"f{way.of}_{way.by}"


def _moment_columns(m: int, moment: ClockField, kind: ColumnKind, say: Dialect) -> dict[str, str]:
    texts: dict[str, list[str]] = {"us": [], "date": [], "time": []}
    for form in moment.forms:
        if form.gives in ("stamp", "epoch"):
            texts["us"].append(say.instant(moment.field, kind, form))
        elif form.gives == "date":
            texts["date"].append(say.day(moment.field, kind, form))
        else:
            texts["time"].append(say.second(moment.field, kind, form))
    columns = {name: first_not_null(parsed) for name, parsed in texts.items() if parsed}
    if "us" in columns and "time" in columns:
        columns["time"] = say.second_without_instant(columns["time"], columns["us"])
    return {f"m{m}_{name}": text for name, text in columns.items()}


def first_not_null(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"COALESCE({', '.join(texts)})"


def moment_steps(plan: CountingPlan, say: Dialect, named: TableSource) -> list[Step]:
    """For every moment m the columns m_day and m_second, by the zone's clock."""
    steps: list[Step] = []
    for m, moment in enumerate(plan.moments):
        before = steps[-1].name if steps else "read_rows"
        steps += _moment_step(m, moment, plan, say, named, before)
    return steps


def _moment_step(
    m: int, moment: ClockField, plan: CountingPlan, say: Dialect, named: TableSource, before: str
) -> list[Step]:
    gives = {form.gives for form in moment.forms}
    instant = bool(gives & {"stamp", "epoch"})
    steps = _instant_steps(m, moment, plan, say, named, before) if instant else []
    early = f" - CASE WHEN m{m}_isecond < {moment.starts} THEN 1 ELSE 0 END" if moment.starts else ""
    day = [f"(m{m}_iday{early})"] if instant else []
    second = [f"m{m}_isecond"] if instant else []
    if "date" in gives:
        day.append(f"CASE WHEN m{m}_date BETWEEN {FIRST_DAY} AND {LAST_DAY - 1} THEN m{m}_date END")
    if gives & {"time", "hour"}:
        second.append(f"CASE WHEN m{m}_time BETWEEN 0 AND {SECONDS_PER_DAY - 1} THEN m{m}_time END")
    none = "CAST(NULL AS BIGINT)"
    columns = (
        f"{first_not_null(day or [none])} AS m{m}_day, {first_not_null(second or [none])} AS m{m}_second"
    )
    last = steps[-1].name if steps else before
    return [*steps, Step(f"moment_{m}", f"SELECT *, {columns} FROM {last}")]


def _instant_steps(
    m: int, moment: ClockField, plan: CountingPlan, say: Dialect, named: TableSource, before: str
) -> list[Step]:
    """Day and second of an instant, both floored."""
    zone = plan.zones.get(moment.zone or "")
    table = zone is not None and zone.fixed is None
    moved = (
        f" + {zone.fixed * MICROSECONDS_PER_SECOND}" if zone is not None and zone.fixed is not None else ""
    )
    at, rest, day = f"m{m}_at", f"m{m}_rest", SECONDS_PER_DAY * MICROSECONDS_PER_SECOND
    inside = (
        f"CASE WHEN m{m}_us BETWEEN {EARLIEST_MICROSECOND} AND {LATEST_MICROSECOND} THEN m{m}_us{moved} END"
    )
    u = "u" if table else "i"  # by UTC's clock, or by the one wanted
    split = f"{say.div(rest, MICROSECONDS_PER_SECOND)} AS m{m}_{u}second"
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
        f"CASE WHEN m{m}_local < 0 THEN -1 WHEN m{m}_local >= {SECONDS_PER_DAY} THEN 1 ELSE 0 END",
    )
    return [
        *steps,
        Step(f"local_{m}", f"SELECT t.*, m{m}_usecond + {shift} AS {local} FROM split_{m} t {join}"),
        Step(
            f"zoned_{m}",
            f"SELECT *, CASE WHEN {local} IS NOT NULL THEN m{m}_uday + {over} END AS m{m}_iday, "
            f"{local} - {SECONDS_PER_DAY} * {over} AS m{m}_isecond FROM local_{m}",
        ),
    ]


def coded_step(
    plan: CountingPlan, say: Dialect, named: TableSource, before: str, *, every: bool = False
) -> Step:
    """Codes c0, c1, … by the axes' ways; rows without a code drop out unless `every` one is to stay. Proof: docs/proofs/counting.md."""
    codes, joins, where = [], [], []
    for a, axis in enumerate(plan.axes):
        way_codes = [f"w_{a}_{w}.code" for w in range(len(axis.ways))]
        inner = len(way_codes) == 1 and not every
        for w, way in enumerate(axis.ways):
            on = f"w_{a}_{w}.look = {_lookup_columns(way, say)}"
            joins.append(f"{'JOIN' if inner else 'LEFT JOIN'} {named(f'way_{a}_{w}')} w_{a}_{w} ON {on}")
        code = first_not_null(way_codes) if way_codes else "CAST(NULL AS BIGINT)"
        codes.append(f"{code} AS c{a}")
        if not inner:
            where.append(f"{code} IS NOT NULL")
    carried = [f"t.{c}" for c in ("weight", "person") if has_column(plan, c)]
    if (day := bounded_by_day(plan)) is not None:
        carried.append(f"t.{day}")
    if every:
        carried = ["t.*"]
    where += [f"{c} IS NOT NULL" for c in carried]
    condition = f" WHERE {' AND '.join(where)}" if where and not every else ""
    return Step(
        "coded", f"SELECT {', '.join([*carried, *codes])} FROM {before} t {' '.join(joins)}{condition}"
    )


def has_column(plan: CountingPlan, column: str) -> bool:
    """Whether rows carry this column, `weight_expression` or `person`."""
    return (plan.weight if column == "weight" else plan.bound) is not None


def has_period(plan: CountingPlan) -> bool:
    """Whether persons are bounded by periods."""
    return plan.bound is not None and plan.bound.within is not None


def bounded_by_day(plan: CountingPlan) -> str | None:
    """The column of the day that decides in which period a person is bounded; None where a code decides, or nothing."""
    within = None if plan.bound is None else plan.bound.within
    return None if within is None or within.moment is None else f"m{within.moment}_day"


def period_join(plan: CountingPlan, named: TableSource) -> str:
    """The join that finds a row's period; a row that has none drops out."""
    assert plan.bound is not None
    assert plan.bound.within is not None
    day = bounded_by_day(plan) or f"c{plan.bound.within.axis}"
    return f"JOIN {named(PERIOD_TABLE)} p ON p.look = {day}"


def _lookup_columns(way: Lookup, say: Dialect) -> str:
    if way.by == "second":
        second = f"t.m{way.of}_second"
        return say.div(second, way.width) if way.width > 1 else second
    return f"t.m{way.of}_day" if way.by == "day" else f"t.{_key(way)}"


def inside_step(plan: CountingPlan, named: TableSource) -> Step:
    """The place of the codes in the product of the axes; structural zeros drop out."""
    joins, where = [], []
    for z, zeros in enumerate(plan.zeros):
        join = "LEFT JOIN" if zeros.out else "JOIN"
        joins.append(f"{join} {named(f'zero_{z}')} z{z} ON z{z}.look = {flat_place(zeros.axes, zeros.shape)}")
        where += [f"z{z}.look IS NULL"] if zeros.out else []
    columns = [c for c in ("weight", "person") if has_column(plan, c)]
    if has_period(plan):
        joins.append(period_join(plan, named))
        columns.append("p.period AS period")
    if plan.bound is not None and plan.bound.apart:
        axes = plan.bound.apart
        columns.append(f"{flat_place(axes, [plan.shape[a] for a in axes])} AS slot")
    columns.append(f"{flat_place(range(len(plan.axes)), plan.shape)} AS flat")
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    return Step("inside", f"SELECT {', '.join(columns)} FROM coded {' '.join(joins)}{condition}")


def flat_place(axes: Sequence[int], shape: Sequence[int]) -> str:
    text = f"c{axes[0]}"
    for axis, size in zip(axes[1:], shape[1:], strict=True):
        text = f"({text} * {size} + c{axis})"
    return text


def steps_inside(plan: CountingPlan, say: Dialect, source: str, named: TableSource) -> list[Step]:
    """From rows to (weight, person, flat) of all that is inside the universe."""
    moved = moment_steps(plan, say, named)
    before = moved[-1].name if moved else "read_rows"
    return [
        read_step(plan, say, source),
        *moved,
        coded_step(plan, say, named, before),
        inside_step(plan, named),
    ]


# Queries


def count_query(plan: CountingPlan, say: Dialect, source: str, named: TableSource) -> str:
    """Rows (flat, n) without a bound; structural zeros are among them, and the driver drops those. Proof: docs/proofs/counting.md."""
    n = "COUNT(*)" if plan.weight is None else say.total("weight")
    weighty = "" if plan.weight is None else " HAVING MAX(weight) > 0"
    steps = steps_inside(replace(plan, zeros=()), say, source, named)
    return query(steps, f"SELECT flat, {n} AS n FROM inside GROUP BY flat{weighty}")


# Invariants: other words for what the count relies on


def weight_query(plan: CountingPlan, say: Dialect, source: str) -> str:
    """The sum of all weights that are counts."""
    assert plan.weight is not None
    kind = plan.fields[plan.weight].kind
    whole, huge = say.value(plan.weight, kind, "whole"), say.huge(plan.weight, kind)
    every = f"COALESCE({whole}, CASE WHEN {huge} THEN {SATURATED_COUNT} END)" if huge else whole
    return f"SELECT SUM({say.wide('w')}) FROM (SELECT {every} AS w FROM {source}) r WHERE w > 0"


# Inspections: why rows are dropped, and examples of them. Private answers, for the curator's eyes.


def status_query(plan: CountingPlan, say: Dialect, source: str, named: TableSource) -> str:
    """Rows (s0, s1, …, zero, nobody, weightless, undated, rows, trips): how many rows share each combination."""
    joins = [
        f"LEFT JOIN {named(f'zero_{z}')} z{z} ON z{z}.look = {flat_place(zeros.axes, zeros.shape)}"
        for z, zeros in enumerate(plan.zeros)
    ]
    zero = [f"(z{z}.look IS {'NOT ' if zeros.out else ''}NULL)" for z, zeros in enumerate(plan.zeros)]
    all_in = " AND ".join(f"c{a} IS NOT NULL" for a in range(len(plan.axes)))
    columns = [f"{_axis_status(plan, a)} AS s{a}" for a in range(len(plan.axes))]
    columns.append(f"CASE WHEN {all_in} AND ({' OR '.join(zero) or '1 = 0'}) THEN 1 ELSE 0 END AS zero")
    for name, column in (("nobody", "person"), ("weightless", "weight")):
        none = f"CASE WHEN {column} IS NULL THEN 1 ELSE 0 END" if has_column(plan, column) else "0"
        columns.append(f"{none} AS {name}")
    joins += [f"LEFT {period_join(plan, named)}"] if has_period(plan) else []
    columns.append(f"{'CASE WHEN p.look IS NULL THEN 1 ELSE 0 END' if has_period(plan) else '0'} AS undated")
    columns.append(f"{'COALESCE(weight, 0)' if has_column(plan, 'weight') else '1'} AS trips")
    marked = Step("marked", f"SELECT {', '.join(columns)} FROM coded {' '.join(joins)}")
    groups = ", ".join([*(f"s{a}" for a in range(len(plan.axes))), "zero", "nobody", "weightless", "undated"])
    last = f"SELECT {groups}, COUNT(*) AS n, {say.total('trips')} AS trips FROM marked GROUP BY {groups}"
    return query([*_every_row_steps(plan, say, source, named), marked], last)


def example_query(
    plan: CountingPlan, say: Dialect, source: str, named: TableSource, axis: int, status: int, most: int
) -> str:
    """Rows (value, n): the commonest values of an axis' column that have this status."""
    shown = f"shown_{plan.axes[axis].field}"
    where = f"{_axis_status(plan, axis)} = {status} AND {shown} IS NOT NULL"
    last = f"SELECT MIN({shown}) AS value, COUNT(*) AS n FROM coded WHERE {where} GROUP BY {say.as_bytes(shown)} ORDER BY n DESC, value LIMIT {most}"
    return query(_every_row_steps(plan, say, source, named), last)


def day_query(plan: CountingPlan, say: Dialect, source: str, named: TableSource) -> str | None:
    """Rows (day, rows, rows whose text states an offset from UTC), by the first moment that tells a day; None where none does."""
    dated = [m for m, t in enumerate(plan.moments) if {f.gives for f in t.forms} & {"stamp", "epoch", "date"}]
    if not dated:
        return None
    stated = {f"m{m}_stated": _states_offset(plan, say, m) for m in dated if _may_state(plan, m)}
    steps = [read_step(plan, say, source, more=stated), *moment_steps(plan, say, named)]
    day = first_not_null([f"m{m}_day" for m in dated])
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
    return f"CASE WHEN {say.fits(say.shown(place, plan.fields[place].kind), ENDS_IN_OFFSET_PATTERN)} THEN 1 ELSE 0 END"


def duplicate_query(plan: CountingPlan, say: Dialect, source: str, named: TableSource, digits: int) -> str:  # noqa: ARG001
    """Rows (k, groups): how many groups of k rows are alike in all fields; of all groups those whose digest begins with so many zeros."""
    rows = f"SELECT {say.digest([f.kind for f in plan.fields])} AS digest FROM {source}"
    some = f" WHERE SUBSTR(digest, 1, {digits}) = '{'0' * digits}'" if digits else ""
    groups = f"SELECT COUNT(*) AS k FROM ({rows}) r{some} GROUP BY digest"
    return f"SELECT k, COUNT(*) AS n FROM ({groups}) g GROUP BY k ORDER BY k"


def _every_row_steps(plan: CountingPlan, say: Dialect, source: str, named: TableSource) -> list[Step]:
    moved = moment_steps(plan, say, named)
    before = moved[-1].name if moved else "read_rows"
    return [
        read_step(plan, say, source, every=True),
        *moved,
        coded_step(plan, say, named, before, every=True),
    ]


def _axis_status(plan: CountingPlan, axis: int) -> str:
    ways = plan.axes[axis].ways
    if not ways:
        return str(MISSING)
    timed = [w for w in ways if w.by in ("second", "day")]
    readable = " OR ".join(f"m{w.of}_{w.by} IS NOT NULL" for w in timed)
    other = f"CASE WHEN {readable} THEN {OUTSIDE} ELSE {UNREAD} END" if timed else str(UNKNOWN)
    shown = f"shown_{plan.axes[axis].field}"
    return (
        f"CASE WHEN c{axis} IS NOT NULL THEN {COUNTED} WHEN {shown} IS NULL THEN {MISSING} ELSE {other} END"
    )
