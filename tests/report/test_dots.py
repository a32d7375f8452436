"""Dots on the map of taps: every stop where it is, as large as its count, in all and by period."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import opened
from reported import Page, grouped

import cbdp
from cbdp.release.release import Release
from cbdp.report import build
from cbdp_features.places import Stops

STOPS = ["A", "B", "C", "D"]
PLACES = Stops(
    ("A", "B", "C", "D"),
    ("Town Hall", "Quay", "Manly", "D"),
    np.array([-33.80, -33.82, -33.90, np.nan]),
    np.array([151.10, 151.20, 151.25, np.nan]),
)


@pytest.fixture(scope="module")
def release() -> Release:
    plain = cbdp.Universe(location=STOPS, time=["am", "pm"])
    universe = plain.with_attribute("location.zone", "location", ["west", "east", "east", "east"])
    dag = cbdp.FeatureDag(
        universe, [cbdp.Feature("time", by="time"), cbdp.Feature("location", by="location")]
    )
    made = cbdp.ConstraintBased(dag, 1).simulate(np.array([400, 100, 90, 30, 45, 15, 50, 50]), 3)
    return replace(made.with_intervals(), places=PLACES)


def test_dots_are_the_published_counts(release: Release) -> None:
    """Stops with a place, by name and id; counts of the table with its intervals, and of each period. A stop without a place is left out."""
    data = Page(build(release)).data
    chart = data["dots"]
    assert chart["stops"] == [
        ["Town Hall (A)", -33.8, 151.1, chart["stops"][0][3]],
        ["Quay (B)", -33.82, 151.2, chart["stops"][1][3]],
        ["Manly (C)", -33.9, 151.25, chart["stops"][2][3]],
    ]
    assert [chart["zones"][stop[3]] for stop in chart["stops"]] == ["west", "east", "east"]
    by_stop, by_period = grouped(release, ["location"]), grouped(release, ["location", "time"])
    assert chart["counts"][0]["count"] == [by_stop[s,] for s in "ABC"]
    for place, period in enumerate(["am", "pm"], 1):
        assert chart["counts"][place]["count"] == [by_period[s, period] for s in "ABC"]
    interval = release.intervals["location"]
    assert chart["counts"][0]["low"] == interval.low[:3].tolist()
    assert chart["exact"]


def test_trips_have_arrows_and_no_dots() -> None:
    """Nor is there a map where no place is known."""
    for dimensions in ({"origin": STOPS, "destination": STOPS}, {"location": STOPS, "time": ["am", "pm"]}):
        dag = cbdp.FeatureDag(cbdp.Universe(**dimensions), [])
        made = cbdp.ConstraintBased(dag, 1).simulate(np.full(dag.universe.size, 9), 1)
        shown = made if "location" in dimensions else replace(made, places=PLACES)
        assert Page(build(shown)).data["dots"] is None


def test_areas_are_as_the_counts(browser: Any, release: Release, tmp_path: Path) -> None:
    """The area of a dot is proportional to its count; choosing a period or a zone draws the map anew."""
    with opened(browser, tmp_path, build(release)) as page:
        read = "dots => dots.map(d => [Number(d.dataset.count), Number(d.getAttribute('r'))])"
        seen = page.eval_on_selector_all("#chart-dots circle", read)
        assert [count for count, _ in seen] == sorted((c for c, _ in seen), reverse=True)
        (most, widest), *others = seen
        for count, radius in others:
            assert radius**2 / widest**2 == pytest.approx(max(count / most, (1.5 / widest) ** 2), rel=0.01)
        page.select_option("#period", "1")
        assert page.eval_on_selector_all("#chart-dots circle", read) != seen
        assert "Shown: am" in page.inner_text("#said-dots")
        page.select_option("#dots-zoom", label="east")
        assert page.locator("#chart-dots circle").count() == 2


def test_dots_have_the_colours_of_their_zones(browser: Any, release: Release, tmp_path: Path) -> None:
    """Whoever reads of a zone finds it on the map: a legend names each colour, and every dot of a zone has its own."""
    with opened(browser, tmp_path, build(release)) as page:
        assert "Dots are stops, coloured by zone" in page.inner_text("main")
        named = dict(
            page.eval_on_selector_all(
                "#chart-dots .legend li",
                "all => all.map(li => [li.textContent, getComputedStyle(li.querySelector('rect')).fill])",
            )
        )
        assert set(named) == {"west", "east"}
        drawn = page.eval_on_selector_all(
            "#chart-dots circle", "all => all.map(d => [Number(d.dataset.count), getComputedStyle(d).fill])"
        )
    by_stop = grouped(release, ["location"])
    zone = {by_stop["A",]: "west", by_stop["B",]: "east", by_stop["C",]: "east"}
    assert drawn == [[n, named[zone[n]]] for n in sorted(zone, reverse=True)]
