"""A manifest as text, its schema, and manifests of earlier versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from cbdp.errors import InputError
from cbdp.privacy.laws import LAWS, recognised
from cbdp.release.stated import claim_of, number, simulated
from cbdp.untrusted import MAX_WHOLE_NUMBER

ANOTHER, NOT_STATED = "another law, of this variance", "not stated"  # words where a noise has no name
RENAMED = {"trips": "expected_trips", "filled": "expected_filled"}  # settings of version 1


def dumps(manifest: Mapping[str, Any]) -> bytes:
    """The manifest as the bytes of its file: the same content gives the same bytes."""
    text = json.dumps(manifest, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def schema() -> dict[str, Any]:
    """The JSON Schema of manifests."""
    found: dict[str, Any] = json.loads(
        files("cbdp.release").joinpath("manifest.schema.json").read_text("utf-8")
    )
    return found


def check(manifest: Any, what: str) -> None:
    """Refuse what the schema does not allow."""
    from importlib import import_module

    try:
        jsonschema = import_module("jsonschema")
    except ImportError:
        raise InputError("checking a manifest needs jsonschema: pip install jsonschema") from None
    base = jsonschema.Draft202012Validator
    types = base.TYPE_CHECKER.redefine("integer", lambda _, value: _is_whole(value))
    types = types.redefine("number", lambda _, value: _is_whole(value) or type(value) is float)
    validator = jsonschema.validators.extend(base, type_checker=types)(schema())
    wrong = jsonschema.exceptions.best_match(validator.iter_errors(manifest))
    if wrong is not None:
        place = (
            "/".join(repr(p)[1:-1] if isinstance(p, str) else str(p) for p in wrong.absolute_path)
            or "its top"
        )
        raise InputError(f"{what} does not match its schema at {place}: {wrong.message[:200]}")


def _is_whole(value: object) -> bool:
    """Whether it is a whole number that columns can hold; 3.0 is one for JSON Schema, but not for Python."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_WHOLE_NUMBER


def upgraded(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest of version 1 as version 2 states it.

    The mechanism is a recipe, measurements name their law, features say whether counts of zero got noise, and a simulation
    promises nothing. Version 1 said nothing about title, place or period.
    """
    made = {name: part for name, part in manifest.items() if name != "mechanism"}
    stated = manifest["mechanism"]["settings"].items()
    settings = {RENAMED.get(n, n): v for n, v in stated if n not in ("features", "epsilon", "unit")}
    made["recipe"] = {"mechanism": manifest["mechanism"]["name"], "settings": settings}
    made["measurements"] = [{**m, "law": _law(m)} for m in manifest["measurements"]]
    made["features"] = [{**f, "noise": _noise(f["noise"], settings)} for f in manifest["features"]]
    made["about"], made["version"] = None, 2
    return made if made["secure"] else _promising_nothing(made)


def _promising_nothing(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A simulation of version 1, which stated an ε as if it protected somebody."""
    own, deployment = claim_of(manifest["privacy"]), manifest["deployment"]
    claim = simulated(own)
    stated = {"holds": False, "caveat": claim.caveat, "statement": str(claim), "epsilon": None, "delta": None}
    variant = {"variant_name": None, "unprotected_quantities": claim.caveat}
    loss = {
        "privacy_parameters": {"epsilon": None, "delta": None},
        "privacy_parameters_details": str(claim),
    }
    return {
        **manifest,
        "privacy": {**manifest["privacy"], **stated},
        "features": [{**f, "epsilon": None, "delta": None} for f in manifest["features"]],
        "deployment": {
            **deployment,
            "dp_variant": {**deployment["dp_variant"], **variant},
            "privacy_loss": {**deployment["privacy_loss"], **loss},
        },
    }


def _law(measurement: Mapping[str, Any]) -> str | None:
    scale, variance = number(measurement["scale"]), measurement["variance"]
    found = None if scale is None else recognised(scale, variance if isinstance(variance, float) else None)
    return None if found is None else found.name


def _noise(stated: Mapping[str, Any] | None, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """What suppressed small counts skipped zeros, unless its settings said otherwise."""
    if stated is None:
        return None
    zeros = "perturbed" if stated["threshold"] is None else settings.get("zeros", "skipped")
    return {**stated, "zeros": zeros}


def with_noise_names(manifest: Mapping[str, Any], what: str) -> dict[str, Any]:
    """A manifest whose features name their noise distribution; releases up to 0.2.0 state it by words, which are looked up once, here."""
    features = [
        f
        if f["noise"] is None or "name" in f["noise"]
        else {**f, "noise": {"name": _name(f, what), **f["noise"]}}
        for f in manifest["features"]
    ]
    return {**manifest, "features": features}


def _name(feature: Mapping[str, Any], what: str) -> str | None:
    words = feature["noise"]["law"]
    if words in (ANOTHER, NOT_STATED):
        return None
    for name, law, _ in LAWS.each():
        if law is not None and law.words == words:
            return name
    raise InputError(
        f"{what}: the noise of {feature['name']!r} is {words!r}, which is not known: update cbdp, or install the package that brings it"
    )
