"""What an export format is: a way to write a release for other programs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar

from cbdp.errors import InputError


@dataclass(frozen=True)
class Format:
    """A format. Subclass it, set the class data, implement `write`; its keyword arguments are the options that users give.

    >>> from cbdp.release.export import FORMATS
    >>> FORMATS.get("csv").name, isinstance(FORMATS.get("csv"), Format)
    ('csv', True)
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""  # what is written
    package: ClassVar[str | None] = None  # the module it needs, probed without importing
    install: ClassVar[str] = ""  # how to get that
    ending: ClassVar[str] = ""  # of a file's name, as its readers expect it; none: a folder

    @classmethod
    def installed(cls) -> bool:
        return cls.package is None or importlib.util.find_spec(cls.package) is not None

    def beside(self, name: str) -> str:
        """What an export beside the release of this name is called.

        >>> from cbdp.release.export import FORMATS
        >>> FORMATS.get("omx").beside("march"), FORMATS.get("csv").beside("march")
        ('march.omx', 'march-csv')
        """
        return f"{name}{self.ending or f'-{self.name}'}"

    # write(self, release, path, **options): write the release to a path that does not exist, a file or a folder, and with it
    # what `cbdp.release.export.beside.stated` says: whoever has the file alone must know what it is
    write: ClassVar[Callable[..., None]]

    def check_options(self, options: dict[str, Any]) -> None:
        """Refuse options that this format does not have."""
        known = list(signature(self.write).parameters)[2:]
        for option in options:
            if option not in known:
                raise InputError(f"{self.name} has no option {option!r}: it has {', '.join(known) or 'none'}")
