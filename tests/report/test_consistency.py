"""What the page says about tables that add up, and about those that do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reported import Page, with_stops

import cbdp
from cbdp.app.internal import build_internal
from cbdp.features import opal
from cbdp.report import build


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", ["ConstraintBased", "Laplace", "Hierarchical", "StabilityHistogram", "ThresholdLaplace"]
)
def test_every_mechanism(mechanism: str):
    """Each mechanism's release can be reported; tables that disagree say so, those that add up say so."""
    city = cbdp.datasets.ann_arbor(hours=("08:00", "08:30"))
    release = getattr(cbdp, mechanism)(city.features(), 4).simulate(city.trips, 2)
    page = Page(build(release, places=with_stops(city)))
    if release.tables:
        assert "Noise was added to each table separately." in page.text
        assert page.data["demand"]["series"][0]["count"] == release.tables["time"].tolist()
    else:
        assert "they add up to each other exactly" in page.text
    build_internal(release, cbdp.count(city.trips, city.universe))


def test_disagreeing_tables_are_counted():
    """Of the pairs of tables that should add up, exactly those that do not are reported."""
    dag = opal(cbdp.Universe(tap=["on", "off"], time=["a", "b"], location=["M", "Q"]))
    release = cbdp.StabilityHistogram(dag, 2).simulate(np.full(8, 100), 1)
    agree = {"tap": np.array([4, 4]), "time": np.array([2, 2, 2, 2]), "location": np.array([1, 3, 3, 1])}
    assert (
        "Of 2 pairs of tables that should add up, 0 do not"
        in Page(build(replace(release, tables=agree))).text
    )
    agree["location"] = np.array([1, 3, 3, 2])
    assert (
        "Of 2 pairs of tables that should add up, 1 does not"
        in Page(build(replace(release, tables=agree))).text
    )


def test_rounding_violations_are_named(rush):
    """A release whose rounding could not keep a table says which; the others say that it could."""
    _, release, _ = rush
    assert "changed every count in these tables by less than one trip" in Page(build(release)).text
    text = Page(build(replace(release, violations={"mode": 3, "zone": 0}))).text
    assert "it moved 3 counts of mode by one trip or more, and no other count" in text
