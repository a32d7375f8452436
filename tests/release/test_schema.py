"""The schema of manifests, and manifests of the first version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from released import MECHANISMS, city_features, jsonschema, made_by, release_of, same_release

import cbdp
from cbdp.errors import InputError
from cbdp.release import manifest_model
from cbdp.release.files import load
from cbdp.release.manifest import check_manifest, manifest_schema


def _damages(manifest: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every key that the schema requires."""
    if isinstance(manifest, dict):
        for key, value in manifest.items():
            # releases up to 0.2.0 state noise by words, and no tolerance
            if (at[-1:], key) not in ((("noise",), "name"), (("rounding",), "tolerance")):
                yield (*at, key)
            if (*at, key) not in (("files",), ("recipe", "settings"), ("software",)) and at != (
                "deployment",
            ):
                yield from _damages(value, (*at, key))
    elif isinstance(manifest, list):
        for place, value in enumerate(manifest):
            yield from _damages(value, (*at, place))


@pytest.mark.slow
def test_a_manifest_without_any_one_of_its_keys_is_refused(tmp_path: Path) -> None:
    """Each key taken out, or a stranger put in: the schema finds it; a file that is no manifest is said to be none."""
    saved = release_of("constraint-based").save(tmp_path / "out")
    text = saved.path / "manifest.json"
    original = json.loads(text.read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(manifest_schema())
    for *parents, key in _damages(original):
        damaged = deepcopy(original)
        inner = damaged
        for step in parents:
            inner = inner[step]
        del inner[key]
        assert not validator.is_valid(damaged), (parents, key)
    damaged = original | {"stranger": 1}
    text.write_text(json.dumps(damaged), "utf-8")
    with pytest.raises(InputError, match="schema"):
        load(saved.path)
    for content, said_so in (
        ("{", "JSON"),
        ("[]", "not the manifest"),
        (json.dumps(original | {"version": 3}), "version 3"),
        (json.dumps(original | {"version": 1}), "not a manifest of version 1"),
        (json.dumps(original | {"files": {"../x": {"sha256": "0" * 64, "bytes": 1}}}), "schema"),
    ):
        text.write_text(content, "utf-8")
        with pytest.raises(InputError, match=said_so):
            load(saved.path)
    text.unlink()
    with pytest.raises(InputError, match=r"no manifest\.json"):
        load(saved.path)
    with pytest.raises(InputError, match="no folder"):
        load(tmp_path / "nowhere")


def test_the_published_schema_follows_from_the_types() -> None:
    """`manifest.schema.json` is what the types say (write it anew with `make schema`)."""
    assert manifest_model.schema() == manifest_schema()
    jsonschema.Draft202012Validator.check_schema(manifest_schema())


@pytest.mark.parametrize(
    ("at", "value", "place"),
    [
        (("privacy", "holds"), "yes", "privacy/holds"),
        (("privacy", "epsilon"), None, "privacy"),
        (("privacy", "epsilon", "decimal"), -1.0, "privacy/epsilon/decimal"),
        (("features", 1, "noise", "scale", "exact"), "0/5", "features/1/noise/scale/exact"),
        (("trips", "file"), "../../etc/passwd", "trips/file"),
        (("trips", "total"), 2**63, "trips/total"),
        (("trips", "total"), True, "trips/total"),
        (("recipe", "settings", "epsilon"), 1, "recipe/settings"),
        (("privacy", "spent", "composition"), "any", "privacy/spent/composition"),
        (("stranger\n",), 1, r"stranger\\n"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(at: tuple[Any, ...], value: Any, place: str) -> None:
    """Both the types and the published schema refuse it, and the message says where it stands."""
    manifest = json.loads(json.dumps(release_of("constraint-based").manifest))
    check_manifest(manifest, "it")
    inner = manifest
    for step in at[:-1]:
        inner = inner[step]
    inner[at[-1]] = value
    with pytest.raises(InputError, match=rf"^it does not match its schema at {place}: \S"):
        check_manifest(manifest, "it")
    if value != 2**63:  # JSON Schema knows no largest number
        assert not jsonschema.Draft202012Validator(manifest_schema()).is_valid(manifest)


def _version_1(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as version 1 stated it."""
    old = {n: part for n, part in manifest.items() if n not in ("recipe", "about")}
    names = {"expected_trips": "trips", "expected_filled": "filled"}
    settings_ = {names.get(n, n): v for n, v in manifest["recipe"]["settings"].items()}
    old["mechanism"] = {"name": manifest["recipe"]["mechanism"], "settings": settings_}
    old["measurements"] = [{n: v for n, v in m.items() if n != "law"} for m in manifest["measurements"]]
    for feature in old["features"]:
        if feature["noise"] is not None:
            feature["noise"].pop("zeros", None)
    return {**old, "version": 1}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_folder_of_version_1_is_read_as_it_was_meant(name: str, tmp_path: Path) -> None:
    """The first format had a mechanism instead of a recipe, and no law by measurement: nothing is lost."""
    release = release_of(name)
    manifest = release.save(tmp_path / "out").path / "manifest.json"
    stated = json.loads(manifest.read_text("utf-8"))
    manifest.write_text(json.dumps(_version_1(deepcopy(stated))), encoding="utf-8")
    back = load(tmp_path / "out")
    same_release(release, back)
    assert back.recipe.json() == release.recipe.json()
    assert [m.law for m in back.measurements] == [m.law for m in release.measurements]
    assert back.manifest["features"] == stated["features"]
    assert back.about is None


@pytest.mark.parametrize("name", ["ConstraintBased", "ThresholdLaplace"])
def test_a_simulation_of_version_1_promises_nothing_either(name: str, tmp_path: Path) -> None:
    """Its manifest stated an ε as if it protected somebody; read now it says what a simulation says."""
    seeded = made_by(getattr(cbdp, name)(city_features(), 1), secure=False)
    manifest = seeded.save(tmp_path / "out", simulation=True).path / "manifest.json"
    stated = json.loads(manifest.read_text("utf-8"))
    private = replace(seeded, secure=True).manifest
    kept = {n: private[n] for n in ("privacy", "features", "deployment")}
    kept["deployment"]["implementation"] = stated["deployment"]["implementation"]
    manifest.write_text(json.dumps(_version_1(deepcopy(stated | kept))), encoding="utf-8")
    back = load(tmp_path / "out")
    assert back.manifest == stated
    assert not back.promise.holds
