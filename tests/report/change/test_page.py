"""The page of a comparison: what stands out is in its words, on its map, in its charts and in its table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from browsing import DESKTOP, HOSTILE, PHONE, opened
from reported import Page

import cbdp
from cbdp.release.comparison import ReleaseComparison, compare
from cbdp.report.comparison import build
from cbdp_features.places import Stops

NAMES = [f"S{n}" for n in range(12)]
ZONES = [("north", "east", "south")[n % 3] for n in range(12)]
TURN = np.linspace(0, 6, 12)
PLACES = Stops(tuple(NAMES), tuple(NAMES), 42 + np.sin(TURN) / 20, -83 + np.cos(TURN) / 20, tuple(ZONES))


def _pair(names: list[str] = NAMES) -> list[cbdp.Release]:
    stops = cbdp.Dimension(names, zone=ZONES)
    universe = cbdp.Universe(origin=stops, destination=stops, time=cbdp.periods("06:00", "10:00", "1h"))
    dag = cbdp.FeatureDag(
        universe,
        [
            cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"]),
            cbdp.Feature("o", by="origin"),
        ],
    )
    trips = np.random.default_rng(1).poisson(4.0, universe.size)
    later = np.where(universe.unrank_codes(np.arange(universe.size))[0] % 3 == 1, 3 * trips, trips)
    return [cbdp.ConstraintBased(dag, 2).simulate(t, n) for n, t in enumerate((trips, later))]


@pytest.fixture(scope="module")
def pair() -> list[cbdp.Release]:
    return _pair()


def _marks(html: str, kind: str) -> list[dict[str, Any]]:
    return [a for _, a in Page(html).elements if kind in (a.get("class") or "").split()]


def test_words_and_table_say_what_the_comparison_says(pair: list[cbdp.Release]) -> None:
    """Headline, notes, every row with its verdict, and the names of what stands out."""
    made, whole = compare(*pair, "origin.zone"), compare(*pair)
    page = Page(build(made, PLACES, whole))
    for sentence in (*made.headline, *made.notes):
        assert sentence.replace("\u00a0", " ") in page.text.replace("\u00a0", " ")
    low, high = (int(whole.columns[end][0]) for end in ("low", "high"))
    assert f"+{low:,} to +{high:,}" in page.text
    assert "east: " in page.text
    values = [
        int(a["data-value"])
        for t, a in page.elements
        if t == "td" and a.get("data-value", "").lstrip("-").isdigit()
    ]
    assert set(made.columns["change"].tolist()) <= set(values)
    assert sum(t == "tr" for t, _ in page.elements) == made.rows + 1


@pytest.mark.parametrize("by", ["origin", "origin.zone"])
def test_the_map_has_a_disc_for_each_place(pair: list[cbdp.Release], by: str) -> None:
    """Coloured where it stands out, the larger the change the larger."""
    made = compare(*pair, by)
    discs = [a for a in _marks(build(made, PLACES), "dot") if a.get("data-tip")]
    assert len(discs) == made.rows
    assert sum("up" in a["class"].split() for a in discs) == len(made.standing_out())
    size = {a["data-tip"].splitlines()[0]: float(a["r"]) for a in discs}
    change = {str(k): abs(int(c)) for k, c in zip(made.columns[by], made.columns["change"], strict=True)}
    assert max(size, key=size.__getitem__) == max(change, key=change.__getitem__)


def test_pairs_are_lines_and_times_small_multiples(pair: list[cbdp.Release]) -> None:
    """Pairs of zones on the map; zones by time in a chart each, a bar for each row."""
    zones = compare(*pair, ["origin.zone", "destination.zone"])
    assert len(_marks(build(zones, PLACES), "way")) == 6  # and three discs inside zones
    times = compare(*pair, ["origin.zone", "time"])
    html = build(times, PLACES)
    assert 'id="chart-map"' not in html
    page = Page(html)
    assert sum(t == "figure" for t, _ in page.elements) == 3
    assert "origin.zone east" in page.text


def test_without_places_or_groups_the_page_has_no_map(pair: list[cbdp.Release]) -> None:
    """One number needs no chart either."""
    assert 'id="chart-map"' not in build(compare(*pair, "origin"))
    html = build(compare(*pair), PLACES)
    assert 'id="chart-stems"' not in html
    assert "all trips" in html


@pytest.mark.slow
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_in_a_browser(browser: Any, pair: list[cbdp.Release], tmp_path: Any, width: int) -> None:
    """Nothing is wider than the screen, tips show the row, the table can be filtered and sorted."""
    made = compare(*pair, "origin")
    with opened(browser, tmp_path, build(made, PLACES), width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        cut = (
            "t => t.map(e => e.getBoundingClientRect().left - e.ownerSVGElement.getBoundingClientRect().left)"
        )
        assert min(page.eval_on_selector_all("#chart-stems text", cut)) >= 0
        page.locator("#chart-map .mark.up").first.focus()
        assert "more than noise can explain" in page.locator("#tip").text_content()
        page.locator("#only").check()
        assert page.locator("#rows tbody tr:visible").count() == len(made.standing_out())
        page.locator("#only").uncheck()
        page.locator("#rows thead button").nth(3).click()
        cells = page.eval_on_selector_all(
            "#rows tbody tr", "rows => rows.map(r => Number(r.cells[3].dataset.value))"
        )
        assert cells == sorted(cells)
        page.locator("#find").fill("S11")  # and not S1 beside a count of 1…
        assert page.locator("#rows tbody tr:visible").count() == 1


def test_labels_cannot_become_code(browser: Any, tmp_path: Any) -> None:
    """A stop named like a script is text on the map, in the table and in the tips."""
    hostile = [HOSTILE, *NAMES[1:]]
    made = compare(*_pair(hostile), "origin")
    with opened(browser, tmp_path, build(made, replace(PLACES, ids=tuple(hostile)))) as page:
        page.locator("#chart-map .mark").first.focus()
        assert page.evaluate("window.hacked") is None
        assert HOSTILE in page.locator("#rows").text_content()


def test_the_same_comparison_gives_the_same_page(pair: list[cbdp.Release]) -> None:
    """To the byte."""
    made: ReleaseComparison = compare(*pair, "origin")
    assert build(made, PLACES) == build(made, PLACES)


def test_where_taps_are_counted_no_sentence_speaks_of_trips() -> None:
    """In the words, the notes, the charts and the legend."""
    universe = cbdp.Universe(location=NAMES, time=["am", "pm"])
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("location", by="location")])
    mechanism = cbdp.ConstraintBased(dag, 1, unit=cbdp.Person("card", 2))
    made = [{"location": NAMES * n, "time": ["am"] * 12 * n, "card": list(range(12 * n))} for n in (40, 90)]
    one, two = (mechanism.simulate(rows, n) for n, rows in enumerate(made))
    for by in ("location", ()):
        page = Page(build(compare(one, two, by), PLACES))
        assert "How taps changed" in page.text
        assert "At most 2 taps of each person are counted, chosen at random." in page.text
        assert "Changes in the others are not seen." in page.text
        assert "trip" not in page.text.lower()
