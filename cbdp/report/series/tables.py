"""Months of a series as a table: published periods added up, with how far their noise reaches together."""

from __future__ import annotations

import math

from scipy.special import ndtri

from cbdp.release.about import MONTHS
from cbdp.report.markup import Html, table, tag
from cbdp.report.series.facts import PeriodFacts, variance_of


def months(periods: list[PeriodFacts], confidence: float) -> Html:
    """A row for each month that a release begins in."""
    held: dict[tuple[int, int], list[PeriodFacts]] = {}
    for period in periods:
        held.setdefault((period.first.year, period.first.month), []).append(period)
    reach = -float(ndtri((1 - confidence) / 2))
    rows = []
    for (year, month), own in held.items():
        total, width = sum(p.total for p in own), reach * variance_of(periods, own) ** 0.5
        rows.append(
            [
                f"{MONTHS[month - 1]} {year}",
                f"{len(own):,}",
                f"{total:,}",
                f"± {round(width):,}" if math.isfinite(width) else "none",
                f"{total / len(own):,.0f}",
            ]
        )
    noun = periods[0].noun
    head = [
        "Month",
        "Releases",
        noun.say("Trips"),
        f"{100 * confidence:g} % interval",
        noun.say("Trips per release"),
    ]
    return tag("div", table(head, rows, id="by-month"), class_="scroll")
