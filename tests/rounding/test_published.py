"""Roundings in a release: what is published says which one was used, and an audit makes the trips again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audited import finished_again

from cbdp.audit import optimality
from cbdp.datasets import ann_arbor
from cbdp.errors import InputError
from cbdp.mechanisms import ConstraintBased


@pytest.mark.slow
def test_which_trips_are_published_is_stated_and_checked() -> None:
    """The manifest says how trips were rounded; tables are their estimates rounded either way; a wrong word is refused."""
    city = ann_arbor(seed=0, hours=("08:00", "09:00"))
    for rounding in ("few", "nearest"):
        made = ConstraintBased(city.features(), "1", rounding=rounding)
        release = made.simulate(city.counts(), seed=1)
        assert release.manifest["recipe"]["settings"]["rounding"] == rounding
        assert release.manifest["rounding"] == {"exact": True, "violations": {}, "tolerance": 1e-6}
        for name in ("time", "zone", "mode", "total"):
            assert np.abs(release.counts(name) - release.estimate.counts(name)).max() < 1  # type: ignore[union-attr]
    assert ConstraintBased(city.features(), "1").rounding == "nearest"
    assert ConstraintBased(city.features(), "1", preset="paper").rounding == "nearest"
    with pytest.raises(InputError, match="unknown rounding 'most': there are few, nearest"):
        ConstraintBased(city.features(), "1", rounding="most")
    with pytest.raises(InputError, match="rounding 'few' with estimator 'projection'"):
        ConstraintBased(city.features(), "1", preset="paper", rounding="few")


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["balanced", "leaves"])
@pytest.mark.parametrize("rounding", ["few", "nearest"])
def test_a_trip_moved_within_its_cell_is_found(rounding: str, budget: str) -> None:
    """No table changes when a trip moves between types of one cell; an audit makes the trips again and names the type."""
    city = ann_arbor(seed=0, hours=("08:00", "09:00"))
    made = ConstraintBased(city.features(), "1", budget=budget, rounding=rounding)
    release = made.simulate(city.counts(), seed=1)
    assert [f.verdict for f in optimality.attack(release, lambda: finished_again(release))] == [
        "clear",
        "clear",
    ]
    counts, cells = release.counts("singleton"), city.features().cell_of_leaf
    here = int(np.argmax(counts))
    there = int(np.flatnonzero((cells == cells[here]) & (counts == 0))[0])
    counts[here] -= 1
    counts[there] += 1
    index = np.flatnonzero(counts)
    changed = replace(release, index=index, value=counts[index])
    found = optimality.attack(changed, lambda: finished_again(changed))
    wrong = [f.title for f in found if f.verdict == "contradicts"]
    words = [" · ".join(map(str, city.universe.unrank(type_))) for type_ in (here, there)]
    assert len(wrong) == 1
    assert any(name in wrong[0] for name in words)
