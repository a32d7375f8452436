"""DuckDB's words for the counting plan, by how each column is stored.

A column is stored as DuckDB has it (VARCHAR, TIMESTAMP, …), or raw, as it came from Arrow: text as BLOB, times as whole numbers of
their unit. Raw columns can hold anything: bytes that are no UTF-8, stamps beyond any calendar.
"""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cbdp.counting import bounding, clock
from cbdp.counting.clock import FIRST_DAY, ISO_DATE, ISO_LOCAL, ISO_STAMP, LAST_DAY, WrittenForm
from cbdp.counting.columns import REAL, STAMP, TEXT, WHOLE, ColumnKind
from cbdp.counting.engines.sql import EARLIEST_MICROSECOND, LATEST_MICROSECOND, Dialect, NumberedLookup, Step
from cbdp.counting.plan import ClockForm, ContributionBound, KeyKind
from cbdp_features.calendar import SECONDS_PER_DAY

ISO_STAMPS = (ISO_STAMP, ISO_LOCAL)
UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
INTEGER_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
AFTER_NUMBERS = (
    "':'::BLOB"  # no number begins with a byte from here on: blanks, signs, dots and digits come before
)
HOUR_STARTS = f"[{', '.join(str(3600 * h) for h in range(24))}]"  # the second at which each hour begins
MAX_ARG_MIN_VALUES = 1_000_000  # arg_min keeps fewer values than this


@dataclass(frozen=True)
class StoredField:
    """Where a field is found: an expression, and its type in DuckDB. Text has no collation of its own here."""

    expression: str
    type: str
    collated: bool = False  # whether the connection may have a collation for all texts
    stamp: str | None = (
        None  # where the text is a plain ISO stamp, its microseconds; NULL where it is not, or it is not known
    )

    @property
    def raw(self) -> bool:
        return self.type == "BLOB"


@dataclass(frozen=True)
class DuckDialect(Dialect):
    """DuckDB's words for the fields of a plan."""

    stored: tuple[StoredField, ...]

    def value(self, field: int, kind: ColumnKind, by: KeyKind) -> str:
        if by == "bytes":
            return self._bytes(field)
        if kind.name == TEXT:
            return _of_text(self._text(field), by)
        if by == "real":
            return f"TRY_CAST({self.stored[field].expression} AS DOUBLE) + 0"  # one zero
        return self._whole(field, kind)

    def _bytes(self, field: int) -> str:
        at = self.stored[field]
        return at.expression if at.raw else f"encode({at.expression})"

    def _text(self, field: int) -> str:
        at = self.stored[field]
        return f"TRY(decode({at.expression}))" if at.raw else at.expression

    def _whole(self, field: int, kind: ColumnKind) -> str:
        v, kept = self.stored[field].expression, self.stored[field].type
        if kind.name == REAL:  # a cast would round
            return f"CASE WHEN {v} = floor({v}) THEN TRY_CAST({v} AS BIGINT) END"
        return f"CAST({v} AS BIGINT)" if kept in (*INTEGER_TYPES, "BOOLEAN") else f"TRY_CAST({v} AS BIGINT)"

    def _digits(self, field: int, kind: ColumnKind) -> str:
        return self.value(field, kind, "whole")

    def _readable(self, field: int, kind: ColumnKind) -> str:
        """What a written form is applied to: text, or the digits of a number."""
        return self._text(field) if kind.name == TEXT else f"CAST({self._digits(field, kind)} AS VARCHAR)"

    def instant(self, field: int, kind: ColumnKind, form: ClockForm) -> str:
        if form.gives == "epoch":
            return _micros(self._digits(field, kind), form.per_second)
        if kind.name == STAMP:
            return self._stamp(field, kind)
        assert form.written is not None
        parsed, stamp = _parsed_micros(self._readable(field, kind), form.written), self.stored[field].stamp
        if stamp is None or form.written not in ISO_STAMPS:
            return parsed
        return f"CASE WHEN {stamp} IS NOT NULL THEN {stamp} ELSE {parsed} END"

    def _stamp(self, field: int, kind: ColumnKind) -> str:
        v, kept = self.stored[field].expression, self.stored[field].type
        if kept == "BIGINT":
            return _micros(v, UNITS_PER_SECOND[kind.unit])
        if kept in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
            return f"epoch_us({v})"
        return _micros(f"TRY(epoch_ns({v}))", UNITS_PER_SECOND["ns"])

    def day(self, field: int, kind: ColumnKind, form: ClockForm) -> str:
        if form.written is not None:
            parsed = _parsed_micros(self._readable(field, kind), form.written)
            if form.written == ISO_DATE and self.stored[field].stamp is not None:  # a text is not both
                parsed = f"CASE WHEN {self.stored[field].stamp} IS NULL THEN {parsed} END"
            return _floor_division(parsed, SECONDS_PER_DAY * 10**6)
        v, kept = self.stored[field].expression, self.stored[field].type
        if kept not in INTEGER_TYPES:
            return f"CAST({v} - DATE '1970-01-01' AS BIGINT)"
        if kind.unit == "D":
            return f"CAST({v} AS BIGINT)"
        units = SECONDS_PER_DAY * UNITS_PER_SECOND[kind.unit]
        return f"CASE WHEN {v} BETWEEN {FIRST_DAY * units} AND {LAST_DAY * units} THEN {_floor_division(v, units)} END"

    def second(self, field: int, kind: ColumnKind, form: ClockForm) -> str:
        if form.gives == "hour":
            # named once: what stands twice is worked out for every row, whether a case needs it or not
            return f"list_extract({HOUR_STARTS}, TRY_CAST({self._digits(field, kind)} AS UTINYINT) + 1)"
        if form.written is not None:
            return _parsed_time(self._readable(field, kind), form.written)
        v, kept = self.stored[field].expression, self.stored[field].type
        if kept not in INTEGER_TYPES:
            return f"(hour({v}) * 3600 + minute({v}) * 60 + second({v}))"
        units = UNITS_PER_SECOND[kind.unit]
        return (
            f"CASE WHEN {v} BETWEEN 0 AND {SECONDS_PER_DAY * units} THEN CAST({v} AS BIGINT) // {units} END"
        )

    def person(self, field: int, kind: ColumnKind) -> str:
        at = self.stored[field]
        if kind.name == WHOLE and at.type in INTEGER_TYPES:
            return f"CAST({at.expression} AS BIGINT)"
        if kind.name == TEXT:
            text = _canonical_text(self._text(field), kind)
            if at.raw:  # what is no UTF-8 is no number, nor what begins with a letter
                v = at.expression  # a nullif would work everything out twice
                return f"CASE WHEN {v} >= {AFTER_NUMBERS} THEN {v} WHEN {v} > ''::BLOB THEN COALESCE(encode({text}), {v}) END"
            # without a collation, text is its bytes, and is sorted faster
            return f"nullif(encode({text}), ''::BLOB)" if at.collated else f"nullif({text}, '')"
        if at.raw:
            return f"nullif({at.expression}, ''::BLOB)"
        return self._in_bytes(field, self._person_text(field, kind))

    def _in_bytes(self, field: int, text: str) -> str:
        return f"encode({text})" if self.stored[field].collated else text

    def _person_text(self, field: int, kind: ColumnKind) -> str:
        at = self.stored[field]
        if kind.name == REAL:
            written_out = f"CAST({at.expression} AS VARCHAR)"
            other = f"CASE WHEN {written_out} NOT IN ('nan', '-nan') THEN {written_out} END"
            return f"COALESCE(CAST({self._whole(field, kind)} AS VARCHAR), {other})"
        return f"CAST({at.expression} AS VARCHAR)"

    def ticket(self, field: int, kind: ColumnKind, number: NumberedLookup) -> str:
        at = self.stored[field]
        by_value = kind.name == WHOLE and at.type in INTEGER_TYPES
        text = "CAST(person AS VARCHAR)" if by_value else "person"
        person = text if not by_value and (at.raw or at.collated) else f"encode({text})"
        marked = ", ".join(f"'{mark}', {column}" for mark, column in number)
        return f"sha256(word || encode(concat({marked}, ':')) || {person})"

    def nobody_else(self, field: int, kind: ColumnKind) -> str:
        at = self.stored[field]
        if at.raw or kind.name == TEXT:
            stored = name = self._bytes(field)
            if kind.name == TEXT:
                text = self._text(field)
                same = f"{stored} > ';'::BLOB OR CAST(TRY_CAST({text} AS BIGINT) AS VARCHAR) = {text}"
                name = (
                    f"CASE WHEN {same} THEN {stored} ELSE COALESCE({_number_text(text, kind)}, {stored}) END"
                )
            return f"CASE WHEN octet_length({stored}) > 0 THEN {name} END"
        text = f"CAST({at.expression} AS VARCHAR)"
        if kind.name == REAL:
            return f"CASE WHEN NOT contains({text}, 'nan') THEN CASE WHEN {at.expression} = 0 THEN '0' ELSE {text} END END"
        return text

    def shown(self, field: int, kind: ColumnKind) -> str:
        v = self.stored[field].expression
        if self.stored[field].raw or kind.name == TEXT:
            text = f"COALESCE({self._text(field)}, CAST({v} AS VARCHAR))"
            return f"nullif({text}, '')"
        if self.stored[field].type == "BIGINT" and kind.name == STAMP:
            micros = self._stamp(field, kind)
            stamp = f"CAST(make_timestamp({micros}) AS VARCHAR)"
            return f"CASE WHEN {micros} BETWEEN {EARLIEST_MICROSECOND} AND {LATEST_MICROSECOND} THEN {stamp} ELSE CAST({v} AS VARCHAR) END"
        return f"CASE WHEN CAST({v} AS VARCHAR) NOT IN ('nan', '-nan') THEN CAST({v} AS VARCHAR) END"

    def fits(self, text: str, pattern: str) -> str:
        return _matches_pattern(text, pattern)

    def digest(self, kinds: Sequence[ColumnKind]) -> str:  # noqa: ARG002 - fields are hashed as they are stored
        return f"lpad(hex(hash({', '.join(at.expression for at in self.stored)})), 16, '0')"

    def huge(self, field: int, kind: ColumnKind) -> str:
        v = self.stored[field].expression
        if kind.name == TEXT:
            return _matches_pattern(self._text(field), clock.NOT_NEGATIVE_PATTERN)
        double = f"CAST({v} AS DOUBLE)"
        whole = f"{v} = floor({v}) AND isfinite({double}) AND " if kind.name == REAL else ""
        return f"({whole}{double} >= 9223372036854775808.0::DOUBLE)"

    def as_bytes(self, text: str) -> str:
        return f"encode({text})"

    def div(self, a: str, b: int) -> str:
        return f"({a} // {b})"

    def second_without_instant(self, second: str, instant: str) -> str:
        return f"CASE WHEN COALESCE({instant} NOT BETWEEN {EARLIEST_MICROSECOND} AND {LATEST_MICROSECOND}, true) THEN {second} END"

    def persons(
        self, bound: ContributionBound, kind: ColumnKind, secret: str, *, in_lists: bool
    ) -> list[Step]:
        """Steps from `inside` to `persons`: a row for each, and for each of their periods, with their kept trips and how many they have in all.

        With `in_lists`, trips are gathered in a list for each person, of which one person's must fit in memory: a third of the work where most have few.

        Proof: docs/proofs/bounding.md.
        """
        who, with_load = bounding.group_columns(bound), bool(bound.apart)
        if in_lists and not with_load and bound.most < MAX_ARG_MIN_VALUES:
            return self._persons_in_lists(bound, kind, secret)
        # with the load, of trips in one slot only one comes to be counted here
        steps = bounding.bounding_steps(bound, kind, self, secret, with_load=with_load)
        if bound.most < MAX_ARG_MIN_VALUES:
            flats, of = _least_tickets(bound), "ticketed"
        else:
            flats, of = f"list(flat) FILTER (place <= {bound.most})", "chosen"
        load = "any_value(own)" if with_load else "count(*)"
        each = Step("persons", f"SELECT {who}, {flats} AS flats, {load} AS own FROM {of} GROUP BY {who}")
        return [*steps[: [s.name for s in steps].index(of) + 1], each]

    def _persons_in_lists(self, bound: ContributionBound, kind: ColumnKind, secret: str) -> list[Step]:
        """Who has at most `most` trips keeps all of them, whatever their tickets; only the others' are numbered and drawn. Proof: docs/proofs/bounding.md."""
        who = bounding.group_columns(bound)
        ticket = self.ticket(bound.person, kind, bounding.ticket_numbers(bound, slot=False))
        number = "unnest(list_sort(flats)) AS flat, unnest(range(1, own + 1)) AS j"
        return [
            Step("owned", f"SELECT {who}, list(flat) AS flats, count(*) AS own FROM inside GROUP BY {who}"),
            Step("numbered", f"SELECT {who}, {number} FROM owned WHERE own > {bound.most}"),
            Step("ticketed", f"SELECT {who}, flat, {ticket} AS ticket FROM numbered CROSS JOIN {secret} s"),
            Step(
                "drawn",
                f"SELECT {who}, {_least_tickets(bound)} AS flats, count(*) AS own FROM ticketed GROUP BY {who}",
            ),
            Step(
                "persons",
                f"SELECT {who}, flats, own FROM owned WHERE own <= {bound.most} UNION ALL SELECT {who}, flats, own FROM drawn",
            ),
        ]


def _least_tickets(bound: ContributionBound) -> str:
    """The trips of least tickets (of their first 96 bits): a heap is cheaper than a second sort."""
    return f"arg_min(flat, unhex(substr(ticket, 1, 24)), {bound.most})"


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def identifier(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _floor_division(whole: str, by: int) -> str:
    """A whole number divided and rounded down, also below zero; // rounds towards zero."""
    rest = f"((({whole}) % {by} + {by}) % {by})"
    return f"((({whole}) - {rest}) // {by})"


def _micros(units: str, per_second: int) -> str:
    """Whole units since 1970 as microseconds; far out of range, nothing."""
    if per_second == 10**6:
        return units
    low, high = EARLIEST_MICROSECOND * per_second // 10**6, (LATEST_MICROSECOND + 1) * per_second // 10**6
    micros = (
        f"{units} * {10**6 // per_second}"
        if per_second < 10**6
        else _floor_division(units, per_second // 10**6)
    )
    return f"CASE WHEN {units} BETWEEN {low} AND {high} THEN {micros} END"


def _of_text(text: str, by: KeyKind) -> str:
    if by == "truth":
        is_true, is_false = (_matches_pattern(text, p) for p in (clock.TRUE_PATTERN, clock.FALSE_PATTERN))
        return f"CASE WHEN {is_true} THEN 1 WHEN {is_false} THEN 0 END"
    pattern = {"whole": clock.WHOLE_PATTERN, "dotted": clock.DOTTED_PATTERN, "real": clock.REAL_PATTERN}[by]
    match = f"regexp_extract({text}, {literal(f'^(?:{pattern})$')}, 1)"
    return f"TRY_CAST({match} AS {'DOUBLE' if by == 'real' else 'BIGINT'})" + (" + 0" if by == "real" else "")


def _canonical_text(text: str, kind: ColumnKind) -> str:
    """Text of a person, of which numbers are written in one way: "289.0" as "289"; of a CSV also "0289", "+289" and "2.89e2".

    Whole numbers are their digits, others ".", their significant digits and the exponent. Proof: docs/proofs/bounding.md.
    """
    if not kind.free:
        plain = f"regexp_replace({text}, {literal(f'^{clock.DOTTED_PATTERN}$')}, '\\1')"
        return f"CASE WHEN contains({text}, '.') THEN {plain} ELSE {text} END"
    pattern = literal(f"^(?:{clock.NUMBER_PARTS_PATTERN})$")
    minus, whole, part, bare, exponent = (f"regexp_extract({text}, {pattern}, {g})" for g in range(1, 6))
    digits = f"({whole} || {part} || {bare})"
    led = f"ltrim({digits}, '0')"
    significant = f"rtrim({led}, '0')"
    power = (
        f"(length({whole}) - length({digits}) + length({led}) + COALESCE(TRY_CAST({exponent} AS BIGINT), 0))"
    )
    number = (
        f"CASE WHEN {led} = '' THEN '0' ELSE replace({minus}, '+', '') || "
        f"CASE WHEN {power} >= length({significant}) THEN rpad({significant}, CAST({power} AS INTEGER), '0') "
        f"ELSE '.' || {significant} || 'e' || {power} END END"
    )
    simple = f"regexp_full_match({text}, '[1-9][0-9]*')"
    return f"CASE WHEN {simple} OR NOT {_matches_pattern(text, clock.NUMBER_PARTS_PATTERN)} THEN {text} ELSE {number} END"


def _number_text(text: str, kind: ColumnKind) -> str:
    """As `_canonical_text`, in other words: the bytes of a number of few digits by its value, NULL of other texts."""
    if not kind.free:
        return f"CASE WHEN {_matches_pattern(text, clock.DOTTED_PATTERN)} THEN encode(split_part({text}, '.', 1)) END"
    few = "[ \t]*[+-]?[0-9]{1,18}(?:[.]0*)?[ \t]*"
    value = f"TRY_CAST(split_part(trim({text}, {literal(' ' + chr(9))}), '.', 1) AS BIGINT)"
    return f"CASE WHEN {_matches_pattern(text, few)} THEN encode(CAST({value} AS VARCHAR)) END"


def _matches_pattern(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, {literal(pattern)})"


def _parsed_micros(text: str, form: WrittenForm) -> str:
    """Microseconds of a text in a written form. The pattern decides what is read, the engine's parser only reads it."""
    if form.format is not None:
        cases = {form.pattern: f"try_strptime({text}, {literal(form.format)})"}
    elif "z" in form.parts:  # without a zone it is read as UTC, and four times as fast
        plain, zoned = (
            form.pattern.replace(clock.ZONE_PATTERN, z) for z in ("", clock.ZONE_PATTERN.removesuffix("?"))
        )
        cases = {plain: f"TRY_CAST({text} AS TIMESTAMP)", zoned: f"TRY_CAST({text} AS TIMESTAMPTZ)"}
    else:
        cases = {form.pattern: f"TRY_CAST({text} AS TIMESTAMP)"}
    whens = (
        f"WHEN {_matches_pattern(text, pattern)} THEN TRY(epoch_us({stamp}))"
        for pattern, stamp in cases.items()
    )
    return f"CASE {' '.join(whens)} END"


def _parsed_time(text: str, form: WrittenForm) -> str:
    time = (
        f"TRY_CAST({text} AS TIME)"
        if form.format is None
        else f"try_strptime({text}, {literal(form.format)})"
    )
    seconds = f"(hour({time}) * 3600 + minute({time}) * 60 + second({time}))"
    return f"CASE WHEN {_matches_pattern(text, form.pattern)} THEN {seconds} END"
