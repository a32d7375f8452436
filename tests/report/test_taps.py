"""The report of taps: what is counted has its own word, stops have names, single counts have intervals, and hints are for what is there."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from browsing import DESKTOP, PHONE, opened
from reported import Page, secured

import cbdp
from cbdp.release.documents import readme
from cbdp.release.release import Release
from cbdp.report import build
from cbdp_features.places import Stops

STOPS = [str(n) for n in range(1, 27)]
PLACES = Stops(
    tuple(STOPS), tuple(f"Station {n}" for n in STOPS), np.linspace(42, 43, 26), np.linspace(-83, -82, 26)
)
TIMES = cbdp.periods("06:00", "12:00", "30min")


def truth() -> np.ndarray[Any, Any]:
    """Many taps at some stops, none at others."""
    return np.random.default_rng(3).poisson(np.repeat(np.geomspace(0.01, 300, 26), 12))


def released(*tables: str, **more: list[str]) -> Release:
    universe = cbdp.Universe(location=STOPS, time=TIMES, **more)
    dag = cbdp.FeatureDag(universe, [cbdp.Feature(name, by=name) for name in tables])
    made = cbdp.ConstraintBased(dag, epsilon=1).simulate(truth(), 7).with_intervals()
    return secured(_placed(made))


def _placed(made: Release) -> Release:
    return replace(made, places=PLACES)


@pytest.fixture(scope="module")
def taps() -> Release:
    return released("time", "location")


def test_taps_are_called_taps(taps: Release) -> None:
    """In the page and in the README, everywhere: no sentence speaks of trips. Tap-ons alone have their own word."""
    page = Page(build(taps, manifest={}))
    assert f"{taps.total:,} taps at 26 stops, 06:00–12:00 in 12 periods." in page.text
    assert not re.search(r"\btrips?\b", page.text)
    assert "The unit of protection is one tap" in page.text
    assert page.data["noun"] == ["tap", "taps"]
    said = readme(taps, [], [])
    assert "**ε = 1 for each tap**" in said
    assert not re.search(r"\btrips?\b(?!\.parquet)", said.partition("For reviewers, precisely")[0])
    ons = released("time", tap=["on"])
    assert f"{ons.total:,} tap-ons at 26 stops" in Page(build(ons)).text


def test_stops_have_their_names(taps: Release) -> None:
    """Beside their ids: in the matrix and in the table of single counts. Times that look like ids stay what they are."""
    data = Page(build(taps)).data
    assert data["matrix"]["rows"] == [f"Station {n} ({n})" for n in STOPS]
    assert set(data["types"]["values"][0]) <= set(data["matrix"]["rows"])
    dag = cbdp.FeatureDag(cbdp.Universe(location=STOPS, hour=["7", "8"]), [cbdp.Feature("hour", by="hour")])
    hours = _placed(cbdp.ConstraintBased(dag, 1).simulate(np.full(52, 9), 1))
    assert Page(build(hours)).data["matrix"]["columns"] == ["7", "8"]


def test_of_many_stops_the_largest_come_first() -> None:
    """Forty of fifty rows, in the order of their counts and not of the list of stops."""
    stops = [f"S{n}" for n in range(50)]
    dag = cbdp.FeatureDag(
        cbdp.Universe(location=stops, time=TIMES), [cbdp.Feature("location", by="location")]
    )
    counts = np.repeat(np.arange(50), len(TIMES)) * 100
    release = cbdp.ConstraintBased(dag, 1000).simulate(np.asarray(counts), 1)
    page = Page(build(release))
    assert page.data["matrix"]["rows"] == stops[:9:-1]
    assert "the largest first" in page.text


def test_single_counts_have_intervals_that_hold(taps: Release) -> None:
    """They are those of `ask`, hold the published count, and hold the true one at least nine times in ten."""
    data = Page(build(taps)).data
    cells = data["matrix"]["cells"][0]
    count, low, high = (np.array(cells[key]) for key in ("count", "low", "high"))
    assert data["matrix"]["exact"]
    assert ((low <= count) & (count <= high)).all()
    assert ((low <= truth()) & (truth() <= high)).mean() >= 0.9
    asked = taps.ask(by=["location", "time"])
    assert (low == asked["low"]).all()
    assert (high == asked["high"]).all()
    listed = data["types"]
    assert len(listed["low"]) == len(listed["high"]) == len(listed["count"])


def test_hints_are_for_what_is_there(taps: Release) -> None:
    """No flows are promised where there are none, and no period can be chosen where nothing shows one alone."""
    assert "Select a bar to see its map below." in Page(build(taps)).text
    html = build(replace(taps, places=None))
    assert "flows" not in Page(html).text
    assert "Select a bar" not in Page(html).text
    assert 'id="period"' not in html
    kinds = cbdp.FeatureDag(
        cbdp.Universe(location=STOPS, time=TIMES, tap=["on", "off"]),
        [cbdp.Feature("time", by=["time"]), cbdp.Feature("tap", by=["tap", "time"])],
    )
    both = cbdp.ConstraintBased(kinds, 1).simulate(np.repeat(truth(), 2), 7).with_intervals()
    assert "taps (on and off) at 26 stops" in Page(build(both)).text
    assert "Select a bar to see its shares below." in Page(build(both)).text


def test_what_reviewers_need_is_folded(taps: Release) -> None:
    """Every part for reviewers is closed until somebody opens it."""
    page = Page(build(taps))
    folded = [attributes for name, attributes in page.elements if name == "details"]
    assert len(folded) >= 4
    assert not [attributes for attributes in folded if "open" in attributes]
    assert page.text.count("For reviewers") == 3


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_numbers_that_may_be_zero_are_pale(browser: Any, taps: Release, tmp_path: Any, width: int) -> None:
    """In the matrix, where numbers are shown: just those whose interval reaches zero, and the legend says so. The table fits a phone."""
    release = taps
    with opened(browser, tmp_path, build(release), width) as page:
        cells = Page(build(release)).data["matrix"]["cells"][0]
        doubtful = sum(low <= 0 < high for low, high in zip(cells["low"], cells["high"], strict=True))
        assert 20 < doubtful < len(cells["low"]) - 20
        pale = page.locator("#chart-matrix text.pale")
        if width == DESKTOP:
            assert pale.count() == doubtful + 1  # and one in the legend
            assert "pale: may be zero" in page.inner_text("#chart-matrix")
        headings = page.locator("#largest thead th").all_inner_texts()
        assert [h.split()[0] for h in headings] == ["Location", "Time", "Taps", "Low", "High"][
            : 5 if width == DESKTOP else 3
        ]
        assert page.evaluate("document.querySelector('#largest').scrollWidth") <= width
        first = page.locator("#largest tbody tr").first.inner_text()
        listed = Page(build(release)).data["types"]
        assert f"{listed['low'][0]:,}" in first
        assert f"{listed['high'][0]:,}" in first
        assert "a count may stand at one end of its interval" in page.inner_text("#said-ends")
