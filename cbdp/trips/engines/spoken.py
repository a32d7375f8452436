"""The steps of the counting plan in an engine's `Words`, for engines that have no dialect written by hand.

A field i of the plan is the column v{i} of a relation that lies between the trips and the plan's steps (`relation`): text in it has lost its
collation, and of texts that are times it also has the parts, so that each is looked for once.
"""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cbdp.trips import written
from cbdp.trips.engines import patterns, texts
from cbdp.trips.engines.sql import EARLIEST, LATEST, Dialect, Numbered
from cbdp.trips.engines.words import Words
from cbdp.trips.kinds import REAL, STAMP, TEXT, TRUTH, Kind
from cbdp.trips.plan import By, CountingPlan, Form
from cbdp.trips.written import Written


@dataclass(frozen=True)
class Spoken(Dialect):
    """A dialect made of words, and of the texts that are read as times: (field, form)."""

    words: Words
    forms: tuple[tuple[int, Written], ...]

    def value(self, field: int, kind: Kind, by: By) -> str:
        if by == "bytes":
            return self.words.bytes.format(v=f"v{field}")
        if kind.name == TEXT:
            return _of_text(self.words, f"v{field}", by)
        if by == "real":
            return f"({self.words.double.format(v=f'v{field}')} + 0)"  # one zero
        return _whole(self.words, f"v{field}", kind)

    def instant(self, field: int, kind: Kind, form: Form) -> str:
        if form.gives == "epoch":
            return _micros(self.value(field, kind, "whole"), form.per_second)
        if form.written is not None:
            return texts.instant(self._part(field, form.written), form.written, self.div)
        return (self.words.naive if kind.zone is None else self.words.zoned).format(v=f"v{field}")

    def day(self, field: int, kind: Kind, form: Form) -> str:  # noqa: ARG002 - a date is a date
        if form.written is not None:
            return texts.day(self._part(field, form.written), self.div)
        return self.words.date.format(v=f"v{field}")

    def second(self, field: int, kind: Kind, form: Form) -> str:
        if form.gives == "hour":
            hour = self.value(field, kind, "whole")
            return f"CASE WHEN {hour} BETWEEN 0 AND 23 THEN {hour} * 3600 END"
        if form.written is not None:
            return texts.second(self._part(field, form.written), form.written)
        return self.words.time.format(v=f"v{field}")

    def _part(self, field: int, form: Written) -> _Part:
        return _Part(self.forms.index((field, form)))

    # Persons

    def person(self, field: int, kind: Kind) -> str:
        if kind.name == TEXT:
            digits = texts.group(self.words, f"v{field}", written.DOTTED, 1)  # "289.0" is 289
            text = f"CASE WHEN v{field} LIKE '%.%' THEN COALESCE({digits}, v{field}) ELSE v{field} END"
            return f"CASE WHEN v{field} <> '' THEN {self.words.bytes.format(v=text)} END"
        return self.words.bytes.format(v=self._named(field, kind))

    def _named(self, field: int, kind: Kind) -> str:
        """A person that is no text, as text."""
        if kind.name == STAMP and kind.zone is not None:
            return self.words.moment.format(v=f"v{field}", text=self.words.text)
        if kind.name != REAL:
            return self._shown(f"v{field}")
        whole = self._shown(_whole(self.words, f"v{field}", kind))
        other = self.words.number.format(v=f"v{field}", text=self.words.text)
        return f"COALESCE({whole}, CASE WHEN {self.words.not_nan.format(v=f'v{field}')} THEN {other} END)"

    def ticket(self, field: int, kind: Kind, number: Numbered) -> str:  # noqa: ARG002 - persons are bytes, whatever they were
        marked = " || ".join(f"'{mark}' || {self._shown(column)}" for mark, column in number)
        between = self.words.bytes.format(v=f"{marked} || ':'")
        return self.words.hashed.format(b=f"word || {between} || person")

    def nobody_else(self, field: int, kind: Kind) -> str:
        if kind.name == TEXT:
            whole = texts.matches(self.words, f"v{field}", written.DOTTED)
            ended = texts.group(self.words, f"v{field}", "([^.]*)[.].*", 1)
            text = f"CASE WHEN {whole} THEN {ended} ELSE v{field} END"
            return f"NULLIF({self.words.hex.format(b=self.words.bytes.format(v=text))}, '')"
        if kind.name == STAMP:
            return self._named(field, kind)
        text = self.words.number.format(v=f"v{field}", text=self.words.text)
        if kind.name != REAL:
            return text
        return (
            f"CASE WHEN v{field} = 0 THEN '0' WHEN {self.words.not_nan.format(v=f'v{field}')} THEN {text} END"
        )

    # The rest

    def shown(self, field: int, kind: Kind) -> str:
        if kind.name == TEXT:
            return f"NULLIF(v{field}, '')"
        text = self._shown(f"v{field}")
        fit = self.words.not_nan.format(v=f"v{field}")
        return f"CASE WHEN {fit} THEN {text} END" if kind.name == REAL else text

    def _shown(self, value: str) -> str:
        return self.words.shown.format(v=value, text=self.words.text)

    def fits(self, text: str, pattern: str) -> str:
        return texts.matches(self.words, text, pattern)

    def digest(self, kinds: Sequence[Kind]) -> str:
        shown = (f"COALESCE({self.shown(i, kind)}, '')" for i, kind in enumerate(kinds))
        return self.words.hashed.format(b=self.words.bytes.format(v=" || '|' || ".join(shown)))

    def huge(self, field: int, kind: Kind) -> str:
        v = f"v{field}"
        if kind.name == TEXT:
            return texts.matches(self.words, v, written.NOT_NEGATIVE)
        if kind.name != REAL:
            return ""
        return f"({self.words.finite.format(v=v)} AND {v} >= {self.words.beyond} AND {self.words.large.format(v=v)})"

    def as_bytes(self, text: str) -> str:
        return self.words.bytes.format(v=text)

    def div(self, a: str, b: int) -> str:
        return self.words.div.format(a=a, n=b)

    def wide(self, value: str) -> str:
        return self.words.wide.format(v=value)


@dataclass(frozen=True)
class _Part:
    """The columns that hold the parts of one text in one form."""

    number: int

    def __call__(self, name: str) -> str:
        return f"p{self.number}_{name}"


def spoken(words: Words, plan: CountingPlan) -> Spoken:
    """The dialect for a plan."""
    forms = ((m.field, f.written) for m in plan.moments for f in m.forms if f.written is not None)
    return Spoken(words, tuple(dict.fromkeys(forms)))


def relation(say: Spoken, plan: CountingPlan, source: str, columns: Sequence[str]) -> str:
    """What stands after FROM for the trips: `source`, where the fields are the `columns` given."""
    words = say.words
    made = {}
    for i, (field, column) in enumerate(zip(plan.fields, columns, strict=True)):
        made[f"v{i}"] = words.plain.format(v=column) if field.kind.name == TEXT else column
    for n, (field_at, form) in enumerate(say.forms):
        text, kind = made[f"v{field_at}"], plan.fields[field_at].kind
        if kind.name != TEXT:  # digits that are a date: 20260302
            text = words.shown.format(v=_whole(words, text, kind), text=words.text)
        made |= {_Part(n)(name): part for name, part in texts.parts(words, text, form).items()}
    listed = ", ".join(f"{text} AS {name}" for name, text in made.items())
    return f"(SELECT {listed} FROM {source}{words.fence if say.forms else ''}) r"


def _whole(words: Words, value: str, kind: Kind) -> str:
    if kind.name == TRUTH:
        return f"CAST(CASE WHEN {value} THEN 1 WHEN NOT {value} THEN 0 END AS BIGINT)"
    if kind.name != REAL:
        return f"CAST({value} AS BIGINT)"
    fits = f"{value} >= -{words.beyond} AND {value} < {words.beyond}"
    return f"CASE WHEN {fits} THEN CASE WHEN {value} = FLOOR({value}) THEN CAST({value} AS BIGINT) END END"


def _of_text(words: Words, text: str, by: By) -> str:
    if by == "truth":
        true, false = (texts.matches(words, text, p) for p in (written.TRUE, written.FALSE))
        return f"CASE WHEN {true} THEN 1 WHEN {false} THEN 0 END"
    if by == "real":
        return f"({words.real_text.format(v=texts.group(words, text, written.REAL, 1))} + 0)"
    if by == "dotted":
        return _within(words, words.wide.format(v=texts.group(words, text, patterns.DOTTED, 1)))
    minus = f"{texts.group(words, text, patterns.SIGNED, 1)} = '-'"
    digits = words.wide.format(v=texts.group(words, text, patterns.SIGNED, 2))
    return _within(words, f"({digits} * CASE WHEN {minus} THEN -1 ELSE 1 END)")


def _within(words: Words, number: str) -> str:
    return f"CASE WHEN {number} >= -{words.beyond} AND {number} < {words.beyond} THEN CAST({number} AS BIGINT) END"


def _micros(units: str, per_second: int) -> str:
    """Whole units since 1970 as microseconds; far out of range, nothing."""
    low, high = EARLIEST * per_second // 10**6, (LATEST + 1) * per_second // 10**6
    return f"CASE WHEN {units} BETWEEN {low} AND {high} THEN {units} * {10**6 // per_second} END"
