"""The report in a real browser: charts are drawn, show the release's numbers, and nothing leaves the page.

Needs the package playwright and a Chromium: Playwright's own (`playwright install chromium`), or one on the path.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from browsing import DESKTOP, HOSTILE, PHONE, hovers, opened, scrolled

import cbdp
from cbdp.app.internal import build_internal
from cbdp.features import opal
from cbdp.release import About
from cbdp.report import build
from cbdp_features.places import Stops

CHARTS = ("#chart-demand", "#chart-matrix", "#chart-map", "#chart-share-0")
AXES = """chart => [...document.querySelectorAll(chart + ' > svg text')].map(t => {
    const box = t.getBoundingClientRect(), svg = t.ownerSVGElement.getBoundingClientRect();
    return {words: t.textContent, left: box.left - svg.left, right: box.right - svg.left, top: box.top - svg.top,
            bottom: box.bottom - svg.top, wide: svg.width, tall: svg.height};
})"""


@pytest.fixture(scope="module")
def rush():
    city = cbdp.datasets.ann_arbor(seed=0, hours=("08:00", "10:00"))
    s = city.stops
    stops = Stops(*(tuple(s["stop"].tolist()),) * 2, s["lat"], s["lon"], tuple(s["zone"].tolist()))
    release = cbdp.ConstraintBased(city.features(), epsilon=1).simulate(city.trips, 5).with_intervals()
    return city, replace(release, secure=True, places=stops)


def shown(page, selector: str) -> list[int]:
    """The counts of the marks that are drawn."""
    return page.eval_on_selector_all(selector, "marks => marks.map(m => Number(m.dataset.count))")


@pytest.mark.slow
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn(browser, rush, tmp_path, width, scheme):
    """Every chart has marks of some size, all its words lie inside it, and the page is no wider than the screen."""
    _, release = rush
    with opened(browser, tmp_path, build(release), width, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for chart in CHARTS:
            box = page.locator(f"{chart} > svg").bounding_box()
            assert box["width"] > 200
            assert box["height"] > 100
            assert box["x"] + box["width"] <= width
            sizes = page.eval_on_selector_all(
                f"{chart} .mark",
                "m => m.map(e => e.getBoundingClientRect()).map(b => Math.max(b.width, b.height))",
            )
            assert len(sizes) >= 4
            assert all(size > 0 for size in sizes)
            for t in page.evaluate(AXES, chart):
                assert t["left"] >= -1, t
                assert t["right"] <= t["wide"] + 1, t
                assert t["top"] >= -1, t
                assert t["bottom"] <= t["tall"] + 1, t
        assert page.locator(".picture").first.bounding_box()["height"] > 100


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("word", ["long words ", "x"])
def test_the_longest_words_of_a_publisher_fit(browser, rush, tmp_path, width, word):
    """Lines of 200 characters, with spaces and without, are shown whole, and the page stays as wide as the screen."""
    line = (word * 200)[:200].strip()
    html = build(replace(rush[1], secure=False, about=About(*[line] * 7)))
    with opened(browser, tmp_path, html, width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.inner_text("h1") == line
        assert page.inner_text(".where") == f"{line} · {line}"
        for box in page.locator(".imprint dd").all():
            assert box.inner_text() == line
            assert box.bounding_box()["x"] + box.bounding_box()["width"] <= width
        assert page.locator("header > *").first.inner_text().startswith("Simulation, not a release.")


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_axis_labels_do_not_overlap(browser, tmp_path, width):
    """Of 96 periods only as many are named as there is room for."""
    universe = cbdp.Universe(
        origin=["A", "B"], destination=["A", "B"], time=cbdp.periods("00:00", "24:00", "15min")
    )
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("time", by="time")])
    release = cbdp.ConstraintBased(dag, 10).simulate(np.arange(384), 1)
    with opened(browser, tmp_path, build(release), width) as page:
        words = [t for t in page.evaluate(AXES, "#chart-demand") if ":" in t["words"]]
        assert len(words) >= 4
        for a, b in itertools.pairwise(sorted(words, key=lambda t: t["left"])):
            assert a["right"] < b["left"]
        assert len(shown(page, "#chart-demand .mark")) == 96


def test_numbers_shown_are_the_releases(browser, rush, tmp_path):
    """Bars, cells, arrows, shares and the table show the published counts, for all periods and for each."""
    _, release = rush
    dag, times = release.features, release.features.universe.dimension("time").values
    keys = dag.partition("zone").keys()
    rows = list(zip(*keys.values(), release.counts("zone").tolist(), strict=True))
    modes = list(zip(*dag.partition("mode").keys().values(), release.counts("mode").tolist(), strict=True))
    with opened(browser, tmp_path, build(release)) as page:
        assert shown(page, "#chart-demand .mark") == release.counts("time").tolist()
        assert f"{release.total:,}" in page.inner_text("header")
        for place, time in enumerate([None, *times]):
            page.select_option("#period", str(place))
            zones, shares = Counter(), Counter()
            for a, b, t, n in rows:
                zones[a, b] += n if time in (None, t) else 0
            for mode, t, n in modes:
                shares[mode] += n if time in (None, t) else 0
            expected = [zones[pair] for pair in sorted(zones)]
            assert shown(page, "#chart-matrix .mark") == expected
            texts = page.eval_on_selector_all("#chart-matrix > svg text", "t => t.map(e => e.textContent)")
            assert [f"{n:,}" for n in expected] == [t for t in texts if re.fullmatch(r"[\d,]+", t)][:16]
            assert sorted(shown(page, "#chart-map .mark")) == sorted(n for n in expected if n)
            assert sorted(shown(page, "#chart-share-0 .mark")) == sorted(shares.values())
            table = page.eval_on_selector_all(
                "#largest tbody tr", "rows => rows.map(r => [...r.cells].map(c => c.textContent))"
            )
            assert {(r[0], r[1]): int(r[2].replace(",", "")) for r in table} == {
                k: n for k, n in zones.items() if n
            }
            assert [int(r[2].replace(",", "")) for r in table] == sorted(filter(None, expected), reverse=True)


def test_intervals_shown_are_the_releases(browser, rush, tmp_path):
    """What a mark says of its interval is what is published, on hover and to screen readers."""
    _, release = rush
    interval, counts = release.intervals["time"], release.counts("time")
    with opened(browser, tmp_path, build(release)) as page:
        labels = page.eval_on_selector_all(
            "#chart-demand .mark", "m => m.map(e => e.getAttribute('aria-label'))"
        )
        for label, n, low, high in zip(labels, counts, interval.low, interval.high, strict=True):
            assert label.endswith(f"{n:,} trips, 90 % interval: {low:,} to {high:,}")
        page.hover("#chart-demand .mark >> nth=2")
        page.wait_for_function(
            "said => document.querySelector('#tip').innerText.replaceAll('\\n', ', ') === said", arg=labels[2]
        )
        page.click("#numbers-demand summary")
        page.wait_for_selector("#numbers-demand tbody tr")  # listed when the browser says that it is open
        cells = page.eval_on_selector_all(
            "#numbers-demand tbody tr", "rows => rows.map(r => [...r.cells].slice(1).map(c => c.textContent))"
        )
        assert cells == [
            [f"{v:,}" for v in row] for row in zip(counts, interval.low, interval.high, strict=True)
        ]


def test_keyboard_reaches_everything(browser, rush, tmp_path):
    """One tab stop per chart, arrows move inside it, Enter chooses the period, and what has focus is described."""
    _, release = rush
    with opened(browser, tmp_path, build(release)) as page:
        for chart in CHARTS:
            assert page.locator(f"{chart} [tabindex='0']").count() == 1
        page.focus("#chart-demand [tabindex='0']")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        hovers(page, "09:00–09:30")
        page.keyboard.press("Enter")
        assert page.input_value("#period") == "3"
        assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("09:00–09:30")
        page.focus("#chart-matrix [tabindex='0']")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        hovers(page, "NW → NW")
        assert page.inner_text("#tip").startswith("NW → NW")
        page.focus("#later")
        page.keyboard.press("Enter")
        assert page.input_value("#period") == "4"
        assert page.is_disabled("#later")


def test_table_sorts_and_finds(browser, rush, tmp_path):
    """A column's name sorts by it, again the other way, and the search keeps the rows that hold the words."""
    _, release = rush
    rows = "#largest tbody tr"
    with opened(browser, tmp_path, build(release)) as page:
        page.select_option("#table-level", "stops")
        origins = page.eval_on_selector_all(rows, "rows => rows.map(r => r.cells[0].textContent)")
        page.click("#largest thead button >> text=From")
        again = page.eval_on_selector_all(rows, "rows => rows.map(r => r.cells[0].textContent)")
        assert again == sorted(origins) != origins
        assert page.get_attribute("#largest th >> nth=0", "aria-sort") == "ascending"
        page.click("#largest thead button >> text=From")
        assert page.eval_on_selector_all(rows, "r => r[0].cells[0].textContent") == max(origins)
        page.fill("#find", origins[0].lower())
        found = page.eval_on_selector_all(rows, "rows => rows.map(r => [...r.cells].map(c => c.textContent))")
        assert found
        assert all(origins[0] in row[:2] for row in found)


def test_map_draws_both_directions_and_zooms(browser, rush, tmp_path):
    """A flow and its return are two shapes apart, between zones and between stops; fewer are drawn when asked for."""
    _, release = rush
    with opened(browser, tmp_path, build(release)) as page:
        shapes = page.eval_on_selector_all(
            "#chart-map .flow", "m => m.map(e => [e.getAttribute('aria-label'), e.getAttribute('d')])"
        )
        named = {label.split(",")[0]: shape for label, shape in shapes}
        for label, shape in named.items():
            there, back = label.split(" → ")
            assert named[f"{back} → {there}"] != shape
        page.select_option("#level", "stops")
        page.select_option("#many", "10")
        assert len(shown(page, "#chart-map .mark")) == 10
        drawn = page.locator("#chart-map circle.stop").count()
        page.select_option("#zoom", "0")
        assert 0 < page.locator("#chart-map circle.stop").count() < drawn == 130


def test_hostile_labels_stay_words(browser, tmp_path):
    """Markup in names of stops is shown and not run, in charts, tables and what hovers."""
    stops = [f"{HOSTILE}{i}" for i in range(3)]
    place = cbdp.Dimension(stops, zone=[f"{HOSTILE}n", f"{HOSTILE}s", f"{HOSTILE}s"])
    universe = cbdp.Universe(origin=place, destination=place, time=["am", "pm"])
    dag = cbdp.features.odmts(universe, level=4)
    release = cbdp.ConstraintBased(dag, 100).simulate(np.arange(18), 1)
    places = Stops(tuple(stops), tuple(stops), np.array([1.0, 2, 3]), np.array([1.0, 2, 4]))
    with opened(browser, tmp_path, build(release, places=places)) as page:
        page.select_option("#level", "stops")
        page.select_option("#table-level", "stops")
        page.hover("#chart-matrix .mark >> nth=0")
        hovers(page, HOSTILE)
        assert HOSTILE in page.inner_text("#largest")
        assert page.evaluate("window.hacked") is None
        assert page.locator("img").count() == 0


def test_policy_stops_requests(browser, rush, tmp_path):
    """Even a script in the page could not send anything anywhere."""
    _, release = rush
    path = tmp_path / "report.html"
    path.write_text(build(release), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        outcome = page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', e => 'stopped')")
    assert outcome == "stopped"
    page.close()


def _light(colour: str) -> float:
    parts = [int(c) / 255 for c in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read(browser, rush, tmp_path, scheme):
    """Text stands out from what is behind it by at least 4.5 to 1 (WCAG AA), in both colour schemes."""
    _, release = rush
    behind = """e => { while (getComputedStyle(e).backgroundColor === 'rgba(0, 0, 0, 0)') e = e.parentElement;
                       return getComputedStyle(e).backgroundColor; }"""
    with opened(browser, tmp_path, build(release), color_scheme=scheme) as page:
        for words in (
            "h1",
            ".note",
            ".tile .head",
            ".tile .about",
            "nav a",
            ".pill.good",
            ".pill.poor",
            "thead th",
            "#largest td",
        ):
            one = page.locator(words).first
            front, back = _light(one.evaluate("e => getComputedStyle(e).color")), _light(one.evaluate(behind))
            assert (max(front, back) + 0.05) / (min(front, back) + 0.05) >= 4.5, words


@pytest.mark.slow
def test_taps_and_nothing_at_all(browser, tmp_path):
    """Other dimensions draw curves, a matrix and a table; a release without trips draws without an error."""
    dag = opal(
        cbdp.Universe(
            tap=["on", "off"], time=cbdp.periods("06:00", "24:00", "15min"), location=["Manly", "Quay", "Zoo"]
        )
    )
    for counts in (np.arange(dag.universe.size), np.zeros(dag.universe.size, dtype=np.int64)):
        release = cbdp.ConstraintBased(dag, 1000).simulate(counts, 1)
        with opened(browser, tmp_path, build(release), PHONE) as page:
            assert shown(page, "#chart-demand .mark") == release.counts("time").tolist()
            assert sum(shown(page, "#chart-matrix .mark")) == release.total
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE


def test_internal_report_opens(browser, rush, tmp_path):
    """The banner is in sight, red, and stays there on scrolling; every table has its picture."""
    city, release = rush
    html = build_internal(release, cbdp.count(city.trips, city.universe))
    with opened(browser, tmp_path, html, PHONE) as page:
        scrolled(page, 4000)
        assert page.locator(".internal").bounding_box()["y"] <= 1
        assert (
            page.evaluate("getComputedStyle(document.querySelector('.internal')).backgroundColor")
            == "rgb(163, 0, 0)"
        )
        assert page.locator("#scatters circle").count() > 100
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE


def test_a_stop_far_away_does_not_shrink_the_map(browser, rush, tmp_path):
    """A stop at 0° N 0° E: the map shows the city as before, says so, and all flows between zones are still there."""
    _, release = rush
    lat, lon = release.places.lat.copy(), release.places.lon.copy()
    lat[0], lon[0] = 0.0, 0.0
    wrong = replace(release, places=replace(release.places, lat=lat, lon=lon))
    pages = {}
    for name, made in (("right", release), ("wrong", wrong)):
        with opened(browser, tmp_path, build(made)) as page:
            far = page.locator("#chart-map > svg text", has_text=" km").text_content()
            pages[name] = far, sorted(shown(page, "#chart-map .mark")), page.locator("#explore").inner_text()
            for zone in range(4):
                page.locator("#zoom").select_option(str(zone))
                assert (
                    float(page.locator("#chart-map > svg text", has_text=" km").text_content().split()[0])
                    <= 10
                )
    assert pages["right"][:2] == pages["wrong"][:2]
    assert "1 stop lies far from most trips, outside this map" in pages["wrong"][2]
    assert "far from most trips" not in pages["right"][2]
