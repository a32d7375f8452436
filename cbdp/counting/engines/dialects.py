"""Dialects of SQL engines made of templates, with times written as text read by whole numbers and regular expressions that all engines share."""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cbdp.counting import clock
from cbdp.counting.clock import FIRST_DATE, FIRST_DAY, LAST_DATE, LAST_DAY, WrittenForm
from cbdp.counting.columns import BOOLEAN, REAL, STAMP, TEXT, ColumnKind
from cbdp.counting.engines.sql import EARLIEST_MICROSECOND, LATEST_MICROSECOND, Dialect, NumberedLookup
from cbdp.counting.plan import ClockForm, CountingPlan, KeyKind
from cbdp_features.calendar import SECONDS_PER_DAY

# What SQL engines do not say alike. To support another one is to state these templates and to pass the same tests.
#
# Placeholders: {v} a value, {t} a text, {p} a pattern, {g} a group, {b} bytes, {a} and {n} whole numbers. What they say is the
# same everywhere, and may not depend on a session's settings: not on its time zone, its collation, or how it takes overflow.


TWO_TO_63 = "9223372036854775808"  # 2^63


@dataclass(frozen=True)
class DialectTemplates:
    """An engine's words."""

    name: str
    # times: whole microseconds since 1970, days since 1970, seconds since midnight; rounded down; NULL beyond our calendar
    zoned: str  # of a stamp that is an instant
    naive: str  # of a stamp without a zone, read as if it were UTC
    date: str
    # text
    matches: str  # whether the text as a whole fits
    group: str  # the group's text; NULL or empty where it took no part
    bytes: str  # of a text
    hashed: str  # SHA-256 of bytes as 64 hexadecimal digits in small letters
    real_text: str  # a text that fits cbdp.counting.clock.REAL_PATTERN as a double
    text: str = "VARCHAR"  # the type
    plain: str = "{v}"  # a text that is equal to itself alone, whatever the column's collation
    shown: str = "CAST({v} AS {text})"  # any value as text
    moment: str = "CAST({v} AS {text})"  # an instant; two of them alike only where they are one, whatever the session's zone
    number: str = "CAST({v} AS {text})"  # a number that is not whole; equal ones alike
    hex: str = "TO_HEX({b})"
    hour: str = "CASE WHEN {v} BETWEEN 0 AND 23 THEN {v} * 3600 END"  # a whole number that is an hour, as the second at which it begins
    time: str = "(EXTRACT(HOUR FROM {v}) * 3600 + EXTRACT(MINUTE FROM {v}) * 60 + EXTRACT(SECOND FROM {v}))"
    # numbers
    double: str = "CAST({v} AS DOUBLE)"
    not_nan: str = "NOT IS_NAN({v})"
    finite: str = "{v} <= 1.7976931348623157e308"  # of a number that is not below 0
    large: str = "{v} = FLOOR({v})"  # whether a number beyond 64 bits is whole
    div: str = "({a} / {n})"  # a is not negative
    wide: str = "CAST({v} AS DECIMAL(38, 0))"
    beyond: str = TWO_TO_63
    # how it reads
    quote: str = '"'
    escapes: bool = False  # whether a backslash in a text literal escapes
    setting: bool = False  # whether that depends on a setting, so that neither may be relied on
    start: str = "^"
    end: str = "$"
    silent: bool = True  # whether groups of a pattern need not capture
    fence: str = ""  # keeps a subquery from being merged, and its texts from being read again and again
    columns: str = "{c}"  # how a column of ours is called, where the engine changes the case of names
    temporary: bool = True  # whether Ibis can make tables that vanish with the session
    keyless: str = ""  # why a key cannot be handed over, where that is so

    def literal(self, text: str) -> str:
        if self.setting and set("\\'$") & set(text):
            return f"CAST(X'{text.encode().hex()}' AS {self.text})"
        if self.escapes:
            text = text.replace("\\", "\\\\")
        return "'" + text.replace("'", "\\'" if self.escapes else "''") + "'"

    def identifier(self, name: str) -> str:
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote


_NTZ_DAY = "UNIX_DATE(CAST({v} AS DATE))"
_NTZ_SECOND = "(HOUR({v}) * 3600 + MINUTE({v}) * 60 + SECOND({v}))"

SPARK_TEMPLATES = DialectTemplates(
    "spark",
    zoned="UNIX_MICROS({v})",
    naive=f"CASE WHEN {_NTZ_DAY} BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN ({_NTZ_DAY} * 86400L + {_NTZ_SECOND}) * 1000000L END",
    date="CAST(UNIX_DATE({v}) AS BIGINT)",
    moment="CAST(UNIX_MICROS({v}) AS {text})",
    time=_NTZ_SECOND,
    matches="({t} RLIKE {p})",
    group="REGEXP_EXTRACT({t}, {p}, {g})",
    bytes="CAST({v} AS BINARY)",
    hashed="SHA2({b}, 256)",
    real_text="TRY_CAST({v} AS DOUBLE)",
    text="STRING",
    plain="CAST(CAST({v} AS BINARY) AS STRING)",
    hex="HEX({b})",
    not_nan="NOT ISNAN(CAST({v} AS DOUBLE))",
    large="{v} % 1 = 0",  # FLOOR of a double is a whole number of 64 bits there
    div="({a} DIV {n})",
    quote="`",
    setting=True,
    end="(?![^ ]| )",  # nothing follows: Java's $ also stands before a last line break
)

DATABRICKS_TEMPLATES = DialectTemplates(
    **{**SPARK_TEMPLATES.__dict__, "name": "databricks", "temporary": False}
)

_PG_NUMERIC = "CAST({v} AS NUMERIC)"
_PG_FLOAT = f"CASE WHEN {_PG_NUMERIC} = 0 THEN 0 WHEN ABS({_PG_NUMERIC}) BETWEEN 1e-300 AND 1e300 THEN CAST({{v}} AS DOUBLE PRECISION) END"

POSTGRES_TEMPLATES = DialectTemplates(
    "postgres",
    zoned=f"CASE WHEN {{v}} >= TIMESTAMPTZ '{FIRST_DATE} 00:00:00+00' AND {{v}} < TIMESTAMPTZ '{LAST_DATE} 00:00:00+00' "
    "THEN CAST(FLOOR(EXTRACT(EPOCH FROM {v})) AS BIGINT) * 1000000 END",
    naive=f"CASE WHEN {{v}} >= TIMESTAMP '{FIRST_DATE} 00:00:00' AND {{v}} < TIMESTAMP '{LAST_DATE} 00:00:00' "
    "THEN CAST(FLOOR(EXTRACT(EPOCH FROM {v})) AS BIGINT) * 1000000 END",
    date=f"CASE WHEN {{v}} >= DATE '{FIRST_DATE}' AND {{v}} < DATE '{LAST_DATE}' THEN CAST({{v}} - DATE '1970-01-01' AS BIGINT) END",
    time="CAST(FLOOR(EXTRACT(EPOCH FROM {v})) AS BIGINT)",
    matches="({t} ~ {p})",
    group="(REGEXP_MATCH({t}, {p}))[{g}]",
    bytes="CONVERT_TO({v}, 'UTF8')",
    hashed="ENCODE(SHA256({b}), 'hex')",
    # casts raise here instead of trying, and numbers beyond a double's range raise too
    real_text=f"CASE WHEN {{v}} ~ '^[^eE]{{{{1,250}}}}([eE][+-]?[0-9]{{{{1,3}}}})?$' THEN {_PG_FLOAT} END",
    text="TEXT",
    plain='(CAST({v} AS TEXT) COLLATE "C")',
    # a numeric keeps the zeros that it was written with: 1.50 and 1.5 are one number
    number="REGEXP_REPLACE(CAST({v} AS {text}), '^(-?[0-9]+)[.]0+$|^(-?[0-9]*[.][0-9]*[1-9])0+$', '\\1\\2')",
    hex="ENCODE({b}, 'hex')",
    double="CASE WHEN {v} = 0 THEN 0 WHEN ABS({v}) BETWEEN 1e-300 AND 1e300 THEN CAST({v} AS DOUBLE PRECISION) END",
    not_nan="{v} <> 'NaN'",
    finite="({v} <> 'NaN' AND {v} <> 'Infinity')",
    fence=" OFFSET 0",
)

BIGQUERY_TEMPLATES = DialectTemplates(
    "bigquery",
    zoned="UNIX_MICROS({v})",
    naive="DATETIME_DIFF({v}, DATETIME '1970-01-01', MICROSECOND)",
    date="UNIX_DATE({v})",
    matches="REGEXP_CONTAINS({t}, {p})",
    group="REGEXP_EXTRACT({t}, {p})",
    bytes="CAST({v} AS BYTES)",
    hashed="TO_HEX(SHA256({b}))",
    real_text="SAFE_CAST({v} AS FLOAT64)",
    text="STRING",
    plain="COLLATE({v}, '')",
    double="CAST({v} AS FLOAT64)",
    div="DIV({a}, {n})",
    wide="CAST({v} AS BIGNUMERIC)",
    beyond=f"{TWO_TO_63}.0",
    quote="`",
    escapes=True,
)

SNOWFLAKE_TEMPLATES = DialectTemplates(
    "snowflake",
    zoned="CAST(DATE_PART(EPOCH_MICROSECOND, {v}) AS BIGINT)",
    naive="CAST(DATE_PART(EPOCH_MICROSECOND, {v}) AS BIGINT)",
    date="DATEDIFF(DAY, CAST('1970-01-01' AS DATE), {v})",
    matches="REGEXP_LIKE({t}, {p})",  # of the whole text, always
    group="REGEXP_SUBSTR({t}, {p}, 1, 1, 'e', {g})",
    bytes="TO_BINARY({v}, 'UTF-8')",
    hashed="SHA2({b}, 256)",
    real_text="TRY_TO_DOUBLE({v})",
    plain="COLLATE({v}, '')",
    hex="HEX_ENCODE({b})",
    not_nan="CAST({v} AS DOUBLE) <> CAST('NaN' AS DOUBLE)",
    div="CAST(({a} - MOD({a}, {n})) / {n} AS BIGINT)",  # it divides into decimals, and rounds them
    escapes=True,
    silent=False,
    columns='"{c}"',
)

TRINO_TEMPLATES = DialectTemplates(
    "trino",
    zoned="(DATE_DIFF('second', FROM_UNIXTIME(0), DATE_TRUNC('second', {v})) * 1000000)",
    naive="(DATE_DIFF('second', TIMESTAMP '1970-01-01 00:00:00', DATE_TRUNC('second', {v})) * 1000000)",
    date="DATE_DIFF('day', DATE '1970-01-01', {v})",
    matches="REGEXP_LIKE({t}, {p})",
    group="REGEXP_EXTRACT({t}, {p}, {g})",
    bytes="TO_UTF8({v})",
    hashed="LOWER(TO_HEX(SHA256({b})))",
    real_text="TRY_CAST({v} AS DOUBLE)",
    plain="CAST({v} AS VARCHAR)",
    not_nan="NOT IS_NAN(CAST({v} AS DOUBLE))",
    beyond=f"{TWO_TO_63}.0",
    end="\\z",
    temporary=False,
    keyless="Trino writes every value that it is given into its query log",
)

DUCKDB_TEMPLATES = DialectTemplates(  # the rest is in the engine's own dialect
    "duckdb",
    zoned="epoch_us({v})",
    naive="epoch_us({v})",
    date="CAST({v} - DATE '1970-01-01' AS BIGINT)",
    # named once: what stands twice is worked out for every row, whether a case needs it or not
    hour=f"list_extract([{', '.join(str(3600 * h) for h in range(24))}], TRY_CAST({{v}} AS UTINYINT) + 1)",
    time="(hour({v}) * 3600 + minute({v}) * 60 + second({v}))",
    matches="regexp_full_match({t}, {p})",
    group="regexp_extract({t}, {p}, {g})",
    bytes="encode({v})",
    hashed="sha256({b})",
    real_text="TRY_CAST({v} AS DOUBLE)",
    hex="hex({b})",
    double="TRY_CAST({v} AS DOUBLE)",
    div="({a} // {n})",
)

DIALECTS = {  # by Ibis' name of the back end
    words.name: words
    for words in (
        POSTGRES_TEMPLATES,
        BIGQUERY_TEMPLATES,
        SNOWFLAKE_TEMPLATES,
        DATABRICKS_TEMPLATES,
        TRINO_TEMPLATES,
    )
}


# The patterns of cbdp.counting.clock in words that every engine's regular expressions share, read alike by all of them.
#
# Engines differ in how they ignore case (by locale, by Unicode), in whether groups may be silent, and in how many may capture. So letters are
# spelt out as [aA], and exactly one group captures.


_TOKEN = re.compile(r"\\.|\[[^\]]*\]|\(\?:|.", re.DOTALL)
_ANY_CASE = "(?i)"

# cbdp.counting.clock.WHOLE_PATTERN and DOTTED_PATTERN with no more digits than 2^63 has, so that a cast of what they find cannot fail
SIGNED_PATTERN = "[ \t]*([+-]?)0*([0-9]{1,19})(?:[.]0*)?[ \t]*"
DOTTED_64_BIT_PATTERN = "(0|-?[1-9][0-9]{0,18})[.]0*"


@lru_cache(maxsize=256)
def without_options(pattern: str) -> str:
    """A pattern that needs no option: letters of either case are written as such.

    >>> without_options("(?i) *(am|pm)"), without_options("[T ]z")
    (' *([aA][mM]|[pP][mM])', '[T ]z')
    """
    if not pattern.startswith(_ANY_CASE):
        return pattern
    return "".join(_either_case(token) for token in _TOKEN.findall(pattern.removeprefix(_ANY_CASE)))


@lru_cache(maxsize=1024)
def only_group(pattern: str, group: int, *, silent: bool = True) -> tuple[str, int]:
    """The pattern in which only this group captures, and its number; where groups cannot be silent, all of them capture.

    >>> only_group("(a)(?:b)(c)", 2), only_group("(a)(?:b)(c)", 2, silent=False)
    (('(?:a)(?:b)(c)', 1), ('(a)(b)(c)', 3))
    """
    tokens = list(_TOKEN.findall(without_options(pattern)))
    place = next(p for p, n in _captures(tokens) if n == group)
    if not silent:
        capturing = ["(" if t == "(?:" else t for t in tokens]
        return "".join(capturing), sum(t == "(" for t in capturing[: place + 1])
    return "".join("(?:" if t == "(" and p != place else t for p, t in enumerate(tokens)), 1


@lru_cache(maxsize=256)
def without_groups(pattern: str, *, silent: bool = True) -> str:
    """The pattern, for asking only whether it fits."""
    tokens = _TOKEN.findall(without_options(pattern))
    return "".join(("(?:" if silent else "(") if t in ("(", "(?:") else t for t in tokens)


def _captures(tokens: list[str]) -> Iterator[tuple[int, int]]:
    places = [p for p, token in enumerate(tokens) if token == "("]  # noqa: S105 - a token of a pattern
    yield from zip(places, range(1, len(places) + 1), strict=True)


def _either_case(token: str) -> str:
    lower, upper = token.lower(), token.upper()
    spells = len(token) == len(lower) == len(upper) == 1 and lower != upper
    return f"[{lower}{upper}]" if spells else token


# Times written as text, read by whole numbers: patterns find the parts, arithmetic makes days and seconds of them. No engine's own parser has a part in it, so that every engine reads the same texts, and a text that is no time is NULL and never an error.


MONTH_ABBREVIATIONS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
DAYS_TO_EPOCH = 719468  # days from 0000-03-01 to 1970-01-01
CENTURY_PIVOT = 69  # two digits of a year below this are of the 2000s, as in POSIX

FloorDivision = Callable[[str, int], str]


def full_match(words: DialectTemplates, text: str, pattern: str) -> str:
    """Whether the whole text fits."""
    whole = words.literal(f"{words.start}(?:{without_groups(pattern)}){words.end}")
    if not words.silent:
        whole = words.literal(f"{words.start}({without_groups(pattern, silent=False)}){words.end}")
    return words.matches.format(t=text, p=whole)


def match_group(words: DialectTemplates, text: str, pattern: str, number: int) -> str:
    """The text of a group where the whole text fits; NULL without."""
    single, place = only_group(pattern, number, silent=words.silent)
    if words.silent:
        whole = words.literal(f"{words.start}(?:{single}){words.end}")
    else:
        whole, place = words.literal(f"{words.start}({single}){words.end}"), place + 1
    return f"NULLIF({words.group.format(t=text, p=whole, g=place)}, '')"


def time_parts(words: DialectTemplates, text: str, form: WrittenForm) -> dict[str, str]:
    """The parts of a written time as whole numbers: year, month, day; hour, minute, second; seconds ahead of UTC."""
    parts: dict[str, str] = {}
    for place, part in enumerate(form.parts, start=1):
        name = PART_NAMES.get(part)
        if name is not None:
            parts[name] = _part_number(part, match_group(words, text, form.pattern, place))
    if "I" in form.parts:
        half = match_group(words, text, form.pattern, form.parts.index("p") + 1)
        after = f"CASE WHEN LOWER(SUBSTR({half}, 1, 1)) = 'p' THEN 12 ELSE 0 END"
        parts["hour"] = f"(MOD({parts['hour']}, 12) + {after})"
    return parts


PART_NAMES = {"Y": "year", "y": "year", "m": "month", "b": "month", "B": "month", "d": "day"} | {
    "H": "hour",
    "I": "hour",
    "M": "minute",
    "S": "second",
    "z": "ahead",
}


def _part_number(part: str, text: str) -> str:
    if part in ("b", "B"):
        cases = " ".join(f"WHEN '{name}' THEN {n}" for n, name in enumerate(MONTH_ABBREVIATIONS, start=1))
        return f"CASE LOWER(SUBSTR({text}, 1, 3)) {cases} END"
    if part == "z":
        return _offset_seconds(text)
    number = f"CAST({text} AS BIGINT)"
    if part == "y":
        return f"({number} + CASE WHEN {number} < {CENTURY_PIVOT} THEN 2000 ELSE 1900 END)"
    return f"COALESCE({number}, 0)" if part in ("M", "S") else number  # ISO 8601 may leave out the seconds


def _offset_seconds(text: str) -> str:
    """Seconds ahead of UTC: of "+05:30", "+0530" or "+05"; 0 of "Z", or where nothing is said."""
    hours = f"CAST(SUBSTR({text}, 2, 2) AS BIGINT)"
    minutes = (
        f"CASE WHEN LENGTH({text}) > 3 THEN CAST(SUBSTR({text}, LENGTH({text}) - 1, 2) AS BIGINT) ELSE 0 END"
    )
    sign = f"CASE SUBSTR({text}, 1, 1) WHEN '-' THEN -1 ELSE 1 END"
    return f"CASE WHEN LENGTH({text}) >= 3 THEN {sign} * ({hours} * 3600 + {minutes} * 60) ELSE 0 END"


def day_number(name: Callable[[str], str], div: FloorDivision) -> str:
    """Days since 1970 of a year, a month and a day that there is; years begin in March, so that leap days end them."""
    y, m, d = (name(part) for part in ("year", "month", "day"))
    leap = f"(MOD({y}, 4) = 0 AND MOD({y}, 100) <> 0 OR MOD({y}, 400) = 0)"
    last = f"CASE WHEN {m} IN (4, 6, 9, 11) THEN 30 WHEN {m} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END"
    year = f"({y} - CASE WHEN {m} <= 2 THEN 1 ELSE 0 END)"
    month = f"({m} + CASE WHEN {m} <= 2 THEN 9 ELSE -3 END)"
    leaps = f"{div(year, 4)} - {div(year, 100)} + {div(year, 400)}"
    days = f"365 * {year} + {leaps} + {div(f'(153 * {month} + 2)', 5)} + {d} - 1 - {DAYS_TO_EPOCH}"
    there = f"{y} BETWEEN {FIRST_DATE.year - 1} AND {LAST_DATE.year} AND {d} <= {last}"
    return f"CASE WHEN {there} THEN {days} END"


def second_of_day(name: Callable[[str], str], form: WrittenForm) -> str:
    """The second of the day."""
    seconds = f"{name('hour')} * 3600"
    seconds += f" + {name('minute')} * 60" if "M" in form.parts else ""
    return f"({seconds} + {name('second')})" if "S" in form.parts else f"({seconds})"


def instant_micros(name: Callable[[str], str], form: WrittenForm, div: FloorDivision) -> str:
    """Whole microseconds since 1970, of a day and a time of day."""
    ahead = f" - {name('ahead')}" if "z" in form.parts else ""
    time = second_of_day(name, form) if form.timed else "0"
    return f"(({day_number(name, div)}) * {SECONDS_PER_DAY} + {time}{ahead}) * 1000000"


# The steps of the counting plan in an engine's `DialectTemplates`, where no dialect is written by hand. A field i of the plan is the column v{i} of a relation that lies between the trips and the plan's steps (`source_relation`): text in it has lost its
# collation, and of texts that are times it also has the parts, so that each is looked for once.


@dataclass(frozen=True)
class TemplateDialect(Dialect):
    """A dialect made of words, and of the texts that are read as times: (field, form)."""

    words: DialectTemplates
    forms: tuple[tuple[int, WrittenForm], ...]

    def column(self, field: int) -> str:
        """What stands for a field."""
        return f"v{field}"

    def bytes_of(self, field: int) -> str:
        return self.words.bytes.format(v=self.column(field))

    def text_of(self, field: int) -> str:
        return self.column(field)

    def value(self, field: int, kind: ColumnKind, by: KeyKind) -> str:
        if by == "bytes":
            return self.bytes_of(field)
        if kind.name == TEXT:
            return self.number_in_text(self.text_of(field), by)
        if by == "real":
            return f"({self.words.double.format(v=self.column(field))} + 0)"  # one zero
        return self.whole(field, kind)

    def number_in_text(self, text: str, by: KeyKind) -> str:
        return _of_text(self.words, text, by)

    def whole(self, field: int, kind: ColumnKind) -> str:
        return _whole_value(self.words, self.column(field), kind)

    def instant(self, field: int, kind: ColumnKind, form: ClockForm) -> str:
        if form.gives == "epoch":
            return microseconds(self.value(field, kind, "whole"), form.per_second)
        return (
            self.stamp(field, kind)
            if form.written is None
            else self.written_instant(field, kind, form.written)
        )

    def stamp(self, field: int, kind: ColumnKind) -> str:
        return (self.words.naive if kind.zone is None else self.words.zoned).format(v=self.column(field))

    def written_instant(self, field: int, kind: ColumnKind, form: WrittenForm) -> str:  # noqa: ARG002 - its parts lie there
        return instant_micros(self._part(field, form), form, self.div)

    def day(self, field: int, kind: ColumnKind, form: ClockForm) -> str:
        return self.date(field, kind) if form.written is None else self.written_day(field, kind, form.written)

    def date(self, field: int, kind: ColumnKind) -> str:  # noqa: ARG002 - a date is a date
        return self.words.date.format(v=self.column(field))

    def written_day(self, field: int, kind: ColumnKind, form: WrittenForm) -> str:  # noqa: ARG002
        return day_number(self._part(field, form), self.div)

    def second(self, field: int, kind: ColumnKind, form: ClockForm) -> str:
        if form.gives == "hour":
            return self.words.hour.format(v=self.value(field, kind, "whole"))
        return (
            self.time(field, kind) if form.written is None else self.written_second(field, kind, form.written)
        )

    def time(self, field: int, kind: ColumnKind) -> str:  # noqa: ARG002 - a time is a time
        return self.words.time.format(v=self.column(field))

    def written_second(self, field: int, kind: ColumnKind, form: WrittenForm) -> str:  # noqa: ARG002
        return second_of_day(self._part(field, form), form)

    def _part(self, field: int, form: WrittenForm) -> _TimeParts:
        return _TimeParts(self.forms.index((field, form)))

    # Persons

    def person(self, field: int, kind: ColumnKind) -> str:
        if kind.name == TEXT:
            digits = match_group(self.words, f"v{field}", clock.DOTTED_PATTERN, 1)  # "289.0" is 289
            text = f"CASE WHEN v{field} LIKE '%.%' THEN COALESCE({digits}, v{field}) ELSE v{field} END"
            return f"CASE WHEN v{field} <> '' THEN {self.words.bytes.format(v=text)} END"
        return self.words.bytes.format(v=self._named(field, kind))

    def _named(self, field: int, kind: ColumnKind) -> str:
        """A person that is no text, as text."""
        if kind.name == STAMP and kind.zone is not None:
            return self.words.moment.format(v=f"v{field}", text=self.words.text)
        if kind.name != REAL:
            return self._shown(f"v{field}")
        whole = self._shown(_whole_value(self.words, f"v{field}", kind))
        other = self.words.number.format(v=f"v{field}", text=self.words.text)
        return f"COALESCE({whole}, CASE WHEN {self.words.not_nan.format(v=f'v{field}')} THEN {other} END)"

    def person_bytes(self, field: int, kind: ColumnKind) -> str:  # noqa: ARG002 - they are bytes, whatever they were
        """The bytes of the column `person`."""
        return "person"

    def ticket(self, field: int, kind: ColumnKind, number: NumberedLookup) -> str:
        marked = " || ".join(f"'{mark}' || {self._shown(column)}" for mark, column in number)
        between = self.words.bytes.format(v=f"{marked} || ':'")
        return self.words.hashed.format(b=f"word || {between} || {self.person_bytes(field, kind)}")

    def nobody_else(self, field: int, kind: ColumnKind) -> str:
        if kind.name == TEXT:
            whole = full_match(self.words, f"v{field}", clock.DOTTED_PATTERN)
            ended = match_group(self.words, f"v{field}", "([^.]*)[.].*", 1)
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

    def shown(self, field: int, kind: ColumnKind) -> str:
        if kind.name == TEXT:
            return f"NULLIF(v{field}, '')"
        text = self._shown(f"v{field}")
        fit = self.words.not_nan.format(v=f"v{field}")
        return f"CASE WHEN {fit} THEN {text} END" if kind.name == REAL else text

    def _shown(self, value: str) -> str:
        return self.words.shown.format(v=value, text=self.words.text)

    def fits(self, text: str, pattern: str) -> str:
        return full_match(self.words, text, pattern)

    def digest(self, kinds: Sequence[ColumnKind]) -> str:
        shown = (f"COALESCE({self.shown(i, kind)}, '')" for i, kind in enumerate(kinds))
        return self.words.hashed.format(b=self.words.bytes.format(v=" || '|' || ".join(shown)))

    def huge(self, field: int, kind: ColumnKind) -> str:
        v = f"v{field}"
        if kind.name == TEXT:
            return full_match(self.words, v, clock.NOT_NEGATIVE_PATTERN)
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
class _TimeParts:
    """The columns that hold the parts of one text in one form."""

    number: int

    def __call__(self, name: str) -> str:
        return f"p{self.number}_{name}"


def template_dialect(words: DialectTemplates, plan: CountingPlan) -> TemplateDialect:
    """The dialect for a plan."""
    forms = ((m.field, f.written) for m in plan.moments for f in m.forms if f.written is not None)
    return TemplateDialect(words, tuple(dict.fromkeys(forms)))


def source_relation(say: TemplateDialect, plan: CountingPlan, source: str, columns: Sequence[str]) -> str:
    """What stands after FROM for the trips: `source`, where the fields are the `columns`."""
    words = say.words
    expressions = {}
    for i, (field, column) in enumerate(zip(plan.fields, columns, strict=True)):
        expressions[f"v{i}"] = words.plain.format(v=column) if field.kind.name == TEXT else column
    for n, (field_at, form) in enumerate(say.forms):
        text, kind = expressions[f"v{field_at}"], plan.fields[field_at].kind
        if kind.name != TEXT:  # digits that are a date: 20260302
            text = words.shown.format(v=_whole_value(words, text, kind), text=words.text)
        expressions |= {_TimeParts(n)(name): part for name, part in time_parts(words, text, form).items()}
    listed = ", ".join(f"{text} AS {name}" for name, text in expressions.items())
    return f"(SELECT {listed} FROM {source}{words.fence if say.forms else ''}) r"


def _whole_value(words: DialectTemplates, value: str, kind: ColumnKind) -> str:
    if kind.name == BOOLEAN:
        return f"CAST(CASE WHEN {value} THEN 1 WHEN NOT {value} THEN 0 END AS BIGINT)"
    if kind.name != REAL:
        return f"CAST({value} AS BIGINT)"
    fits = f"{value} >= -{words.beyond} AND {value} < {words.beyond}"
    return f"CASE WHEN {fits} THEN CASE WHEN {value} = FLOOR({value}) THEN CAST({value} AS BIGINT) END END"


def _of_text(words: DialectTemplates, text: str, by: KeyKind) -> str:
    if by == "truth":
        true, false = (full_match(words, text, p) for p in (clock.TRUE_PATTERN, clock.FALSE_PATTERN))
        return f"CASE WHEN {true} THEN 1 WHEN {false} THEN 0 END"
    if by == "real":
        return f"({words.real_text.format(v=match_group(words, text, clock.REAL_PATTERN, 1))} + 0)"
    if by == "dotted":
        return _within(words, words.wide.format(v=match_group(words, text, DOTTED_64_BIT_PATTERN, 1)))
    minus = f"{match_group(words, text, SIGNED_PATTERN, 1)} = '-'"
    digits = words.wide.format(v=match_group(words, text, SIGNED_PATTERN, 2))
    return _within(words, f"({digits} * CASE WHEN {minus} THEN -1 ELSE 1 END)")


def _within(words: DialectTemplates, number: str) -> str:
    return f"CASE WHEN {number} >= -{words.beyond} AND {number} < {words.beyond} THEN CAST({number} AS BIGINT) END"


def microseconds(units: str, per_second: int) -> str:
    """Whole units since 1970, at most a million of them in a second, as microseconds; far out of range, nothing."""
    low, high = EARLIEST_MICROSECOND * per_second // 10**6, (LATEST_MICROSECOND + 1) * per_second // 10**6
    return f"CASE WHEN {units} BETWEEN {low} AND {high} THEN {units} * {10**6 // per_second} END"
