"""A little chart of each day's trips by time, month by month like the sheets of a calendar."""

from __future__ import annotations

import datetime as dt

from cbdp.release.about import MONTHS
from cbdp.report.markup import Html, join, tag
from cbdp.report.series.calendar import DAYS, tip_of
from cbdp.report.series.facts import PeriodFacts

WIDE, TALL, GAP, TOP = 66, 40, 6, 18


def little_charts(periods: list[PeriodFacts]) -> Html | None:
    """All on one scale; None where there is nothing to draw along."""
    drawn = [p for p in periods if len(p.profile) > 1 and p.first == p.last]
    if not drawn:
        return None
    most = max(1, *(max(p.profile) for p in drawn))
    months: dict[tuple[int, int], list[PeriodFacts]] = {}
    for period in drawn:
        months.setdefault((period.first.year, period.first.month), []).append(period)
    sheets = [_sheet(key, own, most) for key, own in months.items()]
    note = f"Each little chart is a day from its first to its last period of the day; all have the same scale, up to {drawn[0].noun.number(most)}."
    return join(tag("p", note, class_="note"), tag("div", sheets, class_="multiples", id="chart-days"))


def _sheet(key: tuple[int, int], periods: list[PeriodFacts], most: int) -> Html:
    year, month = key
    before = dt.date(year, month, 1).weekday()
    cells = [_day(p, (p.first.day - 1 + before) // 7, p.first.weekday(), most) for p in periods]
    weeks = (max(p.first.day for p in periods) - 1 + before) // 7 + 1
    heads = [
        tag("text", name, x=n * (WIDE + GAP) + WIDE / 2, y=12, text_anchor="middle", class_="muted")
        for n, name in enumerate(DAYS)
    ]
    name = f"{MONTHS[month - 1]} {year}"
    wide, tall = 7 * (WIDE + GAP), TOP + weeks * (TALL + GAP)
    picture = tag(
        "svg",
        heads,
        cells,
        viewBox=f"0 0 {wide} {tall}",
        role="img",
        aria_label=periods[0].noun.say(f"Trips by time on each day of {name}"),
    )
    return tag("figure", tag("figcaption", name), picture)


def _day(period: PeriodFacts, week: int, weekday: int, most: int) -> Html:
    x, base = weekday * (WIDE + GAP), TOP + week * (TALL + GAP) + TALL
    step = WIDE / (len(period.profile) - 1)
    points = "".join(
        f"L{x + n * step:.0f},{base - max(value, 0) / most * (TALL - 4):.0f}"
        for n, value in enumerate(period.profile)
    )
    area = tag("path", d=f"M{x},{base}{points}L{x + WIDE},{base}Z", class_="day")
    frame = tag(
        "rect",
        x=x,
        y=base - TALL,
        width=WIDE,
        height=TALL,
        rx=3,
        class_="mark sheet",
        data_tip=tip_of(period),
    )
    number = tag("text", period.first.day, x=x + 3, y=base - TALL + 12, class_="muted")
    return tag("g", area, number, frame)
