"""The patterns of cbdp.trips.written in words that every engine's regular expressions share, read alike by all of them.

Engines differ in how they ignore case (by locale, by Unicode), in whether groups may be silent, and in how many may capture. So letters are
spelt out as [aA], and exactly one group captures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_TOKEN = re.compile(r"\\.|\[[^\]]*\]|\(\?:|.", re.DOTALL)
_ANY_CASE = "(?i)"

# cbdp.trips.written.WHOLE and DOTTED with no more digits than 2^63 has, so that a cast of what they find cannot fail
SIGNED = "[ \t]*([+-]?)0*([0-9]{1,19})(?:[.]0*)?[ \t]*"
DOTTED = "(0|-?[1-9][0-9]{0,18})[.]0*"


@lru_cache(maxsize=256)
def spelt(pattern: str) -> str:
    """A pattern that needs no option: letters of either case are written as such.

    >>> spelt("(?i) *(am|pm)"), spelt("[T ]z")
    (' *([aA][mM]|[pP][mM])', '[T ]z')
    """
    if not pattern.startswith(_ANY_CASE):
        return pattern
    return "".join(_either(token) for token in _TOKEN.findall(pattern.removeprefix(_ANY_CASE)))


@lru_cache(maxsize=1024)
def one_group(pattern: str, group: int, *, silent: bool = True) -> tuple[str, int]:
    """The pattern in which only this group captures, and its number; where groups cannot be silent, all of them capture.

    >>> one_group("(a)(?:b)(c)", 2), one_group("(a)(?:b)(c)", 2, silent=False)
    (('(?:a)(?:b)(c)', 1), ('(a)(b)(c)', 3))
    """
    tokens = list(_TOKEN.findall(spelt(pattern)))
    place = next(p for p, n in _captures(tokens) if n == group)
    if not silent:
        made = ["(" if t == "(?:" else t for t in tokens]
        return "".join(made), sum(t == "(" for t in made[: place + 1])
    return "".join("(?:" if t == "(" and p != place else t for p, t in enumerate(tokens)), 1


@lru_cache(maxsize=256)
def no_group(pattern: str, *, silent: bool = True) -> str:
    """The pattern, for asking only whether it fits."""
    tokens = _TOKEN.findall(spelt(pattern))
    return "".join(("(?:" if silent else "(") if t in ("(", "(?:") else t for t in tokens)


def _captures(tokens: list[str]) -> Iterator[tuple[int, int]]:
    places = [p for p, token in enumerate(tokens) if token == "("]  # noqa: S105 - a token of a pattern
    yield from zip(places, range(1, len(places) + 1), strict=True)


def _either(token: str) -> str:
    lower, upper = token.lower(), token.upper()
    spells = len(token) == len(lower) == len(upper) == 1 and lower != upper
    return f"[{lower}{upper}]" if spells else token
