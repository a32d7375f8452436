"""Trips gathered on few types of each cell: tables stay, and what is named is likelier to be real."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Case, cases

import cbdp
from cbdp.audit import solved
from cbdp.datasets import ann_arbor
from cbdp.errors import InputError
from cbdp.mechanisms import ConstraintBased
from cbdp.rounding.gathering import PRICE, gathered

ESTIMATES = st.one_of(st.just(0.0), st.floats(0.001, 0.9), st.floats(1.0, 40.0))


def _one_cell(many: int) -> cbdp.FeatureDag:
    return cbdp.FeatureDag(cbdp.Universe(stop=range(many)), [])


def _cost(estimate: np.ndarray, counts: np.ndarray, price: float) -> float:
    named = counts > 0
    return float(((counts - estimate) ** 2).sum() + price * np.maximum(0, 1 - estimate[named]).sum())


@given(st.lists(ESTIMATES, min_size=1, max_size=7), st.sampled_from([0.0, 1.0, PRICE, 1000.0]))
@settings(max_examples=300, deadline=None)
def test_no_choice_of_types_is_cheaper(values: list[float], price: float) -> None:
    """Of all numbers of types, the likeliest first, that can share a cell's trips with one each at least, none costs less."""
    estimate = np.array(values)
    index = np.flatnonzero(estimate)
    at, count = gathered(_one_cell(len(values)), index, estimate[index], price)
    made = np.zeros(len(values))
    made[at] = count
    assert made.sum() == pytest.approx(estimate.sum())
    best = np.inf
    for k in range(1, len(index) + 1):
        held = np.argsort(-estimate)[:k]
        tried = np.zeros(len(values))
        tried[held] = estimate[held] + (estimate.sum() - estimate[held].sum()) / k
        if k == 1 or tried[held].min() >= 1:
            best = min(best, _cost(estimate, tried, price))
    if len(index):
        assert _cost(estimate, made, price) <= best + 1e-6


@given(cases(), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_every_table_is_kept(case: Case, seed: int) -> None:
    """Cells keep their sums, so features do; only types with trips get more, and no named one has less than it had."""
    rng = np.random.default_rng(seed)
    size = case.dag().universe.size
    estimate = rng.gamma(0.3, 3.0, size) * (rng.random(size) < 0.7)
    index = np.flatnonzero(estimate)
    at, count = gathered(case.dag(), index, estimate[index])
    made = np.zeros(size)
    made[at] = count
    cells = case.dag().cell_of_leaf
    assert np.bincount(cells, made) == pytest.approx(np.bincount(cells, estimate))
    assert (np.diff(at) > 0).all()
    assert (made[at] >= estimate[at] - 1e-9).all()
    assert (estimate[at] > 0).all()


def test_a_higher_price_names_fewer() -> None:
    """The dearer a wrongly named type, the fewer types are named; at no price, as many as there are whole trips."""
    rng = np.random.default_rng(5)
    estimate = rng.gamma(0.2, 2.0, 400)
    named = [
        len(gathered(_one_cell(400), np.arange(400), estimate, price)[0]) for price in (0, 1, 4, 16, 64, 1e6)
    ]
    assert named == sorted(named, reverse=True)
    assert named[0] > named[-1] >= 1


@cache
def _told(day: str, **asked: str) -> tuple[float, float, float]:
    """False types, true trips covered and the error per type of the sparse city's releases at ε = 1, means over three."""
    city = ann_arbor(seed=0, day=day, hours=("08:00", "10:00"))  # type: ignore[arg-type]
    truth, found = city.counts(), []
    for seed in range(3):
        whole = ConstraintBased(city.features(), "1", **asked).simulate(truth, seed).counts("singleton")
        false, covered = ((whole > 0) & (truth == 0)).sum(), np.minimum(whole, truth).sum()
        found.append((false, covered, np.sqrt(np.mean((whole - truth) ** 2))))
    false, covered, error = np.mean(found, axis=0)
    return float(false), float(covered), float(error)


@pytest.mark.parametrize("day", ["weekday", "weekend"])
@pytest.mark.parametrize("budget", ["leaves", "balanced"])
def test_few_names_less_and_covers_more_than_the_paper_and_than_nearest(day: str, budget: str) -> None:
    """On the sparse city at ε = 1: fewer types that nobody used, and more of the true trips, than O5 and than nearest."""
    few, nearest = _told(day, budget=budget), _told(day, budget=budget, rounding="nearest")
    paper = _told(day, preset="paper")
    assert few[0] < paper[0]
    assert few[1] > paper[1]
    assert few[2] < 0.75 * paper[2]
    assert few[0] < 0.5 * nearest[0]
    assert few[1] > nearest[1]


def test_which_trips_are_published_is_stated_and_checked() -> None:
    """The manifest says how trips were rounded; tables are their estimates rounded either way; a wrong word is refused."""
    city = ann_arbor(seed=0, hours=("08:00", "09:00"))
    for rounding in ("few", "nearest"):
        made = ConstraintBased(city.features(), "1", rounding=rounding)
        release = made.simulate(city.counts(), seed=1)
        assert release.manifest["mechanism"]["settings"]["rounding"] == rounding
        assert release.manifest["rounding"] == {"exact": True, "violations": {}}
        for name in ("time", "zone", "mode", "total"):
            assert np.abs(release.counts(name) - release.estimate.counts(name)).max() < 1  # type: ignore[union-attr]
    assert ConstraintBased(city.features(), "1").rounding == "few"
    assert ConstraintBased(city.features(), "1", preset="paper").rounding == "nearest"
    with pytest.raises(InputError, match=r"unknown rounding 'most': use 'nearest' or 'few'"):
        ConstraintBased(city.features(), "1", rounding="most")
    with pytest.raises(InputError, match="rounding 'few' with estimator 'projection'"):
        ConstraintBased(city.features(), "1", preset="paper", rounding="few")


@pytest.mark.parametrize("budget", ["balanced", "leaves"])
@pytest.mark.parametrize("rounding", ["few", "nearest"])
def test_a_trip_moved_within_its_cell_is_found(rounding: str, budget: str) -> None:
    """No table changes when a trip moves between types of one cell; an audit makes the trips again and names the type."""
    city = ann_arbor(seed=0, hours=("08:00", "09:00"))
    made = ConstraintBased(city.features(), "1", budget=budget, rounding=rounding)
    release = made.simulate(city.counts(), seed=1)
    assert [f.verdict for f in solved.attack(release, release.manifest)] == ["clear", "clear"]
    counts, cells = release.counts("singleton"), city.features().cell_of_leaf
    here = int(np.argmax(counts))
    there = int(np.flatnonzero((cells == cells[here]) & (counts == 0))[0])
    counts[here] -= 1
    counts[there] += 1
    index = np.flatnonzero(counts)
    changed = replace(release, index=index, value=counts[index])
    found = solved.attack(changed, changed.manifest)
    wrong = [f.title for f in found if f.verdict == "contradicts"]
    words = [" · ".join(map(str, city.universe.unrank(type_))) for type_ in (here, there)]
    assert len(wrong) == 1
    assert any(name in wrong[0] for name in words)
