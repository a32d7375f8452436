"""The table [mechanism]: a mechanism's name, and the settings that its class declares with `cbdp.parts.setting`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cbdp.app.config import choices
from cbdp.app.config.kinds import Either, Flag, Many, Named, Option, PartName, Real, Text, ValueKind, Whole
from cbdp.app.config.positions import Where
from cbdp.errors import InputError
from cbdp.parts import Parts, Setting, did_you_mean, settings_of

DEFAULT = "constraint-based"


@dataclass(frozen=True)
class MechanismSection:
    """How noise is added and what is made of it. Each mechanism has settings of its own."""

    name: str = DEFAULT
    settings: Mapping[str, Any] = field(default_factory=dict)  # only those that are written


@dataclass(frozen=True)
class MechanismFields:
    """The table [mechanism]. What it may hold depends on the mechanism it names."""

    parts: Callable[[], Parts[Any]] = choices.mechanisms
    says: str = "a table with the name of a mechanism and its settings"
    takes: ClassVar[tuple[type, ...]] = (dict,)

    def read(self, value: Any, where: Where) -> MechanismSection:
        if not isinstance(value, dict):
            raise where.expected(value, self.says)
        name = PartName(self.parts).read(value.get("name", DEFAULT), where.down("name"))
        with where.source.at(*where.keys, "name"):
            known = options_of(self.parts().get(name))
        written = {key: item for key, item in value.items() if key != "name"}
        for key in written:
            if key not in known:
                other = did_you_mean(key, list(known)) if known else "it has none"
                cure = where.down(key).stray() or other
                raise where.down(key).wrong(f"{name} has no setting {key!r}: {cure}")
        read = {key: known[key].kind.read(item, where.down(key)) for key, item in written.items()}
        return MechanismSection(name, read)

    def schema(self) -> dict[str, Any]:
        """The settings of all our mechanisms. One that is named as package.module:attribute may have others."""
        name = {"description": "which mechanism", **PartName(self.parts).schema()}
        properties = {"name": name, **self._settings()}
        ours = {"properties": {"name": {"enum": list(self.parts().table)}}}
        return {
            "type": "object",
            "properties": properties,
            "if": ours,
            "then": {"propertyNames": {"enum": list(properties)}},
        }

    def _settings(self) -> dict[str, Any]:
        """Every setting of ours, with the mechanisms that have it."""
        found: dict[str, dict[str, Option]] = {}
        for name in self.parts().table:
            for key, option in options_of(self.parts().get(name)).items():
                found.setdefault(key, {})[name] = option
        return {key: _together(options) for key, options in found.items()}


def _together(options: Mapping[str, Option]) -> dict[str, Any]:
    """The schema of a setting that several mechanisms may have."""
    abouts: dict[str, list[str]] = {}
    for name, option in options.items():
        abouts.setdefault(option.about, []).append(name)
    said = "; ".join(f"{', '.join(names)}: {about}" for about, names in abouts.items())
    kinds = [option.kind.schema() for option in options.values()]
    distinct = [kind for n, kind in enumerate(kinds) if kind not in kinds[:n]]
    return {"description": said, **(distinct[0] if len(distinct) == 1 else {"anyOf": distinct})}


def options_of(mechanism: type) -> dict[str, Option]:
    """What a configuration may say of a mechanism."""
    declared = settings_of(mechanism)
    return {name: Option(_kind(mechanism, name, said), said.about) for name, said in declared.items()}


def _kind(mechanism: type, name: str, said: Setting) -> ValueKind:
    text, rule = _text(said.choices), Text(choices=choices.weights())
    kinds: dict[str, ValueKind] = {
        "text": text,
        "whole": Whole(),
        "real": Real(),
        "flag": Flag(),
        "names": Many(Text("the name of a feature")),
        "weights": Either((rule, Named(Either((rule, Real()))))),
        "file": Text("the path of a public file"),
    }
    if said.kind not in kinds:
        raise InputError(
            f"{mechanism.__name__} declares the setting {name!r} of kind {said.kind!r}: use one of {', '.join(kinds)}"
        )
    return kinds[said.kind]


def _text(chosen: Any) -> Text | PartName:
    if isinstance(chosen, Parts):
        return PartName(lambda: chosen)
    return Text(choices=tuple(chosen or ()))
