"""The head of the page: the publisher's words, where and when, the first numbers; and the mark of a simulation."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from reported import HOSTILE, Page, secured
from spoken_about import FULL

import cbdp
from cbdp.app.internal import build_internal
from cbdp.release import About, Dates
from cbdp.release.release import Release
from cbdp.report import build


def title_in(html: str) -> str:
    """What the browser's tab says."""
    found = re.search("<title>(.*?)</title>", html)
    assert found is not None
    return found[1]


def head_in(html: str) -> str:
    """The words of the header."""
    return Page(html[html.index("<header>") : html.index("</header>")]).text


def test_the_publisher_s_words_are_in_the_head(rush) -> None:
    """Title, place, period, publisher, licence, contact and time zone, each as it was given, and in the page's title."""
    release = replace(rush[1], about=FULL)
    html = build(release)
    assert title_in(html) == "Trips -- all of them: report"
    head = head_in(html)
    assert head.startswith("Trips -- all of them")
    assert "Zürich & <around> · March 2026" in head
    for name, said in (
        ("Publisher", "Transit “Authority”"),
        ("Licence", "CC BY 4.0"),
        ("Contact", "data@example.org"),
        ("Time zone", "Europe/Zurich"),
    ):
        assert f"{name}{said}" in head
    some = head_in(build(replace(release, about=About(place="Bern", licence="CC0"))))
    assert some.startswith("Published tripsBern")
    assert "LicenceCC0" in some
    assert "Publisher" not in some


def test_without_words_the_head_says_what_it_is(rush) -> None:
    """No empty lines, no names of things that were not given."""
    html = build(rush[1])
    assert title_in(html) == "Published trips: report"
    assert head_in(html).startswith(
        f"Published trips{rush[1].total:,} trips between 130 stops, 08:00–10:00 in 4 periods."
    )
    assert not re.search('class="(where|imprint)"', html)


def test_hostile_words_stay_words(rush) -> None:
    """Markup in a title is shown, not run, in the page and in its title."""
    hostile = HOSTILE.replace("\u2028", "")
    html = build(replace(rush[1], about=About(*[hostile] * 7)))
    page = Page(html)
    assert sum(tag == "script" for tag, _ in page.elements) == 2
    assert not any(tag == "img" for tag, _ in page.elements)
    assert page.text.count(hostile) >= 7


def test_a_simulation_says_so_at_the_top(rush) -> None:
    """Before anything else, in the page's title, and no ε is a promise; a release has no such word."""
    made = replace(rush[1], secure=False)
    html = build(made)
    assert title_in(html) == "Simulation: Published trips: report"
    assert head_in(html).startswith("Simulation, not a release. Its noise came from a seed")
    text = Page(html).text
    assert "This simulation promises no differential privacy." in text
    assert "a simulation from a seeded source: it protects nobody" in text
    for promised in (
        "changes the odds of any",
        "The unit of protection",
        "protected by random noise",
        "The whole budget",
    ):
        assert promised not in text.partition("Glossary")[0]
        assert promised in Page(build(rush[1])).text
    assert "Protectionnonethis is a simulation" in text
    assert "as large as a budget of ε = 1 would make it, but nothing is promised" in text
    assert "imulation" not in Page(build(rush[1], manifest={})).text


DAY = dt.date(2026, 3, 2)
DAYS = [DAY + dt.timedelta(days=n) for n in range(3)]


def _timed(about: About | None = None, **more: Any) -> Release:
    universe = cbdp.Universe(
        origin=["A", "B"], destination=["A", "B"], time=cbdp.periods("06:00", "10:00", "1h"), **more
    )
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("time", by="time")])
    made = cbdp.ConstraintBased(dag, 1).simulate(np.full(universe.size, 3), 1)
    return replace(secured(made), about=about)


@pytest.mark.parametrize(
    ("about", "more", "period"),
    [
        (About(period="March 2026"), {}, "March 2026"),
        (About(period=Dates(dt.date(2026, 3, 1), dt.date(2026, 3, 31))), {}, "March 2026"),
        (None, {"day": DAYS}, "2–4 March 2026"),
        (About("Trips"), {"day": [d.isoformat() for d in DAYS]}, "2–4 March 2026"),
        (None, {"day": ["weekday", "sunday"]}, None),
    ],
)
def test_a_month_is_not_called_a_day(about: About | None, more: dict[str, Any], period: str | None) -> None:
    """Where the trips are from several days, or may be, the page never speaks of the day or of all day."""
    release = _timed(about, **more)
    html = build(release, manifest={})
    page = Page(html)
    assert page.data["periods"][0] == "all times"
    assert "Demand by time of day" in page.text
    said = page.text.replace("time of day", "")
    assert not re.search(r"\b(a|the|all|whole|per) day\b", said, re.IGNORECASE)
    assert (period or "06:00") in head_in(html)
    truth = cbdp.count(np.full(release.features.universe.size, 3), release.features.universe)
    assert not re.search(r"\b(a|the|all|whole|per) day\b", Page(build_internal(release, truth)).text)


@pytest.mark.parametrize(
    ("about", "more"), [(None, {}), (About(period=Dates(DAY, DAY)), {}), (None, {"day": DAYS[:1]})]
)
def test_a_day_is_called_a_day(about: About | None, more: dict[str, Any]) -> None:
    """Where it is one, or nothing is said about the period."""
    page = Page(build(_timed(about, **more)))
    assert page.data["periods"][0] == "all day"
    assert "Demand over the day" in page.text


def test_curves_have_bands_and_bars_have_lines(rush) -> None:
    """The words under the demand name what is drawn."""
    text = Page(build(rush[1])).text
    assert (
        "Bars show the published counts. The thin lines are 90 % intervals: the true count lies inside with 90 % confidence."
        in text
    )
    universe = cbdp.Universe(tap=["on", "off"], time=["am", "pm"], location=["M", "Q"])
    dag = cbdp.features.opal(universe)
    made = cbdp.ConstraintBased(dag, 9).simulate(np.full(8, 40), 1).with_intervals()
    assert len(Page(build(made)).data["demand"]["series"]) == 2
    assert "Curves show the published counts. The shaded bands are " in Page(build(made)).text
