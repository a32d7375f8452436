"""What an export format is: a way to write a release for other programs."""

from __future__ import annotations

import gzip
import importlib.util
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import ClassVar, TextIO
from xml.sax.saxutils import escape, quoteattr

from cbdp import __version__
from cbdp.errors import InputError
from cbdp.machine import locked_folder, partial_name, sweep
from cbdp.privacy.accounting import EpsilonDeltaStatement
from cbdp.release.release import Release
from cbdp.release.views import counted_noun, left_out


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
    # what `cbdp.release.export.base.provenance` says: whoever has the file alone must know what it is
    write: ClassVar[Callable[..., None]]

    def check_options(self, options: Iterable[str]) -> None:
        """Refuse options that this format does not have."""
        options_of_format = list(signature(self.write).parameters)[2:]
        for option in options:
            if option not in options_of_format:
                raise InputError(
                    f"{self.name} has no option {option!r}: it has {', '.join(options_of_format) or 'none'}"
                )


# What every export says beside the numbers: the publisher's words, what protects the riders or that nothing does, and where it is from


def provenance(release: Release) -> dict[str, object]:
    """As JSON."""
    words = {} if release.about is None else release.about.json()
    simulation = {} if release.secure else {"simulation": True}
    return {**words, **simulation, **_privacy_statement(release), **_counted(release)}


def provenance_lines(release: Release) -> dict[str, str]:
    """The same as a line of text each, for formats that hold nothing else."""
    words = {} if release.about is None else release.about.texts()
    numbers = {
        name: value if isinstance(value, str) else f"{value:g}"
        for name, value in _privacy_statement(release).items()
    }
    simulation = {} if release.secure else {"simulation": "true"}
    return {**words, **simulation, **numbers, **_counted(release)}


def _counted(release: Release) -> dict[str, str]:
    """That trips of a person beyond a bound do not count, where it is so."""
    sentence = left_out(release.claim.unit, counted_noun(release.features.universe))
    return {"not_counted": sentence} if sentence else {}


def _privacy_statement(release: Release) -> Mapping[str, float | str]:
    """ε (or ρ), δ, whom it protects, and the program; where nobody is protected, the reason instead of any number."""
    claim = release.promise
    version = __version__ if release.stored is None else release.stored.software.get("cbdp", __version__)
    source = {"source": f"cbdp {version}, mechanism {release.mechanism}"}
    if not claim.holds:
        return {"caveat": claim.caveat} | source
    cost = claim.cost
    spent: dict[str, float | str] = {"rho": float(cost.rho)} if cost.currency == "rho" else {}
    if cost.currency != "rho" or isinstance(cost, EpsilonDeltaStatement):
        spent |= {"epsilon": float(cost.epsilon)} | ({"delta": float(cost.delta)} if cost.delta else {})
    return spent | {"protects": str(claim.unit)} | source


# Files that are there when they are finished, and libraries that are loaded when they are needed


@contextmanager
def new_target(target: Path) -> Iterator[Path]:
    """A path near the target to write a file or folder to; renamed when all went well, and removed otherwise."""
    if os.path.lexists(target):
        raise InputError(f"{str(target)!r} exists already: choose another path")
    if not target.absolute().parent.is_dir():
        raise InputError(f"there is no folder {str(target.absolute().parent)!r} to write to: create it")
    sweep(target.absolute().parent)
    with locked_folder(target.absolute().with_name(partial_name(target.name))) as folder:
        work = folder / target.name
        yield work
        if os.path.lexists(target):
            raise InputError(f"{str(target)!r} exists already: choose another path")
        work.rename(target)


def final_path(work: Path) -> Path:
    """Where what is written at a path of `new_target` stands in the end: files that name others by relative paths need to know."""
    return work.absolute().parent.parent / work.name


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """A text file to write to, compressed if its name ends in .gz; the same text gives the same bytes."""
    with path.open("xb") as out:
        raw = gzip.GzipFile("", "wb", fileobj=out, mtime=0) if path.suffix == ".gz" else out
        with io.TextIOWrapper(raw, encoding="utf-8", newline="\n") as written:
            yield written


def optional_library(module: str, extra: str) -> ModuleType:
    """An optional library."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"this format needs {module}: pip install 'cbdp[{extra}]'") from None


# Text inside XML


# what XML 1.0 cannot hold, not even escaped
XML_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


SUMO_UNSAFE = re.compile(r"""[%\s|\\'";,<>&]""")  # in SUMO's ids


def xml_attribute(text: str) -> str:
    """Text as the value of an attribute, quotes included."""
    return quoteattr(_check_xml_characters(text))


def sumo_id(text: str) -> str:
    """An id as SUMO takes it. Its programs copy ids without escaping them, so what XML or SUMO's lists use is written as %XX.

    >>> sumo_id("north & east"), sumo_id("Zürich-7")
    ('north%20%26%20east', 'Zürich-7')
    """
    return SUMO_UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", _check_xml_characters(text))


def xml_text(text: str) -> str:
    """Text between tags."""
    return escape(_check_xml_characters(text))


def xml_comment(lines: Mapping[str, str]) -> str:
    """Named lines as a comment, or nothing. Two hyphens would end it: they are written apart.

    >>> print(xml_comment({"title": "Trips -- all"}), end="")
    <!--
    title: Trips - - all
    -->
    """
    if not lines:
        return ""
    text = "".join(f"{name}: {_check_xml_characters(line)}\n" for name, line in lines.items())
    return f"<!--\n{re.sub('-(?=-)', '- ', text)}-->\n"


def _check_xml_characters(text: str) -> str:
    if XML_FORBIDDEN.search(text):
        raise InputError(f"{text!r} has a character that XML cannot hold: rename it")
    return text
