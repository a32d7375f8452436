"""Formats that texts may be written in: candidates for `time_format`, found by the same patterns that counting reads by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from cbdp.trips.written import EPOCHS, written

DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%Y",
    "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%b-%Y", "%d-%b-%y",
)  # fmt: skip
_SPACED = ("%d %b %Y", "%b %d %Y", "%b %d, %Y", "%d %B %Y", "%B %d %Y", "%B %d, %Y")
_TIMES = (
    "%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%I:%M:%S%p", "%I:%M%p", "%I %p", "%H:%M:%S.%f", "%H.%M", "%H%M", "%H%M%S",
)  # fmt: skip
_JOINS = (" ", "T", ", ", "  ")
_EPOCH = {
    "epoch_s": re.compile(r"[ ]*\d{9,10}(\.0*)?[ ]*"),
    "epoch_ms": re.compile(r"[ ]*\d{12,13}(\.0*)?[ ]*"),
}

FORMATS: tuple[str, ...] = (
    *(d + join + t for d in (*DATES, *_SPACED) for join in _JOINS for t in _TIMES),
    "%Y%m%d%H%M%S",
    *DATES,
    *_SPACED,
    *_TIMES,
    *EPOCHS,
)


def day_first(form: str) -> bool | None:
    """Whether the day stands before the month where either might; None where it is clear.

    >>> day_first("%d/%m/%Y"), day_first("%m/%d/%Y"), day_first("%Y-%m-%d"), day_first("%d %b %Y")
    (True, False, None, None)
    """
    found = re.match(r"%([dm])[-/.]%([dm])", form)
    return None if found is None else found[1] == "d"


def swapped(form: str) -> str:
    """The format with day and month in each other's place."""
    return form.replace("%d", "\0").replace("%m", "%d").replace("\0", "%m")


def cover(texts: Mapping[str, int], *, day: bool, most: int = 3) -> tuple[str, ...]:
    """Few formats that fit as many of these texts as possible (text → rows); `day`: the day first, where it is not clear.

    >>> cover({"01/03/2020 00:14": 5, "Mar 1 2020 1:05 PM": 2}, day=True)
    ('%d/%m/%Y %H:%M', '%b %d %Y %I:%M %p')
    """
    left = dict(texts)
    chosen: list[str] = []
    allowed = [f for f in FORMATS if day_first(f) in (None, day)]
    while left and len(chosen) < most:
        best = max(allowed, key=lambda f: sum(rows for text, rows in left.items() if fits(f, text)))
        rest = {text: rows for text, rows in left.items() if not fits(best, text)}
        if len(rest) == len(left):
            break
        chosen.append(best)
        left = rest
    return tuple(chosen)


@lru_cache(maxsize=2**16)
def fits(form: str, text: str) -> bool:
    """Whether a text is written in a format."""
    return _pattern(form).fullmatch(text) is not None


@cache
def _pattern(form: str) -> re.Pattern[str]:
    """Kept: there are more formats than patterns that `re` remembers, and to compile one takes longer than to use it."""
    return _EPOCH[form] if form in _EPOCH else re.compile(written(form).pattern)


def shape(text: str) -> str:
    """What a text looks like, without saying what it is.

    >>> shape("01/03/2020 00:14"), shape("Mar 1 2020 1:05 pm")
    ('99/99/9999 99:99', 'Aaa 9 9999 9:99 AM')
    """
    digits = re.sub(r"\d", "9", text[:40])
    plain = re.sub(r"[A-Za-z]+", lambda m: _letters(m[0]), digits)
    return re.sub(r"[^\x20-\x7e]", "?", plain)


def _letters(word: str) -> str:
    if word.lower() in ("am", "pm"):
        return "AM"
    return word if word in ("T", "Z") else ("A" if word[0].isupper() else "a") + "a" * (len(word) - 1)
