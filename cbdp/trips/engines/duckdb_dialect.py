"""DuckDB's words for the counting plan, by how each column is stored.

A column is stored as DuckDB has it (VARCHAR, TIMESTAMP, …), or raw, as it came from Arrow: text as BLOB, times as whole numbers of
their unit. Raw columns can hold anything: bytes that are no UTF-8, stamps beyond any calendar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cbdp.features.calendar import DAY
from cbdp.trips import written
from cbdp.trips.engines.sql import EARLIEST, LATEST, Dialect, Step
from cbdp.trips.kinds import REAL, STAMP, TEXT, TIME, WHOLE, Kind
from cbdp.trips.plan import By, Form
from cbdp.trips.written import Written
from cbdp.trips.zones import FIRST_DAY, LAST_DAY

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
SMALL = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
HEAP = 1_000_000  # arg_min keeps fewer values than this


@dataclass(frozen=True)
class Stored:
    """Where a field is found: an expression, and its type in DuckDB."""

    expression: str
    type: str

    @property
    def raw(self) -> bool:
        return self.type == "BLOB"


@dataclass(frozen=True)
class DuckDialect(Dialect):
    """DuckDB's words for the fields of a plan."""

    stored: tuple[Stored, ...]

    def value(self, field: int, kind: Kind, by: By) -> str:
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

    def _whole(self, field: int, kind: Kind) -> str:
        v, kept = self.stored[field].expression, self.stored[field].type
        if kind.name == REAL:  # a cast would round
            return f"CASE WHEN {v} = floor({v}) THEN TRY_CAST({v} AS BIGINT) END"
        return f"CAST({v} AS BIGINT)" if kept in (*SMALL, "BOOLEAN") else f"TRY_CAST({v} AS BIGINT)"

    def _digits(self, field: int, kind: Kind) -> str:
        return self.value(field, kind, "whole")

    def _readable(self, field: int, kind: Kind) -> str:
        """What a written form is applied to: text, or the digits of a number."""
        return self._text(field) if kind.name == TEXT else f"CAST({self._digits(field, kind)} AS VARCHAR)"

    def instant(self, field: int, kind: Kind, form: Form) -> str:
        if form.gives == "epoch":
            return _micros(self._digits(field, kind), form.per_second)
        if kind.name == STAMP:
            return self._stamp(field, kind)
        assert form.written is not None
        return _parsed(self._readable(field, kind), form.written)

    def _stamp(self, field: int, kind: Kind) -> str:
        v, kept = self.stored[field].expression, self.stored[field].type
        if kept == "BIGINT":
            return _micros(v, PER_SECOND[kind.unit])
        if kept.endswith("NS") or kind.unit == "ns":
            return _micros(f"TRY(epoch_ns({v}))", PER_SECOND["ns"])
        return f"TRY(epoch_us({v}))"

    def day(self, field: int, kind: Kind, form: Form) -> str:
        if form.written is not None:
            micros = _parsed(self._readable(field, kind), form.written)
            return _floor(micros, DAY * 10**6)
        v, kept = self.stored[field].expression, self.stored[field].type
        if kept in SMALL:
            return _floor(v, DAY * PER_SECOND[kind.unit]) if kind.unit != "D" else f"CAST({v} AS BIGINT)"
        return f"CAST({v} - DATE '1970-01-01' AS BIGINT)"

    def second(self, field: int, kind: Kind, form: Form) -> str:
        if form.gives == "hour":
            hour = self._digits(field, kind)
            return f"CASE WHEN {hour} BETWEEN 0 AND 23 THEN {hour} * 3600 END"
        if form.written is not None:
            return _time(self._readable(field, kind), form.written)
        v, kept = self.stored[field].expression, self.stored[field].type
        if kept in SMALL:
            return _floor(f"CAST({v} AS BIGINT)", PER_SECOND[kind.unit])
        return f"(hour({v}) * 3600 + minute({v}) * 60 + CAST(floor(second({v})) AS BIGINT))"

    def person(self, field: int, kind: Kind) -> str:
        at = self.stored[field]
        if kind.name == WHOLE and at.type in SMALL:
            return f"CAST({at.expression} AS BIGINT)"
        if at.raw or kind.name == TEXT:
            return f"nullif({self._bytes(field)}, ''::BLOB)"
        if kind.name == REAL:
            written_out = f"CAST({at.expression} AS VARCHAR)"
            other = f"CASE WHEN {written_out} NOT IN ('nan', '-nan') THEN {written_out} END"
            return f"encode(COALESCE(CAST({self._whole(field, kind)} AS VARCHAR), {other}))"
        return f"encode(CAST({at.expression} AS VARCHAR))"

    def ticket(self, kind: Kind) -> str:
        bytes_ = "CASE WHEN typeof(person) = 'BIGINT' THEN encode(CAST(person AS VARCHAR)) ELSE person END"
        return self._ticket(bytes_ if kind.name == WHOLE else "person")

    def _ticket(self, person: str) -> str:
        return f"sha256(word || encode(':' || CAST(j AS VARCHAR) || ':') || {person})"

    def nobody_else(self, field: int, kind: Kind) -> str:
        at = self.stored[field]
        if at.raw or kind.name == TEXT:
            shown = f"hex({self._bytes(field)})"
            return f"CASE WHEN length({shown}) > 0 THEN {shown} END"
        text = f"CAST({at.expression} AS VARCHAR)"
        if kind.name == REAL:
            return f"CASE WHEN NOT contains({text}, 'nan') THEN replace({text}, '-0.0', '0.0') END"
        return text

    def shown(self, field: int, kind: Kind) -> str:
        v = self.stored[field].expression
        if self.stored[field].raw or kind.name == TEXT:
            text = f"COALESCE({self._text(field)}, CAST({v} AS VARCHAR))"
            return f"nullif({text}, '')"
        if self.stored[field].type == "BIGINT" and kind.name == STAMP:
            micros = self._stamp(field, kind)
            inside = f"{micros} BETWEEN {EARLIEST} AND {LATEST}"
            return f"CASE WHEN {inside} THEN CAST(make_timestamp({micros}) AS VARCHAR) ELSE CAST({v} AS VARCHAR) END"
        return f"CASE WHEN CAST({v} AS VARCHAR) NOT IN ('nan', '-nan') THEN CAST({v} AS VARCHAR) END"

    def div(self, a: str, b: int) -> str:
        return f"({a} // {b})"

    def kept(self, most: int, kind: Kind, secret: str) -> list[Step]:
        """As the base says, by a heap of the least tickets instead of a second sort."""
        steps = super().kept(most, kind, secret)
        if most >= HEAP:
            return steps
        chosen = f"SELECT person, arg_min(flat, ticket, {most}) AS flats FROM ticketed GROUP BY person"
        return [*steps[:2], Step("chosen", chosen), Step("kept", "SELECT person, unnest(flats) AS flat FROM chosen")]


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def identifier(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _floor(whole: str, by: int) -> str:
    """A whole number divided and rounded down, also below zero; // rounds towards zero."""
    rest = f"((({whole}) % {by} + {by}) % {by})"
    return f"((({whole}) - {rest}) // {by})"


def _micros(units: str, per_second: int) -> str:
    """Whole units since 1970 as microseconds; far out of range, nothing."""
    if per_second == 10**6:
        return units
    if per_second > 10**6:
        return _floor(units, per_second // 10**6)
    factor = 10**6 // per_second
    return f"CASE WHEN {units} BETWEEN {EARLIEST // factor} AND {LATEST // factor} THEN {units} * {factor} END"


def _of_text(text: str, by: By) -> str:
    if by == "truth":
        is_true, is_false = (_matches(text, p) for p in (written.TRUE, written.FALSE))
        return f"CASE WHEN {is_true} THEN 1 WHEN {is_false} THEN 0 END"
    pattern = {"whole": written.WHOLE, "dotted": written.DOTTED, "real": written.REAL}[by]
    found = f"regexp_extract({text}, {literal(f'^(?:{pattern})$')}, 1)"
    return f"TRY_CAST({found} AS {'DOUBLE' if by == 'real' else 'BIGINT'})" + (" + 0" if by == "real" else "")


def _matches(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, {literal(pattern)})"


def _parsed(text: str, form: Written) -> str:
    """Microseconds of a text in a written form. The pattern decides what is read, the engine's parser only reads it."""
    if form.format is None:
        cast = "TIMESTAMPTZ" if "z" in form.parts else "TIMESTAMP"
        stamp = f"TRY_CAST({text} AS {cast})"
    else:
        stamp = f"try_strptime({text}, {literal(form.format)})"
    return f"CASE WHEN {_matches(text, form.pattern)} THEN TRY(epoch_us({stamp})) END"


def _time(text: str, form: Written) -> str:
    if form.format is None:
        time = f"TRY_CAST({text} AS TIME)"
    else:
        time = f"try_strptime({text}, {literal(form.format)})"
    seconds = f"(hour({time}) * 3600 + minute({time}) * 60 + CAST(floor(second({time})) AS BIGINT))"
    return f"CASE WHEN {_matches(text, form.pattern)} THEN {seconds} END"


def dialect(stored: Sequence[Stored]) -> DuckDialect:
    return DuckDialect(tuple(stored))


__all__ = ["FIRST_DAY", "LAST_DAY", "TIME", "DuckDialect", "Stored", "dialect", "identifier", "literal"]
