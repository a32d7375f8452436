"""The page of the manifest, from its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from building.markdown import table
from cbdp.release.manifest import manifest_schema

PAGE = "reference/manifest.md"
MEANING: Mapping[str, str] = {
    "format": "Always this word: a program can tell by it what the file is.",
    "version": "Of the format. Folders of earlier versions can be read.",
    "status": "A release, or a simulation, which protects nobody.",
    "secure": "Whether the noise came from the operating system's entropy.",
    "about": "What the publisher says: title, place, period, publisher, licence, contact.",
    "recipe": "The mechanism and its settings: with the measurements, all that is needed to make the release again.",
    "privacy": "The promise: unit, neighbours, ε and δ (or ρ and its curve), and how they add up.",
    "features": "Every table: what it groups by, its size, its noise, what was spent on it, its file.",
    "measurements": "Every noisy answer: of which table, what it cost, the law and scale of its noise, its file.",
    "levels": "What the measurements are of, where not the features.",
    "estimate": "Estimator, weights, solver, and the certificate of the solution.",
    "rounding": "How estimates became whole trips, and by how much a table had to give way, if any did.",
    "intervals": "How the intervals were made, and their confidence.",
    "universe": "Dimensions, attributes, structural zeros, the number of trip types, and the hash of it all.",
    "trips": "The file of the trips, how many types it lists and trips it holds.",
    "places": "The file of the stops.",
    "prior": "The file of the public weights that entered the estimate.",
    "public": "Counts that were public before the release.",
    "series": "The place of the release in a series.",
    "running": "Running totals of some tables over a span of the series: the noisy sums that end with this release, and what they cost.",
    "software": "The versions that made it.",
    "ledger": "The ledger that was charged: its name, owner, and head when it was charged.",
    "files": "The SHA-256 of every file.",
    "deployment": "The release in the words of the OpenDP deployments registry.",
}


def resolved(part: Mapping[str, Any] | bool, whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of the schema, with the definition that it points to; `true` allows anything."""
    if part is True:
        return {}
    assert not isinstance(part, bool)
    while "$ref" in part:
        own = {k: v for k, v in part.items() if k != "$ref"}
        part = {**whole["$defs"][part["$ref"].rpartition("/")[2]], **own}
    return part


def forms(part: Mapping[str, Any], whole: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The forms that a value may have."""
    part = resolved(part, whole)
    return [resolved(p, whole) for p in part.get("anyOf", [part])]


def kind(part: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    """What a value is, in words."""
    return " or ".join(dict.fromkeys(_kind(form) for form in forms(part, whole)))


def _kind(form: Mapping[str, Any]) -> str:
    if "const" in form:
        return f"`{form['const']}`"
    if "enum" in form:
        return ", ".join(f"`{v}`" for v in form["enum"])
    if {"exact", "decimal"} <= set(form.get("properties", ())):
        return "an exact fraction and a decimal"
    words = {
        "string": "text",
        "object": "table",
        "array": "list",
        "integer": "whole number",
        "null": "nothing",
    }
    types = form.get("type", "anything")
    return " or ".join(words.get(t, t) for t in ([types] if isinstance(types, str) else types))


def inside(part: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The keys of a table, or of the tables in a list, whichever form it has."""
    found: dict[str, Mapping[str, Any]] = {}
    for form in forms(part, whole):
        if {"exact", "decimal"} == set(form.get("properties", ())):
            continue
        found |= {k: v for k, v in form.get("properties", {}).items() if k not in found}
        if "items" in form:
            found |= inside(form["items"], whole)
    return found


def _row(key: str, part: Mapping[str, Any], whole: Mapping[str, Any]) -> tuple[str, str, str]:
    return f"`{key}`", kind(part, whole), str(resolved(part, whole).get("description", ""))


def page() -> str:
    """The page."""
    whole = manifest_schema()
    made = [HEAD]
    for key, part in whole["properties"].items():
        made += [f"## `{key}`", f"{MEANING[key]} *{kind(part, whole).capitalize()}.*"]
        rows = [_row(k, v, whole) for k, v in inside(part, whole).items()]
        if any(said for _, _, said in rows):
            made.append(table(["key", "kind", "what it says"], rows))
        elif rows:
            made.append(table(["key", "kind"], [row[:2] for row in rows]))
    return "\n\n".join(made) + "\n"


HEAD = """# Manifest

`manifest.json` states all that a reviewer needs to judge a release: what is promised, to whom, and how each number was made. It holds nothing that
depends on private rows beyond the release itself. Numbers that decide about privacy are exact fractions, with a decimal beside.

This page is made from the schema, `cbdp/release/manifest.schema.json`, which every manifest is checked against."""


def pages() -> Iterator[tuple[str, str]]:
    yield PAGE, page()
