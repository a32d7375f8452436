"""What every export says beside the numbers: the publisher's words and, where it protects nobody, that it does not."""

from __future__ import annotations

from typing import Any

from cbdp.release.release import Release


def stated(release: Release) -> dict[str, Any]:
    """As JSON; empty where there is nothing to say."""
    said = {} if release.about is None else release.about.json()
    return said | ({} if release.secure else {"simulation": True}) | _caveat(release)


def texts(release: Release) -> dict[str, str]:
    """The same as a line of text each, for formats that hold nothing else."""
    said = {} if release.about is None else release.about.texts()
    return said | ({} if release.secure else {"simulation": "true"}) | _caveat(release)


def _caveat(release: Release) -> dict[str, str]:
    return {} if release.promise.holds else {"caveat": release.promise.caveat}
