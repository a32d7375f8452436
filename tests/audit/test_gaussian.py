"""Releases with discrete Gaussian noise, audited: honest ones pass every check, misstated ones are named."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from misstated import DAG, MISSTATED, TRUTH, UNIVERSE

import cbdp
from cbdp.audit import guarantee_check
from cbdp.audit.findings import Finding
from cbdp.audit.own_release import open_own_release
from cbdp.audit.scale_recovery import sum_distribution
from cbdp.privacy.noise import DiscreteGaussian
from cbdp.privacy.unit import Person

FOUR = Person("card", 4, apart="time")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("gaussian") / "release"
    cbdp.ConstraintBased(DAG, rho="1/2", law="gaussian", delta="1e-6").release(TRUTH).save(place)
    return place


def rows() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    made = {n: [f"s{i}" for i in rng.integers(0, 6, 900)] for n in ("origin", "destination")}
    return made | {
        "time": [list("abcd")[i] for i in rng.integers(0, 4, 900)],
        "card": rng.integers(0, 200, 900),
    }


@pytest.fixture(scope="module")
def persons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("persons") / "release"
    cbdp.ConstraintBased(DAG, rho="1/2", unit=FOUR, law="gaussian").release(rows()).save(place)
    return place


def audited(place: Path, edit: Callable[[dict[str, Any]], None] | None = None) -> list[Finding]:
    manifest = json.loads((place / "manifest.json").read_text())
    if edit is not None:
        edit(manifest)
    return guarantee_check.attack(manifest, cbdp.load(place).features)


def wrong(found: list[Finding]) -> list[str]:
    return [f.title for f in found if f.verdict == "contradicts"]


def test_honest_folders_pass(folder: Path, persons: Path) -> None:
    """Scales, sums, the stated ε and the curve follow from one another; and all of the folder's own checks find nothing."""
    for place in (folder, persons):
        found = audited(place)
        assert not wrong(found)
        assert any("adds up to the claimed ρ" in f.title for f in found)
        assert not [f for f in open_own_release(place).findings if f.verdict == "contradicts"]


def trips() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    index = rng.choice(UNIVERSE.size, 4000, p=TRUTH / TRUTH.sum())
    return {
        n: [d.values[c] for c in codes]
        for (n, d), codes in zip(UNIVERSE.dimensions.items(), UNIVERSE.unrank_codes(index), strict=True)
    }


@pytest.mark.parametrize("sparse", [False, True])
def test_a_whole_audit_with_trips_passes_and_sees_missing_noise(tmp_path: Path, sparse: bool) -> None:
    """The noise fits the law that is stated; noise of half the scale, or none on a tenth of the counts, does not."""
    mechanism = cbdp.ConstraintBased(DAG, rho="1/20", law="gaussian", sparse=sparse)
    mechanism.release(trips()).save(tmp_path / "honest")
    made = cbdp.audit_release(tmp_path / "honest", trips=trips())
    assert not made.of("contradicts")
    assert any(f.check == "residuals" for f in made.of("clear"))
    if not sparse:
        careless = cbdp.ConstraintBased(DAG, rho="1/5", law="gaussian")
        answers = [
            cbdp.Measurement(a.feature, m.values, a.law.scale, law="gaussian", rho=a.share)
            for a, m in zip(mechanism.answers(), careless.simulate(trips(), 1).measurements, strict=True)
        ]
        replace(mechanism.finish(answers), secure=True).save(tmp_path / "careless")
        found = cbdp.audit_release(tmp_path / "careless", trips=trips()).of("contradicts")
        assert any(f.check == "residuals" and "scale" in f.evidence for f in found)


def test_membership_is_bounded_by_rho(tmp_path: Path) -> None:
    """Riders with a count to themselves: an honest release allows no more than √(ρ/2); noise that is missing is found out."""
    stops = [f"s{i}" for i in range(40)]
    dag = cbdp.FeatureDag(cbdp.Universe(origin=stops, destination=stops, time=["a", "b"]), [])
    rng = np.random.default_rng(6)
    rows = {n: [stops[i] for i in rng.integers(0, 40, 1500)] for n in ("origin", "destination")}
    rows["time"] = ["ab"[i] for i in rng.integers(0, 2, 1500)]
    honest, careless = (
        cbdp.ConstraintBased(dag, rho=rho, law="gaussian", budget="uniform") for rho in ("1/4", 8)
    )
    honest.release(rows).save(tmp_path / "honest")
    (found,) = [
        f for f in cbdp.audit_release(tmp_path / "honest", trips=rows).findings if f.check == "membership"
    ]
    assert found.verdict == "clear"
    assert found.figures["allowed"] == 0.25  # of the share 1/8 on trip types
    answers = [
        cbdp.Measurement(a.feature, m.values, a.law.scale, law="gaussian", rho=a.share)
        for a, m in zip(honest.answers(), careless.simulate(rows, 1).measurements, strict=True)
    ]
    replace(honest.finish(answers), secure=True).save(tmp_path / "careless")
    (caught,) = [
        f for f in cbdp.audit_release(tmp_path / "careless", trips=rows).findings if f.check == "membership"
    ]
    assert caught.verdict == "contradicts"
    assert caught.title == "Riders can be told apart better than ρ allows"


@pytest.mark.parametrize(("edit", "says"), list(MISSTATED.values()), ids=list(MISSTATED))
def test_what_is_misstated_is_named(folder: Path, edit: Callable[[dict[str, Any]], None], says: str) -> None:
    """Each contradicts the noise, and the finding says how."""
    assert any(says in title for title in wrong(audited(folder, edit)))


def test_a_spread_that_is_not_kept_is_named(persons: Path) -> None:
    """Scales for trips that are kept apart, under a unit whose trips may pile up: the same noise costs k times the ρ."""

    def pile_up(m: dict[str, Any]) -> None:
        m["privacy"]["unit"].pop("apart", None)

    assert any("does not fit its ρ" in title for title in wrong(audited(persons, pile_up)))


def test_sums_of_gaussian_noise_have_their_tails() -> None:
    """Far out by Chernoff's bound or a saddle point: within a factor of thirty above the exact tail, and within a tenth in the log of the mass."""
    law = sum_distribution([(DiscreteGaussian(2.0), 1.0, 3), (DiscreteGaussian(5.0), 1.0, 1)])
    deviation = math.sqrt(3 * 4 + 25)
    z = np.arange(-200, 201)
    mass = np.array([1.0])
    for scale in (2.0, 2.0, 2.0, 5.0):
        mass = np.convolve(mass, DiscreteGaussian(scale).pmf(z))
    middle = len(mass) // 2
    for k in (3, 8, 12, 20):
        x = round(k * deviation)
        true = 2 * mass[middle + x :].sum()
        assert true * (1 - 1e-6) <= float(law.tail(x)[0]) <= 30 * true + 1e-13
        assert float(law.log_mass(np.array([float(x)]))[0]) == pytest.approx(
            math.log(mass[middle + x]), abs=0.1
        )
    assert law.half_width(1e-20) >= 9 * deviation
