"""The manifest: what a release says about itself, its JSON Schema, and manifests of earlier versions.

It states all that a reviewer needs, and nothing that depends on private data beyond the release itself.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

import cbdp
import cbdp_features
import cbdp_solvers
from cbdp import __version__
from cbdp.errors import InputError
from cbdp.estimation import ESTIMATORS
from cbdp.estimation.invariants import INVARIANTS_NOTE
from cbdp.privacy.accounting import DPCost, PrivacyGuarantee, epsilon_delta_curve, single_costs
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS, distribution_by_variance
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp.release.release import Release
from cbdp.release.serialization import (
    cost_json,
    exact_from,
    exact_json,
    guarantee_from,
    simulated_guarantee,
    unit_json,
)
from cbdp.rounding import ROUNDINGS, Exactness
from cbdp.rounding.controlled import exactness
from cbdp.untrusted import JSON
from cbdp_solvers.solution import Certificate

if TYPE_CHECKING:
    from cbdp.release.manifest_model import (
        CertificateJson,
        DeploymentJson,
        Description,
        EstimateJson,
        FeatureJson,
        IntervalsJson,
        Manifest,
        NoiseJson,
        PrivacyJson,
        RoundingJson,
    )

FORMAT: Literal["cbdp-release"] = "cbdp-release"
VERSION: Literal[2] = 2
SIMULATION: Literal["simulation, not a release"] = "simulation, not a release"
# what counts of zero got: noise like all others, or none
ZEROS_PERTURBED: Literal["perturbed"] = "perturbed"
ZEROS_SKIPPED: Literal["skipped"] = "skipped"
SIMULATED_INTERVALS = "by simulation from the published trips, accounting for noise, post-processing and rounding; no privacy is spent"
UNNAMED_NOISE, UNSTATED_NOISE = (
    "another law, of this variance",
    "not stated",
)  # words where a noise has no name
RENAMED_SETTINGS = {"trips": "expected_trips", "filled": "expected_filled"}  # settings of version 1
USER_LEVEL = "User-level"
SUPPRESSION_NOTE = "Rounding, clipping or suppression of noisy counts."
CODE_SUFFIXES = (".py", ".css", ".js", ".jinja", ".json")  # what the text of a release follows from


def describe(release: Release) -> Description:
    """All of the manifest that does not speak of files."""
    stated: Description = {
        "format": FORMAT,
        "version": VERSION,
        "status": "release" if release.secure else SIMULATION,
        "secure": release.secure,
        "about": None if release.about is None else release.about.json(),
        "recipe": release.recipe.json(),
        "privacy": _privacy_section(release.promise),
        "estimate": _estimate_section(release),
        "rounding": _rounding_section(release),
        "intervals": _intervals_section(release),
        "software": dict(release.stored.software) if release.stored else software(),
        "ledger": release.stored.ledger if release.stored else {"head": None},
        "deployment": registry_fields(release),
    }
    if release.recipe.public:
        stated["public"] = {"features": sorted(release.recipe.public), "meaning": INVARIANTS_NOTE}
    if release.series is not None:
        stated["series"] = release.series.json()
    return stated


def _privacy_section(claim: PrivacyGuarantee) -> PrivacyJson:
    """Where nothing is promised, no ε is stated: what would have been spent is in the tree only. The ρ, and the ε that it gives at every δ
    of a list, are one promise in many words.
    """
    holds = claim.holds
    stated: PrivacyJson = {
        "holds": holds,
        "caveat": claim.caveat,
        "statement": str(claim),
        "unit": unit_json(claim.unit),
        "epsilon": exact_json(claim.cost.epsilon) if holds else None,
        "delta": exact_json(claim.cost.delta) if holds else None,
        "composition": str(claim.cost),
        "spent": cost_json(claim.cost),
    }
    if claim.cost.currency != "epsilon":
        stated["rho"] = exact_json(claim.cost.rho) if holds else None
        points = epsilon_delta_curve(claim.cost.rho) if holds else []
        stated["curve"] = [{"epsilon": float(epsilon), "delta": float(delta)} for epsilon, delta in points]
    return stated


def cost_of_feature(release: Release, feature: str) -> dict[str, Fraction | None]:
    """ε and δ, or ρ, of a feature: of the part of the guarantee's cost that is named after it, or of its measurements."""
    paid_in_rho = release.claim.cost.currency == "rho"
    spent: dict[str, Fraction | None] = dict.fromkeys(("epsilon", "delta", *(["rho"] if paid_in_rho else [])))
    if not release.promise.holds:
        return spent
    charge = {part.what: part for part in single_costs(release.claim.cost)}.get(feature)
    if isinstance(charge, DPCost):
        return spent | {"epsilon": charge.epsilon, "delta": charge.delta}
    if charge is not None:
        return spent | {"rho": charge.rho}
    kind = "rho" if paid_in_rho else "epsilon"
    costs = [
        getattr(m, kind)
        for m in release.measurements
        if m.feature == feature and getattr(m, kind) is not None
    ]
    if not costs:
        return spent
    return spent | {kind: sum(costs, Fraction(0))} | ({} if paid_in_rho else {"delta": Fraction(0)})


def noise_of(release: Release, feature: str) -> NoiseJson | None:
    """The distribution and the scale of a feature's noise: of its measurement, or as the recipe states it."""
    for m in release.measurements:
        if m.feature == feature:
            return {
                "name": None if m.noise is None else m.noise.name,
                "law": noise_words(m),
                "scale": exact_json(m.scale),
                "variance": variance_of(m),
                "threshold": None,
                "zeros": ZEROS_PERTURBED,
            }
    table_noise = release.recipe.tables.get(feature)
    if table_noise is None or feature not in release.tables:
        return None
    return {
        "name": table_noise.law.name,
        "law": table_noise.law.words,
        "scale": exact_json(table_noise.law.scale),
        "variance": table_noise.law.variance(),
        "threshold": None if table_noise.threshold is None else float(table_noise.threshold),
        "zeros": ZEROS_SKIPPED if table_noise.skips_zeros else ZEROS_PERTURBED,
    }


def noise_words(measured: Measurement) -> str:
    """The distribution of a measurement's noise in words, as manifests state it."""
    if measured.noise is not None:
        return measured.noise.words
    return UNSTATED_NOISE if measured.variance is None else UNNAMED_NOISE


def variance_of(measured: Measurement) -> float | None:
    """The variance that all values of a measurement share; None if they have none, or several."""
    variance = measured.variance
    if variance is None or not len(variance) or (variance != variance[0]).any():
        return None
    return float(variance[0])


def _estimate_section(release: Release) -> EstimateJson | None:
    if release.estimate is None:
        return None
    solution = release.estimate.solution
    certificate = {f.name: float(getattr(solution.certificate, f.name)) for f in fields(Certificate)}
    return {
        "estimator": release.recipe.estimator or "projection",
        "weights": release.recipe.settings.get("weights"),
        "solver": solution.solver,
        "iterations": int(solution.iterations),
        "objective": float(solution.objective),
        "kkt_residual": float(solution.kkt_residual),
        "certificate": cast("CertificateJson", certificate),
        "leaves": "all" if release.estimate.index is None else "listed",
    }


def _rounding_section(release: Release) -> RoundingJson | None:
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
    stated: RoundingJson = {"exact": not off, "violations": off}
    if tolerance is not None:
        stated["tolerance"] = tolerance
    return stated


def exactness_of(release: Release, tolerance: float | None = None) -> Exactness:
    """Which published counts are not their estimates rounded, by the ranges and the tolerance of the rounding that made them.

    A tolerance can be given: until version 0.2 manifests did not state it.
    """
    assert release.estimate is not None
    trips = (release.index, release.value)
    if release.recipe.rounding is None:
        return exactness(release.features, *release.estimate.trips(), trips, tolerance)
    rounding = ROUNDINGS.installed(release.recipe.rounding)
    budget = release.recipe.rule("budget")
    return rounding.exactness(release.features, *release.estimate.trips(), trips, budget, tolerance)


def _intervals_section(release: Release) -> IntervalsJson | None:
    if not release.intervals or release.confidence is None:
        return None
    listed = [name for name in release.features.features if name in release.intervals]
    return {"confidence": release.confidence, "how": SIMULATED_INTERVALS, "features": listed}


@functools.cache
def code_fingerprint() -> str:
    """A hash of the files of the installed package: two checkouts of one version number may differ."""
    digest = hashlib.sha256()
    for package in (cbdp, cbdp_features, cbdp_solvers):
        home = Path(str(package.__file__)).parent
        for path in sorted(p for p in home.rglob("*") if p.suffix in CODE_SUFFIXES and p.is_file()):
            name = path.relative_to(home.parent).as_posix()
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


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


# The manifest as a file, and its schema


def manifest_bytes(manifest: Mapping[str, object]) -> bytes:
    """The manifest as the bytes of its file: the same content gives the same bytes."""
    text = json.dumps(manifest, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def manifest_schema() -> dict[str, JSON]:
    """The JSON Schema of manifests, as it is published; it follows from `cbdp.release.manifest_model`."""
    text = files("cbdp.release").joinpath("manifest.schema.json").read_text("utf-8")
    return cast("dict[str, JSON]", json.loads(text))


def check_manifest(manifest: object, what: str) -> Manifest:
    """The manifest, if it is as the schema has it; refuse any other."""
    from cbdp.release.manifest_model import first_mistake

    mistake = first_mistake(manifest)
    if mistake is not None:
        place, message = mistake
        shown = repr(place)[1:-1]
        raise InputError(f"{what} does not match its schema at {shown}: {message[:200]}")
    return cast("Manifest", manifest)


# Manifests of earlier versions


def upgraded_manifest(manifest: Mapping[str, Any]) -> dict[str, object]:
    """A manifest of version 1 as version 2 states it.

    The mechanism is a recipe, measurements name their law, features say whether counts of zero got noise, and a simulation
    promises nothing. Version 1 said nothing about title, place or period.
    """
    upgraded: dict[str, Any] = {name: part for name, part in manifest.items() if name != "mechanism"}
    stated = manifest["mechanism"]["settings"].items()
    settings = {RENAMED_SETTINGS.get(n, n): v for n, v in stated if n not in ("features", "epsilon", "unit")}
    upgraded["recipe"] = {"mechanism": manifest["mechanism"]["name"], "settings": settings}
    upgraded["measurements"] = [
        {**m, "law": _noise_statement_of_version_1(m)} for m in manifest["measurements"]
    ]
    upgraded["features"] = [
        {**f, "noise": _noise_with_zeros(f["noise"], settings)} for f in manifest["features"]
    ]
    upgraded["about"], upgraded["version"] = None, 2
    return upgraded if upgraded["secure"] else _without_guarantee(upgraded)


def _without_guarantee(manifest: Mapping[str, Any]) -> dict[str, object]:
    """A simulation of version 1, which stated an ε as if it protected somebody."""
    stated_guarantee, deployment = guarantee_from(manifest["privacy"]), manifest["deployment"]
    claim = simulated_guarantee(stated_guarantee)
    stated = {"holds": False, "caveat": claim.caveat, "statement": str(claim), "epsilon": None, "delta": None}
    variant = {"variant_name": None, "unprotected_quantities": claim.caveat}
    loss = {
        "privacy_parameters": {"epsilon": None, "delta": None},
        "privacy_parameters_details": str(claim),
    }
    return {
        **manifest,
        "privacy": {**manifest["privacy"], **stated},
        "features": [{**f, "epsilon": None, "delta": None} for f in manifest["features"]],
        "deployment": {
            **deployment,
            "dp_variant": {**deployment["dp_variant"], **variant},
            "privacy_loss": {**deployment["privacy_loss"], **loss},
        },
    }


def _noise_statement_of_version_1(measurement: Mapping[str, Any]) -> str | None:
    scale, variance = exact_from(measurement["scale"]), measurement["variance"]
    distribution = (
        None
        if scale is None
        else distribution_by_variance(scale, variance if isinstance(variance, float) else None)
    )
    return None if distribution is None else distribution.name


def _noise_with_zeros(
    stated: Mapping[str, object] | None, settings: Mapping[str, object]
) -> dict[str, object] | None:
    """What suppressed small counts skipped zeros, unless its settings said otherwise."""
    if stated is None:
        return None
    zeros = "perturbed" if stated["threshold"] is None else settings.get("zeros", "skipped")
    return {**stated, "zeros": zeros}


def with_noise_names(manifest: Manifest, what: str) -> Manifest:
    """A manifest whose features name their noise distribution; releases up to 0.2.0 state it by words, which are looked up once, here."""

    def named(feature: FeatureJson) -> FeatureJson:
        noise = feature["noise"]
        if noise is None or "name" in noise:
            return feature
        return {**feature, "noise": {**noise, "name": _noise_name(feature["name"], noise["law"], what)}}

    return {**manifest, "features": [named(feature) for feature in manifest["features"]]}


def _noise_name(feature: str, words: str, what: str) -> str | None:
    if words in (UNNAMED_NOISE, UNSTATED_NOISE):
        return None
    for name, law, _ in NOISE_DISTRIBUTIONS.each():
        if law is not None and law.words == words:
            return name
    raise InputError(
        f"{what}: the noise of {feature!r} is {words!r}, which is not known: update cbdp, or install the package that brings it"
    )


def registry_fields_of_version_1(stated: DeploymentJson) -> DeploymentJson:
    """The same as versions up to 0.2 wrote it: a person's day, week or month was called like a person."""
    loss = stated["privacy_loss"]
    name = USER_LEVEL if str(loss["privacy_unit"]).startswith("User-") else loss["privacy_unit"]
    return {**stated, "privacy_loss": {**loss, "privacy_unit": name}}


# What the OpenDP registry of deployments asks for, as far as a release knows it; the curator adds names and dates


def registry_fields(release: Release) -> DeploymentJson:
    """What the OpenDP deployments registry asks for, as far as a release knows it; the curator adds names and dates."""
    dimensions = " × ".join(release.features.universe.dimensions)
    return {
        "basic": {
            "data_product_type": "Summary statistics",
            "description": f"Counts of trips by {dimensions}, and by {len(release.features.features)} features.",
        },
        "dp_variant": _privacy_variant(release, dimensions),
        "privacy_loss": _privacy_loss(release),
        "deployment_model": {
            "model_name": "Central",
            "release_type": "One release",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "composition": str(release.claim.cost),
            "post_processing": SUPPRESSION_NOTE
            if release.estimate is None
            else _post_processing_text(release),
        },
        "implementation": _implementation_fields(release),
    }


def _privacy_variant(release: Release, dimensions: str) -> dict[str, object]:
    claim = release.promise
    public = (
        "The universe, zones, modes and places are public inputs; all that depends on trips is protected."
    )
    if release.recipe.public:
        public_features = ", ".join(sorted(release.recipe.public))
        public = f"The universe, zones, modes and places are public inputs, and so are the counts of {public_features}; all else that depends on trips is protected."
    return {
        "variant_name": _variant_name(claim),
        "data_domain": f"Tables of trips over {dimensions}; trips outside the public universe are dropped.",
        "unprotected_quantities": public if claim.holds else claim.caveat,
    }


def _variant_name(claim: PrivacyGuarantee) -> str | None:
    if not claim.holds:
        return None
    if claim.cost.currency == "rho":
        return "zCDP"
    return "Pure DP" if claim.cost.delta == 0 else "Approximate DP"


def _privacy_loss(release: Release) -> dict[str, object]:
    claim, cost = release.promise, release.claim.cost
    epsilon, delta = (float(cost.epsilon), float(cost.delta)) if claim.holds else (None, None)
    rho = {} if cost.currency == "epsilon" else {"rho": float(cost.rho) if claim.holds else None}
    return {
        "privacy_unit": _unit_name(claim.unit),
        "privacy_unit_details": unit_json(claim.unit)["neighbouring"],
        "privacy_parameters": rho | {"epsilon": epsilon, "delta": delta},
        "privacy_parameters_details": str(claim),
    }


def _unit_name(unit: Unit) -> str:
    """A person is protected in all that they do, or in what they do in a period: the registry tells these apart."""
    if not isinstance(unit, Person):
        return "Trip-level"
    return USER_LEVEL if unit.per == RELEASE else f"User-{unit.per}"


def _implementation_fields(release: Release) -> dict[str, object]:
    unit, name = release.claim.unit, release.mechanism
    return {
        "preprocessing_and_hyperparameter_tuning": f"At most {unit.max_trips} trips of each person{unit.period} are kept, at random."
        if isinstance(unit, Person)
        else "None: every trip inside the universe is counted.",
        "mechanisms": f"{name}: integer noise, sampled exactly from the operating system's entropy (cbdp)."
        if release.secure
        else f"{name}: a simulation from a seeded source.",
    }


def _post_processing_text(release: Release) -> str:
    expected = _has_expected_counts(release)
    prior = " and public weights" if release.prior is not None else ""
    first = f"Expected counts given all noisy answers{prior}, then constrained" if expected else "Constrained"
    few = " on few trip types" if release.recipe.rounding == "few" else ""
    return f"{first} least squares to consistent non-negative counts, then rounding to whole trips{few}."


def _has_expected_counts(release: Release) -> bool:
    estimator = release.recipe.estimator
    return estimator is not None and ESTIMATORS.installed(estimator).expects
