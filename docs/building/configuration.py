"""The page of the configuration: every key with its kind, default, meaning and an example, from the tables that read it."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from building.markdown import fenced, sentence
from cbdp.config import Config
from cbdp.config.sections import DEFAULT_MECHANISM, MechanismFields, mechanism_parts, options_of
from cbdp.config.values import Either, Fields, Flag, Many, Named, PartName, Text, ValueKind

PAGE = "reference/configuration.md"
EXAMPLES: Mapping[str, str] = tomllib.loads((Path(__file__).parent / "examples.toml").read_text("utf-8"))
REQUIRED = object()

HEAD = """# Configuration

A configuration is a TOML file, `cbdp.toml` by custom. `cbdp init` writes a first one, with comments; `cbdp check` says what it means.
A key that does not exist, or a value of the wrong kind, stops the program with the line it stands in, before anything is read or
spent. Paths are relative to the folder of the file. Numbers that decide about privacy are taken as they are written: `0.1` is one tenth, and
`"1/3"` a third.

An editor that knows JSON Schema can check the file while you type: the schema is `cbdp/config/config.schema.json`.

A whole one may be short:

```toml
preset = "odmts"      # tables: in all, by time, zone pair, mode, trip type

[data]
trips = "trips.parquet"
stops = "stops.csv"
id    = "city buses 2026-03"

[universe]
time = { start = "06:00", end = "20:00", every = "30min" }

[privacy]
epsilon = 1
unit    = { person = "card_id", max_trips = 4, per = "day" }
```

This page is made from the tables that the program reads configurations with."""

# where a table is explained
MORE: Mapping[str, str] = {
    "data": "[data that is read](data.md), [counting](../explanation/counting.md)",
    "privacy": "[whom a release protects](../explanation/units.md), [noise](../explanation/noise.md), "
    "[budgets and the choice of ε](../explanation/budgets.md), [series and caps](../explanation/series.md#caps)",
    "universe": "[how it works](../explanation/how-it-works.md#what-is-public-beforehand), [large universes](../explanation/universes.md)",
    "preset": "[which tables](../explanation/tables.md)",
    "feature": "[which tables](../explanation/tables.md)",
    "mechanism": "[how counts are estimated](../explanation/budgets.md#how-counts-are-estimated), [parts](parts.md#mechanisms)",
    "output": "[files of a release](files.md), [export formats](parts.md#formats)",
    "series": "[a series of releases](../explanation/series.md)",
    "about": "[what a release says about itself](../explanation/release.md#what-a-release-says-about-itself)",
}


@dataclass(frozen=True)
class Key:
    """A key as it is written in the file, dotted from the top."""

    path: tuple[str, ...]
    kind: ValueKind
    about: str
    default: Any = REQUIRED
    only: str = ""  # the mechanisms that have it

    @property
    def name(self) -> str:
        return ".".join(self.path)


def tables(kind: ValueKind) -> Iterator[type]:
    """The tables that a value may be, or hold."""
    match kind:
        case Fields():
            yield kind.cls
        case Many() | Named():
            yield from tables(kind.of)
        case Either():
            for inner in kind.kinds:
                yield from tables(inner)


def every() -> dict[str, Key]:
    """Every key by its name; what two forms of a table both have is told together."""
    found: dict[str, Key] = {}
    for key in keys():
        twin = found.get(key.name)
        if twin is not None and twin.about != key.about:
            key = dataclasses.replace(twin, about=f"{twin.about}; in a list, {key.about}")  # noqa: PLW2901
        found[key.name] = key
    return found


def keys(cls: type = Config, path: tuple[str, ...] = ()) -> Iterator[Key]:
    """Every key of a table, those of tables in it right after it."""
    defaults = {f.name: _default(f) for f in dataclasses.fields(cls)}
    for name, option in Fields(cls).options.items():
        yield Key((*path, name), option.kind, option.about, defaults[name])
        if isinstance(option.kind, MechanismFields):
            yield from mechanism_keys((*path, name))
        inner = (*path, name, "*") if isinstance(option.kind, Named) else (*path, name)
        for table in tables(option.kind):
            yield from keys(table, inner)


def mechanism_keys(path: tuple[str, ...]) -> Iterator[Key]:
    """The name of a mechanism, and the settings of all of them; one that several have is told once."""
    yield Key((*path, "name"), PartName(mechanism_parts), "which mechanism", DEFAULT_MECHANISM)
    found: dict[tuple[str, str], tuple[Key, list[str]]] = {}
    for mechanism in mechanism_parts().table:
        cls = mechanism_parts().get(mechanism)
        defaults = {f.name: _default(f) for f in dataclasses.fields(cls)}
        for name, option in options_of(cls).items():
            key = Key((*path, name), option.kind, option.about, defaults.get(name))
            found.setdefault((name, option.about), (key, []))[1].append(mechanism)
    for key, having in found.values():
        yield dataclasses.replace(key, only=", ".join(having))


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return REQUIRED if field.default_factory is dataclasses.MISSING else field.default_factory()


def written(value: Any) -> str:
    """A default as it would be written.

    >>> written(True), written(("origin", "destination")), written(Fraction(1, 3)), written(None)
    ('`true`', '`["origin", "destination"]`', '`"1/3"`', 'none')
    """
    if value is REQUIRED:
        return "none: it must be given"
    if value is None or value in ((), {}) or dataclasses.is_dataclass(value):
        return "none"
    return f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case tuple() | list():
            return f"[{', '.join(_toml(v) for v in value)}]"
        case Fraction():
            return f'"{value}"' if value.denominator > 1 else str(value)
        case _:
            return str(value)


def said(kind: ValueKind) -> str:
    """What a value may be, in words."""
    match kind:
        case Text() if len(kind.choices) == 1:
            return f'`"{kind.choices[0]}"`'
        case Text() if kind.choices:
            return "one of " + ", ".join(f'`"{c}"`' for c in kind.choices)
        case PartName():
            return (
                "one of " + ", ".join(f'`"{n}"`' for n in kind.parts().table) + ', or `"package.module:name"`'
            )
        case Either():
            return "; or ".join(said(k) for k in kind.kinds)
        case Many():
            return (
                f"{said(kind.of)}; or a list of them"
                if kind.single
                else f"a list; each item: {said(kind.of)}"
            )
        case Named():
            free = (
                f"with {', '.join(f'`{k}`' for k in kind.keys)}"
                if kind.keys
                else "whose keys are names of yours"
            )
            return f"a table {free}; each value: {said(kind.of)}"
        case Fields():
            return "a table with " + ", ".join(f"`{n}`" for n in kind.options)
        case Flag():
            return "`true` or `false`"
        case _:
            return kind.says


def example(key: Key) -> str:
    """The example of a key, or of the table that it stands in."""
    for n in range(len(key.path), 0, -1):
        found = EXAMPLES.get(".".join(key.path[:n]))
        if found is not None:
            return found
    raise KeyError(f"{key.name} has no example: write one in docs/building/examples.toml")


def entry(key: Key) -> str:
    """A key with all that is to be known of it."""
    level = "##" if len(key.path) == 1 else "###"
    facts = [f"- **Kind**: {said(key.kind)}", f"- **Default**: {written(key.default)}"]
    if key.only:
        facts.append(f"- **Of**: {key.only}")
    if key.name in MORE:
        facts.append(f"- **More**: {MORE[key.name]}")
    return "\n\n".join(
        [
            f"{level} `{key.name}` {{ #{key.name} }}",
            sentence(key.about),
            "\n".join(facts),
            *([] if isinstance(key.kind, MechanismFields) else [fenced(example(key), "toml")]),
        ]
    )


def page() -> str:
    """The page."""
    return "\n\n".join([HEAD, *(entry(key) for key in every().values())]) + "\n"


def pages() -> Iterator[tuple[str, str]]:
    yield PAGE, page()
