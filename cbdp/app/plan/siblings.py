"""Earlier releases beside the output, as witnesses: a ledger that lacks their charges is an old copy, was cut, or is another.

A manifest states the head, the id and the owner of the ledger that its release was charged to. Whoever publishes again for the
same owner must use a ledger that contains those heads. Manifests from before the owner was stated are no witnesses: they may
be of other data sets, and their heads alone do not tell. Nor are releases in other folders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from cbdp.privacy.ledger import Ledger, Owner
from cbdp.release.manifest import FORMAT
from cbdp.release.saving import MANIFEST
from cbdp.untrusted import read_json


def forgotten(output: Path, owner: Owner, ledger: Ledger | None) -> str | None:
    """What to say if a release beside the output, or in its place, was charged to the owner and the ledger does not know it.

    Without a ledger: if one was.
    """
    for folder, stated in _charged(output, owner):
        if ledger is None:
            return (
                f"the release {str(folder)!r} was charged to a ledger of {owner} (id {stated.get('id')}): restore that ledger. "
                f"A new one would forget what was spent{_move(folder)}"
            )
        if not ledger.contains(str(stated["head"])):
            return _unknown(folder, owner, ledger, stated)
    return None


def _unknown(folder: Path, owner: Owner, ledger: Ledger, stated: Mapping[str, Any]) -> str:
    charge = f"the release {str(folder)!r} was charged to"
    if stated.get("id") == ledger.id:
        return (
            f"{charge} the ledger {str(ledger.path)!r}, which does not hold that charge any more: it is an old copy, or its end "
            "was cut off; restore the newest copy"
        )
    return (
        f"{charge} another ledger of {owner} (id {stated.get('id')}, not {ledger.id}): restore that one to "
        f"{str(ledger.path)!r}{_move(folder)}"
    )


def _move(folder: Path) -> str:
    return (
        f". If a new ledger is meant, its cap comes on top of what was spent before: move {str(folder)!r} to another "
        "folder first"
    )


def _charged(output: Path, owner: Owner) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Releases that were charged to this owner, with what their manifests say of the ledger."""
    for manifest in sorted(output.absolute().parent.glob(f"*/{MANIFEST}")):
        stated = _ledger_of(manifest)
        hidden = manifest.parent.name.startswith(".")  # half written
        if not hidden and stated.get("head") and stated.get("owner") == owner.json():
            yield manifest.parent, stated


def _ledger_of(manifest: Path) -> Mapping[str, Any]:
    try:
        about = manifest.stat()
    except OSError:
        return {}
    return _read(manifest, about.st_mtime_ns, about.st_size, about.st_ino)


@lru_cache(4096)  # of a series there are many, and every release looks at all of them
def _read(manifest: Path, changed: int, size: int, identity: int) -> Mapping[str, Any]:  # noqa: ARG001
    try:
        found = read_json(manifest)
    except (OSError, ValueError):
        return {}
    ledger = found.get("ledger") if isinstance(found, dict) and found.get("format") == FORMAT else None
    return ledger if isinstance(ledger, dict) else {}
