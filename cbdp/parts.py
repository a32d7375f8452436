"""Parts that others may add: one table for each kind, all alike.

A part is a frozen value (or a class whose instances are frozen values) with a `name`, a line `about` it, and its
capabilities as class data. A kind of part has an ordered table in its folder's `__init__`, name → "module:attribute", and an
entry-point group in which other packages register theirs. Nothing is imported until it is asked for.

Whoever writes Python or a configuration may name a part of their own as "package.module:attribute" (`Parts.get`). A file that somebody
else wrote may not: its names are looked up among installed parts (`Parts.installed`), and import nothing that the file names.
"""

from __future__ import annotations

import dataclasses
import difflib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from cbdp.errors import CbdpError, InputError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_HANDED: dict[
    tuple[str, str], object
] = {}  # (group, name) → a part that is in no table; files never add to it


@dataclass(frozen=True)
class Parts(Generic[T_co]):
    """All parts of one kind, ours first, in the order we would choose them."""

    kind: str  # what one is called in messages: "solver"
    group: str  # the entry-point group: "cbdp.solvers"
    table: Mapping[str, str]  # name → "module:attribute"
    fits: Callable[[object], T_co | None]  # the part that an object is, or None
    error: type[CbdpError] = InputError
    base: str = ""  # what to subclass, for the message

    def known(self) -> dict[str, str]:
        """Every part's name and where it is found; nothing of it is imported.

        >>> from cbdp.rounding import ROUNDINGS
        >>> list(ROUNDINGS.known())
        ['few', 'nearest']
        """
        others = _registered(entry_points, self.group, _installed())
        return {**self.table, **{n: where for n, where in sorted(others.items()) if n not in self.table}}

    def names(self) -> tuple[str, ...]:
        return tuple(self.known())

    def get(self, part_or_name: object) -> T_co:
        """A part by its name, as "package.module:attribute", or as it is.

        >>> from cbdp.solvers import SOLVERS
        >>> SOLVERS.get("newton").name
        'newton'
        >>> SOLVERS.get(SOLVERS.get("newton")).name
        'newton'
        """
        if isinstance(part_or_name, str):
            # installed packages are searched for strangers only
            where = self.table.get(part_or_name) or self.known().get(self.spelled(part_or_name), part_or_name)
            if ":" not in where:
                raise self.error(self.unknown(part_or_name))
            if where != part_or_name:
                return self._fitting(self._load(where))
            with _working_folder():
                part = self._fitting(self._load(where))
            self._remember(part, part_or_name)
            return part
        part = self._fitting(part_or_name)
        self._remember(part)
        return part

    def installed(self, name: object) -> T_co:
        """A part that a file names: ours, one that an installed package registers, or one that this process was handed before.

        >>> from cbdp.rounding import ROUNDINGS
        >>> ROUNDINGS.installed("few").name
        'few'
        >>> ROUNDINGS.installed("antigravity:fly")
        Traceback (most recent call last):
        ...
        cbdp.errors.InputError: 'antigravity:fly' is not an installed rounding: there are few, nearest; a file can name no other
        """
        if isinstance(name, str):
            handed = _HANDED.get((self.group, name))
            if name not in self.table and handed is not None:
                part = self.fits(handed)
                if part is not None:
                    return part
            where = self.table.get(name) or self.known().get(self.spelled(name))
            if where is not None:
                return self._fitting(self._load(where))
        raise self.error(
            f"{name!r} is not an installed {self.kind}: {did_you_mean(str(name), list(self.known()))}; "
            "a file can name no other"
        )

    def _fitting(self, loaded: object) -> T_co:
        part = self.fits(loaded)
        if part is None:
            hint = f": subclass {self.base}" if self.base else ""
            raise self.error(f"{loaded!r} is not {_article(self.kind)} {self.kind}{hint}")
        return part

    def _remember(self, part: object, *names: str) -> None:
        """Python or a configuration chose this part: files that it writes may name it for as long as this process runs."""
        for name in (*names, getattr(part, "name", None)):
            if isinstance(name, str) and name not in self.table:
                _HANDED[self.group, name] = part

    def spelled(self, name: str) -> str:
        """The name as its part spells it, whatever its case; a name that no part has stays as it is.

        >>> Parts("solver", "", {"newton": "…"}, lambda part: part).spelled("Newton")
        'newton'
        """
        if name in self.table:
            return name
        matches = [part_name for part_name in self.names() if part_name.casefold() == name.casefold()]
        return name if name in matches or not matches else matches[0]

    def unknown(self, name: str) -> str:
        """What to say of a name that no part has."""
        names = list(self.known())
        return (
            f"unknown {self.kind} {name!r}: {did_you_mean(name, names)} "
            "(or name one as 'package.module:attribute')"
        )

    def each(self) -> Iterator[tuple[str, T_co | None, str]]:
        """Name, part and, where it cannot be loaded, the reason; for lists that people read."""
        for name in self.known():
            try:
                yield name, self.get(name), ""
            except Exception as broken:  # noqa: BLE001 - somebody else's module may fail in any way
                yield name, None, str(broken)

    def _load(self, where: str) -> object:
        module, _, attribute = where.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError, ValueError, TypeError) as failure:
            raise self.error(f"{self.kind} {where!r} cannot be loaded: {failure}") from failure


@dataclass(frozen=True)
class Setting:
    """What a configuration may say of a part's field, and a line about it."""

    about: str
    kind: str = "text"
    choices: tuple[str, ...] | Parts[object] | None = None


def setting(
    about: str,
    kind: str = "text",
    *,
    choices: tuple[str, ...] | Parts[object] | None = None,
    default: Any = None,
    **field: Any,
) -> Any:
    """A field of a part that a configuration may set.

    `kind` is one of "text", "whole", "real", "flag", "names" (a list of features), "weights" and "file". `choices` are the
    only texts allowed: a tuple, or a `Parts` whose names they are.
    """
    return dataclasses.field(default=default, metadata={"setting": Setting(about, kind, choices)}, **field)


def settings_of(part: type) -> dict[str, Setting]:
    """The fields of a part that a configuration may set."""
    return {f.name: f.metadata["setting"] for f in dataclasses.fields(part) if "setting" in f.metadata}


def instance_of(base: type[T]) -> Callable[[object], T | None]:
    """What `Parts.fits` is for parts that are values: an instance, or a class that needs no settings."""

    def fits(candidate: object) -> T | None:
        if isinstance(candidate, type) and issubclass(candidate, base):
            candidate = candidate()
        return candidate if isinstance(candidate, base) else None

    return fits


def subclass_of(base: Any) -> Callable[[Any], Any]:
    """What `Parts.fits` is for parts that are classes."""
    return lambda candidate: (
        candidate if isinstance(candidate, type) and issubclass(candidate, base) else None
    )


def table_of(kind: str) -> Parts[Any]:
    """A table of parts that the package lists by kind, wherever it stands: for whoever reads names of parts and must not import them.

    >>> table_of("mechanisms").kind
    'mechanism'
    """
    module, _, attribute = import_module("cbdp").PART_TABLES[kind].partition(":")
    table: Parts[Any] = getattr(import_module(module), attribute)
    return table


def handed(name: str) -> bool:
    """Whether Python or a configuration has chosen a part of this name in this process.

    >>> handed("antigravity:fly")
    False
    """
    return any(part_name == name for _, part_name in _HANDED)


def did_you_mean(wrong: str, names: list[str]) -> str:
    """Advice for a name that no part has: the closest one (`difflib.get_close_matches`), or all of them.

    >>> did_you_mean("newtom", ["newton", "osqp"]), did_you_mean("x", ["newton", "osqp"])
    ("did you mean 'newton'?", 'there are newton, osqp')
    """
    close = difflib.get_close_matches(wrong, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"


@contextmanager
def _working_folder() -> Iterator[None]:
    """Modules of the working folder too, after all installed ones: for the part that its owner names there."""
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.reverse()  # the last of them is ours
        sys.path.remove(here)
        sys.path.reverse()


def _installed() -> tuple[tuple[str, int], ...]:
    """Where packages may be, and when something was last added there."""
    return tuple((place, _changed(Path(place))) for place in sys.path)


def _changed(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=64)
def _registered(
    search: Callable[..., Iterable[EntryPoint]], group: str, _: tuple[tuple[str, int], ...]
) -> Mapping[str, str]:
    """Name → "module:attribute" of the parts that other packages register. All packages are searched, so once for each state of the folders."""
    return {entry.name: entry.value for entry in search(group=group)}


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"
