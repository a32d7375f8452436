"""What every export says beside the numbers: the publisher's words, what protects the riders or that nothing does, and where it is from."""

from __future__ import annotations

from typing import Any

from cbdp import __version__
from cbdp.privacy.composition import Stated
from cbdp.release.counted import counted
from cbdp.release.release import Release
from cbdp.release.words import left_out


def stated(release: Release) -> dict[str, Any]:
    """As JSON."""
    said = {} if release.about is None else release.about.json()
    return said | ({} if release.secure else {"simulation": True}) | _privacy(release) | _counted(release)


def texts(release: Release) -> dict[str, str]:
    """The same as a line of text each, for formats that hold nothing else."""
    said = {} if release.about is None else release.about.texts()
    numbers = {
        name: value if isinstance(value, str) else f"{value:g}" for name, value in _privacy(release).items()
    }
    return said | ({} if release.secure else {"simulation": "true"}) | numbers | _counted(release)


def _counted(release: Release) -> dict[str, str]:
    """That trips of a person beyond a bound do not count, where it is so."""
    sentence = left_out(release.claim.unit, counted(release.features.universe))
    return {"not_counted": sentence} if sentence else {}


def _privacy(release: Release) -> dict[str, Any]:
    """ε (or ρ), δ, whom it protects, and the program; where nobody is protected, the reason instead of any number."""
    claim = release.promise
    version = __version__ if release.stored is None else release.stored.software.get("cbdp", __version__)
    source = {"source": f"cbdp {version}, mechanism {release.mechanism}"}
    if not claim.holds:
        return {"caveat": claim.caveat} | source
    cost = claim.cost
    spent: dict[str, Any] = {"rho": float(cost.rho)} if cost.currency == "rho" else {}
    if cost.currency != "rho" or isinstance(cost, Stated):
        spent |= {"epsilon": float(cost.epsilon)} | ({"delta": float(cost.delta)} if cost.delta else {})
    return spent | {"protects": str(claim.unit)} | source
