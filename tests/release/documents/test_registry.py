"""deployment.yaml, read by a real YAML reader and held against what the registry asks for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from released import MECHANISMS, city_features, release_of
from spoken_about import FULL

import cbdp
from cbdp.release.release import Release

yaml = pytest.importorskip("yaml")

TEXT = {"type": "string", "minLength": 1}


def exactly(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with these keys and no others, as the registry's schema has it throughout."""
    properties = required | (optional or {})
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


# The registry's fields and choices as of September 2026, less what only the publisher can fill in.
SCHEMA = exactly(
    {
        "url_slug": {"type": "string", "pattern": "^[a-z0-9.-]+$"},
        "status": {"enum": ["Draft"]},
        "tier": {"enum": [1, 2, 3]},
        "deployment": exactly(
            {
                "basic": exactly(
                    {
                        "name": TEXT,
                        "description": TEXT,
                        "data_product_type": {"enum": ["Summary statistics"]},
                    },
                    {
                        "data_curators": {"type": "array", "items": exactly({"data_curator_name": TEXT})},
                        "data_product_region": TEXT,
                    },
                ),
                "dp_variant": exactly(
                    {
                        "variant_name": {"enum": ["Pure DP", "Approximate DP", "Zero-concentrated DP"]},
                        "data_domain": TEXT,
                        "unprotected_quantities": TEXT,
                    }
                ),
                "privacy_loss": exactly(
                    {
                        "privacy_unit": {
                            "enum": ["Trip-level", "User-level", "User-day", "User-week", "User-month"]
                        },
                        "privacy_unit_details": TEXT,
                        "privacy_parameters": exactly(
                            {"epsilon": {"type": "number"}, "delta": {"type": "number"}},
                            {"rho": {"type": "number"}},
                        ),
                        "privacy_parameters_details": TEXT,
                    }
                ),
                "deployment_model": exactly(
                    {
                        "model_name": {"enum": ["Central"]},
                        "release_type": {"enum": ["One release", "Many releases"]},
                        "data_source_type": {"enum": ["Static", "Dynamic"]},
                        "access_type": {"enum": ["Non-interactive"]},
                    },
                    {"release_type_details": TEXT},
                ),
                "accounting": exactly({"composition": TEXT, "post_processing": TEXT}),
                "implementation": exactly(
                    {"preprocessing_and_hyperparameter_tuning": TEXT, "mechanisms": TEXT}
                ),
                "administrative": exactly({"sources": TEXT}),
            }
        ),
    }
)


def entry(release: Release, folder: Path) -> dict[str, Any] | None:
    release.save(folder)
    path = folder / "deployment.yaml"
    if not path.exists():
        return None
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    jsonschema.validate(found, SCHEMA)
    return found


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_the_entry_has_the_registry_s_form(name: str, tmp_path: Path) -> None:
    """Of every mechanism that promises something; no other has one."""
    release = release_of(name)
    found = entry(release, tmp_path / "out")
    assert (found is not None) == release.promise.holds
    if found is not None:
        loss = found["deployment"]["privacy_loss"]["privacy_parameters"]
        assert loss["epsilon"] == float(release.claim.cost.epsilon)
        assert loss["delta"] == float(release.claim.cost.delta)


def test_the_publisher_s_words_survive_yaml(tmp_path: Path) -> None:
    """Quotes, colons and signs come back as they were; what is open stands as comments."""
    made = replace(FULL, title='a: "b" # c\\d')
    found = entry(replace(release_of("laplace"), about=made), tmp_path / "out")
    assert found is not None
    assert found["deployment"]["basic"]["name"] == 'a: "b" # c\\d'
    assert found["deployment"]["basic"]["data_curators"] == [{"data_curator_name": "Transit “Authority”"}]
    assert found["deployment"]["basic"]["data_product_region"] == "Zürich & <around>"
    text = (tmp_path / "out" / "deployment.yaml").read_text("utf-8")
    for key in ("intended_use", "publication_date", "justification", "registry_authors"):
        assert f"# fill in {key}:" in text


def test_a_day_of_a_person_is_not_called_a_person(tmp_path: Path) -> None:
    """Protection of a person's day is weaker than of the person: the entry says which."""
    release = release_of("person")
    daily = replace(release.claim, unit=cbdp.Person("card", 3, per="day"))
    found = entry(replace(release, claim=daily), tmp_path / "out")
    assert found is not None
    assert found["deployment"]["privacy_loss"]["privacy_unit"] == "User-day"


def test_rho_has_the_registry_s_name(tmp_path: Path) -> None:
    """Zero-concentrated differential privacy, with ρ beside ε and δ."""
    mechanism = cbdp.ConstraintBased(city_features(), rho="1/8", law="gaussian")
    found = entry(mechanism.release(np.full(city_features().universe.size, 5)), tmp_path / "out")
    assert found is not None
    assert found["deployment"]["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    assert found["deployment"]["privacy_loss"]["privacy_parameters"]["rho"] == 0.125
