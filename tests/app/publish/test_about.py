"""What a configuration says about a release is in its manifest, its report and its exports, and costs nothing to change."""

from __future__ import annotations

import json
from pathlib import Path

from small_city import plan_of

import cbdp
from cbdp.app.publish import publish

OUTPUT = '[output]\npath = "release"\n'
SAID = """
export = ["csv", "sumo"]

[about]
title = "Trips of a small city"
place = "Small City"
period = "March 2026"
"""


def test_it_is_published_everywhere(city: Path) -> None:
    """Manifest, report, CSV and SUMO; none of them speaks of a simulation, though one was rehearsed."""
    publish(plan_of(city, (OUTPUT, OUTPUT + SAID)), create_ledger=True)
    about = {"title": "Trips of a small city", "place": "Small City", "period": "March 2026"}
    release = cbdp.load(city / "release")
    assert release.about is not None
    assert release.about.json() == release.manifest["about"] == about
    assert release.promise.holds
    page = (city / "release" / "report.html").read_text("utf-8")
    assert "<title>Trips of a small city: report</title>" in page
    assert "Small City · March 2026" in page
    assert "Demand by time of day" in page
    told = json.loads((city / "release-csv" / "about.json").read_text("utf-8"))
    assert {name: told[name] for name in about} == about
    assert set(told) - set(about) == {"epsilon", "protects", "source"}
    assert "title: Trips of a small city\n" in (city / "release.tazrelation.xml").read_text("utf-8")
    assert not [
        p
        for p in city.rglob("*")
        if p.suffix in ("", ".json", ".html", ".xml") and p.is_file() and b"seeded source" in p.read_bytes()
    ]


def test_a_release_keeps_what_it_said(city: Path) -> None:
    """With another title the same request is found again: nothing is spent or written, and that is told."""
    publish(plan_of(city, (OUTPUT, OUTPUT + SAID)), create_ledger=True)
    before = (city / "release" / "manifest.json").read_bytes()
    told: list[str] = []
    changed = SAID.replace("Trips of", "Journeys in")
    assert not publish(plan_of(city, (OUTPUT, OUTPUT + changed)), told.append).fresh
    assert told == ["[about] is not what it was: the release keeps what it was published with"]
    assert (city / "release" / "manifest.json").read_bytes() == before
    told.clear()
    assert not publish(plan_of(city, (OUTPUT, OUTPUT + SAID)), told.append).fresh
    assert told == []
