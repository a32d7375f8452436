"""The configuration of a release: TOML read into frozen values, and the JSON Schema of such texts. Every error names its file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from cbdp.config.sections import (
    AboutSection,
    Config,
    DataSection,
    DayRange,
    DaySpan,
    FeatureSection,
    ListingFile,
    MechanismSection,
    ModesSection,
    NamedPeriod,
    OutputSection,
    PrivacySection,
    SeriesSection,
    TimeGrid,
    UnitSection,
    UniverseSection,
    ZonesSection,
)
from cbdp.config.values import Fields, Keys, TomlFile, Where, commented_head, key_lines
from cbdp.errors import InputError
from cbdp.text import masked, remember_secrets
from cbdp.untrusted import parse_toml

DUPLICATE_KEY_MESSAGES = (
    "Cannot overwrite a value",
)  # what tomllib says of a key that is written twice in a table
DECIMAL_COMMA = re.compile(r"[^#\"']*=\s*[-+]?\d+,\d+\s*(#|$)")  # 0,5 for 0.5
TRIPS_KEY = ("data", "trips")  # where the URL of a database belongs
SCHEMA = Path(__file__).with_name("config.schema.json")


def read(path: str | Path) -> Config:
    """Read a configuration. What is wrong is told in one line that begins with the file and the line number."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"there is no configuration {str(file)!r}: write one with `cbdp init`") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(f"the configuration {str(file)!r} cannot be read: it must be a UTF-8 file") from None
    return parse(text, file)


def parse(text: str, path: str | Path = "cbdp.toml") -> Config:
    """As `read`, of a text that stands for the file at this path."""
    file = Path(path)
    text = text.replace("\r\n", "\n")
    try:
        document = parse_toml(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as wrong:
        what, line = _syntax(str(wrong), text)
        raise InputError(f"{file}:{line}: this is not valid TOML: {what}") from None
    except InputError as wrong:
        raise InputError(f"the configuration {str(file)!r} cannot be read: {wrong}") from None
    source = TomlFile(file, key_lines(text), text)
    _check_passwords(document, source)
    return Fields(Config).read(document, Where(source), source=source)


def _check_passwords(document: Mapping[str, object], source: TomlFile) -> None:
    """A password may stand in data.trips only, and is then in no message; elsewhere it would be published, or written to the ledger."""
    for keys, text in _texts(document, ()):
        if keys[:2] == TRIPS_KEY:
            remember_secrets(text)
        elif masked(text) != text:
            name = ".".join(k for k in keys if isinstance(k, str))
            raise source.error(
                keys, f"{name} holds what looks like a password, which only data.trips may: take it out here"
            )


def _texts(value: object, keys: Keys) -> Iterator[tuple[Keys, str]]:
    """Every text of a configuration, with its place."""
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, dict | list):
        inside: Iterable[tuple[str | int, object]] = (
            value.items() if isinstance(value, dict) else enumerate(value)
        )
        for key, inner in inside:
            yield from _texts(inner, (*keys, key))


def _syntax(message: str, text: str) -> tuple[str, int]:
    """What tomllib complains of, and the line: it states one, or the end of the document."""
    what, _, place = message.rpartition(" (at ")
    number = re.match(r"line (\d+)", place)
    line = int(number[1]) if number else text.rstrip("\n").count("\n") + 1
    stray = commented_head(text, line) if what in DUPLICATE_KEY_MESSAGES else None
    if stray is not None:
        return f"this key stands in its table already: {stray}", line
    complaint = re.sub(r"\s+", " ", what or message)
    if DECIMAL_COMMA.match(text.split("\n")[line - 1]):
        complaint += "; write decimals with a point, like 0.5"
    return complaint[0].lower() + complaint[1:], line


def schema() -> dict[str, object]:
    """The JSON Schema of a configuration."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "cbdp configuration",
        "description": "A release, described for `cbdp check` and `cbdp release`.",
        **Fields(Config).schema(),
    }


__all__ = [
    "SCHEMA",
    "AboutSection",
    "Config",
    "DataSection",
    "DayRange",
    "DaySpan",
    "FeatureSection",
    "ListingFile",
    "MechanismSection",
    "ModesSection",
    "NamedPeriod",
    "OutputSection",
    "PrivacySection",
    "SeriesSection",
    "TimeGrid",
    "TomlFile",
    "UnitSection",
    "UniverseSection",
    "Where",
    "ZonesSection",
    "key_lines",
    "parse",
    "read",
    "schema",
]
