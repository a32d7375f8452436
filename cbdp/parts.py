"""Parts that others may add: one table for each kind, all alike.

A part is a frozen value (or a class whose instances are frozen values) with a `name`, a line `about` it, and its
capabilities as class data. A kind of part has an ordered table in its folder's `__init__`, name → "module:attribute", and an
entry-point group in which other packages register theirs. Nothing is imported until it is asked for.
"""

from __future__ import annotations

import dataclasses
import difflib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from cbdp.errors import CbdpError, InputError

T = TypeVar("T")


@dataclass(frozen=True)
class Parts(Generic[T]):
    """All parts of one kind, ours first, in the order we would choose them."""

    kind: str  # what one is called in messages: "solver"
    group: str  # the entry-point group: "cbdp.solvers"
    table: Mapping[str, str]  # name → "module:attribute"
    fits: Callable[[Any], T | None]  # the part that an object is, or None
    error: type[CbdpError] = InputError
    base: str = ""  # what to subclass, for the message

    def known(self) -> dict[str, str]:
        """Every part's name and where it is found; nothing of it is imported.

        >>> from cbdp.rounding import ROUNDINGS
        >>> list(ROUNDINGS.known())
        ['few', 'nearest']
        """
        others = _found(entry_points, self.group, _installed())
        return {**self.table, **{n: where for n, where in sorted(others.items()) if n not in self.table}}

    def names(self) -> tuple[str, ...]:
        return tuple(self.known())

    def get(self, wanted: Any) -> T:
        """A part by its name, as "package.module:attribute", or as it is.

        >>> from cbdp.solvers import SOLVERS
        >>> SOLVERS.get("newton").name
        'newton'
        >>> SOLVERS.get(SOLVERS.get("newton")).name
        'newton'
        """
        if isinstance(wanted, str):
            # installed packages are searched for strangers only
            where = self.table.get(wanted) or self.known().get(self.spelled(wanted), wanted)
            if ":" not in where:
                raise self.error(self.unknown(wanted))
            wanted = self._load(where)
        part = self.fits(wanted)
        if part is None:
            hint = f": subclass {self.base}" if self.base else ""
            raise self.error(f"{wanted!r} is not {_article(self.kind)} {self.kind}{hint}")
        return part

    def spelled(self, name: str) -> str:
        """The name as its part spells it, whatever its case; a name that no part has stays as it is.

        >>> Parts("solver", "", {"newton": "…"}, lambda given: given).spelled("Newton")
        'newton'
        """
        if name in self.table:
            return name
        found = [known for known in self.names() if known.casefold() == name.casefold()]
        return name if name in found or not found else found[0]

    def unknown(self, name: str) -> str:
        """What to say of a name that no part has."""
        known = list(self.known())
        return (
            f"unknown {self.kind} {name!r}: {did_you_mean(name, known)} "
            "(or name one as 'package.module:attribute')"
        )

    def each(self) -> Iterator[tuple[str, T | None, str]]:
        """Name, part and, where it cannot be loaded, the reason; for lists that people read."""
        for name in self.known():
            try:
                yield name, self.get(name), ""
            except Exception as broken:  # noqa: BLE001 - somebody else's module may fail in any way
                yield name, None, str(broken)

    def _load(self, where: str) -> Any:
        module, _, attribute = where.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as failure:
            raise self.error(f"{self.kind} {where!r} cannot be loaded: {failure}") from failure


def _installed() -> tuple[tuple[str, int], ...]:
    """Where packages may be, and when something was last added there."""
    return tuple((place, _changed(Path(place))) for place in sys.path)


def _changed(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=64)
def _found(search: Callable[..., Any], group: str, _: tuple[tuple[str, int], ...]) -> Mapping[str, str]:
    """Name → where of what other packages register. All of them are looked at, so once for each state of the folders."""
    return {entry.name: entry.value for entry in search(group=group)}


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def instance_of(base: type[T]) -> Callable[[Any], T | None]:
    """What `Parts.fits` is for parts that are values: an instance, or a class that needs no settings."""

    def fits(given: Any) -> T | None:
        if isinstance(given, type) and issubclass(given, base):
            given = given()
        return given if isinstance(given, base) else None

    return fits


def subclass_of(base: Any) -> Callable[[Any], Any]:
    """What `Parts.fits` is for parts that are classes."""
    return lambda given: given if isinstance(given, type) and issubclass(given, base) else None


def did_you_mean(wrong: str, known: list[str]) -> str:
    """A cure for a name that is not known.

    >>> did_you_mean("newtom", ["newton", "osqp"]), did_you_mean("x", ["newton", "osqp"])
    ("did you mean 'newton'?", 'there are newton, osqp')
    """
    close = difflib.get_close_matches(wrong, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"


def setting(about: str, kind: str = "text", *, choices: Any = None, default: Any = None, **field: Any) -> Any:
    """A field of a part that a configuration may set.

    `kind` is one of "text", "whole", "real", "flag", "names" (a list of features), "weights" and "file". `choices` are the
    only texts allowed: a tuple, or a `Parts` whose names they are.
    """
    return dataclasses.field(default=default, metadata={"setting": Setting(about, kind, choices)}, **field)


@dataclass(frozen=True)
class Setting:
    """What a configuration may say of a part's field, and a line about it."""

    about: str
    kind: str = "text"
    choices: Any = None


def settings_of(part: type) -> dict[str, Setting]:
    """The fields of a part that a configuration may set."""
    return {f.name: f.metadata["setting"] for f in dataclasses.fields(part) if "setting" in f.metadata}
