"""A feature: a named partition of the universe, declared by the attributes it groups by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cbdp.errors import InputError


@dataclass(frozen=True, init=False)
class Feature:
    """A name and the attributes it groups by.

    >>> Feature("zone", by=["origin.zone", "destination.zone", "time"])
    Feature(name='zone', by=('origin.zone', 'destination.zone', 'time'))
    """

    name: str
    by: tuple[str, ...]

    def __init__(self, name: str, by: str | Sequence[str]) -> None:
        by = (by,) if isinstance(by, str) else tuple(by)
        if not name or "/" in name or name != name.strip():
            raise InputError(f"a feature cannot be named {name!r}: its name becomes a file name")
        if len(set(by)) < len(by):
            raise InputError(f"feature {name!r} groups by an attribute twice: {', '.join(by)}")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "by", by)
