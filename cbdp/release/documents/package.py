"""datapackage.json: the release as a Data Package (Frictionless), which catalogues and many tools read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from cbdp.release.documents.described import Column, File
from cbdp.release.documents.licences import licence_of
from cbdp.release.release import Release
from cbdp.release.stated import unit_json
from cbdp.release.words import guarantee, title_of, what

PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
MEDIA_TYPE = "application/vnd.apache.parquet"


def package(release: Release, files: Sequence[File]) -> str:
    """The text of datapackage.json. Sizes and hashes are in the manifest: validators of Data Packages cannot check those of Parquet files."""
    names = _names([f.path for f in files])
    made: dict[str, Any] = {
        "$schema": PROFILE,
        "name": slug(title_of(release)) or "release",
        "title": title_of(release),
        "description": f"{what(release)}; {guarantee(release)}. README.md tells how to read the files; manifest.json has their hashes.",
        "keywords": ["differential privacy", "mobility", "origin-destination"],
        **_about(release),
        "privacy": _privacy(release),
        "resources": [_resource(f, names[f.path]) for f in files],
    }
    return json.dumps(made, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _about(release: Release) -> dict[str, Any]:
    """What the publisher says, under the names that Data Packages have for it; the rest under ours."""
    about = release.about
    if about is None:
        return {}
    licence = licence_of(about.licence)
    made: dict[str, Any] = {"licenses": [licence]} if licence is not None else {}
    if about.publisher is not None:
        made["contributors"] = [{"title": about.publisher, "roles": ["publisher"], "role": "publisher"}]
    stated = {key: value for key, value in about.json().items() if key != "title"}
    return made | ({"about": stated} if stated else {})


def _privacy(release: Release) -> dict[str, Any]:
    """The promise in numbers; what a simulation states are no numbers."""
    claim = release.promise
    cost = claim.cost
    epsilon, delta = (float(cost.epsilon), float(cost.delta)) if claim.holds else (None, None)
    rho = {"rho": float(cost.rho)} if claim.holds and cost.currency == "rho" else {}
    unit = unit_json(claim.unit)
    return {"statement": str(claim), "unit": unit["words"], "epsilon": epsilon, "delta": delta} | rho


def _resource(file: File, name: str) -> dict[str, Any]:
    keys = {"primaryKey": list(file.keys)} if file.keys else {}
    return {
        "name": name,
        "path": file.path,
        "type": "table",
        "format": "parquet",
        "mediatype": MEDIA_TYPE,
        "description": file.about,
        "schema": {"fields": [_field(c, file.rows) for c in file.columns], **keys},
    }


def _field(column: Column, rows: int) -> dict[str, Any]:
    """Readers make floating-point numbers of whole ones where some are missing: the type says what can be relied on."""
    empty = rows > 0 and column.missing == rows
    type_ = "any" if empty else "number" if column.type == "integer" and column.missing else column.type
    said = [column.meaning, "Empty in this file." if empty else ""]
    description = " ".join(filter(None, said))
    return {"name": column.name, "type": type_} | ({"description": description} if description else {})


def slug(text: str) -> str:
    """Text as a name of small letters, digits, dots and dashes.

    >>> slug("Zürich: trips, 2026")
    'z-rich-trips-2026'
    """
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")


def _names(paths: Sequence[str]) -> dict[str, str]:
    """A name for each file, no two alike."""
    made: dict[str, str] = {}
    for path in paths:
        plain = slug(path.removesuffix(".parquet").removeprefix("features/")) or "table"
        taken = set(made.values())
        numbered = (f"{plain}-{n}" for n in range(2, len(paths) + 2))
        made[path] = next(name for name in (plain, *numbered) if name not in taken)
    return made
