"""The pages of the Python interface: every name in `__all__` of the package and of its folders."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

import cbdp
from cbdp.parts import Parts

FOLDER = "reference/api"
# in the order that data flows, as in the table of the folders
PACKAGES = (
    "features",
    "datasets",
    "counting",
    "measuring",
    "mechanisms",
    "privacy",
    "ledger",
    "estimation",
    "solvers",
    "rounding",
    "release",
    "report",
    "audit",
    "transit",
    "config",
    "forecast",
    "app",
    "errors",
)


def public(name: str) -> dict[str, tuple[str, ...]]:
    """The public names of a package and of the packages in it; those of its modules are its own business.

    >>> public("cbdp.rounding")
    {'cbdp.rounding': ('ROUNDINGS', 'Exactness', 'Rounded', 'Rounding', 'get', 'known')}
    """
    module = import_module(name)
    found = {name: names(module)}
    for inner in walk_packages(getattr(module, "__path__", []), f"{name}."):
        if inner.ispkg:
            found[inner.name] = names(import_module(inner.name))
    return {package: listed for package, listed in found.items() if listed}


def names(module: ModuleType) -> tuple[str, ...]:
    """What a package lists as public; a module by itself (`cbdp.errors`) has the classes that it defines."""
    if hasattr(module, "__path__") or hasattr(module, "__all__"):
        return tuple(getattr(module, "__all__", ()))
    return tuple(
        n for n, v in vars(module).items() if isinstance(v, type) and v.__module__ == module.__name__
    )


def pages() -> Iterator[tuple[str, str]]:
    """Address and text of each page."""
    yield f"{FOLDER}/index.md", front()
    for name in PACKAGES:
        yield f"{FOLDER}/{name}.md", page(f"cbdp.{name}")


def front() -> str:
    """What `import cbdp` gives, and where the rest is."""
    listed = "\n".join(f"- [`cbdp.{n}`]({n}.md): {about(import_module(f'cbdp.{n}'))}" for n in PACKAGES)
    made = [
        "# Python",
        (
            "`import cbdp` gives the names on this page, and every folder below as `cbdp.<folder>`. What a module holds beyond "
            "the public names may change without notice."
        ),
        listed,
        "## Names of `cbdp`",
        *(entry("cbdp", name, 3) for name in cbdp.__all__),
    ]
    return "\n\n".join(made) + "\n"


def page(package: str) -> str:
    """The names of one folder, those of the folders in it below."""
    made = [f"# `{package}`", about(import_module(package), whole=True)]
    for inner, listed in public(package).items():
        if inner != package:
            made += [f"## `{inner}`", about(import_module(inner), whole=True)]
        level = 2 if inner == package else 3
        made += [entry(inner, name, level) for name in listed]
    return "\n\n".join(made) + "\n"


def entry(package: str, name: str, level: int) -> str:
    """A name: classes and functions from their docstrings, values by what they are."""
    value = getattr(import_module(package), name)
    if isinstance(value, type) or callable(value):
        return f"::: {package}.{name}\n    options:\n      heading_level: {level}"
    return f"{'#' * level} `{name}` {{ #{package}.{name} }}\n\n{told(value)}"


def told(value: object) -> str:
    """What a value is.

    >>> told("singleton")
    "Text: `'singleton'`."
    """
    if isinstance(value, Parts):
        return f"The table of parts of this kind: {', '.join(f'`{n}`' for n in value.table)}. Entry-point group `{value.group}`."
    if isinstance(value, str):
        return f"Text: `{value!r}`."
    if isinstance(value, Path):
        return f"A path: `{value.name}`."
    if isinstance(value, tuple | int | float):
        return f"`{value!r}`."
    return f"A value of `{type(value).__module__}.{type(value).__qualname__}`."


def about(module: ModuleType, *, whole: bool = False) -> str:
    """What a module says of itself: its first paragraph, or all of it."""
    said = (module.__doc__ or "").strip()
    return said if whole else " ".join(said.partition("\n\n")[0].split())
