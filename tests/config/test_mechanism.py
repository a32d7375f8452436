"""The table [mechanism] is generated from what mechanisms declare, ours and those of other packages."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from cbdp import config
from cbdp.config.sections import (
    DEFAULT_MECHANISM,
    MechanismFields,
    MechanismSection,
    mechanism_parts,
    options_of,
)
from cbdp.config.values import Fields, TomlFile, Where, key_lines
from cbdp.errors import InputError
from cbdp.mechanisms import Laplace
from cbdp.parts import Parts, setting, subclass_of
from cbdp.solvers import SOLVERS

LEAST = '[data]\ntrips = "t.parquet"\nid = "t"\n[privacy]\nepsilon = 1\n[mechanism]\n'


@dataclass(frozen=True)
class Fake:
    """A mechanism with one setting of each kind, and a field that is none."""

    features: Any = None
    style: str = setting("how it looks", choices=("plain", "bold"), default="plain")
    note: str = setting("any text", default="")
    solver: str = setting("which solver", choices=SOLVERS, default="newton")
    rounds: int = setting("how often", "whole", default=1)
    share: float = setting("how much", "real", default=1.0)
    loud: bool = setting("whether it is heard", "flag", default=False)
    tables: Any = setting("the features it looks at", "names")
    weights: Any = setting("how features weigh", "weights")
    prior: Any = setting("a public file", "file")


@dataclass(frozen=True)
class Other:
    """A mechanism that shares a setting with `Fake`, and has another of the same name but not of the same kind."""

    rounds: int = setting("how often", "whole", default=1)
    note: int = setting("a number of a note", "whole", default=1)


@dataclass(frozen=True)
class Odd:
    shape: str = setting("what no configuration can say", "circle")


TABLE: Parts[type] = Parts(
    "mechanism", "cbdp.tests.none", {"fake": "fakes:Fake", "other": "fakes:Other"}, subclass_of(object)
)


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes above, as a package has them."""
    module = ModuleType("fakes")
    module.__dict__.update(Fake=Fake, Other=Other)
    monkeypatch.setitem(sys.modules, "fakes", module)


def _read(value: Any) -> MechanismSection:
    text = "[mechanism]\n" + "".join(f"{key} = 0\n" for key in value)
    where = Where(TomlFile(Path("my.toml"), key_lines(text)), ("mechanism",))
    return MechanismFields(lambda: TABLE).read(value, where)


def test_every_kind_of_setting_is_read() -> None:
    """Only what is written arrives, each as its kind says."""
    written = {
        "style": "bold", "note": "x", "solver": "osqp", "rounds": 3, "share": 2, "loud": True,
        "tables": ["zone", "time"], "weights": {"zone": 2, "time": "size"}, "prior": "w.csv",
    }  # fmt: skip
    read = _read({"name": "fake", **written})
    assert read.name == "fake"
    assert read.settings == {**written, "tables": ("zone", "time"), "weights": {"zone": 2.0, "time": "size"}}
    assert _read({"name": "other"}) == MechanismSection("other", {})


@pytest.mark.parametrize(
    ("written", "line", "said"),
    [
        ({"style": "bald"}, 3, "mechanism.style is 'bald': did you mean 'bold'?"),
        ({"solver": "newtn"}, 3, "mechanism.solver is 'newtn': did you mean 'newton'?"),
        ({"rounds": 0}, 3, "mechanism.rounds is 0: give a whole number of at least 1"),
        ({"rounds": 1, "share": "much"}, 4, "mechanism.share is 'much': give a number above 0"),
        ({"loud": 1}, 3, "mechanism.loud is 1: give true or false"),
        ({"tables": "zone"}, 3, "mechanism.tables is 'zone': give a list, each item the name of a feature"),
        ({"weights": "heavy"}, 3, "mechanism.weights is 'heavy': there are size, uniform, inverse-variance"),
        ({"prior": 5}, 3, "mechanism.prior is 5: give the path of a public file"),
        ({"features": 1}, 3, "fake has no setting 'features'"),
        ({"round": 1}, 3, "fake has no setting 'round': did you mean 'rounds'?"),
    ],
)
def test_what_is_wrong_has_its_line(written: dict[str, Any], line: int, said: str) -> None:
    """The mechanism, the value and a cure are told; a field that is no setting cannot be set."""
    with pytest.raises(InputError) as caught:
        _read({"name": "fake", **written})
    assert str(caught.value).startswith(f"my.toml:{line}: {said}")


def test_a_kind_that_is_not_known_is_told() -> None:
    """Whoever writes a mechanism learns which kinds there are."""
    with pytest.raises(
        InputError, match="Odd declares the setting 'shape' of kind 'circle': use one of text, "
    ):
        options_of(Odd)


def test_the_schema_has_all_settings_and_says_whose_they_are() -> None:
    """What several mechanisms have is said once; what differs between them is both."""
    made = MechanismFields(lambda: TABLE).schema()
    settings = made["properties"]
    assert settings["rounds"] == {"description": "fake, other: how often", "type": "integer", "minimum": 1}
    assert settings["note"]["description"] == "fake: any text; other: a number of a note"
    assert settings["note"]["anyOf"] == [
        {"type": "string", "minLength": 1},
        {"type": "integer", "minimum": 1},
    ]
    assert "features" not in settings
    check = jsonschema.Draft202012Validator(made)
    assert check.is_valid({"name": "fake", "rounds": 2})
    assert check.is_valid({"name": "package.module:Mine", "anything": 1})
    assert not check.is_valid({"name": "fake", "anything": 1})
    assert not check.is_valid({"name": "fakes"})


TODAY = {
    "constraint-based": {"measured", "weights", "solver", "tolerance", "estimator", "preset", "prior", "rounding"},
    "laplace": {"law"},
    "hierarchical": {"levels", "root", "prune"},
    "stability-histogram": {"tables"},
    "threshold-laplace": {"tables", "threshold", "zeros"},
}  # fmt: skip


def test_our_mechanisms_can_be_configured_as_ever() -> None:
    """Every setting that configurations have used is still one, and the default mechanism is the first."""
    found = {name: set(options_of(mechanism_parts().get(name))) for name in mechanism_parts().table}
    for name, settings in TODAY.items():
        assert settings <= found[name]
    assert next(iter(mechanism_parts().table)) == DEFAULT_MECHANISM == config.parse(LEAST).mechanism.name
    shown = Fields(config.Config).schema()["properties"]["mechanism"]["properties"]
    assert set(shown) == {"name"}.union(*found.values())


@dataclass(frozen=True)
class Stranger(Laplace):
    """A mechanism of another package."""

    name = "stranger"
    volume: int = setting("how strange", "whole", default=1)


def test_a_mechanism_of_another_package_brings_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of its entry point, or as package.module:attribute; the shipped schema does not change."""
    before = config.schema()
    module = ModuleType("strangers")
    module.__dict__.update(Stranger=Stranger)
    monkeypatch.setitem(sys.modules, "strangers", module)
    with pytest.raises(InputError, match=r"mechanism\.name is 'stranger'"):
        config.parse(LEAST + 'name = "stranger"\n')
    entry = EntryPoint("stranger", "strangers:Stranger", "cbdp.mechanisms")
    monkeypatch.setattr("cbdp.parts.entry_points", lambda group: [entry] if group == entry.group else [])
    for name in ("stranger", "strangers:Stranger"):
        read = config.parse(LEAST + f'name = "{name}"\nvolume = 11\nlaw = "geometric"\n')
        assert read.mechanism == MechanismSection(name, {"volume": 11, "law": "geometric"})
    with pytest.raises(InputError, match=r"cbdp\.toml:8: mechanism\.volume is 0: give a whole number"):
        config.parse(LEAST + 'name = "stranger"\nvolume = 0\n')
    assert config.schema() == before


def test_a_mechanism_that_cannot_be_loaded_is_told_with_its_line() -> None:
    """A module that is not there is no traceback."""
    with pytest.raises(InputError, match=r"cbdp\.toml:7: mechanism 'no\.such:Thing' cannot be loaded"):
        config.parse(LEAST + 'name = "no.such:Thing"\n')
