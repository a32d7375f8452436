"""kepler.gl maps, opened by kepler.gl itself: the browser program that the package keplergl brings, on a machine without network."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE
from exported import PLACES, STOPS, city_release, released_trips

import cbdp
from cbdp.errors import InputError
from cbdp.release import About
from cbdp.release.export import export

PAGE = """<!doctype html><body style="margin:0"><div id="map" style="width:1000px;height:700px"></div><script type="module">
import widget from "/widget.js";
const state = {data: {}, config: {}, height: 700, mapbox_token: "", theme: "", app_name: "kepler.gl"};
const model = {get: k => state[k], set: (k, v) => { state[k] = v; }, on() {}, off() {}, save_changes() {}, send() {}};
window.state = state;
widget.initialize?.({model});
widget.render({model, el: document.getElementById("map")});
</script>"""
STYLE = '{"version":8,"sources":{},"layers":[]}'
LAYERS = "(window.state.config?.config?.visState?.layers ?? []).length >= 2"


def rows_of(path: Path) -> list[dict[str, Any]]:
    (data,) = json.loads(path.read_text("utf-8"))["datasets"]
    names = [field["name"] for field in data["data"]["fields"]]
    return [dict(zip(names, row, strict=True)) for row in data["data"]["allData"]]


def served(page: Any, program: Path) -> None:
    """kepler.gl's program and an empty map style; whatever else it asks for does not exist."""

    def answer(route: Any) -> None:
        address = route.request.url
        if address.endswith("/widget.js"):
            route.fulfill(path=program, content_type="text/javascript")
        elif address == "http://kepler.test/":
            route.fulfill(body=PAGE, content_type="text/html")
        elif "style.json" in address:
            route.fulfill(body=STYLE, content_type="application/json")
        else:
            route.abort()

    page.route("**/*", answer)


@pytest.mark.slow
def test_kepler_opens_the_map(browser: Any, tmp_path: Path) -> None:
    """Dropped on kepler.gl, the file is a map with all flows, its two layers, its slider over time, its title and its ε."""
    keplergl = pytest.importorskip("keplergl", reason="no kepler.gl: pip install keplergl")
    release, trips = city_release(places=PLACES, about=About("Trips of a small city"))
    file = export(release, tmp_path / "map.kepler.json", "kepler")
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    page.set_default_timeout(PATIENCE)
    served(page, Path(keplergl.__file__).parent / "static" / "widget.js")
    page.goto("http://kepler.test/")
    page.click(".side-bar__close")
    page.get_by_text("Add Data").first.click()
    page.wait_for_selector("input[type=file]", state="attached")
    page.set_input_files("input[type=file]", file)
    page.get_by_text("Ready to add file").wait_for()
    page.get_by_text("Add Data", exact=True).last.click()
    page.wait_for_function(LAYERS)
    found = page.evaluate("window.state.config.config")
    shown = page.inner_text("body")
    page.close()
    flow, arc = found["visState"]["layers"]
    given = json.loads(file.read_text("utf-8"))["config"]["config"]
    for read, written in zip((flow, arc), given["visState"]["layers"], strict=True):
        assert read["type"] == written["type"]
        assert read["config"]["columns"] == written["config"]["columns"]
        assert read["config"]["isVisible"] == written["config"]["isVisible"]
    assert arc["visualChannels"]["sizeField"]["name"] == "count"
    (slider,) = found["visState"]["filters"]
    assert (slider["name"], slider["type"], slider["enabled"]) == (["begins"], "timeRange", True)
    assert slider["value"] == given["visState"]["filters"][0]["value"]
    assert found["mapState"]["latitude"] == pytest.approx(42.25)
    for words in (f"{len(trips)} rows", "Trips of a small city", "epsilon: 1"):
        assert words in shown


def test_kepler_rows_are_the_flows(tmp_path: Path) -> None:
    """Each flow once, from its origin's place to its destination's, at the second its period begins."""
    release, trips = city_release(places=PLACES)
    at = {str(s): (y, x) for s, y, x in zip(PLACES.ids, PLACES.lat, PLACES.lon, strict=True)}
    found = {}
    for row in rows_of(export(release, tmp_path / "map.json", "Kepler")):
        assert (row["origin_lat"], row["origin_lon"]) == pytest.approx(at[row["origin"]])
        assert (row["destination_lat"], row["destination_lon"]) == pytest.approx(at[row["destination"]])
        assert row["begins"] == f"2001-01-01 {row['time']}:00"
        found[int(row["origin"]), int(row["destination"]), row["time"]] = row["count"]
    assert found == trips


def test_kepler_uses_the_dates_that_are_published(tmp_path: Path) -> None:
    """Days of the release are days on the slider; without periods there is none; stand-ins are said to be such."""
    days = ["2026-03-02", "2026-03-04"]
    universe = cbdp.Universe(
        day=days, origin=STOPS, destination=STOPS, time=cbdp.periods("06:00", "08:00", "1h")
    )
    trips = {(days[1], 7, 30, "07:00"): 4}
    file = export(released_trips(universe, trips, places=PLACES), tmp_path / "days.json", "kepler")
    (row,) = rows_of(file)
    assert (row["begins"], row["day"], row["count"]) == ("2026-03-04 07:00:00", "2026-03-04", 4)
    assert "stand-ins" not in file.read_text("utf-8")
    plain = released_trips(cbdp.Universe(origin=STOPS, destination=STOPS), {(7, 30): 2}, places=PLACES)
    made = json.loads(export(plain, tmp_path / "plain.json", "kepler").read_text("utf-8"))
    assert made["config"]["config"]["visState"]["filters"] == []
    release, _ = city_release(places=PLACES)
    assert "stand-ins" in export(release, tmp_path / "timed.json", "kepler").read_text("utf-8")


def test_a_dimension_called_as_a_column_is_refused(tmp_path: Path) -> None:
    """Nothing is overwritten silently."""
    universe = cbdp.Universe(origin=STOPS, destination=STOPS, begins=["a", "b"])
    release = released_trips(universe, {(7, 30, "a"): 1}, places=PLACES)
    with pytest.raises(InputError, match="a dimension is called 'begins'"):
        export(replace(release), tmp_path / "map.json", "kepler")
