"""The running total over the series, with the band that noise leaves: of published periods added up, or measured on its own."""

from __future__ import annotations

import math

from scipy.special import ndtri

from cbdp.report.markup import Html, join, tag
from cbdp.report.series.facts import PeriodFacts, Running

WIDE, TALL, LEFT, BASE, TOP = 900, 320, 26, 44, 10  # room below for dates in the letters that phones need


ADDED, OWN = "published periods added up", "measured on its own"
ALONE, FOLLOWING = "days measured one by one, added up", "as published, following running totals"


def running_chart(
    periods: list[PeriodFacts], added: Running, measured: Running | None, confidence: float
) -> Html | None:
    """The total since the start; below it how far noise may reach, which a line of totals is too thick to show."""
    if len(periods) < 2:
        return None
    shown, noun = measured or added, periods[0].noun
    reach = -float(ndtri((1 - confidence) / 2))
    follows = any(p.span for p in periods)  # then what is published, added up, is what was measured
    widths = {ALONE if follows else ADDED: [reach * d for d in added.deviation]}
    if measured is not None:
        widths[FOLLOWING if follows else OWN] = [reach * d for d in measured.deviation]
    widths = {name: width for name, width in widths.items() if math.isfinite(width[-1])}
    if not widths:
        return _chart(periods, {"total": [float(v) for v in shown.total]}, noun.say("Trips since the start"))
    last = {name: round(width[-1]) for name, width in widths.items()}
    said = "; ".join(f"±\u00a0{width:,} ({name})" for name, width in last.items())
    words = (
        f"{noun.number(shown.total[-1])} since the start. How far noise reaches at {100 * confidence:g} % confidence after "
        f"{len(periods):,} releases: {said}."
    )
    totals = _chart(periods, {"total": [float(v) for v in shown.total]}, noun.say("Trips since the start"))
    noise = _chart(periods, widths, noun.say("How far noise reaches, in trips"))
    return join(tag("p", words), totals, noise, _legend(list(widths)) if len(widths) > 1 else None)


def _chart(periods: list[PeriodFacts], lines: dict[str, list[float]], name: str) -> Html:
    most = max(1.0, *(max(values) for values in lines.values()))
    step = (WIDE - LEFT - 2) / max(len(periods) - 1, 1)

    def path(values: list[float]) -> str:
        points = (
            f"{LEFT + n * step:.1f},{TALL - BASE - v / most * (TALL - BASE - TOP):.1f}"
            for n, v in enumerate(values)
        )
        return "M" + "L".join(points)

    ends = [
        tag("text", f"{most:,.0f}", x=0, y=TOP, dy="1.2em", class_="muted"),  # curves leave that corner free
        tag("text", "0", x=0, y=TALL - BASE + 4, class_="muted"),
        tag("text", periods[0].first, x=LEFT, y=TALL - 10, class_="muted"),
        tag("text", periods[-1].last, x=WIDE - 2, y=TALL - 10, text_anchor="end", class_="muted"),
    ]
    axes = [
        tag("line", x1=LEFT, x2=WIDE - 2, y1=TALL - BASE, y2=TALL - BASE, class_="axis"),
        tag("line", x1=0, x2=WIDE - 2, y1=TOP, y2=TOP, class_="grid"),
    ]
    curves = [tag("path", d=path(values), class_=f"curve s{n}") for n, values in enumerate(lines.values())]
    picture = tag(
        "svg", axes, ends, curves, viewBox=f"0 0 {WIDE} {TALL}", width=WIDE, height=TALL, role="img", aria_label=name, class_="picture"
    )  # fmt: skip
    return join(tag("h3", name), tag("div", picture, class_="chart running"))


def _legend(names: list[str]) -> Html:
    return tag(
        "ul",
        [
            tag(
                "li",
                tag("svg", tag("rect", width=14, height=4, y=5, class_=f"c{n}"), width=14, height=14),
                name,
            )
            for n, name in enumerate(names)
        ],
        class_="legend",
    )
