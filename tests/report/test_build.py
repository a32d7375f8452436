"""The page as a whole: self-contained, the same again, and no label becomes code."""

from __future__ import annotations

import ast
import base64
import hashlib
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reported import HOSTILE, Page, with_stops

import cbdp
from cbdp.app.internal import build_internal
from cbdp.estimation.intervals import Interval
from cbdp.features import odmts
from cbdp.release.files import load
from cbdp.release.manifest import CODE_SUFFIXES
from cbdp.report import build
from cbdp.text import printable
from cbdp_features.places import Stops


def test_labels_never_become_markup():
    """Stops, zones, modes, names and features that hold markup are shown as text: no element or attribute is theirs."""
    stops = [f"{HOSTILE}{i}" for i in range(3)]
    place = cbdp.Dimension(stops, zone=[f"z{HOSTILE}", f"y{HOSTILE}", f"y{HOSTILE}"])
    universe = cbdp.Universe(origin=place, destination=place, time=[f"am{HOSTILE}", f"pm{HOSTILE}"])
    universe = universe.with_attribute("mode", ("origin", "destination"), lambda a, b: f"{a == b}{HOSTILE}")
    name = HOSTILE.replace("/", "").strip()
    features = [cbdp.Feature(name, by="time"), *list(odmts(universe).features.values())[1:4]]
    dag = cbdp.FeatureDag(universe, features)
    release = cbdp.ConstraintBased(dag, 1, unit=cbdp.Person(HOSTILE, 2)).simulate(
        {
            "origin": stops * 9,
            "destination": stops[::-1] * 9,
            "time": [f"am{HOSTILE}"] * 27,
            HOSTILE: list(range(27)),
        },
        1,
    )
    places = Stops(tuple(stops), tuple(stops), np.array([1.0, 2, 3]), np.array([1.0, 2, 4]))
    public = build(release, places=places, manifest={HOSTILE: HOSTILE})
    truth = cbdp.count({"origin": stops, "destination": stops, "time": [f"am{HOSTILE}"] * 3}, universe)
    for html in (public, build_internal(release, truth)):
        page = Page(html)
        kinds = Counter(tag for tag, _ in page.elements)
        assert kinds["script"] == 2
        assert kinds["img"] == 0
        assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
        assert not any("style" in attributes for _, attributes in page.elements)
        assert HOSTILE.replace("\u2028", " ")[:60] in page.text
        assert "\u2028" not in page.raw["script"][0]
    data = Page(public).data
    assert data["matrix"]["rows"] == [printable(f"{z}{HOSTILE}") for z in "yz"]
    assert data["flows"]["stops"][0][0] in [printable(stop) for stop in stops]


def test_page_can_ask_nothing_of_any_server(rush):
    """No address stands in it, and its policy allows only its own style and script, by their hashes."""
    city, release, stops = rush
    truth = cbdp.count(city.trips, city.universe)
    for html in (build(release, places=stops), build_internal(release, truth)):
        page = Page(html)
        links = [
            v
            for _, a in page.elements
            for k, v in a.items()
            if k in ("src", "href", "action", "srcset", "data")
        ]
        assert all(link.startswith("#") or link == "data:," for link in links)
        outside = re.sub(r"http://www\.w3\.org/2000/svg", "", html)
        assert not re.search(r"https?://|//cdn|@import|url\((?!#)", outside.split('id="data"')[0])
        policy = next(
            a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
        )
        assert policy.startswith("default-src 'none'; ")
        for text in (page.raw["style"][0], page.raw["script"][1]):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy


def test_same_release_same_bytes(rush):
    """Nothing of the day or the machine is in the page."""
    _, release, stops = rush
    first, again = (build(release, places=stops) for _ in range(2))
    assert first == again
    assert str(Path.home()) not in first.replace('"/"', "")
    assert sys.executable not in first


def test_loaded_release_gives_the_same_page(rush, tmp_path):
    """What was saved and read back is reported the same way, numbers, words and all but the manifest's files."""
    _, release, stops = rush
    replace(release, places=stops).save(tmp_path / "out")
    back = load(tmp_path / "out")
    assert build(back, manifest={}) == build(release, places=stops, manifest={})


@pytest.mark.slow
def test_built_in_city_is_small():
    """The whole day of the built-in city fits into far less than two megabytes."""
    city = cbdp.datasets.ann_arbor()
    release = cbdp.ConstraintBased(city.features(), 1).simulate(city.trips, 1)
    flat = {
        n: Interval(np.maximum(release.counts(n) - 10, 0), release.counts(n) + 10)
        for n in ("time", "zone", "mode")
    }
    html = build(replace(release, intervals=flat), places=with_stops(city))
    assert 50_000 < len(html.encode()) < 500_000


def test_budget_adds_up_in_the_page(rush):
    """Every feature's share is listed."""
    city, _, _ = rush
    budget = {"total": "1/10", "time": "1/10", "zone": "1/5", "mode": "1/5", "singleton": "2/5"}
    release = cbdp.ConstraintBased(city.features(), 1, budget=budget).simulate(city.trips, 1)
    text = Page(build(release)).text
    for name, share in (("total", "0.1 (10 %)"), ("zone", "0.2 (20 %)"), ("singleton", "0.4 (40 %)")):
        assert f"{name}ε {share}" in text


def test_manifest_is_folded_in(rush):
    """The release's own manifest is shown; another one only when it is given."""
    _, release, _ = rush
    assert release.manifest["universe"]["sha256"] in build(release)
    page = Page(build(release, manifest={"only": "this one"}))
    assert '"only": "this one"' in page.text
    assert release.manifest["universe"]["sha256"] not in page.text


ROOT = Path(__file__).parents[2]


PRIVATE = ("cbdp.counting", "cbdp.measuring", "cbdp.mechanisms", "cbdp.app")


def test_public_report_imports_nothing_private():
    """Making the public report loads no module left of the wall, nor any that stands on it."""
    script = (
        "import sys, cbdp.report; cbdp.report.page;"
        f"print([m for m in sys.modules if any(m == p or m.startswith(p + '.') for p in {PRIVATE})])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    for path in (ROOT / "cbdp" / "report").glob("*.py"):
        nodes = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
        assert not [n.module for n in nodes if n.module and n.module.startswith(PRIVATE)], path.name


def test_templates_are_part_of_the_code_that_a_manifest_names():
    """A release says by which code its report was written: templates, styles and scripts change it too."""
    made_of = {p.suffix for p in (ROOT / "cbdp").rglob("*") if p.is_file() and p.parent.name != "__pycache__"}
    assert made_of - {".py"} - set(CODE_SUFFIXES) <= {".typed", ""}, made_of
    assert any((ROOT / "cbdp" / "report").glob("*.html.jinja"))
