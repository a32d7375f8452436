"""Text inside XML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.sax.saxutils import escape, quoteattr

from cbdp.errors import InputError

# what XML 1.0 cannot hold, not even escaped
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


UNSAFE = re.compile(r"""[%\s|\\'";,<>&]""")  # in SUMO's ids


def quoted(text: str) -> str:
    """Text as the value of an attribute, quotes included."""
    return quoteattr(_allowed(text))


def sumo_id(text: str) -> str:
    """An id as SUMO takes it. Its programs copy ids without escaping them, so what XML or SUMO's lists use is written as %XX.

    >>> sumo_id("north & east"), sumo_id("Zürich-7")
    ('north%20%26%20east', 'Zürich-7')
    """
    return UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", _allowed(text))


def inside(text: str) -> str:
    """Text between tags."""
    return escape(_allowed(text))


def comment(lines: Mapping[str, str]) -> str:
    """Named lines as a comment, or nothing. Two hyphens would end it: they are written apart.

    >>> print(comment({"title": "Trips -- all"}), end="")
    <!--
    title: Trips - - all
    -->
    """
    if not lines:
        return ""
    text = "".join(f"{name}: {_allowed(line)}\n" for name, line in lines.items())
    return f"<!--\n{re.sub('-(?=-)', '- ', text)}-->\n"


def _allowed(text: str) -> str:
    if FORBIDDEN.search(text):
        raise InputError(f"{text!r} has a character that XML cannot hold: rename it")
    return text
