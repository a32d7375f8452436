"""What the OpenDP deployments registry asks for, as far as a release knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cbdp.estimate import ESTIMATORS
from cbdp.privacy.claim import Claim
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp.release.release import Release
from cbdp.release.stated import unit_json

PERSON = "User-level"
SUPPRESSED = "Rounding, clipping or suppression of noisy counts."


def deployment(release: Release) -> dict[str, Any]:
    """What the OpenDP deployments registry asks for, as far as a release knows it; the curator adds names and dates."""
    dimensions = " × ".join(release.features.universe.dimensions)
    return {
        "basic": {
            "data_product_type": "Summary statistics",
            "description": f"Counts of trips by {dimensions}, and by {len(release.features.features)} features.",
        },
        "dp_variant": _variant(release, dimensions),
        "privacy_loss": _loss(release),
        "deployment_model": {
            "model_name": "Central",
            "release_type": "One release",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "composition": str(release.claim.cost),
            "post_processing": SUPPRESSED if release.estimate is None else _post_processing(release),
        },
        "implementation": _implementation(release),
    }


def _variant(release: Release, dimensions: str) -> dict[str, Any]:
    claim = release.promise
    public = (
        "The universe, zones, modes and places are public inputs; all that depends on trips is protected."
    )
    if release.recipe.public:
        known = ", ".join(sorted(release.recipe.public))
        public = f"The universe, zones, modes and places are public inputs, and so are the counts of {known}; all else that depends on trips is protected."
    return {
        "variant_name": _variant_name(claim),
        "data_domain": f"Tables of trips over {dimensions}; trips outside the public universe are dropped.",
        "unprotected_quantities": public if claim.holds else claim.caveat,
    }


def _variant_name(claim: Claim) -> str | None:
    if not claim.holds:
        return None
    if claim.cost.currency == "rho":
        return "zCDP"
    return "Pure DP" if claim.cost.delta == 0 else "Approximate DP"


def _loss(release: Release) -> dict[str, Any]:
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
    return PERSON if unit.per == RELEASE else f"User-{unit.per}"


def in_earlier_words(stated: Mapping[str, Any]) -> dict[str, Any]:
    """The same as versions up to 0.2 wrote it: a person's day, week or month was called like a person."""
    loss = stated["privacy_loss"]
    name = PERSON if loss["privacy_unit"].startswith("User-") else loss["privacy_unit"]
    return {**stated, "privacy_loss": {**loss, "privacy_unit": name}}


def _implementation(release: Release) -> dict[str, Any]:
    unit, name = release.claim.unit, release.mechanism
    return {
        "preprocessing_and_hyperparameter_tuning": f"At most {unit.max_trips} trips of each person{unit.period} are kept, at random."
        if isinstance(unit, Person)
        else "None: every trip inside the universe is counted.",
        "mechanisms": f"{name}: integer noise, sampled exactly from the operating system's entropy (cbdp)."
        if release.secure
        else f"{name}: a simulation from a seeded source.",
    }


def _post_processing(release: Release) -> str:
    expected = _expects(release)
    prior = " and public weights" if release.prior is not None else ""
    first = f"Expected counts given all noisy answers{prior}, then constrained" if expected else "Constrained"
    few = " on few trip types" if release.recipe.rounding == "few" else ""
    return f"{first} least squares to consistent non-negative counts, then rounding to whole trips{few}."


def _expects(release: Release) -> bool:
    estimator = release.recipe.estimator
    return estimator is not None and ESTIMATORS.installed(estimator).expects
