"""How a release was made: everything that `finish` needs beside the measurements, as plain JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from cbdp.errors import CbdpError, InputError
from cbdp.estimate import ESTIMATORS
from cbdp.parts import Parts, handed
from cbdp.privacy.laws import LAWS, Law
from cbdp.rounding import ROUNDINGS


@dataclass(frozen=True)
class TableNoise:
    """The noise of a table that is published as it was measured: its law, and below which count nothing is shown."""

    law: Law
    threshold: float | None = None
    skips_zeros: bool = False  # counts of zero got no noise, and never show


@dataclass(frozen=True, eq=False)
class Recipe:
    """The mechanism by name and all its settings. Manifest, request, intervals and audit go by it."""

    mechanism: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # JSON
    tables: Mapping[str, TableNoise] = field(
        default_factory=dict
    )  # of tables published as they were measured

    def json(self) -> dict[str, Any]:
        return {"mechanism": self.mechanism, "settings": dict(self.settings)}

    @property
    def estimator(self) -> str | None:
        """How counts were estimated, where they were."""
        return self._text("estimator")

    @property
    def rounding(self) -> str | None:
        """How whole trips were chosen, where the mechanism says."""
        return self._text("rounding")

    @property
    def public(self) -> Mapping[str, Sequence[int]]:
        """Counts that were public already and are met exactly: by feature, in the order of its elements."""
        found = self.settings.get("public")
        return found if isinstance(found, Mapping) else {}

    def _text(self, name: str) -> str | None:
        found = self.settings.get(name)
        return found if isinstance(found, str) else None


def check_parts(manifest: Mapping[str, Any], what: str) -> None:
    """Refuse a manifest that names parts which are not installed: a stranger's folder never says which Python code is loaded.

    Noise, estimator and rounding are needed to read a release. Of mechanism, solver and budget, which only whoever makes it again needs,
    a plain name may be unknown here.
    """
    recipe = manifest["recipe"]
    settings = recipe["settings"]
    noises = [
        *(m["law"] for m in manifest["measurements"]),
        *(t["law"] for t in manifest.get("running", {"tables": ()})["tables"]),
        *(f["noise"]["name"] for f in manifest["features"] if f["noise"] is not None),
        settings.get("law"),
    ]
    needed: list[tuple[Parts[Any], Any]] = [(LAWS, name) for name in noises]
    needed += [(ESTIMATORS, settings.get("estimator")), (ROUNDINGS, settings.get("rounding"))]
    for parts, name in needed:
        if name is not None:
            _refuse_code(name, what)
            try:
                parts.installed(name)
            except CbdpError as unknown:
                raise InputError(f"{what}: {unknown}") from None
    for name in (recipe["mechanism"], settings.get("solver"), settings.get("budget")):
        if isinstance(name, str):
            _refuse_code(name, what)


def _refuse_code(name: str, what: str) -> None:
    if ":" in name and not handed(name):
        raise InputError(
            f"{what} names code to load, {name!r}, which is not done because a file says so: install a package that registers it, "
            "or, in Python, hand it to this program before"
        )


def plain(value: Any) -> Any:
    """A setting as JSON: fractions as text, arrays by their size and hash, objects by their name."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value, dtype="<f8").tobytes()).hexdigest()
        return {"numbers": value.size, "sha256": digest}
    if isinstance(value, Sequence):
        return [plain(inner) for inner in value]
    return str(getattr(value, "name", type(value).__name__))


def given(stated: Any) -> Any:
    """The setting that `plain` wrote, as far as it can be had back: arrays are stated by their hash only."""
    if isinstance(stated, Mapping):
        if set(stated) == {"numbers", "sha256"}:
            raise InputError("a setting is stated by its hash only: it cannot be used again")
        return {name: given(inner) for name, inner in stated.items()}
    if isinstance(stated, list):
        return [given(inner) for inner in stated]
    return float(stated) if stated in ("inf", "-inf", "nan") else stated
