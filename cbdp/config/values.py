"""Kinds of values: how each is read from TOML, what a JSON Schema says of it, and where it stands: errors begin with file and line.

`tomllib` does the parsing and keeps no positions, so `key_lines` walks once more over a text that it has read without complaint.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, Generic, Protocol, TypeVar, cast, get_origin, get_type_hints

from cbdp.errors import CbdpError, InputError
from cbdp.numbers import positive
from cbdp.parts import Parts, did_you_mean
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


T = TypeVar("T")
IMPORTED = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"  # package.module:attribute


class ValueKind(Protocol):
    """A kind of value: which TOML types it takes, what to call it, how to read it."""

    @property
    def takes(self) -> tuple[type, ...]: ...
    @property
    def says(self) -> str: ...
    def read(self, value: object, where: Where) -> object: ...
    def schema(self) -> dict[str, object]: ...


@dataclass(frozen=True)
class Text:
    """Text: any, one of some choices, or of a certain form."""

    says: str = "text in quotes"
    choices: tuple[str, ...] = ()
    form: str = ""
    takes: ClassVar[tuple[type, ...]] = (str,)

    def read(self, value: object, where: Where) -> str:
        if not isinstance(value, str) or not value.strip() or not re.search(self.form, value):
            raise where.expected(value, self.says)
        if self.choices and value not in self.choices:
            raise where.wrong(f"{where} is {value!r}: {did_you_mean(value, list(self.choices))}")
        return value

    def schema(self) -> dict[str, object]:
        if self.choices:
            return {"enum": list(self.choices)}
        return {"type": "string", "pattern": self.form} if self.form else {"type": "string", "minLength": 1}


@dataclass(frozen=True)
class PartName:
    """The name of a part: ours, one that an installed package brings, or "package.module:attribute"."""

    parts: Callable[[], Parts[object]]  # a function, so that the table is imported when it is used
    says: str = "text in quotes"
    takes: ClassVar[tuple[type, ...]] = (str,)

    def read(self, value: object, where: Where) -> str:
        if not isinstance(value, str) or not value.strip():
            raise where.expected(value, self.says)
        parts = self.parts()
        spelled = parts.spelled(value)
        if spelled not in parts.table and not re.search(IMPORTED, value) and spelled not in parts.names():
            raise where.wrong(f"{where} is {value!r}: {did_you_mean(value, list(parts.names()))}")
        return spelled

    def schema(self) -> dict[str, object]:
        """Ours by name; what is installed here is not the schema's to know."""
        return {"anyOf": [{"enum": list(self.parts().table)}, {"type": "string", "pattern": IMPORTED}]}


@dataclass(frozen=True)
class Whole:
    least: int = 1
    takes: ClassVar[tuple[type, ...]] = (int,)

    @property
    def says(self) -> str:
        return f"a whole number of at least {self.least}"

    def read(self, value: object, where: Where) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < self.least:
            raise where.expected(value, self.says)
        return value

    def schema(self) -> dict[str, object]:
        return {"type": "integer", "minimum": self.least}


@dataclass(frozen=True)
class Real:
    """A number above 0, and below a bound if there is one."""

    below: float | None = None
    takes: ClassVar[tuple[type, ...]] = (int, Decimal)

    @property
    def says(self) -> str:
        return "a number above 0" + (f" and below {self.below:g}" if self.below else "")

    def read(self, value: object, where: Where) -> float:
        if (
            not isinstance(value, int | Decimal)
            or isinstance(value, bool)
            or not 0 < float(value) < (self.below or float("inf"))
        ):
            raise where.expected(value, self.says)
        return float(value)

    def schema(self) -> dict[str, object]:
        top = {"exclusiveMaximum": self.below} if self.below else {}
        return {"type": "number", "exclusiveMinimum": 0, **top}


@dataclass(frozen=True)
class Exact:
    """A number taken as it is written: 0.1 is one tenth, and "1/3" a third."""

    check: Callable[..., Fraction] = positive
    says: str = 'a number above 0, or a fraction like "1/3"'
    takes: ClassVar[tuple[type, ...]] = (int, Decimal, str)

    def read(self, value: object, where: Where) -> Fraction:
        if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
            raise where.expected(value, self.says)
        with where.source.at(*where.keys):
            return self.check(value, str(where))

    def schema(self) -> dict[str, object]:
        bound = {"exclusiveMinimum": 0} if self.check is positive else {"minimum": 0, "exclusiveMaximum": 1}
        return {"anyOf": [{"type": "number", **bound}, {"type": "string", "minLength": 1}]}


@dataclass(frozen=True)
class Flag:
    says: str = "true or false"
    takes: ClassVar[tuple[type, ...]] = (bool,)

    def read(self, value: object, where: Where) -> bool:
        if not isinstance(value, bool):
            raise where.expected(value, self.says)
        return value

    def schema(self) -> dict[str, object]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Day:
    """A day, as text or as TOML's own date; kept as ISO text."""

    says: str = 'a day like "2026-03-02"'
    takes: ClassVar[tuple[type, ...]] = (str, dt.date)

    def read(self, value: object, where: Where) -> str:
        try:
            day = dt.date.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            day = None
        if not isinstance(day, dt.date) or isinstance(day, dt.datetime):
            raise where.expected(value, self.says)
        return day.isoformat()

    def schema(self) -> dict[str, object]:
        return {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}


@dataclass(frozen=True)
class Many:
    """A list that is not empty; with `single`, one value may stand for a list of itself."""

    of: ValueKind
    single: bool = False

    @property
    def takes(self) -> tuple[type, ...]:
        return (list, *(self.of.takes if self.single else ()))

    @property
    def says(self) -> str:
        return f"{self.of.says}, or a list of them" if self.single else f"a list, each item {self.of.says}"

    def read(self, value: object, where: Where) -> tuple[object, ...]:
        if self.single and not isinstance(value, list):
            return (self.of.read(value, where),)
        if not isinstance(value, list) or not value:
            raise where.expected(value, self.says)
        return tuple(self.of.read(item, where.down(n)) for n, item in enumerate(value))

    def schema(self) -> dict[str, object]:
        listed = {"type": "array", "items": self.of.schema(), "minItems": 1}
        return {"anyOf": [self.of.schema(), listed]} if self.single else listed


@dataclass(frozen=True)
class Named:
    """A table whose keys are the user's own."""

    of: ValueKind
    keys: tuple[str, ...] = ()  # the only ones, where they are not free
    day: bool = False  # keys are days
    takes: ClassVar[tuple[type, ...]] = (dict,)

    @property
    def says(self) -> str:
        return f"a table like {{ name = … }}, each value {self.of.says}"

    def read(self, value: object, where: Where) -> dict[str, object]:
        if not isinstance(value, dict):
            raise where.expected(value, self.says)
        for key in value:
            if self.keys and key not in self.keys:
                raise where.down(key).wrong(f"{where} has no {key!r}: {did_you_mean(key, list(self.keys))}")
            if self.day:
                Day().read(key, where.down(key))
        return {key: self.of.read(item, where.down(key)) for key, item in value.items()}

    def schema(self) -> dict[str, object]:
        if self.keys:
            listed = {key: self.of.schema() for key in self.keys}
            return {"type": "object", "properties": listed, "additionalProperties": False}
        names = {"propertyNames": Day().schema()} if self.day else {}
        return {"type": "object", "additionalProperties": self.of.schema(), **names}


@dataclass(frozen=True)
class Option:
    """What a field of the configuration may hold, and a line about it."""

    kind: ValueKind
    about: str


@cache
def _options(cls: type) -> Mapping[str, Option]:
    """The options of a dataclass; its annotations are evaluated once, which takes longer than to read a file."""
    hints = get_type_hints(cls, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if get_origin(hint) is Annotated}


@dataclass(frozen=True)
class Fields(Generic[T]):
    """A table whose keys are the fields of a dataclass, which may state `ONE_OF` (exactly one of these) and `NEEDS` (key → another)."""

    cls: type[T]
    takes: ClassVar[tuple[type, ...]] = (dict,)

    @property
    def says(self) -> str:
        return f"a table with {', '.join(self.options)}"

    @property
    def options(self) -> Mapping[str, Option]:
        return _options(cast("type", self.cls))

    @property
    def required(self) -> list[str]:
        default = {f.name: (f.default, f.default_factory) for f in dataclasses.fields(cast("type", self.cls))}
        return [n for n in self.options if default[n] == (dataclasses.MISSING, dataclasses.MISSING)]

    @property
    def one_of(self) -> tuple[str, ...]:
        return getattr(self.cls, "ONE_OF", ())

    @property
    def needs(self) -> Mapping[str, str]:
        return getattr(self.cls, "NEEDS", {})

    def read(self, value: object, where: Where, **more: object) -> T:
        if not isinstance(value, dict):
            raise where.expected(value, self.says)
        for key in value:
            if key not in self.options:
                cure = where.down(key).stray() or did_you_mean(key, list(self.options))
                raise where.down(key).wrong(f"{where.inside} has no setting {key!r}: {cure}")
        for name in self.required:
            if name not in value:
                raise where.wrong(f"{where.inside} needs {name!r}: give {self.options[name].kind.says}")
        self._check_one(value, where)
        read = {n: self.options[n].kind.read(v, where.down(n)) for n, v in value.items()}
        return self.cls(**read, **more)

    def _check_one(self, value: Mapping[str, object], where: Where) -> None:
        present = [n for n in self.one_of if n in value]
        if self.one_of and not present:
            raise where.wrong(f"{where} needs one of {', '.join(self.one_of)}: choose one")
        if len(present) > 1:
            raise where.down(present[1]).wrong(f"{where} has {' and '.join(present)}: choose one")
        for name, other in self.needs.items():
            if name in value and other not in value:
                raise where.down(name).wrong(f"{where} has {name!r}, which needs {other!r}: add it")

    def schema(self) -> dict[str, object]:
        properties = {n: {"description": f.about, **f.kind.schema()} for n, f in self.options.items()}
        schema: dict[str, object] = {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        if self.required:
            schema["required"] = self.required
        if self.one_of:
            schema["oneOf"] = [{"required": [n]} for n in self.one_of]
        if self.needs:
            schema["dependentRequired"] = {name: [other] for name, other in self.needs.items()}
        return schema


@dataclass(frozen=True)
class Either:
    """One of several kinds, told apart by the TOML type of the value."""

    kinds: tuple[ValueKind, ...]

    @property
    def takes(self) -> tuple[type, ...]:
        return tuple(t for kind in self.kinds for t in kind.takes)

    @property
    def says(self) -> str:
        return " or ".join(kind.says for kind in self.kinds)

    def read(self, value: object, where: Where) -> object:
        for kind in self.kinds:
            if isinstance(value, kind.takes) and isinstance(value, bool) == (bool in kind.takes):
                return kind.read(value, where)
        raise where.expected(value, self.says)

    def schema(self) -> dict[str, object]:
        return {"anyOf": [kind.schema() for kind in self.kinds]}
