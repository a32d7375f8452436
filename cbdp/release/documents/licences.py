"""Licences that data are published under, by the names that catalogues know."""

from __future__ import annotations

import re

COMMONS = "https://creativecommons.org"
OPEN_DATA = "https://opendatacommons.org/licenses"
# SPDX identifier → address of the text
KNOWN = {
    "CC0-1.0": f"{COMMONS}/publicdomain/zero/1.0/",
    "CC-BY-4.0": f"{COMMONS}/licenses/by/4.0/",
    "CC-BY-SA-4.0": f"{COMMONS}/licenses/by-sa/4.0/",
    "CC-BY-NC-4.0": f"{COMMONS}/licenses/by-nc/4.0/",
    "ODbL-1.0": f"{OPEN_DATA}/odbl/1-0/",
    "ODC-By-1.0": f"{OPEN_DATA}/by/1-0/",
    "PDDL-1.0": f"{OPEN_DATA}/pddl/1-0/",
    "DL-DE-BY-2.0": "https://www.govdata.de/dl-de/by-2-0",
    "OGL-UK-3.0": "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/3/",
}


def licence_of(text: str | None) -> dict[str, str] | None:
    """A licence as Data Packages state it; None for words that no catalogue knows.

    >>> licence_of("CC BY 4.0")["name"], licence_of("https://example.org/terms")
    ('CC-BY-4.0', {'path': 'https://example.org/terms'})
    >>> licence_of("ask us") is None
    True
    """
    if text is None:
        return None
    if re.fullmatch(r"https?://\S+", text):
        return {"path": text}
    for name, path in KNOWN.items():
        if _plain(text) in (_plain(name), _plain(name.removesuffix("-1.0"))):
            return {"name": name, "title": text, "path": path}
    return None


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
