"""What the publisher says about a release: title, place, period and the like. Public words, shown wherever its numbers are."""

from __future__ import annotations

import calendar
import datetime as dt
import unicodedata
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, cast

from cbdp.errors import InputError
from cbdp.text import masked

if TYPE_CHECKING:
    from cbdp.release.manifest_model import AboutJson, Days

MAX_LINE_CHARACTERS = 200  # characters of a line
REFUSED_CATEGORIES = (
    "Cc",
    "Cs",
    "Zl",
    "Zp",
)  # control characters, halves of pairs, ends of lines and paragraphs
# no characters at all, and those that would make the text read in another order
REFUSED_CHARACTERS = frozenset("\ufffe\uffff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True)
class Dates:
    """The first and the last day of a period.

    >>> import datetime as dt
    >>> str(Dates(dt.date(2026, 3, 2), dt.date(2026, 3, 8)))
    '2–8 March 2026'
    """

    first: dt.date
    last: dt.date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise InputError(f"the last day, {self.last}, is before the first, {self.first}: swap them")

    def __str__(self) -> str:
        """As people write it.

        >>> print(Dates(dt.date(2026, 3, 1), dt.date(2026, 3, 31)))
        March 2026
        >>> print(Dates(dt.date(2026, 3, 2), dt.date(2026, 4, 5)))
        2 March – 5 April 2026
        """
        first, last = self.first, self.last
        until = f"{last.day} {MONTH_NAMES[last.month - 1]} {last.year}"
        if first == last:
            return until
        whole = first.day == 1 and last.day == calendar.monthrange(last.year, last.month)[1]
        if whole and first.year == last.year:
            return _months(first, last)
        if (first.year, first.month) == (last.year, last.month):
            return f"{first.day}–{until}"
        year = "" if first.year == last.year else f" {first.year}"
        return f"{first.day} {MONTH_NAMES[first.month - 1]}{year} – {until}"

    def json(self) -> Days:
        return {"first": self.first.isoformat(), "last": self.last.isoformat()}


def _months(first: dt.date, last: dt.date) -> str:
    """Whole months of a year."""
    if (first.month, last.month) == (1, 12):
        return str(first.year)
    until = f"{MONTH_NAMES[last.month - 1]} {last.year}"
    return until if first.month == last.month else f"{MONTH_NAMES[first.month - 1]} – {until}"


@dataclass(frozen=True)
class About:
    """One line of text each, all optional; the period may also be given by its first and last day.

    >>> about = About(title="Trips of a spring week", place="Ann Arbor", licence="CC BY 4.0")
    >>> about.title, about.period
    ('Trips of a spring week', None)
    """

    title: str | None = None
    place: str | None = None
    period: str | Dates | None = None
    publisher: str | None = None
    licence: str | None = None
    contact: str | None = None
    timezone: str | None = None

    def __post_init__(self) -> None:
        for name, value in self._stated_fields():
            if not isinstance(value, Dates):
                check_line(name, value)

    def _stated_fields(self) -> list[tuple[str, str | Dates]]:
        pairs = [(f.name, getattr(self, f.name)) for f in fields(self)]
        return [(name, value) for name, value in pairs if value is not None]

    def json(self) -> AboutJson:
        """What is given, as manifests and exports state it; a password is masked."""
        stated = {n: v.json() if isinstance(v, Dates) else masked(v) for n, v in self._stated_fields()}
        return cast("AboutJson", stated)

    def texts(self) -> dict[str, str]:
        """What is given, a line of text each; days are written as numbers, which programs read too."""
        return {
            n: f"{v.first} to {v.last}" if isinstance(v, Dates) else masked(v)
            for n, v in self._stated_fields()
        }


def about_from(stated: AboutJson | None) -> About | None:
    """What a manifest states."""
    if stated is None:
        return None
    period = stated.get("period")
    lines = cast("dict[str, str]", {name: line for name, line in stated.items() if name != "period"})
    if period is None or isinstance(period, str):
        return About(**lines, period=period)
    first, last = (dt.date.fromisoformat(day) for day in (period["first"], period["last"]))
    return About(**lines, period=Dates(first, last))


def check_line(name: str, value: object) -> None:
    """Refuse what is no line of text that every format can hold."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"about.{name} is {value!r}: give a line of text, or leave it out")
    if len(value) > MAX_LINE_CHARACTERS:
        raise InputError(
            f"about.{name} has {len(value):,} characters, at most {MAX_LINE_CHARACTERS} are allowed: shorten it"
        )
    for letter in value:
        if unicodedata.category(letter) in REFUSED_CATEGORIES or letter in REFUSED_CHARACTERS:
            raise InputError(
                f"about.{name} contains the character {letter!r}, which is not part of a line of text: remove it"
            )
