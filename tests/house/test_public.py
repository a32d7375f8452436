"""Every public name is typed and documented, with an example that runs (doctests are part of the suite)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest

import cbdp
from cbdp.parts import Parts

FOLDERS = (
    "features",
    "solvers",
    "privacy",
    "ledger",
    "counting",
    "measuring",
    "estimation",
    "rounding",
    "release",
    "report",
    "audit",
    "transit",
    "mechanisms",
    "datasets",
    "app.audit",  # the rest of app is what the commands do, not an interface
)


def packages() -> Iterator[str]:
    """The package itself, its folders, and the folders in them."""
    yield "cbdp"
    for name in FOLDERS:
        yield f"cbdp.{name}"
        found = walk_packages(getattr(import_module(f"cbdp.{name}"), "__path__", []), f"cbdp.{name}.")
        yield from (inner.name for inner in found if inner.ispkg)


def public() -> dict[str, Any]:
    """Every class and function that a package lists, by its full name; and every error."""
    found = {}
    for package in packages():
        module = import_module(package)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                found[f"{package}.{name}"] = value
    errors = vars(cbdp.errors).items()
    return found | {f"cbdp.errors.{n}": v for n, v in errors if inspect.isclass(v)}


PUBLIC = public()


def documented(value: Any) -> str:
    """The docstring that is its own; of a class, those of its methods too."""
    own = value.__dict__.get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
    if not inspect.isclass(value):
        return own or ""
    inside = [getattr(v, "__func__", v) for v in vars(value).values()]
    return "\n".join(
        [
            own or "",
            *(inspect.getdoc(v) or "" for v in inside if inspect.isroutine(v) or isinstance(v, property)),
        ]
    )


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_a_docstring_with_an_example(name: str) -> None:
    """In words of its own (not those that a dataclass makes up), and with lines that doctest runs."""
    value = PUBLIC[name]
    own = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
    assert own, f"{name} has no docstring"
    assert not own.startswith(f"{value.__name__}("), f"{name} has only the docstring of its fields"
    assert ">>> " in documented(value), f"{name} has no example"


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_typed(name: str) -> None:
    """Every parameter and every result of a public function, and of the public methods of a public class."""
    assert not list(untyped(PUBLIC[name])), f"{name} lacks types: {', '.join(untyped(PUBLIC[name]))}"


def untyped(value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        for name, inside in vars(value).items():
            method = getattr(inside, "__func__", inside)
            if inspect.isfunction(method) and not name.startswith("_"):
                yield from (
                    f"{name}: {part}" for part in _missing(method, skip=not isinstance(inside, staticmethod))
                )
        return
    function = getattr(value, "__func__", value)
    yield from _missing(function, skip=inspect.ismethod(value))


def _missing(function: Any, *, skip: bool) -> Iterator[str]:
    signature = inspect.signature(inspect.unwrap(function))
    for parameter in list(signature.parameters.values())[1 if skip else 0 :]:
        if parameter.annotation is inspect.Parameter.empty:
            yield parameter.name
    if signature.return_annotation is inspect.Signature.empty:
        yield "the result"


def test_public_values_are_few_and_known() -> None:
    """What is listed and is neither class nor function is a table of parts, a type, or a constant that stands in capitals."""
    for package in packages():
        module = import_module(package)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if not (inspect.isclass(value) or inspect.isroutine(value)):
                assert isinstance(value, Parts) or name.isupper() or not name.islower(), f"{package}.{name}"
