"""deployment.yaml: the release as the OpenDP registry of deployments asks for it, ready to be sent in once the publisher has added the rest.

The registry asks what a release cannot know: its intended use, the day of publication, why ε was chosen. These stand there as comments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cbdp.release.deployment import deployment
from cbdp.release.documents.package import slug
from cbdp.release.release import Release
from cbdp.release.words import title_of, what
from cbdp.text import printable

VARIANTS = {"zCDP": "Zero-concentrated DP"}  # where the registry has another name than the manifest
OPEN = {  # what only the publisher knows, by the section that it belongs to
    "basic": {
        "intended_use": "what the release is meant for",
        "publication_date": "the day of publication, as YYYY-MM-DD in quotes",
        "data_product_sector": "Government, Technology …",
    },
    "implementation": {"justification": "why this unit and this ε were chosen, and by whom"},
    "administrative": {"registry_authors": "who fills in this entry"},
}
SOURCES = "README.md, report.html and manifest.json in the folder of the release."
HEAD = """\
# An entry for the OpenDP registry of deployments of differential privacy (https://registry.opendp.org).
# Complete, except for the lines that begin with “# fill in”: only the publisher knows these.
"""


def registry_entry(release: Release) -> str | None:
    """The entry as YAML; None where nothing is promised, so that there is nothing to register.

    Every text is a JSON string, which YAML reads as it is.
    """
    if not release.promise.holds:
        return None
    stated = deployment(release)
    made = {
        "url_slug": slug(f"{title_of(release)} {_said(release, 'place') or ''}") or "release",
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": _basic(release, stated["basic"]),
            "dp_variant": _variant(stated["dp_variant"]),
            "privacy_loss": stated["privacy_loss"],
            "deployment_model": _model(release, stated["deployment_model"]),
            "accounting": stated["accounting"],
            "implementation": stated["implementation"],
            "administrative": {"sources": SOURCES},
        },
    }
    return HEAD + "\n".join(_lines(made)) + "\n"


def _said(release: Release, name: str) -> str | None:
    return None if release.about is None else release.about.texts().get(name)


def _basic(release: Release, stated: Mapping[str, Any]) -> dict[str, Any]:
    publisher, region = _said(release, "publisher"), _said(release, "place")
    return {
        "name": title_of(release),
        **({} if publisher is None else {"data_curators": [{"data_curator_name": publisher}]}),
        "data_product_type": stated["data_product_type"],
        **({} if region is None else {"data_product_region": region}),
        "description": f"{what(release)}. {stated['description']}",
    }


def _variant(stated: Mapping[str, Any]) -> dict[str, Any]:
    return {**stated, "variant_name": VARIANTS.get(stated["variant_name"], stated["variant_name"])}


def _model(release: Release, stated: Mapping[str, Any]) -> dict[str, Any]:
    series = release.series
    if series is None:
        return dict(stated)
    details = f"The release of {series.period} in the {series.calendar} series “{series.name}”."
    return {**stated, "release_type": "Many releases", "release_type_details": details}


def _lines(value: Mapping[str, Any], indent: str = "", section: str = "") -> Iterator[str]:
    """YAML of mappings, lists of mappings and plain values; what is open stands as comments at the end of its section."""
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield f"{indent}{key}:"
            yield from _lines(inner, f"{indent}  ", key)
        elif isinstance(inner, list):
            yield f"{indent}{key}:"
            for item in inner:
                first, *rest = _lines(item, f"{indent}    ")
                yield f"{indent}  - {first.strip()}"
                yield from rest
        else:
            yield f"{indent}{key}: {_plain(inner)}"
    for key, meaning in OPEN.get(section, {}).items():
        yield f"{indent}# fill in {key}: {meaning}"


def _plain(value: str | float) -> str:
    """A value as JSON, which YAML reads too; of 1e-06 only with a point.

    >>> _plain(1e-6), _plain(0.5), _plain("a: b")
    ('1.0e-06', '0.5', '"a: b"')
    """
    written = printable(json.dumps(value, ensure_ascii=False))
    mantissa, e, power = written.partition("e")
    return f"{mantissa}.0{e}{power}" if isinstance(value, float) and e and "." not in mantissa else written
