"""Counts that are public already: met exactly by every kind of release, at no cost, and stated with what they mean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audited import correct_hashes, edited, small

import cbdp
from cbdp.audit.optimality import published_answers
from cbdp.errors import InputError
from cbdp.estimation.invariants import INVARIANTS_NOTE
from cbdp.mechanisms import ConstraintBased, of

DAG, COUNTS = small()
TRUTH = {name: COUNTS.of(DAG, name).tolist() for name in ("total", "time", "zone")}
KINDS: dict[str, dict[str, Any]] = {
    "posterior": {},
    "posterior, sparse": {"sparse": True},
    "nearest": {"rounding": "nearest", "budget": "leaves"},
    "paper": {"preset": "paper"},
    "paper, sparse": {"preset": "paper", "sparse": True},
}
PUBLIC = {"total": ["total"], "zone": ["zone"], "time and total": ["total", "time"]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", PUBLIC)
def test_public_counts_are_met_at_no_cost(kind: str, what: str, tmp_path: Path) -> None:
    """Published counts and intervals are the public ones, no answer is about them, and the folder makes the release again."""
    public = {name: TRUTH[name] for name in PUBLIC[what]}
    mechanism = ConstraintBased(DAG, 1, public=public, **KINDS[kind])
    release = mechanism.simulate(COUNTS, 4).with_intervals()
    assert not {a.feature for a in mechanism.answers()} & set(public)
    assert sum(a.share for a in mechanism.answers()) == 1
    assert not {m.feature for m in release.measurements} & set(public)
    for name, counts in public.items():
        assert release.counts(name).tolist() == counts
        assert release.intervals[name].low.tolist() == release.intervals[name].high.tolist() == counts
    release.save(tmp_path / "release", simulation=True)
    loaded = cbdp.load(tmp_path / "release")
    again = of(loaded).finish(published_answers(loaded))
    assert again.index.tolist() == release.index.tolist()
    assert again.value.tolist() == release.value.tolist()


@pytest.mark.parametrize("names", [["small"], ["from", "small"], ["to", "from"]])
@pytest.mark.parametrize("preset", ["best", "paper"])
def test_public_counts_are_met_whatever_rounding_cannot_keep(names: list[str], preset: str) -> None:
    """Tables cross in three ways, so that some counts may be off by one; those of public tables are not, however small these are."""
    by = {
        "from": ["origin", "time"],
        "to": ["destination", "time"],
        "small": ["origin.zone", "destination.zone"],
    }
    dag = cbdp.FeatureDag(
        DAG.universe, [cbdp.Feature(name, by=attributes) for name, attributes in by.items()]
    )
    public = {name: COUNTS.of(dag, name).tolist() for name in names}
    for seed in range(3):
        release = ConstraintBased(dag, 1, public=public, preset=preset).simulate(COUNTS, seed)
        assert {name: release.counts(name).tolist() for name in names} == public


def test_a_table_makes_what_it_adds_up_to_public() -> None:
    """Total and times follow from zones and times: all of ε is left for trip types."""
    mechanism = ConstraintBased(DAG, 1, public={"zone": TRUTH["zone"]})
    assert [(a.feature, a.share) for a in mechanism.answers()] == [("singleton", 1)]
    assert set(mechanism.recipe.public) == {"total", "time", "zone"}
    release = mechanism.simulate(COUNTS, 1)
    assert release.counts("time").tolist() == TRUTH["time"]


def test_what_is_known_makes_the_rest_better() -> None:
    """With the zones public, the estimate of trip types has less error, on the average of ten seeds."""

    def error(**more: Any) -> float:
        mechanism = ConstraintBased(DAG, "1/2", **more)
        made = [mechanism.simulate(COUNTS, seed).estimate for seed in range(10)]
        truth = COUNTS.of(DAG, "singleton")
        return float(
            np.mean([np.square(e.counts("singleton") - truth).mean() for e in made if e is not None])
        )

    assert error(public={"zone": TRUTH["zone"]}) < 0.9 * error()


def test_the_promise_is_the_same_and_its_limit_is_stated() -> None:
    """ε, unit and claim are as without; manifest and registry entry say which counts it does not speak of."""
    plain, public = ConstraintBased(DAG, 1), ConstraintBased(DAG, 1, public={"total": TRUTH["total"]})
    assert public.claim().cost.epsilon == plain.claim().cost.epsilon
    manifest = replace(public.simulate(COUNTS, 1), secure=True).manifest
    assert manifest["recipe"]["settings"]["public"] == {"total": TRUTH["total"]}
    assert manifest["public"] == {"features": ["total"], "meaning": INVARIANTS_NOTE}
    assert "the counts of total" in manifest["deployment"]["dp_variant"]["unprotected_quantities"]
    total = next(f for f in manifest["features"] if f["name"] == "total")
    assert (total["epsilon"], total["noise"]) == (None, None)
    assert "public" not in plain.simulate(COUNTS, 1).manifest


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"measured": ["total", "singleton"]}, "measured names 'total', whose counts are public"),
        ({"target": {"total": 1}}, "target names 'total', whose counts are public"),
        ({"budget": {"total": "1/2", "time": "1/4", "zone": "1/8", "singleton": "1/8"}}, "a budget for 'total', which is not measured"),
    ],
)  # fmt: skip
def test_nothing_is_spent_on_what_is_public(settings: dict[str, Any], said: str) -> None:
    """A setting that would measure it is refused before any data is seen."""
    with pytest.raises(InputError, match=said):
        ConstraintBased(DAG, 1, public={"total": 600}, **settings)


def test_an_audit_knows_public_counts(tmp_path: Path) -> None:
    """An honest release is clear and says that they are met; one whose stated public count was changed is not."""
    release = ConstraintBased(DAG, 1, public={"total": TRUTH["total"]}).release(COUNTS)
    release.save(tmp_path / "release")
    done = cbdp.audit_release(tmp_path / "release", trips=COUNTS)
    assert done.verdict == "clear"
    assert "The public counts of total are met exactly" in [f.title for f in done.findings]
    edited(tmp_path, lambda manifest: manifest["recipe"]["settings"]["public"].update(total=[7]))
    correct_hashes(tmp_path)
    found = cbdp.audit_release(tmp_path / "release").of("contradicts")
    assert "total: count number 0 is not the public one" in [f.title for f in found]


def test_the_trips_are_never_compared_with_them() -> None:
    """A public total that is wrong is met all the same: whether it is right would be a fact about the trips."""
    release = ConstraintBased(DAG, 1, public={"total": 12345}).simulate(COUNTS, 1)
    assert release.total == 12345
