"""What a manifest says: promises, noise, estimates, settings, and nothing that could be taken for a promise."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from released import city_features, made_by, prior_weights, release_of, same

import cbdp
from cbdp.errors import InputError
from cbdp.release.files import load
from cbdp.release.manifest import check_manifest, code_fingerprint


def test_the_manifest_states_what_was_promised(tmp_path: Path) -> None:
    """ε in total and by feature as exact fractions, noise, unit, solver and certificate, rounding, confidence, versions."""
    release = release_of("paper")
    made = release.save(tmp_path / "out").manifest
    assert made["privacy"]["epsilon"] == {"exact": "1", "decimal": 1.0}
    assert made["privacy"]["delta"] == {"exact": "0", "decimal": 0.0}
    assert made["privacy"]["unit"]["words"] == "one trip, added or removed"
    assert "one trip added or removed" in made["privacy"]["unit"]["neighbouring"]
    assert made["privacy"]["composition"] == "5 features × 1/5, same data: 1"
    parts = [f["epsilon"]["exact"] for f in made["features"]]
    assert sum(map(Fraction, parts)) == 1
    assert all(
        f["noise"]["scale"]["exact"] == "5" and "geometric" in f["noise"]["law"] for f in made["features"]
    )
    assert {f["name"]: (tuple(f["by"]), f["size"]) for f in made["features"]} == {
        n: (f.by, release.features.size(n)) for n, f in release.features.features.items()
    }
    assert made["estimate"]["weights"] == "size"
    assert made["estimate"]["solver"] == "newton"
    assert made["estimate"]["estimator"] == "projection"
    assert made["estimate"]["kkt_residual"] == release.estimate.solution.kkt_residual
    assert made["rounding"] == {"exact": True, "violations": {}, "tolerance": 1e-6}
    assert made["intervals"]["confidence"] == 0.9
    assert made["universe"]["size"] == release.features.universe.size
    assert made["universe"]["dimensions"][2]["edges"] == [21600, 25200, 28800]
    assert made["software"]["cbdp"] == cbdp.__version__
    assert made["status"] == "release"
    assert made["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
    assert made["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 0.0}
    unsaved = release.manifest
    assert unsaved["files"] == {}
    assert {k: v for k, v in unsaved.items() if k != "files"} == {
        k: v for k, v in made.items() if k != "files"
    }


def test_the_manifest_states_how_counts_were_estimated(tmp_path: Path) -> None:
    """Estimator, preset, budget, target and the facts it was worked out from, in the file and in what is loaded from it."""
    for name, estimator, preset, budget in (
        ("constraint-based", "posterior", "best", "balanced"),
        ("paper", "projection", "paper", "uniform"),
        ("target", "posterior", "best", "optimal"),
    ):
        release_of(name).save(tmp_path / name)
        made = load(tmp_path / name).manifest
        stated = made["recipe"]["settings"]
        assert (stated["estimator"], stated["preset"], stated["budget"]) == (estimator, preset, budget)
        assert made["estimate"]["estimator"] == estimator
        assert ("Expected counts" in made["deployment"]["accounting"]["post_processing"]) == (
            estimator == "posterior"
        )
    assert stated["target"] == {"zone": "2", "singleton": "1/3"}
    assert (stated["expected_trips"], stated["expected_filled"]) == (900, 0.8)


def test_a_public_prior_is_part_of_the_release(tmp_path: Path) -> None:
    """Its weights are a file, its hash and source are stated, and the estimate follows from the noisy answers with it."""
    release = release_of("prior")
    made = release.save(tmp_path / "out").manifest
    digest = hashlib.sha256(prior_weights().astype("<f8").tobytes()).hexdigest()
    stated = made["recipe"]["settings"]
    assert stated["prior"] == {"numbers": len(prior_weights()), "sha256": digest}
    assert stated["prior_source"] == {"file": "w.csv", "sha256": "a" * 64}
    held = pq.read_table(tmp_path / "out" / made["prior"]["file"])
    assert held.column_names == ["origin", "destination", "time", "weight"]
    assert held["weight"].to_pylist() == prior_weights().tolist()
    back = load(tmp_path / "out")
    again = cbdp.post_process(back.features, back.measurements, estimator="posterior", prior=back.prior)
    assert np.array_equal(again.solution.leaves, release.estimate.solution.leaves)
    assert "prior" not in release_of("constraint-based").manifest
    (tmp_path / "out" / made["prior"]["file"]).unlink()
    with pytest.raises(InputError, match=r"universe/prior\.parquet.* is missing"):
        load(tmp_path / "out")


def test_a_mechanism_that_promises_nothing_states_no_epsilon(tmp_path: Path) -> None:
    """The manifest says that it does not hold, why, and gives no number that could be taken for a promise."""
    made = release_of("threshold-laplace").save(tmp_path / "out").manifest
    assert made["privacy"]["holds"] is False
    assert "counts of zero get no noise" in made["privacy"]["caveat"]
    assert made["privacy"]["epsilon"] is None
    assert made["deployment"]["dp_variant"]["variant_name"] is None
    assert all(f["epsilon"] is None for f in made["features"])
    assert [f["noise"]["threshold"] for f in made["features"] if f["noise"]] == [5.0] * 4


def test_noise_laws_are_told_apart(tmp_path: Path) -> None:
    """The paper's rounded Laplace noise, geometric noise, and thresholds that came with a δ."""
    rounded = release_of("laplace").manifest["features"][-1]["noise"]
    geometric = release_of("laplace, sparse").manifest["features"][-1]["noise"]
    assert "rounded" in rounded["law"]
    assert "geometric" in geometric["law"]
    assert rounded["scale"] == geometric["scale"] == {"exact": "1", "decimal": 1.0}
    made = release_of("stability-histogram").manifest
    assert made["privacy"]["delta"]["exact"] == "1/250"
    assert made["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"
    assert all(f["noise"]["threshold"] > 1 for f in made["features"] if f["name"] != "total")


def test_a_rounding_that_is_off_is_told() -> None:
    """Counts that are not their estimates rounded down or up are counted by feature, whoever rounded."""
    for rounding in (
        "nearest",
        "few",
    ):  # of few types, which hold what others have too, the tables alone are told
        release = made_by(cbdp.ConstraintBased(city_features(), 1, rounding=rounding))
        value = release.value.copy()
        value[0] += 2
        off = replace(release, value=value, violations=None).manifest["rounding"]
        assert off["exact"] is False
        assert off["violations"].get("singleton", 0) == (rounding == "nearest")
        assert off["violations"]["total"] == 1
    assert replace(release, violations={"zone": 3, "time": 0}).manifest["rounding"]["violations"] == {
        "zone": 3
    }


def test_settings_are_stated_as_plain_values() -> None:
    """Fractions as text, arrays by size and hash, solvers by name, infinite weights in words."""
    dag = city_features()
    weights = {"zone": np.ones(dag.size("zone")), "time": 2.5, "total": float("inf")}
    shares = {n: Fraction(1, 5) for n in dag.features}
    mechanism = cbdp.ConstraintBased(
        dag,
        1,
        weights={**weights, "mode": 1, "singleton": 1},
        budget=shares,
        solver=cbdp.solvers.get("newton"),
    )
    made = made_by(mechanism).manifest
    stated = made["recipe"]["settings"]
    assert stated["budget"] == dict.fromkeys(dag.features, "1/5")
    assert stated["solver"] == "newton"
    assert stated["weights"]["time"] == 2.5
    assert stated["weights"]["total"] == "inf"
    assert stated["weights"]["zone"]["numbers"] == dag.size("zone")
    assert made["estimate"]["weights"] == stated["weights"]
    check_manifest(made, "the manifest")


@pytest.mark.parametrize("name", ["ConstraintBased", "Laplace", "StabilityHistogram"])
def test_a_simulation_promises_nothing(name: str, tmp_path: Path) -> None:
    """It does not hold, for a reason that is stated; no ε is a promise; what it would cost stays in the tree."""
    mechanism = getattr(cbdp, name)(city_features(), 1)
    seeded = made_by(mechanism, secure=False)
    made = seeded.save(tmp_path / "out", simulation=True).manifest
    assert (made["status"], made["secure"]) == ("simulation, not a release", False)
    privacy = made["privacy"]
    assert privacy["holds"] is False
    assert privacy["caveat"] == "a simulation from a seeded source: it protects nobody"
    assert privacy["statement"] == f"not differentially private for any ε: {privacy['caveat']}"
    assert (privacy["epsilon"], privacy["delta"]) == (None, None)
    assert Fraction(privacy["spent"]["epsilon"]["exact"]) == mechanism.claim().cost.epsilon
    assert {f["epsilon"] for f in made["features"]} == {f["delta"] for f in made["features"]} == {None}
    loss = made["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": None, "delta": None}
    assert "ε-DP" not in loss["privacy_parameters_details"]
    assert made["deployment"]["dp_variant"]["variant_name"] is None
    back = cbdp.load(tmp_path / "out")
    assert back.manifest == made
    assert not back.promise.holds
    assert not replace(back, secure=True).promise.holds  # what was saved as a simulation stays one
    assert seeded.promise == back.promise == back.claim
    assert replace(seeded, secure=True).promise == seeded.claim == mechanism.claim()


def test_a_simulation_that_was_saved_makes_further_intervals(tmp_path: Path) -> None:
    """Its mechanism knows it by what it costs, whatever it promises."""
    seeded = made_by(cbdp.ConstraintBased(city_features(), 1, preset="paper"), secure=False)
    seeded.save(tmp_path / "out", simulation=True)
    fresh, back = seeded.interval("zone", 0.5), cbdp.load(tmp_path / "out").interval("zone", 0.5)
    assert same(fresh.low, back.low)
    assert same(fresh.high, back.high)
    other = cbdp.ConstraintBased(city_features(), 2, preset="paper")
    with pytest.raises(InputError, match="use the one that made it"):
        other.intervals(seeded, 0.5)


def test_a_manifest_that_calls_a_simulation_private_is_refused(tmp_path: Path) -> None:
    """By its schema: whoever changes the one word must change the others."""
    made = made_by(cbdp.ConstraintBased(city_features(), 1), secure=False)
    manifest = made.save(tmp_path / "out", simulation=True).path / "manifest.json"
    stated = json.loads(manifest.read_text("utf-8"))
    real = made_by(cbdp.ConstraintBased(city_features(), 1)).manifest["privacy"]
    for changed in (
        {"privacy": real},
        {"secure": True},
        {"status": "release"},
        {"secure": True, "status": "release"},
    ):
        manifest.write_text(json.dumps(stated | changed), "utf-8")
        with pytest.raises(InputError, match=r"schema|its manifest and its files disagree"):
            load(tmp_path / "out")


@pytest.mark.parametrize("package", ["cbdp", "cbdp_features", "cbdp_solvers"])
def test_the_fingerprint_of_the_code_follows_every_package(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One changed line in any of the packages that make a release is another code."""
    module = import_module(package)
    home = shutil.copytree(Path(str(module.__file__)).parent, tmp_path / package)
    before = code_fingerprint.__wrapped__()
    monkeypatch.setattr(module, "__file__", str(home / "__init__.py"))
    assert code_fingerprint.__wrapped__() == before
    (home / "__init__.py").write_text("# changed\n")
    assert code_fingerprint.__wrapped__() != before
