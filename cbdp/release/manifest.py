"""What a release says about itself: all that a reviewer needs, and nothing that depends on private data beyond it."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp import __version__
from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.features.index import merged
from cbdp.privacy.budget import Parallel, Sequential, Spend
from cbdp.privacy.measurement import Measurement, geometric_variance
from cbdp.privacy.unit import Person, Trip, Unit
from cbdp.release.release import FEW, Claim, Release
from cbdp.solvers.solution import Certificate

FORMAT, VERSION = "cbdp-release", 1
SIMULATION = "simulation, not a release"
GEOMETRIC = "two-sided geometric (discrete Laplace): P(z) ∝ exp(−|z|/scale), sampled exactly"
ROUNDED = "continuous Laplace noise of this scale, rounded to whole numbers; sampled exactly"
ANOTHER = "another law, of this variance"
SIMULATED = "by simulation from the published trips, accounting for noise, post-processing and rounding; no privacy is spent"
SUPPRESSED = "Rounding, clipping or suppression of noisy counts."
NEIGHBOURS = {
    "add-remove": "Two data sets are neighbours if one is the other with one trip added or removed.",
    "replace": "Two data sets are neighbours if one is the other with one trip replaced by another.",
    "person": "Two data sets are neighbours if one is the other with all trips of one person added or removed; "
    "at most {max_trips} trips of each person, chosen at random, are counted.",
}
Cost = Spend | Sequential | Parallel


# Numbers, units and claims, to JSON and back


def exact(value: Fraction | float | None) -> dict[str, Any] | None:
    """A number as the fraction it is, and as a decimal near it. A float has no fraction that it was meant to be.

    >>> exact(Fraction(1, 5))
    {'exact': '1/5', 'decimal': 0.2}
    """
    if value is None:
        return None
    fraction = None if isinstance(value, float) else str(Fraction(value))
    return {"exact": fraction, "decimal": float(value)}


def number(given: Mapping[str, Any] | None) -> Any:
    """The number that `exact` wrote."""
    if given is None:
        return None
    return given["decimal"] if given["exact"] is None else Fraction(given["exact"])


def unit_json(unit: Unit) -> dict[str, Any]:
    """The unit of privacy, with the neighbouring relation in words."""
    shared = {"sensitivity": unit.sensitivity, "words": str(unit)}
    if isinstance(unit, Person):
        neighbouring = NEIGHBOURS["person"].format(max_trips=unit.max_trips)
        return {
            "kind": "person",
            "column": unit.column,
            "max_trips": unit.max_trips,
            "neighbouring": neighbouring,
        } | shared
    return {
        "kind": "trip",
        "neighbours": unit.neighbours,
        "neighbouring": NEIGHBOURS[unit.neighbours],
    } | shared


def _unit(given: Mapping[str, Any]) -> Unit:
    return (
        Trip(given["neighbours"]) if given["kind"] == "trip" else Person(given["column"], given["max_trips"])
    )


def cost_json(cost: Cost) -> dict[str, Any]:
    """What was spent, as the tree of compositions that proves it."""
    price = {"epsilon": exact(cost.epsilon), "delta": exact(cost.delta)}
    if isinstance(cost, Spend):
        return {"what": cost.what} | price
    kind = "sequential" if isinstance(cost, Sequential) else "parallel"
    return {"composition": kind, "of": cost.of, "parts": [cost_json(part) for part in cost.parts]} | price


def _cost(given: Mapping[str, Any]) -> Cost:
    if "what" in given:
        return Spend(given["what"], number(given["epsilon"]), number(given["delta"]))
    parts = tuple(_cost(part) for part in given["parts"])
    return (Sequential if given["composition"] == "sequential" else Parallel)(parts, given["of"])


def claim_of(privacy: Mapping[str, Any]) -> Claim:
    """The claim that a manifest states."""
    return Claim(_unit(privacy["unit"]), _cost(privacy["spent"]), privacy["holds"], privacy["caveat"])


# What is said


def describe(release: Release) -> dict[str, Any]:
    """All of the manifest that does not speak of files."""
    settings = _settings(release)
    return {
        "format": FORMAT,
        "version": VERSION,
        "status": "release" if release.secure else SIMULATION,
        "secure": release.secure,
        "mechanism": {"name": release.mechanism, "settings": settings},
        "privacy": _privacy(release.claim),
        "estimate": _estimate(release, settings),
        "rounding": _rounding(release),
        "intervals": _intervals(release),
        "software": _software(release),
        "ledger": dict(release.stored["ledger"]) if release.stored else {"head": None},
        "deployment": _deployment(release),
    }


def _privacy(claim: Claim) -> dict[str, Any]:
    """A mechanism that promises nothing states no ε: what it would have spent is in the tree only."""
    holds = claim.holds
    return {
        "holds": holds,
        "caveat": claim.caveat,
        "statement": str(claim),
        "unit": unit_json(claim.unit),
        "epsilon": exact(claim.cost.epsilon) if holds else None,
        "delta": exact(claim.cost.delta) if holds else None,
        "composition": str(claim.cost),
        "spent": cost_json(claim.cost),
    }


def _settings(release: Release) -> dict[str, Any]:
    """The mechanism's own fields, less what is said elsewhere, and what was added to them."""
    if release.source is None:
        made = dict(release.stored["mechanism"]["settings"]) if release.stored else {}
    else:
        said = ("features", "epsilon", "unit")
        source = release.source
        made = {f.name: _plain(getattr(source, f.name)) for f in fields(source) if f.name not in said}
        if release.estimate is not None:
            made.setdefault("estimator", "projection")
    return made | {name: _plain(value) for name, value in release.settings.items()}


def estimator_of(release: Release) -> str | None:
    """How counts were estimated, where they were."""
    found = _settings(release).get("estimator")
    return found if isinstance(found, str) else None


def rounding_of(release: Release) -> str | None:
    """Which whole trips were chosen, where the mechanism says: nearest to the estimate, or on few types."""
    found = _settings(release).get("rounding")
    return found if isinstance(found, str) else None


def prior_of(release: Release) -> NDArray[np.float64] | None:
    """The public weights by trip type that entered the estimate, if any did."""
    given = (
        release.settings.get("prior") if release.source is None else getattr(release.source, "prior", None)
    )
    return given if isinstance(given, np.ndarray) else None


def _plain(value: Any) -> Any:
    """A setting as JSON: fractions as text, arrays by their size and hash, objects by their name."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value, dtype="<f8").tobytes()).hexdigest()
        return {"numbers": value.size, "sha256": digest}
    if isinstance(value, Sequence):
        return [_plain(inner) for inner in value]
    return str(getattr(value, "name", type(value).__name__))


def spent_on(release: Release, feature: str) -> tuple[Fraction | None, Fraction | None]:
    """ε and δ of a feature: of its measurement, or of the part of the claim that is named after it."""
    if not release.claim.holds:
        return None, None
    found = {part.what: part for part in _spends(release.claim.cost)}.get(feature)
    if found is not None:
        return found.epsilon, found.delta
    own = [m.epsilon for m in release.measurements if m.feature == feature and m.epsilon is not None]
    return (sum(own, Fraction(0)), Fraction(0)) if own else (None, None)


def _spends(cost: Cost) -> Iterator[Spend]:
    if isinstance(cost, Spend):
        yield cost
    else:
        for part in cost.parts:
            yield from _spends(part)


def noise_of(release: Release, feature: str) -> dict[str, Any] | None:
    """The law and the scale of a feature's noise: of its measurement, or as the mechanism states it."""
    if release.source is None and release.stored:
        kept = {f["name"]: f["noise"] for f in release.stored["features"]}
        return None if kept.get(feature) is None else dict(kept[feature])
    for m in release.measurements:
        if m.feature == feature:
            variance = _one(m.variance)
            return {"law": _law(release, m), "scale": exact(m.scale), "variance": variance, "threshold": None}
    scale, threshold = (getattr(release.source, name, None) for name in ("scale", "threshold"))
    if feature not in release.tables or not callable(scale):
        return None
    below = threshold(feature) if callable(threshold) else threshold
    variance = geometric_variance(float(scale(feature)))
    return {
        "law": GEOMETRIC,
        "scale": exact(scale(feature)),
        "variance": variance,
        "threshold": None if below is None else float(below),
    }


def _law(release: Release, measured: Measurement) -> str:
    variance, scale = _one(measured.variance), measured.scale
    if scale is not None and variance is not None:
        if np.isclose(variance, geometric_variance(float(scale)), rtol=1e-9, atol=0):
            return GEOMETRIC
        if getattr(release.source, "law", None) == "rounded":
            return ROUNDED
    return "not stated" if measured.variance is None else ANOTHER


def _one(variance: NDArray[Any] | None) -> float | None:
    """The variance, where it is the same for all."""
    if variance is None or not len(variance) or (variance != variance[0]).any():
        return None
    return float(variance[0])


def variance_of(measured: Measurement) -> float | None:
    """The variance that all values of a measurement share; None if they have none, or several."""
    return _one(measured.variance)


def _estimate(release: Release, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    if release.estimate is None:
        return None
    solution = release.estimate.solution
    c = solution.certificate
    return {
        "estimator": settings.get("estimator", "projection"),
        "weights": settings.get("weights"),
        "solver": solution.solver,
        "iterations": int(solution.iterations),
        "objective": float(solution.objective),
        "kkt_residual": float(solution.kkt_residual),
        "certificate": {f.name: float(getattr(c, f.name)) for f in fields(Certificate)},
        "leaves": "all" if release.estimate.index is None else "listed",
    }


def certificate_of(given: Mapping[str, Any]) -> Certificate:
    """The certificate that a manifest states."""
    return Certificate(**given)


def _rounding(release: Release) -> dict[str, Any] | None:
    """Which features' counts are not their estimates rounded down or up. Found here, if the mechanism does not say."""
    if release.estimate is None:
        return None
    found = _violations(release) if release.rounding is None else release.rounding
    off = {name: int(many) for name, many in found.items() if many}
    return {"exact": not off, "violations": off}


def _violations(release: Release) -> dict[str, int]:
    assert release.estimate is not None
    found = {}
    for name in release.features.features:
        if name != SINGLETON:
            found[name] = _off(release.counts(name), release.estimate.counts(name))
    if rounding_of(release) == FEW:  # which moves trips within cells, where no table looks
        return found
    index, value = release.estimate.trips()
    both = merged(index, release.index)
    whole, real = np.zeros(len(both), dtype=np.int64), np.zeros(len(both))
    whole[np.searchsorted(both, release.index)] = release.value
    real[np.searchsorted(both, index)] = value
    return found | {SINGLETON: _off(whole, real)}


def _off(whole: NDArray[np.int64], real: NDArray[np.float64]) -> int:
    """How many whole numbers are not the real ones rounded; real ones near a whole number count as it."""
    slack = np.minimum(1e-6 * np.maximum(1.0, real), 1e-3)
    return int(((whole < np.floor(real + slack)) | (whole > np.ceil(real - slack))).sum())


def _intervals(release: Release) -> dict[str, Any] | None:
    if not release.intervals:
        return None
    listed = [name for name in release.features.features if name in release.intervals]
    return {"confidence": release.confidence, "how": SIMULATED, "features": listed}


def _software(release: Release) -> dict[str, str]:
    if release.stored:
        return dict(release.stored["software"])
    import pyarrow as pa

    return {
        "cbdp": __version__,
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "python": platform.python_version(),
    }


def _deployment(release: Release) -> dict[str, Any]:
    """What the OpenDP deployments registry asks for, as far as a release knows it; the curator adds names and dates."""
    claim, cost = release.claim, release.claim.cost
    variant = None if not claim.holds else "Pure DP" if cost.delta == 0 else "Approximate DP"
    epsilon, delta = (float(cost.epsilon), float(cost.delta)) if claim.holds else (None, None)
    person = isinstance(claim.unit, Person)
    estimated = release.estimate is not None
    dimensions = " × ".join(release.features.universe.dimensions)
    return {
        "basic": {
            "data_product_type": "Summary statistics",
            "description": f"Counts of trips by {dimensions}, and by {len(release.features.features)} features.",
        },
        "dp_variant": {
            "variant_name": variant,
            "data_domain": f"Tables of trips over {dimensions}; trips outside the public universe are dropped.",
            "unprotected_quantities": "The universe, zones, modes and places are public inputs; all that depends on trips is "
            "protected."
            if claim.holds
            else claim.caveat,
        },
        "privacy_loss": {
            "privacy_unit": "User-level" if person else "Trip-level",
            "privacy_unit_details": unit_json(claim.unit)["neighbouring"],
            "privacy_parameters": {"epsilon": epsilon, "delta": delta},
            "privacy_parameters_details": str(claim),
        },
        "deployment_model": {
            "model_name": "Central",
            "release_type": "One release",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "composition": str(cost),
            "post_processing": _post_processing(release) if estimated else SUPPRESSED,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": f"At most {claim.unit.max_trips} trips of each person are kept, at random."
            if isinstance(claim.unit, Person)
            else "None: every trip inside the universe is counted.",
            "mechanisms": f"{release.mechanism}: integer noise, sampled exactly from the operating system's entropy (cbdp)."
            if release.secure
            else f"{release.mechanism}: a simulation from a seeded source.",
        },
    }


def _post_processing(release: Release) -> str:
    expected = estimator_of(release) == "posterior"
    prior = " and public weights" if prior_of(release) is not None else ""
    first = f"Expected counts given all noisy answers{prior}, then constrained" if expected else "Constrained"
    few = " on few trip types" if rounding_of(release) == FEW else ""
    return f"{first} least squares to consistent non-negative counts, then rounding to whole trips{few}."


# Text and schema


def dumps(manifest: Mapping[str, Any]) -> bytes:
    """The manifest as the bytes of its file: the same content gives the same bytes."""
    text = json.dumps(manifest, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def schema() -> dict[str, Any]:
    """The JSON Schema of manifests."""
    found: dict[str, Any] = json.loads(
        files("cbdp.release").joinpath("manifest.schema.json").read_text("utf-8")
    )
    return found


def check(manifest: Any, what: str) -> None:
    """Refuse what the schema does not allow."""
    from importlib import import_module

    try:
        jsonschema = import_module("jsonschema")
    except ImportError:
        raise InputError("checking a manifest needs jsonschema: pip install jsonschema") from None
    validator = jsonschema.Draft202012Validator(schema())
    wrong = jsonschema.exceptions.best_match(validator.iter_errors(manifest))
    if wrong is not None:
        place = "/".join(map(str, wrong.absolute_path)) or "its top"
        raise InputError(f"{what} does not match its schema at {place}: {wrong.message[:200]}")
