"""What the OpenDP deployments registry asks for, as far as a release knows it."""

from __future__ import annotations

from typing import Any

from cbdp.estimate import ESTIMATORS
from cbdp.privacy.unit import Person
from cbdp.release.release import Release
from cbdp.release.stated import unit_json

SUPPRESSED = "Rounding, clipping or suppression of noisy counts."


def deployment(release: Release) -> dict[str, Any]:
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
    expected = _expects(release)
    prior = " and public weights" if release.prior is not None else ""
    first = f"Expected counts given all noisy answers{prior}, then constrained" if expected else "Constrained"
    few = " on few trip types" if release.recipe.rounding == "few" else ""
    return f"{first} least squares to consistent non-negative counts, then rounding to whole trips{few}."


def _expects(release: Release) -> bool:
    estimator = release.recipe.estimator
    return estimator is not None and ESTIMATORS.get(estimator).expects
