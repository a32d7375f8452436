"""Kinds of values: how each is read from TOML, and what a JSON Schema says of it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Annotated, ClassVar, Generic, Protocol, TypeVar, cast, get_origin, get_type_hints

from cbdp.config.positions import Where
from cbdp.parts import Parts, did_you_mean
from cbdp.privacy.numbers import positive

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
