"""The page: words and figures, a calendar, a little chart for each day, the running total, and the statement for one person."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite

from scipy.special import ndtri

from cbdp.errors import InputError
from cbdp.privacy.spending import Statement
from cbdp.release.about import Dates
from cbdp.report.markup import Html, join, page, tag
from cbdp.report.series.calendar import heat_map
from cbdp.report.series.days import little_charts
from cbdp.report.series.facts import NO_INTERVAL, PeriodFacts, Running, measured, running
from cbdp.report.series.growing import running_chart
from cbdp.report.series.person import person
from cbdp.report.series.tables import months


def build(
    periods: Sequence[PeriodFacts],
    statement: Statement | None = None,
    *,
    title: str = "A series of releases",
    confidence: float = 0.9,
    totals: Running | None = None,
    simulation: bool = False,
) -> str:
    """The series as HTML, which opens offline and asks nothing of any server.

    `statement` is what `cbdp.privacy.spending` says of the ledger. `totals` are running totals that were measured on their own; without
    them published periods are added up. The same series gives the same page to the byte.

    >>> import datetime as dt
    >>> from cbdp.report.series import PeriodFacts
    >>> days = [dt.date(2026, 3, n) for n in (2, 3, 4)]
    >>> page = build([PeriodFacts(day, day, total=1200, low=1188, high=1212, variance=53.0) for day in days], title="Three days in March")
    >>> "Three days in March" in page
    True
    """
    listed = _checked(periods)
    noun = listed[0].noun
    sections = [
        ("person", "What all of this costs one person", person(statement, noun)),
        ("calendar", noun.say("Trips by day"), heat_map(listed)),
        (
            "running",
            "Running total",
            running_chart(listed, running(listed), totals or measured(listed), confidence),
        ),
        ("days", "Every day", little_charts(listed)),
        ("months", "By month", months(listed, confidence)),
    ]
    shown = [(key, name, inside) for key, name, inside in sections if inside is not None]
    body = join(
        _head(listed, title, confidence, simulation),
        tag("nav", [tag("a", name, href=f"#{key}") for key, name, _ in shown], aria_label="Contents"),
        tag("main", [tag("section", tag("h2", name), inside, id=key) for key, name, inside in shown]),
        tag(
            "footer", tag("p", "Made by cbdp from published values only. Opening this page sends no request.")
        ),
    )
    return page(title, body, {}, "cbdp.report.series")


def _checked(periods: Sequence[PeriodFacts]) -> list[PeriodFacts]:
    listed = sorted(periods, key=lambda p: p.first)
    if not listed:
        raise InputError("the series has no release yet: make one first")
    for one, two in pairwise(listed):
        if two.first <= one.last:
            raise InputError(f"two releases cover {two.first}: give one for each day")
    return listed


def _head(periods: list[PeriodFacts], title: str, confidence: float, simulation: bool) -> Html:
    busiest, quietest = max(periods, key=lambda p: p.total), min(periods, key=lambda p: p.total)
    total, say = measured(periods) or running(periods), periods[0].noun.say
    reach = -float(ndtri((1 - confidence) / 2)) * total.deviation[-1]
    sure = (
        f"±\u00a0{round(reach):,} at {100 * confidence:g}\u00a0% confidence"
        if isfinite(reach)
        else NO_INTERVAL
    )
    tiles = [
        ("Releases", f"{len(periods):,}", str(Dates(periods[0].first, periods[-1].last))),
        (
            say("Published trips"),
            f"{total.total[-1]:,}",
            sure,
        ),
        (say("Most trips"), f"{busiest.total:,}", busiest.name),
        (say("Fewest trips"), f"{quietest.total:,}", quietest.name),
    ]
    early = sum(p.preliminary for p in periods)
    bounds = [sentence for sentence in dict.fromkeys(p.left_out for p in periods) if sentence]
    return tag(
        "header",
        tag("h1", title),
        tag("p", "A simulation: its noise is not secret, so it protects nobody.", class_="warning")
        if simulation
        else None,
        tag("p", f"{early:,} releases are preliminary and will be followed by final ones.", class_="note")
        if early
        else None,
        tag("div", [_tile(*tile) for tile in tiles], class_="tiles"),
        [tag("p", sentence, class_="note") for sentence in bounds],
    )


def _tile(head: str, value: str, about: str) -> Html:
    return tag(
        "div",
        tag("span", head, class_="head"),
        tag("span", value, class_="value"),
        tag("span", about, class_="about"),
        class_="tile",
    )
