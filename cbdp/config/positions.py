"""Where things stand in a configuration: the line of each key, and errors that begin with file and line.

`tomllib` does the parsing and keeps no positions, so `key_lines` walks once more over a text that it has read without complaint.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cbdp.errors import CbdpError, InputError
from cbdp.text import message

Keys = tuple[str | int, ...]

STRINGS = (r'"""(?:\\.|[^\\])*?"{3,5}', r"'''.*?'{3,5}", r'"(?:\\.|[^"\\])*"', r"'[^']*'")
STRING = re.compile("|".join(STRINGS), re.DOTALL)
BLANK = re.compile(r"(?:\s|#[^\n]*)*")
BARE = re.compile(r"[A-Za-z0-9_-]+")
SCALAR = re.compile(r"[^,\]}#\n]+")
HEADER = re.compile(r"\s*(#?)[#\s]*(\[\[?[A-Za-z0-9_.-]+\]\]?)\s*(#.*)?")


@dataclass(frozen=True, eq=False)
class TomlFile:
    """The file of a configuration and the line of each of its keys."""

    path: Path
    lines: Mapping[Keys, int] = field(repr=False)
    text: str = field(default="", repr=False)

    def line(self, *keys: str | int) -> int:
        """The line of a key; if the key is missing, that of the innermost table around it."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys, 1)

    def error(self, keys: Keys, message: str) -> InputError:
        return InputError(f"{self.path}:{self.line(*keys)}: {message}")

    @contextmanager
    def at(self, *keys: str | int) -> Iterator[None]:
        """Give errors of ours the line of this key, unless they have one."""
        try:
            yield
        except CbdpError as error:
            if str(error).startswith(message(f"{self.path}:")):
                raise
            raise type(error)(f"{self.path}:{self.line(*keys)}: {error}") from None


@dataclass(frozen=True)
class Where:
    """A value's place while it is read."""

    source: TomlFile
    keys: Keys = ()

    def down(self, key: str | int) -> Where:
        return Where(self.source, (*self.keys, key))

    def __str__(self) -> str:
        return ".".join(k for k in self.keys if isinstance(k, str))

    def stray(self) -> str | None:
        """What to do about a key of no use here that stands right below a table's name in a comment: the comment made it land here."""
        line = self.source.line(*self.keys)
        written = "".join(self.source.text.split("\n")[line - 1 : line]).lstrip(" \t\"'")
        return commented_head(self.source.text, line) if written.startswith(str(self.keys[-1])) else None

    @property
    def inside(self) -> str:
        """What to call the table that stands here."""
        return f"[{self}]" if self.keys else "the configuration"

    def wrong(self, message: str) -> InputError:
        return self.source.error(self.keys, message)

    def expected(self, value: object, says: str) -> InputError:
        return self.wrong(f"{self} is {_shown(value)}: give {says}")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list" if value else "an empty list"
    return repr(value) if isinstance(value, str) else str(value)


def commented_head(text: str, line: int) -> str | None:
    r"""What to do where the last table's name above a line is a comment, so that the line belongs to the table before; else nothing.

    >>> commented_head("[output]\npath = 'r'\n# [about]\ntitle = 'Trips'", 4)
    'remove the # before [about] in line 3'
    >>> commented_head("# [about]\n[output]\npath = 'r'", 3)
    """
    above = text.split("\n")[: line - 1]
    for number in range(len(above), 0, -1):
        head = HEADER.fullmatch(above[number - 1])
        if head is not None:
            return f"remove the # before {head[2]} in line {number}" if head[1] else None
    return None


def key_lines(text: str) -> dict[Keys, int]:
    r"""The line of every key and list item of a valid TOML text, by its path.

    >>> key_lines("a = 1\n[b]\nc = [1,\n  {d = 2}]\n[[e]]\n")[("b", "c", 1, "d")]
    4
    """
    return _Walk(text).lines


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.lines: dict[Keys, int] = {}
        self._items: dict[Keys, int] = {}  # arrays of tables: the number of the last item
        base: Keys = ()
        while self._next():
            if self._next() == "[":
                base = self._header()
            else:
                self._pair(base)

    def _next(self) -> str:
        """The next character that says something; empty at the end."""
        self.place = BLANK.match(self.text, self.place).end()  # type: ignore[union-attr]
        return self.text[self.place : self.place + 1]

    def _line(self) -> int:
        return self.text.count("\n", 0, self.place) + 1

    def _header(self) -> Keys:
        double, line = self.text.startswith("[[", self.place), self._line()
        self.place += 2 if double else 1
        written = self._key()
        self.place += 2 if double else 1
        base: Keys = ()
        for number, key in enumerate(written, 1):
            base = (*base, key)
            self.lines.setdefault(base, line)
            if double and number == len(written):
                self._items[base] = self._items.get(base, -1) + 1
            if base in self._items:
                base = (*base, self._items[base])
                self.lines.setdefault(base, line)
        if not double:
            self.lines[base] = line  # its own header, not that of a table inside it
        return base

    def _key(self) -> list[str]:
        """A dotted key; ends at what follows it."""
        parts = []
        while True:
            quoted = self._next() in "\"'"
            match = (STRING if quoted else BARE).match(self.text, self.place)
            assert match is not None, "tomllib has read this text"
            parts.append(tomllib.loads(f"k = {match[0]}")["k"] if quoted else match[0])
            self.place = match.end()
            if self._next() != ".":
                return parts
            self.place += 1

    def _pair(self, base: Keys) -> None:
        line = self._line()
        for key in self._key():
            base = (*base, key)
            self.lines.setdefault(base, line)
        self.place += 1  # the equals sign
        self._value(base)

    def _value(self, keys: Keys) -> None:
        first = self._next()
        if first in "[{":
            self._inside(keys, "]" if first == "[" else "}")
            return
        match = (STRING if first in "\"'" else SCALAR).match(self.text, self.place)
        assert match is not None, "tomllib has read this text"
        self.place = match.end()

    def _inside(self, keys: Keys, close: str) -> None:
        self.place += 1
        number = 0
        while self._next() != close:
            if self._next() == ",":
                self.place += 1
                continue
            if close == "}":
                self._pair(keys)
            else:
                self.lines.setdefault((*keys, number), self._line())
                self._value((*keys, number))
                number += 1
        self.place += 1
