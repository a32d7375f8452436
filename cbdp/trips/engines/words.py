"""How SQL engines say what they do not say alike. To know another one is to state these words and to pass the same tests.

The words are templates: {v} a value, {t} a text, {p} a pattern, {g} a group, {b} bytes, {a} and {n} whole numbers. What they say is the
same everywhere, and may not depend on a session's settings: not on its time zone, its collation, or how it takes overflow.
"""

from __future__ import annotations

from dataclasses import dataclass

from cbdp.trips.zones import FIRST, FIRST_DAY, LAST, LAST_DAY

BEYOND = "9223372036854775808"  # 2^63


@dataclass(frozen=True)
class Words:
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
    real_text: str  # a text that fits cbdp.trips.written.REAL as a double
    text: str = "VARCHAR"  # the type
    plain: str = "{v}"  # a text that is equal to itself alone, whatever the column's collation
    shown: str = "CAST({v} AS {text})"  # any value as text
    moment: str = "CAST({v} AS {text})"  # an instant; two of them alike only where they are one, whatever the session's zone
    number: str = "CAST({v} AS {text})"  # a number that is not whole; equal ones alike
    hex: str = "TO_HEX({b})"
    time: str = "(EXTRACT(HOUR FROM {v}) * 3600 + EXTRACT(MINUTE FROM {v}) * 60 + EXTRACT(SECOND FROM {v}))"
    # numbers
    double: str = "CAST({v} AS DOUBLE)"
    not_nan: str = "NOT IS_NAN({v})"
    finite: str = "{v} <= 1.7976931348623157e308"  # of a number that is not below 0
    large: str = "{v} = FLOOR({v})"  # whether a number beyond 64 bits is whole
    div: str = "({a} / {n})"  # a is not negative
    wide: str = "CAST({v} AS DECIMAL(38, 0))"
    beyond: str = BEYOND
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

SPARK = Words(
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

DATABRICKS = Words(**{**SPARK.__dict__, "name": "databricks", "temporary": False})

_PG_NUMERIC = "CAST({v} AS NUMERIC)"
_PG_FLOAT = f"CASE WHEN {_PG_NUMERIC} = 0 THEN 0 WHEN ABS({_PG_NUMERIC}) BETWEEN 1e-300 AND 1e300 THEN CAST({{v}} AS DOUBLE PRECISION) END"

POSTGRES = Words(
    "postgres",
    zoned=f"CASE WHEN {{v}} >= TIMESTAMPTZ '{FIRST} 00:00:00+00' AND {{v}} < TIMESTAMPTZ '{LAST} 00:00:00+00' "
    "THEN CAST(FLOOR(EXTRACT(EPOCH FROM {v})) AS BIGINT) * 1000000 END",
    naive=f"CASE WHEN {{v}} >= TIMESTAMP '{FIRST} 00:00:00' AND {{v}} < TIMESTAMP '{LAST} 00:00:00' "
    "THEN CAST(FLOOR(EXTRACT(EPOCH FROM {v})) AS BIGINT) * 1000000 END",
    date=f"CASE WHEN {{v}} >= DATE '{FIRST}' AND {{v}} < DATE '{LAST}' THEN CAST({{v}} - DATE '1970-01-01' AS BIGINT) END",
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

BIGQUERY = Words(
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
    beyond=f"{BEYOND}.0",
    quote="`",
    escapes=True,
)

SNOWFLAKE = Words(
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

TRINO = Words(
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
    beyond=f"{BEYOND}.0",
    end="\\z",
    temporary=False,
    keyless="Trino writes every value that it is given into its query log",
)

WORDS = {words.name: words for words in (POSTGRES, BIGQUERY, SNOWFLAKE, DATABRICKS, TRINO)}
