"""How far each table can be trusted, as a table of verdicts."""

from __future__ import annotations

from typing import Any

from cbdp.release.published import Published
from cbdp.release.words import number
from cbdp.report.markup import Html, join, table, tag
from cbdp.report.text import confident, percent, tables
from cbdp.report.trust import CARE, EMPTY, NOISE, TRUST, Trust, advice, in_words, judge

SIGNS = {TRUST: ("✓", "good"), CARE: ("!", "fair"), NOISE: ("✕", "poor"), EMPTY: ("–", "none")}
ALONE = "* No intervals were published for this table: these figures account for the noise alone."


def verdicts(published: Published) -> Html:
    head = [
        "Table",
        "Verdict",
        "What may I do with it?",
        "Counts",
        "Noise",
        "Typical interval",
        "Clearly above zero",
    ]
    found = [judge(published, name) for name in tables(published)]
    rule = [
        *(
            "The verdict on a table is ",
            tag("b", TRUST),
            " if a typical interval is at most ± 20 % of its count, ",
        ),
        *(tag("b", CARE), " up to ± 100 %, and ", tag("b", NOISE), " beyond."),
    ]
    alone = any(t.measured and t.relative is not None for t in found)
    rows = [_row(t, published.confidence) for t in found]
    return join(
        tag("p", rule),
        tag("div", table(head, rows, class_="cards uses"), class_="scroll"),
        tag("p", ALONE, class_="note") if alone else None,
        tag("details", tag("summary", "What the columns mean"), tag("dl", _terms(published), class_="facts")),
    )


def _terms(published: Published) -> list[Html]:
    sure = confident(published)
    terms = {
        "Noise": f"How much random noise was added to each count, in trips: its scale, and below it how far the noise alone moves a count at most, with {sure} "
        "confidence.",
        "Typical interval": "How far the true count may be from the published one, in trips and in per cent of the count. Half of the counts above zero have "
        "a smaller interval, half have a larger one.",
        "Clearly above zero": "The share of counts whose interval does not reach zero, and the share of all trips in these counts. Of the other counts "
        "nobody can tell whether there was any trip at all.",
    }
    return [join(tag("dt", term), tag("dd", meaning)) for term, meaning in terms.items()]


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
        advice(t),
        f"{t.size:,}",
        _noise(t),
        "–" if t.margin is None else f"± {number(t.margin)}{star}\n{_relative(t.relative)}{star}",
        _above_zero(t) + star,
    ]


def _noise(t: Trust) -> str:
    if t.public:
        return "public"
    if t.scale is None:
        return "not measured"
    return f"scale {number(t.scale)}" + ("" if t.noise is None else f"\n± {t.noise:,}")


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
