"""Times written as text: one pattern for each form, so that every engine reads the same texts, and reads them alike.

A pattern uses only what RE2, Java and PostgreSQL share. Its groups, in order, are the parts named beside it; ranges (hours to
23, minutes to 59) are in the pattern, so that only the length of months is left to check.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from cbdp.errors import InputError

EPOCHS = {"epoch_s": 1, "epoch_ms": 1000}  # units in a second
ISO = "iso"  # ISO 8601, where it stands in a list with others

DAY_PARTS = frozenset("YymdbBj")
TIME_PARTS = frozenset("HIMS")

_MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905

_DIRECTIVES = {
    "Y": "([0-9]{4})",
    "y": "([0-9]{2})",
    "m": "(1[0-2]|0[1-9]|[1-9])",
    "d": "(3[01]|[12][0-9]|0[1-9]|[1-9])",
    "H": "(2[0-3]|[01][0-9]|[0-9])",
    "I": "(1[0-2]|0[1-9]|[1-9])",
    "M": "([0-5][0-9]|[0-9])",
    "S": "([0-5][0-9]|[0-9])",
    "f": "([0-9]{1,6})",
    "p": "(am|pm)",
    "b": f"({'|'.join(m[:3] for m in _MONTHS)})",
    "B": f"({'|'.join(_MONTHS)})",
    "z": "([+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)",
    "a": f"(?:{'|'.join(d[:3] for d in _DAYS)})",
    "A": f"(?:{'|'.join(_DAYS)})",
    "%": "%",
}
_SHORT = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%R": "%H:%M", "%D": "%m/%d/%y"}
_GROUPS = frozenset("YymdHIMSfpbBz")


@dataclass(frozen=True)
class Written:
    """A written form: the pattern that the whole text must match, the part in each group, and the format of strptime."""

    pattern: str
    parts: tuple[str, ...]
    format: str | None  # None: ISO 8601

    @property
    def dated(self) -> bool:
        return bool(DAY_PARTS & set(self.parts))

    @property
    def timed(self) -> bool:
        return bool(TIME_PARTS & set(self.parts))


_DATE = "([0-9]{4})-(1[0-2]|0[1-9]|[1-9])-(3[01]|[12][0-9]|0[1-9]|[1-9])"
_TIME = "(2[0-3]|[01][0-9]|[0-9]):([0-5][0-9])(?::([0-5][0-9])(?:[.]([0-9]+))?)?"
ZONE = "(Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?"

ISO_STAMP = Written(f" *{_DATE}[T ]{_TIME}{ZONE} *", ("Y", "m", "d", "H", "M", "S", "f", "z"), None)
ISO_LOCAL = Written(f" *{_DATE}[T ]{_TIME} *", ("Y", "m", "d", "H", "M", "S", "f"), None)  # without an offset
ISO_DATE = Written(f" *{_DATE} *", ("Y", "m", "d"), None)
ISO_TIME = Written(f" *{_TIME} *", ("H", "M", "S", "f"), None)

OFFSET = ".*:[0-9.]+ *(Z|[+-][0-9]{2}(:?[0-9]{2})?) *"  # a time that ends in one

WHOLE = "[ \t]*([+-]?[0-9]+)(?:[.]0*)?[ \t]*"  # "289", "289.0": group 1 is the number
DOTTED = "(0|-?[1-9][0-9]*)[.]0*"  # "289.0" but neither "289" nor "0289.0"
REAL = "[ \t]*([+-]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t]*"
HOUR = "[ \t]*(2[0-3]|[01][0-9]|[0-9])(?:[.]0*)?[ \t]*"
NOT_NEGATIVE = "[ \t]*[+]?[0-9]+(?:[.]0*)?[ \t]*"
# a number of which two spellings are one person: sign, digits before and after the dot, exponent
SPELT = "[ \t]*([+-]?)(?:([0-9]+)(?:[.]([0-9]*))?|[.]([0-9]+))(?:[eE]([+-]?[0-9]{1,3}))?[ \t]*"
TRUE, FALSE = "(?i)[ \t]*(?:true|t|yes|y|1)[ \t]*", "(?i)[ \t]*(?:false|f|no|n|0)[ \t]*"


@lru_cache(maxsize=64)
def written(text: str) -> Written:
    """The form that a strptime format describes.

    >>> written("%d.%m.%y").parts
    ('d', 'm', 'y')
    """
    full = text
    for short, long in _SHORT.items():
        full = full.replace(short, long)
    pattern, parts = "", []
    for directive, literal in re.findall(r"%-?(.?)|([^%]+)", full.replace("%-", "%")):
        if literal:
            pattern += re.escape(literal).replace("\\ ", " ")
        elif directive in _DIRECTIVES:
            pattern += _DIRECTIVES[directive]
            parts += [directive] if directive in _GROUPS else []
        else:
            raise InputError(_unknown(text, f"%{directive} is not known"))
    made = Written(f"(?i) *{pattern} *", tuple(parts), full.replace("%-", "%"))
    _check(text, made)
    return made


def _check(text: str, made: Written) -> None:
    named = set(made.parts)
    whole_day = named & set("Yy") and named & set("mbB") and "d" in named
    if len(named) < len(made.parts):
        raise InputError(_unknown(text, "a part stands twice"))
    if not made.dated and not made.timed:
        raise InputError(_unknown(text, "neither a date nor a time of day"))
    if made.dated and not whole_day:
        raise InputError(_unknown(text, "a date needs year, month and day"))
    if (
        ("I" in named) != ("p" in named)
        or {"H", "I"} <= named
        or (named & set("MSf") and not named & set("HI"))
    ):
        raise InputError(_unknown(text, "a time needs %H, or %I with %p"))


def _unknown(text: str, why: str) -> str:
    return f"the time format {text!r} cannot be read ({why}): write it like '%m/%d/%Y %H:%M' or '%d.%m.%Y %I:%M %p'"
