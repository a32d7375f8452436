"""Times written as text, read by whole numbers: patterns find the parts, arithmetic makes days and seconds of them.

No engine's own parser has a part in it, so that every engine reads the same texts, and a text that is no time is NULL and never an error.
"""

from __future__ import annotations

from collections.abc import Callable

from cbdp.features.calendar import DAY
from cbdp.trips.engines.patterns import no_group, one_group
from cbdp.trips.engines.words import Words
from cbdp.trips.written import Written
from cbdp.trips.zones import FIRST, LAST

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
SINCE = 719468  # days from 0000-03-01 to 1970-01-01
PIVOT = 69  # two digits of a year below this are of the 2000s, as in POSIX

Div = Callable[[str, int], str]


def matches(words: Words, text: str, pattern: str) -> str:
    """Whether the whole text fits."""
    whole = words.literal(f"{words.start}(?:{no_group(pattern)}){words.end}")
    if not words.silent:
        whole = words.literal(f"{words.start}({no_group(pattern, silent=False)}){words.end}")
    return words.matches.format(t=text, p=whole)


def group(words: Words, text: str, pattern: str, number: int) -> str:
    """The text of a group where the whole text fits; NULL without."""
    made, place = one_group(pattern, number, silent=words.silent)
    if words.silent:
        whole = words.literal(f"{words.start}(?:{made}){words.end}")
    else:
        whole, place = words.literal(f"{words.start}({made}){words.end}"), place + 1
    return f"NULLIF({words.group.format(t=text, p=whole, g=place)}, '')"


def parts(words: Words, text: str, form: Written) -> dict[str, str]:
    """The parts of a written time as whole numbers: year, month, day; hour, minute, second; seconds ahead of UTC."""
    found: dict[str, str] = {}
    for place, part in enumerate(form.parts, start=1):
        name = NAMES.get(part)
        if name is not None:
            found[name] = _number(part, group(words, text, form.pattern, place))
    if "I" in form.parts:
        half = group(words, text, form.pattern, form.parts.index("p") + 1)
        after = f"CASE WHEN LOWER(SUBSTR({half}, 1, 1)) = 'p' THEN 12 ELSE 0 END"
        found["hour"] = f"(MOD({found['hour']}, 12) + {after})"
    return found


NAMES = {"Y": "year", "y": "year", "m": "month", "b": "month", "B": "month", "d": "day"} | {
    "H": "hour",
    "I": "hour",
    "M": "minute",
    "S": "second",
    "z": "ahead",
}


def _number(part: str, text: str) -> str:
    if part in ("b", "B"):
        cases = " ".join(f"WHEN '{name}' THEN {n}" for n, name in enumerate(MONTHS, start=1))
        return f"CASE LOWER(SUBSTR({text}, 1, 3)) {cases} END"
    if part == "z":
        return _ahead(text)
    number = f"CAST({text} AS BIGINT)"
    if part == "y":
        return f"({number} + CASE WHEN {number} < {PIVOT} THEN 2000 ELSE 1900 END)"
    return f"COALESCE({number}, 0)" if part in ("M", "S") else number  # ISO 8601 may leave out the seconds


def _ahead(text: str) -> str:
    """Seconds ahead of UTC: of "+05:30", "+0530" or "+05"; 0 of "Z", or where nothing is said."""
    hours = f"CAST(SUBSTR({text}, 2, 2) AS BIGINT)"
    minutes = (
        f"CASE WHEN LENGTH({text}) > 3 THEN CAST(SUBSTR({text}, LENGTH({text}) - 1, 2) AS BIGINT) ELSE 0 END"
    )
    sign = f"CASE SUBSTR({text}, 1, 1) WHEN '-' THEN -1 ELSE 1 END"
    return f"CASE WHEN LENGTH({text}) >= 3 THEN {sign} * ({hours} * 3600 + {minutes} * 60) ELSE 0 END"


def day(name: Callable[[str], str], div: Div) -> str:
    """Days since 1970 of a year, a month and a day that there is; years begin in March, so that leap days end them."""
    y, m, d = (name(part) for part in ("year", "month", "day"))
    leap = f"(MOD({y}, 4) = 0 AND MOD({y}, 100) <> 0 OR MOD({y}, 400) = 0)"
    last = f"CASE WHEN {m} IN (4, 6, 9, 11) THEN 30 WHEN {m} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END"
    year = f"({y} - CASE WHEN {m} <= 2 THEN 1 ELSE 0 END)"
    month = f"({m} + CASE WHEN {m} <= 2 THEN 9 ELSE -3 END)"
    leaps = f"{div(year, 4)} - {div(year, 100)} + {div(year, 400)}"
    made = f"365 * {year} + {leaps} + {div(f'(153 * {month} + 2)', 5)} + {d} - 1 - {SINCE}"
    there = f"{y} BETWEEN {FIRST.year - 1} AND {LAST.year} AND {d} <= {last}"
    return f"CASE WHEN {there} THEN {made} END"


def second(name: Callable[[str], str], form: Written) -> str:
    """The second of the day."""
    made = f"{name('hour')} * 3600"
    made += f" + {name('minute')} * 60" if "M" in form.parts else ""
    return f"({made} + {name('second')})" if "S" in form.parts else f"({made})"


def instant(name: Callable[[str], str], form: Written, div: Div) -> str:
    """Whole microseconds since 1970, of a day and a time of day."""
    ahead = f" - {name('ahead')}" if "z" in form.parts else ""
    time = second(name, form) if form.timed else "0"
    return f"(({day(name, div)}) * {DAY} + {time}{ahead}) * 1000000"
