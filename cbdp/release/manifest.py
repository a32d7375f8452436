"""What a release says about itself: all that a reviewer needs, and nothing that depends on private data beyond it."""

from __future__ import annotations

import functools
import hashlib
import platform
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import cbdp
from cbdp import __version__
from cbdp.estimate.public import MEANING
from cbdp.privacy.accounting import curve
from cbdp.privacy.claim import Claim
from cbdp.privacy.composition import Spend, spends_of
from cbdp.privacy.measurement import Measurement
from cbdp.release.deployment import deployment
from cbdp.release.recipe import given
from cbdp.release.release import Release
from cbdp.release.schema import ANOTHER, NOT_STATED
from cbdp.release.stated import cost_json, exact, unit_json
from cbdp.rounding import ROUNDINGS, Exactness
from cbdp.rounding.whole import exactness
from cbdp.solvers.solution import Certificate

CODE = (".py", ".css", ".js", ".html", ".json")  # what the text of a release follows from
FORMAT, VERSION = "cbdp-release", 2
SIMULATION = "simulation, not a release"
PERTURBED, SKIPPED = "perturbed", "skipped"  # what counts of zero got: noise like all others, or none
SIMULATED = "by simulation from the published trips, accounting for noise, post-processing and rounding; no privacy is spent"


def describe(release: Release) -> dict[str, Any]:
    """All of the manifest that does not speak of files."""
    public = sorted(release.recipe.public)
    series = {} if release.series is None else {"series": release.series.json()}
    return (
        ({"public": {"features": public, "meaning": MEANING}} if public else {})
        | series
        | {
            "format": FORMAT,
            "version": VERSION,
            "status": "release" if release.secure else SIMULATION,
            "secure": release.secure,
            "about": None if release.about is None else release.about.json(),
            "recipe": release.recipe.json(),
            "privacy": _privacy(release.promise),
            "estimate": _estimate(release),
            "rounding": _rounding(release),
            "intervals": _intervals(release),
            "software": _software(release),
            "ledger": dict(release.stored.ledger) if release.stored else {"head": None},
            "deployment": deployment(release),
        }
    )


def _privacy(claim: Claim) -> dict[str, Any]:
    """Where nothing is promised, no ε is stated: what would have been spent is in the tree only."""
    holds = claim.holds
    rho = {} if claim.cost.currency == "epsilon" else _rho(claim)
    return rho | {
        "holds": holds,
        "caveat": claim.caveat,
        "statement": str(claim),
        "unit": unit_json(claim.unit),
        "epsilon": exact(claim.cost.epsilon) if holds else None,
        "delta": exact(claim.cost.delta) if holds else None,
        "composition": str(claim.cost),
        "spent": cost_json(claim.cost),
    }


def _rho(claim: Claim) -> dict[str, Any]:
    """ρ, and the ε that it gives at every δ of a list: one promise in many words."""
    if not claim.holds:
        return {"rho": None, "curve": []}
    pairs = [{"epsilon": float(epsilon), "delta": float(delta)} for epsilon, delta in curve(claim.cost.rho)]
    return {"rho": exact(claim.cost.rho), "curve": pairs}


def spent_on(release: Release, feature: str) -> dict[str, Fraction | None]:
    """ε and δ, or ρ, of a feature: of its measurement, or of the part of the claim that is named after it."""
    paid_in_rho = release.claim.cost.currency == "rho"
    spent: dict[str, Fraction | None] = dict.fromkeys(("epsilon", "delta", *(["rho"] if paid_in_rho else [])))
    if not release.promise.holds:
        return spent
    found = {part.what: part for part in spends_of(release.claim.cost)}.get(feature)
    if isinstance(found, Spend):
        return spent | {"epsilon": found.epsilon, "delta": found.delta}
    if found is not None:
        return spent | {"rho": found.rho}
    kind = "rho" if paid_in_rho else "epsilon"
    own = [
        getattr(m, kind)
        for m in release.measurements
        if m.feature == feature and getattr(m, kind) is not None
    ]
    if not own:
        return spent
    return spent | {kind: sum(own, Fraction(0))} | ({} if paid_in_rho else {"delta": Fraction(0)})


def noise_of(release: Release, feature: str) -> dict[str, Any] | None:
    """The law and the scale of a feature's noise: of its measurement, or as the recipe states it."""
    for m in release.measurements:
        if m.feature == feature:
            return {
                "name": None if m.noise is None else m.noise.name,
                "law": law_words(m),
                "scale": exact(m.scale),
                "variance": variance_of(m),
                "threshold": None,
                "zeros": PERTURBED,
            }
    own = release.recipe.tables.get(feature)
    if own is None or feature not in release.tables:
        return None
    return {
        "name": own.law.name,
        "law": own.law.words,
        "scale": exact(own.law.scale),
        "variance": own.law.variance(),
        "threshold": None if own.threshold is None else float(own.threshold),
        "zeros": SKIPPED if own.skips_zeros else PERTURBED,
    }


def law_words(measured: Measurement) -> str:
    """The law of a measurement's noise, as manifests state it."""
    if measured.noise is not None:
        return measured.noise.words
    return NOT_STATED if measured.variance is None else ANOTHER


def variance_of(measured: Measurement) -> float | None:
    """The variance that all values of a measurement share; None if they have none, or several."""
    variance = measured.variance
    if variance is None or not len(variance) or (variance != variance[0]).any():
        return None
    return float(variance[0])


def _estimate(release: Release) -> dict[str, Any] | None:
    if release.estimate is None:
        return None
    solution = release.estimate.solution
    c = solution.certificate
    return {
        "estimator": release.recipe.estimator or "projection",
        "weights": release.recipe.settings.get("weights"),
        "solver": solution.solver,
        "iterations": int(solution.iterations),
        "objective": float(solution.objective),
        "kkt_residual": float(solution.kkt_residual),
        "certificate": {f.name: float(getattr(c, f.name)) for f in fields(Certificate)},
        "leaves": "all" if release.estimate.index is None else "listed",
    }


def _rounding(release: Release) -> dict[str, Any] | None:
    """Which features' counts are not their estimates rounded down or up. Worked out here, if the mechanism does not say."""
    if release.estimate is None:
        return None
    tolerance: float | None
    if release.violations is None:
        result = exactness_of(release)
        violations, tolerance = result.violations, result.tolerance
    else:
        violations, tolerance = release.violations, release.rounding_tolerance
    off = {name: int(many) for name, many in violations.items() if many}
    return {"exact": not off, "violations": off} | ({} if tolerance is None else {"tolerance": tolerance})


def exactness_of(release: Release, tolerance: float | None = None) -> Exactness:
    """Which published counts are not their estimates rounded, by the ranges and the tolerance of the rounding that made them.

    A tolerance can be given: until version 0.2 manifests did not state it.
    """
    assert release.estimate is not None
    trips = (release.index, release.value)
    if release.recipe.rounding is None:
        return exactness(release.features, *release.estimate.trips(), trips, tolerance)
    rounding = ROUNDINGS.installed(release.recipe.rounding)
    budget = given(release.recipe.settings.get("budget"))
    return rounding.exactness(release.features, *release.estimate.trips(), trips, budget, tolerance)


def _intervals(release: Release) -> dict[str, Any] | None:
    if not release.intervals:
        return None
    listed = [name for name in release.features.features if name in release.intervals]
    return {"confidence": release.confidence, "how": SIMULATED, "features": listed}


@functools.cache
def code_fingerprint() -> str:
    """A hash of the files of the installed package: two checkouts of one version number may differ."""
    root = Path(cbdp.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.suffix in CODE and p.is_file()):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _software(release: Release) -> dict[str, str]:
    return dict(release.stored.software) if release.stored else software()


def software() -> dict[str, str]:
    """The versions that are at work here, and a fingerprint of this very code: of one code, the same release gives the same bytes."""
    import pyarrow as pa

    return {
        "cbdp": __version__,
        "code": code_fingerprint(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "python": platform.python_version(),
    }
