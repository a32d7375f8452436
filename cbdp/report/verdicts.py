"""How far each table can be trusted, as a table of verdicts."""

from __future__ import annotations

from typing import Any

from cbdp.report.markup import Html, join, table, tag
from cbdp.report.published import Published
from cbdp.report.text import confident, number, percent, tables
from cbdp.report.trust import CARE, EMPTY, NOISE, TRUST, Trust, in_words, judge

SIGNS = {TRUST: ("✓", "good"), CARE: ("!", "fair"), NOISE: ("✕", "poor"), EMPTY: ("–", "none")}
ALONE = "* No intervals were published for this table: these figures account for the noise alone."


def verdicts(published: Published) -> Html:
    sure = confident(published)
    head = [
        *("Table", "Verdict", "Counts", "Noise scale", f"Noise, {sure}"),
        *("Typical interval", "Relative to its count", "Clearly above zero"),
    ]
    found = [judge(published, name) for name in tables(published)]
    rule = [
        *(
            "The verdict on a table is ",
            tag("b", TRUST),
            " if a typical interval is at most ± 20 % of its count, ",
        ),
        *(tag("b", CARE), " up to ± 100 %, and ", tag("b", NOISE), " beyond. "),
    ]
    terms = (
        f"“Noise, {sure}” is the most by which the noise alone moves a count, in trips, with {sure} confidence, before the tables are "
        "made consistent. “Clearly above zero” is the share of counts whose interval does not reach zero, and the share of trips in them."
    )
    alone = any(t.measured and t.relative is not None for t in found)
    rows = [_row(t, published.confidence) for t in found]
    return join(
        tag("p", rule, terms),
        tag("div", table(head, rows, class_="cards"), class_="scroll"),
        tag("p", ALONE, class_="note") if alone else None,
    )


def _row(t: Trust, confidence: float) -> list[Any]:
    sign, kind = SIGNS[t.verdict]
    star = "*" if t.measured and t.relative is not None else ""
    verdict = join(
        tag("span", tag("span", sign, aria_hidden="true"), f" {t.verdict}", class_=f"pill {kind}"),
        tag("span", in_words(t, confidence), class_="about"),
    )
    return [
        t.feature,
        verdict,
        f"{t.size:,}",
        "public" if t.public else "not measured" if t.scale is None else number(t.scale),
        "–" if t.noise is None else f"± {t.noise:,}",
        "–" if t.margin is None else f"± {number(t.margin)}{star}",
        _relative(t.relative) + star,
        _above_zero(t) + star,
    ]


def _relative(relative: float | None) -> str:
    if relative is None:
        return "–"
    return f"± {percent(relative)}" if relative < 10 else "over ± 1,000 %"


def _above_zero(t: Trust) -> str:
    if t.sure is None:
        return "–"
    if t.sure_trips is None or t.size == 1:
        return percent(t.sure)
    return f"{percent(t.sure)} of counts\n{percent(t.sure_trips)} of trips"
