"""A configuration's own text, with the places of the lines that the page of `cbdp plan` can change.

Only keys that stand on lines of their own are known; where a table is written in another way, the page shows the lines to write instead.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from cbdp.app.config import Config
from cbdp.app.config.positions import key_lines

KEYS = (
    ("data", "expected_trips"),
    ("universe", "time"),
    ("universe", "zones"),
    ("privacy", "epsilon"),
    ("privacy", "rho"),
    ("privacy", "delta"),
    ("privacy", "unit"),
    ("privacy", "budget"),
    ("privacy", "target"),
)
SECTIONS = ("data", "universe", "privacy")
LOGIN = re.compile(r"://[^\s\"'/]*@")  # of a database: it is not put on a page that may be passed on


def template(config: Config) -> dict[str, Any] | None:
    """The lines of the file, where each key's lines begin and end, and the line after each section's head; None: it cannot be told."""
    text = config.source.path.read_text("utf-8")
    if LOGIN.search(text):
        return None
    lines, at = text.split("\n"), key_lines(text)
    written = tomllib.loads(text)
    spans = {}
    for section, key in KEYS:
        if key in written.get(section, {}):
            found = _span(lines, at[section, key] - 1, key, written[section][key])
            if found is None:
                return None
            spans[f"{section}.{key}"] = found
    heads = {s: at[(s,)] for s in SECTIONS if (s,) in at and _head(lines[at[(s,)] - 1], s)}
    if set(heads) != {s for s in SECTIONS if s in written}:
        return None
    return {"lines": lines, "spans": spans, "heads": heads}


def _head(line: str, section: str) -> bool:
    return re.fullmatch(rf"\s*\[\s*{section}\s*\]\s*(#.*)?", line.rstrip("\r")) is not None


def _span(lines: list[str], start: int, key: str, value: Any) -> list[int] | None:
    """The lines from this one on that say the key and nothing else."""
    for end in range(start + 1, len(lines) + 1):
        try:
            found = tomllib.loads("\n".join(lines[start:end]))
        except tomllib.TOMLDecodeError:
            continue
        return [start, end] if found == {key: value} else None
    return None
