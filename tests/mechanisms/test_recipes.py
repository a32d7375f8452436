"""Every mechanism is two functions and a recipe: what `finish` makes can be made again from what is published."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.audit.optimality import published_answers
from cbdp.counting import Counts
from cbdp.errors import InputError
from cbdp.estimation.posterior import Posterior
from cbdp.features import SINGLETON
from cbdp.mechanisms import (
    MECHANISMS,
    ConstraintBased,
    Hierarchical,
    Laplace,
    Mechanism,
    StabilityHistogram,
    ThresholdLaplace,
    of,
)
from cbdp.mechanisms.base import AdditiveNoiseMechanism
from cbdp.privacy.accounting import cost_amount
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.unit import Trip
from cbdp.release import Release

STOPS = cbdp.Dimension([f"s{i}" for i in range(12)], zone=[f"z{i % 3}" for i in range(12)])
UNIVERSE = cbdp.Universe(origin=STOPS, destination=STOPS, time=["am", "noon", "pm"]).without_equal(
    "origin", "destination"
)
DAG = cbdp.FeatureDag(
    UNIVERSE,
    [
        cbdp.Feature("time", by="time"),
        cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"]),
    ],
)
TRUTH = np.random.default_rng(5).negative_binomial(0.3, 0.03, UNIVERSE.size).astype(np.int64)
TIMES = np.bincount(DAG.partition("time").of_every_type(), TRUTH).astype(int).tolist()
PRIOR = 1.0 + np.arange(UNIVERSE.size) % 7

MADE: dict[str, Callable[[], Mechanism]] = {
    "posterior": lambda: ConstraintBased(DAG, 1),
    "posterior, sparse": lambda: ConstraintBased(DAG, 1, sparse=True),
    "posterior, nearest": lambda: ConstraintBased(DAG, 1, rounding="nearest", budget="leaves"),
    "posterior, prior": lambda: ConstraintBased(DAG, 1, prior=PRIOR),
    "projection": lambda: ConstraintBased(DAG, "0.5", preset="paper"),
    "projection, sparse": lambda: ConstraintBased(DAG, "0.5", preset="paper", sparse=True),
    "projection, weights": lambda: ConstraintBased(DAG, 1, weights={"total": np.inf, "zone": 0.25}),
    "target": lambda: ConstraintBased(DAG, 1, target={"zone": 2, SINGLETON: 1}, expected_trips=9000),
    "given budget": lambda: ConstraintBased(
        DAG, 1, Trip("replace"), measured=["time", SINGLETON], budget={"time": "1/3", SINGLETON: "2/3"}
    ),
    "public": lambda: ConstraintBased(DAG, 1, public={"time": TIMES}),
    "public, sparse": lambda: ConstraintBased(
        DAG, "0.5", preset="paper", sparse=True, public={"total": sum(TIMES)}
    ),
    "gaussian": lambda: ConstraintBased(DAG, rho="1/8", law="gaussian"),
    "gaussian, sparse": lambda: ConstraintBased(DAG, 1, law="gaussian", delta="1e-6", sparse=True),
    "gaussian, projection": lambda: ConstraintBased(DAG, rho=0.1, law="gaussian", preset="paper", delta=1e-9),
    "gaussian, replaced": lambda: ConstraintBased(
        DAG, rho="1/2", unit=Trip("replace"), law="gaussian", target={"zone": 2, SINGLETON: 1}
    ),
    "gaussian, leaves": lambda: ConstraintBased(DAG, rho="1/2", law="gaussian", budget="leaves"),
    "hierarchical, gaussian": lambda: Hierarchical(DAG, rho="1/3", law="gaussian"),
    "laplace, gaussian": lambda: Laplace(DAG, rho="1/3", law="gaussian"),
    "laplace, gaussian, sparse": lambda: Laplace(DAG, rho=2, law="gaussian", sparse=True),
    "hierarchical": lambda: Hierarchical(DAG, 1),
    "hierarchical, root": lambda: Hierarchical(DAG, 1, levels=["zone"], root=True, prune=False),
    "laplace": lambda: Laplace(DAG, 1),
    "laplace, sparse": lambda: Laplace(DAG, 2, law="geometric", sparse=True),
    "stability": lambda: StabilityHistogram(
        DAG, 3, delta=dict.fromkeys(("time", "zone", SINGLETON), "1/1000")
    ),
    "threshold": lambda: ThresholdLaplace(DAG, 3, threshold=6),
    "threshold, one table": lambda: ThresholdLaplace(DAG, 3, zeros="perturbed", tables=["zone"]),
}
every = pytest.mark.parametrize("kind", MADE)


@cache
def released(kind: str) -> Release:
    return MADE[kind]().simulate(TRUTH, 7)


def same(one: Release, other: Release) -> None:
    """The same trips and tables; the same estimates to nine digits."""
    assert one.index.tolist() == other.index.tolist()
    assert one.value.tolist() == other.value.tolist()
    assert one.violations == other.violations
    assert one.tables.keys() == other.tables.keys()
    for name, table in one.tables.items():
        assert table.tolist() == other.tables[name].tolist()
    assert (one.estimate is None) == (other.estimate is None)
    if one.estimate is not None:
        for name in one.features.features:
            wanted = one.estimate.counts(name)
            scale = 1e-9 * (1 + np.abs(wanted).max())
            np.testing.assert_allclose(other.estimate.counts(name), wanted, rtol=0, atol=scale)


def test_every_mechanism_is_tried() -> None:
    """Those of the table, each in at least one way."""
    assert {make().name for make in MADE.values()} == set(MECHANISMS.table)


@every
def test_the_published_answers_make_the_release_again(kind: str, tmp_path: Path) -> None:
    """From the folder alone: `finish` of the mechanism that its recipe names, on the measurements as they were published."""
    release = released(kind)
    release.save(tmp_path / "release", simulation=True)
    loaded = cbdp.load(tmp_path / "release")
    given = published_answers(loaded)
    assert given
    assert all(type(m) is Measurement for m in given)
    same(release, of(loaded).finish(given))


@every
def test_finish_is_pure(kind: str, tmp_path: Path) -> None:
    """Twice on the same answers, in the same or in a mechanism made anew: the same bytes in every file."""
    first = MADE[kind]()
    given = published_answers(first.simulate(TRUTH, 8))
    files = []
    for name, mechanism in (("one", first), ("two", first), ("three", MADE[kind]())):
        mechanism.finish(given).save(tmp_path / name, simulation=True)
        found = sorted(p for p in (tmp_path / name).rglob("*") if p.is_file())
        files.append({p.relative_to(tmp_path / name): p.read_bytes() for p in found})
    assert files[0]
    assert files[0] == files[1] == files[2]


@every
def test_finish_sees_no_counts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the answers are published there is nothing left to look at: counts may be gone, and every reading of them fails."""
    mechanism = MADE[kind]()
    release = mechanism.simulate(TRUTH, 9)

    def gone(*_: Any, **__: Any) -> None:
        raise AssertionError("finish looked at counts")

    for name in ("of", "dense", "__init__"):
        monkeypatch.setattr(Counts, name, gone)
    monkeypatch.setattr("cbdp.mechanisms.base.count", gone)
    monkeypatch.setattr("cbdp.measuring.answers.sampler_of", gone)
    monkeypatch.setattr("cbdp.measuring.answers.SparseThresholdedAnswer.lower", gone)
    same(release, mechanism.finish(published_answers(release)))


@every
def test_measure_then_finish_is_a_run(kind: str) -> None:
    """What `simulate` does is `measure` on the counts and `finish` on the answers, and nothing else."""
    mechanism = MADE[kind]()
    given = mechanism.measure(
        cbdp.count(TRUTH, UNIVERSE, unit=mechanism.unit), entropy := InsecureSeededEntropy(7)
    )
    assert not entropy.secure
    same(mechanism.finish(given), released(kind))


@every
def test_recipes_are_json_that_the_mechanism_can_be_had_back_from(kind: str, tmp_path: Path) -> None:
    """Settings, ε, unit and planned answers of the mechanism that a folder names are those of the one that made it."""
    mechanism = MADE[kind]()
    written = json.loads(json.dumps(mechanism.recipe.json()))
    assert written == mechanism.recipe.json()
    released(kind).save(tmp_path / "release", simulation=True)
    again = of(cbdp.load(tmp_path / "release"))
    assert type(again) is type(mechanism)
    assert again.recipe.json() == mechanism.recipe.json()
    assert (again.epsilon, again.unit) == (mechanism.epsilon, mechanism.unit)
    assert again.answers() == mechanism.answers()
    assert str(again.claim()) == str(mechanism.claim())
    assert again.features.sizes == mechanism.features.sizes
    for f in fields(mechanism):
        one, other = getattr(mechanism, f.name), getattr(again, f.name)
        if isinstance(one, np.ndarray):
            assert one.tolist() == other.tolist()
        elif f.name not in (
            "features",
            "budget",
            "target",
            "delta",
        ):  # numbers there may be written otherwise
            assert one == other, f.name


@every
def test_answers_are_planned_before_data_is_seen(kind: str) -> None:
    """What each answer costs and the law of its noise are those that were planned; costs add up to the claim."""
    mechanism = MADE[kind]()
    planned = {a.feature: a for a in mechanism.answers()}
    given = published_answers(mechanism.simulate(TRUTH, 3))
    assert {m.feature for m in given} == set(planned)
    for m in given:
        assert m.noise == planned[m.feature].law
        cost, share = planned[m.feature].law.cost(mechanism.change(m.feature)), planned[m.feature].share
        if isinstance(mechanism, AdditiveNoiseMechanism):  # others publish tables, and no measurements
            assert (m.epsilon, m.rho) == ((share, None) if mechanism.currency == "epsilon" else (None, share))
        # scales in ρ are rounded up to twelve digits: the noise costs no more than it was bought with, and hardly less
        assert (
            cost == share
            if mechanism.currency == "epsilon"
            else share * (1 - Fraction(1, 10**10)) <= cost <= share
        )
    assert sum(a.share for a in planned.values()) == mechanism.amount == cost_amount(mechanism.claim().cost)
    assert mechanism.epsilon == mechanism.claim().cost.epsilon
    if mechanism.currency == "epsilon":
        assert sum((a.delta for a in planned.values()), Fraction(0)) == mechanism.claim().cost.delta


def test_floors_that_were_asked_for_are_published() -> None:
    """On the sparse path the measurement has the floors as they were in the end, and no count at or below one."""
    hiding = ConstraintBased(DAG, 1, sparse=True, estimator=Posterior(revealed=DAG.universe.size // 4))
    for mechanism in (hiding, MADE["projection, sparse"]()):
        (leaves,) = [m for m in mechanism.simulate(TRUTH, 7).measurements if m.feature == SINGLETON]
        assert leaves.floor.shape == (DAG.cells.size,)
        assert len(leaves.values)
        assert (leaves.values > leaves.floor[DAG.cell_of_leaf[leaves.elements]]).all()


def test_what_a_recipe_cannot_hold_is_said() -> None:
    """Weights by element are stated by their hash: the release cannot be made again from it, and the error says why."""
    mechanism = ConstraintBased(DAG, 1, weights={"zone": np.linspace(1, 2, DAG.size("zone"))})
    release = mechanism.simulate(TRUTH, 1)
    assert set(release.recipe.settings["weights"]["zone"]) == {"numbers", "sha256"}
    with pytest.raises(InputError, match="by its hash only"):
        of(release)
    without = replace(ConstraintBased(DAG, 1, prior=PRIOR).simulate(TRUTH, 1), prior=None)
    with pytest.raises(InputError, match="does not hold the public weights"):
        of(without)
