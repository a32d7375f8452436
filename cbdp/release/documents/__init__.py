"""What stands beside the data of a release, so that it speaks for itself: README.md, datapackage.json and deployment.yaml."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from cbdp.release.documents.described import described
from cbdp.release.documents.package import package
from cbdp.release.documents.readme import readme
from cbdp.release.documents.registry import registry_entry
from cbdp.release.release import Release

README, PACKAGE, REGISTRY = "README.md", "datapackage.json", "deployment.yaml"
NAMES = (README, PACKAGE, REGISTRY)


def documents(
    release: Release,
    sections: Mapping[str, Any],
    folder: Path,
    extra: Collection[str] = (),
) -> dict[str, str]:
    """The documents of a release by name, from what the manifest says of its files and from the files as they lie in a folder.

    They depend on published values only, and the same release gives the same text. What promises nothing is not registered.
    """
    files = described(release, sections, folder)
    entry = registry_entry(release)
    registered = [] if entry is None else [REGISTRY]
    made = {
        README: readme(release, files, [*extra, PACKAGE, *registered]),
        PACKAGE: package(release, files),
    }
    return made if entry is None else {**made, REGISTRY: entry}
