"""The page of a service: what it draws is what the simulator's log says, in a browser, offline and at every width."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from browsing import DESKTOP, HOSTILE, PHONE, opened

from cbdp.errors import InputError
from cbdp.transit import Operations, figures, fleets, make_city, simulate
from cbdp.transit.plugins import example_city, example_legs
from cbdp.transit.simulator import ARRIVES, DROPPED_OFF, PICKED_UP

WHERE = """second => {
    const slider = document.getElementById('time');
    slider.value = second;
    slider.dispatchEvent(new Event('input'));
    return [...document.querySelectorAll('#chart-map circle.shuttle')].map(c => ({
        x: Number(c.getAttribute('cx')), y: Number(c.getAttribute('cy')), kind: c.getAttribute('class')}));
}"""
SEATS = """() => [...document.querySelectorAll('#chart-map .place, #chart-map .hub')].map(e => {
    const b = e.getBBox(); return [b.x + b.width / 2, b.y + b.height / 2]; })"""


@pytest.fixture(scope="module")
def run():
    city = example_city()
    return city, simulate(city, (3, 3), example_legs(city, 1, 80), log=True)


def embedded(html: str) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])


def test_hops_are_the_logs_drives(run):
    """Each hop takes the drive's time, carries who was picked up and not yet dropped, and the metres add up."""
    city, service = run
    takes = Operations().hop(city)
    made = fleets.hops(city, service, Operations())
    assert sum(map(len, made)) == int((service.log[:, 1] == ARRIVES).sum())
    for shuttle, (own, start) in enumerate(zip(made, service.fleet.starts(city).tolist(), strict=True)):
        before, metres, at = -1, 0, start
        for departs, arrives, stop, load in own:
            assert before <= departs
            assert arrives - departs == takes[at, stop]
            mine = service.log[(service.log[:, 2] == shuttle) & (service.log[:, 0] < arrives)]
            assert load == (mine[:, 1] == PICKED_UP).sum() - (mine[:, 1] == DROPPED_OFF).sum()
            metres += city.metres[at, stop]
            before, at = arrives, stop
        assert metres == service.metres[shuttle]


def test_riders_over_time(run):
    """Waiting and riding seconds, by the minute, add up to the service's own to within the minutes' width."""
    city, service = run
    html = fleets.service_page(city, service)
    data = embedded(html)
    for name, exact in (
        ("waiting", service.wait.sum()),
        ("aboard", (service.drop - service.pickup)[service.served].sum()),
    ):
        assert abs(60 * sum(data["riders"][name]) - exact) <= 60 * service.served.sum()
        assert data["riders"][name][-1] == 0
    assert sum(n for _, _, n in data["ways"]) == int((service.log[:, 1] == ARRIVES).sum())


def test_the_hull_holds_its_stops(run):
    """Every stop of a zone lies left of every edge of its hull; fewer than three places are their own hull."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 5, (2, 40))
    city = make_city([f"s{i}" for i in range(40)], x, y, ["one"] * 40, ["s0"])
    corners = np.array(fleets.hull(city, 0))
    following = np.roll(corners, -1, axis=0)
    for (ax, ay), (bx, by) in zip(corners, following, strict=True):
        assert ((bx - ax) * (y - ay) - (by - ay) * (x - ax) > -0.01).all()
    tiny = make_city(["a", "b"], [0, 1], [0, 1], ["z", "z"], ["a"])
    assert fleets.hull(tiny, 0) == [[0.0, 0.0], [1.0, 1.0]]


def test_large_runs_show_a_part_of_the_shuttles(run, monkeypatch):
    """Above the limit of hops every k-th shuttle is drawn, the page says so, and the table still counts all."""
    city, service = run
    hops = sum(map(len, fleets.hops(city, service, Operations())))
    monkeypatch.setattr(fleets, "MAX_HOPS", (hops - 1) // 2)  # a little less than half: three parts
    html = fleets.service_page(city, service)
    data = embedded(html)
    assert data["every"] == 3
    assert [s[0] for s in data["shuttles"]] == [0, 3]
    assert "One shuttle in 3 is drawn" in html
    assert f"{service.fleet.total} shuttles" in html


def test_a_full_page_stays_below_three_megabytes(run):
    """With as many hops as are ever drawn, each of the largest size met in a day, the data stays below the limit."""
    worst = len(json.dumps([100, 1000, 1000, 8], separators=(",", ":")))
    assert fleets.MAX_HOPS * worst < 2_500_000
    assert len(fleets.service_page(*run)) < 100_000


def test_a_run_without_a_log_is_refused(run):
    """What cannot be drawn says how to get it."""
    city, service = run
    with pytest.raises(InputError, match="log=True"):
        fleets.service_page(city, replace(service, log=None))


def test_the_same_run_gives_the_same_page(run):
    """Byte for byte; and the table holds the figures of every zone."""
    city, service = run
    html = fleets.service_page(city, service, about="A run.")
    assert html == fleets.service_page(city, service, about="A run.")
    for zone, row in figures(service, city).items():
        cells = re.search(rf'<th scope="row">{zone}</th>(.*?)</tr>', html)[1]
        assert f">{row['wait']:.0f} s<" in cells
        assert f">{row['km']:,.0f} km<" in cells


@pytest.mark.parametrize(("width", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_the_map_is_drawn(browser, run, tmp_path, width, scheme):
    """Hubs, stops, lines and zones are all there, all words lie inside, and the page is no wider than the screen."""
    city, service = run
    with opened(browser, tmp_path, fleets.service_page(city, service), width, color_scheme=scheme) as shown:
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        counts = {".hub": 2, ".place": 10, ".bus": 1, ".zone": 2, "circle.shuttle": 6}
        for mark, n in counts.items():
            assert shown.locator(f"#chart-map {mark}").count() == n
        for chart in ("#chart-map", "#chart-riders"):
            box = shown.locator(f"{chart} > svg").bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            for words in shown.locator(f"{chart} > svg text").all():
                inside = words.bounding_box()
                assert inside["x"] >= box["x"] - 1
                assert inside["x"] + inside["width"] <= box["x"] + box["width"] + 1
                assert inside["y"] >= box["y"] - 1
                assert inside["y"] + inside["height"] <= box["y"] + box["height"] + 1


def test_shuttles_are_where_the_log_says(browser, run, tmp_path):
    """At any second a shuttle is on the straight line of its hop, as far along as time; loaded ones are filled."""
    city, service = run
    made, starts = fleets.hops(city, service, Operations()), service.fleet.starts(city).tolist()
    with opened(browser, tmp_path, fleets.service_page(city, service)) as shown:
        seats = dict(zip([s for s in range(12) if not city.hub[s]] + city.hubs.tolist(), shown.evaluate(SEATS), strict=True))  # fmt: skip
        for second in (0, 600, 1500, 2710, 3600):
            drawn = shown.evaluate(WHERE, second)
            for own, start, seen in zip(made, starts, drawn, strict=True):
                stop, at, load = start, np.array(seats[start]), 0
                for departs, arrives, to, riders in own:
                    if departs > second:
                        break
                    share, load = (
                        min(1, (second - departs) / (arrives - departs)),
                        riders * (second < arrives),
                    )
                    at = (1 - share) * np.array(seats[stop]) + share * np.array(seats[to])
                    stop = to
                assert [seen["x"], seen["y"]] == pytest.approx(at.tolist(), abs=0.21)
                assert ("empty" in seen["kind"]) == (load == 0)


def test_controls_work(browser, run, tmp_path):
    """Playing moves the clock and stops on demand; a zone hides the other's shuttles; a chosen shuttle keeps its way."""
    city, service = run
    with opened(browser, tmp_path, fleets.service_page(city, service)) as shown:
        shown.evaluate(WHERE, 600)
        before = shown.inner_text("#now")
        assert before == "00:10:00"
        shown.click("#play")
        shown.wait_for_function("before => document.getElementById('now').textContent !== before", arg=before)
        assert shown.inner_text("#play") == "Pause"
        shown.click("#play")
        after = shown.inner_text("#now")
        assert after > before
        assert shown.inner_text("#play") == "Play"
        shown.select_option("#zone", "1")
        visible = shown.locator("#chart-map circle.shuttle:visible")
        assert [int(m.get_attribute("data-shuttle")) for m in visible.all()] == [3, 4, 5]
        visible.first.dispatch_event("click")
        assert shown.locator("#chart-map .trail.chosen").count() == 1
        assert shown.locator("#drawn-ways").is_visible() is False
        shown.check("#ways")
        assert shown.locator("#drawn-ways").is_visible()
        assert shown.locator("#drawn-ways line").count() == len(
            embedded(fleets.service_page(city, service))["ways"]
        )


def test_names_cannot_become_code(browser, tmp_path):
    """A stop, a zone and a note that look like markup stay text; the banner of real riders is on top."""
    bare = example_city()
    city = replace(bare, names=(HOSTILE, *bare.names[1:]), zones=(HOSTILE, "east"))
    service = simulate(city, (2, 2), example_legs(city, 0, 10), log=True)
    html = fleets.service_page(city, service, about=HOSTILE, internal=True)
    with opened(browser, tmp_path, html) as shown:
        assert shown.evaluate("window.hacked") is None
        assert shown.locator("img").count() == 0
        assert shown.locator(".internal").inner_text().startswith("INTERNAL")
        shown.evaluate("window.scrollTo(0, 500)")
        shown.wait_for_function("window.scrollY > 400")
        banner, controls = (shown.locator(c).bounding_box() for c in (".internal", ".time"))
        assert controls["y"] >= banner["y"] + banner["height"] - 1
