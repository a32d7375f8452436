"""What identical requests have made before: a release, one that the ledger has yet to note, or leftovers of a run that died."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.errors import InputError
from cbdp.release.loading import load
from cbdp.release.saving import MANIFEST
from cbdp.scratch import sweep
from cbdp.untrusted import read_json

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.privacy.ledger import Ledger


def earlier(ledger: Ledger, plan: Plan) -> Path | None:
    """The release of an identical request, finished or only to be noted; leftovers of runs that died are swept from its folder."""
    sweep(plan.output.parent)
    done = ledger.finished(plan.request)
    if done is not None:
        _check_stored(Path(done.path), done.sha256)
        return Path(done.path)
    heads = {charge.head: charge for charge in ledger.unfinished(plan.request)}
    if plan.output.exists():
        charge = heads.get(_head(plan.output) or "")
        if charge is None:
            raise InputError(
                f"the output folder {str(plan.output)!r} exists already: choose another, or move it away"
            )
        ledger.released(charge, _digest(plan.output), plan.output)
        return plan.output
    return None


def _check_stored(folder: Path, sha256: str) -> None:
    if not (folder / MANIFEST).is_file():
        raise InputError(
            f"this request was released to {str(folder)!r}, which is gone: restore it, or change the request, "
            "which will be charged again"
        )
    if _digest(folder) != sha256:
        raise InputError(
            f"the manifest in {str(folder)!r} is not the one that was released: restore the folder"
        )
    load(folder)


def _digest(folder: Path) -> str:
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def _head(folder: Path) -> str | None:
    try:
        return str(read_json(folder / MANIFEST)["ledger"]["head"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
