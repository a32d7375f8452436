"""Text inside XML."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from cbdp.errors import InputError

# what XML 1.0 cannot hold, not even escaped
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def quoted(text: str) -> str:
    """Text as the value of an attribute, quotes included."""
    return quoteattr(_allowed(text))


def inside(text: str) -> str:
    """Text between tags."""
    return escape(_allowed(text))


def _allowed(text: str) -> str:
    if FORBIDDEN.search(text):
        raise InputError(f"{text!r} has a character that XML cannot hold: rename it")
    return text
