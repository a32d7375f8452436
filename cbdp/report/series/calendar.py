"""A calendar heat map: a column for each week, a row for each day of the week, the darker the more trips."""

from __future__ import annotations

import datetime as dt

from cbdp.release.about import MONTHS
from cbdp.report.markup import Html, join, tag
from cbdp.report.series.facts import PeriodFacts

CELL, GAP, LEFT, TOP = 15, 3, 40, 22
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def heat_map(periods: list[PeriodFacts]) -> Html | None:
    """One picture for each year; days without a release are grey. None where releases cover more than a day."""
    if any(p.first != p.last for p in periods):
        return None
    most = max(1, *(p.total for p in periods))
    years: dict[int, list[PeriodFacts]] = {}
    for period in periods:
        years.setdefault(period.first.year, []).append(period)
    pictures = [
        [tag("h3", year), tag("div", _year(own, most), class_="scroll")] for year, own in years.items()
    ]
    note = f"The strongest colour stands for {periods[0].noun.number(most)}. Grey days have no release. Point at a day, or tap it, for its number and interval."
    return join(tag("p", note, class_="note"), pictures)


def _year(periods: list[PeriodFacts], most: int) -> Html:
    first, last = periods[0].first, periods[-1].first
    monday = first - dt.timedelta(days=first.weekday())
    held = {p.first: p for p in periods}
    days = [first + dt.timedelta(days=n) for n in range((last - first).days + 1)]
    cells = [_cell(day, monday, held.get(day), most) for day in days]
    weeks = (last - monday).days // 7 + 1
    wide, tall = LEFT + weeks * (CELL + GAP) + 24, TOP + 7 * (CELL + GAP)
    names = [
        tag("text", name, x=LEFT - 6, y=TOP + n * (CELL + GAP) + 12, text_anchor="end", class_="muted")
        for n, name in enumerate(DAYS)
        if n % 2 == 0
    ]
    said = periods[0].noun.say(f"Trips by day from {first} to {last}")
    return tag(
        "svg", names, _months(days, monday), cells, viewBox=f"0 0 {wide} {tall}", width=wide, height=tall, role="img", aria_label=said,
        class_="picture",
    )  # fmt: skip


def _at(day: dt.date, monday: dt.date) -> tuple[int, int]:
    week, weekday = divmod((day - monday).days, 7)
    return LEFT + week * (CELL + GAP), TOP + weekday * (CELL + GAP)


def _cell(day: dt.date, monday: dt.date, period: PeriodFacts | None, most: int) -> Html:
    x, y = _at(day, monday)
    if period is None:
        return tag("rect", x=x, y=y, width=CELL, height=CELL, rx=3, class_="never")
    shade = f"{0.08 + 0.92 * max(period.total, 0) / most:.3f}"
    return tag(
        "rect", x=x, y=y, width=CELL, height=CELL, rx=3, fill_opacity=shade, class_="mark heat", data_tip=tip_of(period)
    )  # fmt: skip


def _months(days: list[dt.date], monday: dt.date) -> list[Html]:
    starts = [day for day in days if day.day <= 7 and day.weekday() == 0]
    return [
        tag("text", MONTHS[day.month - 1][:3], x=_at(day, monday)[0], y=14, class_="muted") for day in starts
    ]


def tip_of(period: PeriodFacts) -> str:
    """What stands at a day."""
    day = f"{DAYS[period.first.weekday()]} " if period.first == period.last else ""
    early = "\npreliminary" if period.preliminary else ""
    sure = "no interval" if period.low is None else f"{period.low:,} to {period.high:,}"
    return f"{day}{period.name}\n{period.noun.number(period.total)} ({sure}){early}"
