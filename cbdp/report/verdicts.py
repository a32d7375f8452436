"""How far each table can be trusted, as a table of verdicts."""

from __future__ import annotations

from typing import Any

from cbdp.features import SINGLETON
from cbdp.release.counted import Noun, counted
from cbdp.release.published import Published
from cbdp.release.roles import listed
from cbdp.release.words import number
from cbdp.report.markup import Html, join, table, tag
from cbdp.report.text import confident, percent, spoken, tables
from cbdp.report.trust import Trust, advice, in_words, judge
from cbdp.report.uses import USES

KINDS = (("✓", "good"), ("✓", "good"), ("!", "fair"), ("✕", "poor"))  # of the uses
HEAD = ("Table", "Verdict", "What may I do with it?", "Counts", "Average count", "Clearly above zero")
ALONE = "* The file of this table has no intervals: these figures account for the noise alone."


def verdicts(published: Published) -> Html:
    noun = counted(published.dag.universe)
    found = [judge(published, name) for name in tables(published)]
    alone = any(t.measured and t.relative is not None for t in found)
    rows = [_row(published, t, noun) for t in found]
    rule = (
        f"A table is judged by its average count: all {noun.many} divided by the number of its counts. The noise is about the same on every count of a "
        "table, so large counts are better than the average, and small ones are worse."
    )
    return join(
        tag("p", rule),
        tag("div", table(list(HEAD), rows, class_="cards uses"), class_="scroll"),
        tag("p", ALONE, class_="note") if alone else None,
        tag("p", _sums(published, found), id="sums"),
        tag("details", tag("summary", "What the verdicts and columns mean"), tag("dl", _terms(published, noun), class_="facts")),
        tag("details", tag("summary", "For reviewers: the noise of each table"), _noises(published, found, noun)),
    )  # fmt: skip


def _sums(published: Published, found: list[Trust]) -> list[Any]:
    """Which sums were measured, and what carries the others."""
    if published.release.tables:
        return ["The tables were published one by one: do not add up or combine counts of different tables."]
    known = [t.feature for t in found if (t.scale is not None or t.public) and t.feature != SINGLETON]
    said = (
        f"Sums that have a table of their own were measured as such ({listed(known)}), and the verdicts above say how good they are. "
        if known
        else "No sum was measured. "
    )
    return [
        tag("strong", "About sums. "), said,
        "Any other sum adds up the errors of its parts, and with many small parts it can be far off: ",
        tag("code", "cbdp ask"), " tells its interval, mostly a narrower one than on this page.",
    ]  # fmt: skip


def _terms(published: Published, noun: Noun) -> list[Html]:
    sure = confident(published)
    terms = {
        f"{sign} {use.name}": f"The average count is within {percent(use.within)} of the truth: {use.why}."
        if use is not USES[-1]
        else f"Otherwise: {use.why}."
        for use, (sign, _) in zip(USES, KINDS, strict=True)
    }
    terms |= {
        "large counts only": "Less than half of the counts are large enough to be within 20 %: few of them hold most of the trips.",
        "Average count": f"How many {noun.many} a count has on average, and how far such a count may be from the truth with {sure} confidence, in {noun.many} "
        "and in per cent: half of a usual interval.",
        "Clearly above zero": "The share of counts whose interval does not reach zero, and the share of all trips in these counts. Of the other counts "
        "nobody can tell whether there was any trip at all.",
    }  # fmt: skip
    return [join(tag("dt", term), tag("dd", noun.say(meaning))) for term, meaning in terms.items()]


def _row(published: Published, t: Trust, noun: Noun) -> list[Any]:
    return [
        join(t.feature, tag("span", _of(published, t.feature), class_="about")),
        join(_pills(t), tag("span", in_words(t, published.confidence, noun), class_="about")),
        advice(t, noun),
        f"{t.size:,}",
        _average(t),
        _above_zero(t, noun),
    ]


def _of(published: Published, feature: str) -> str:
    """What a table counts, in words."""
    by = published.dag.features[feature].by
    if not by:
        return f"all {counted(published.dag.universe).many} together"
    every = "every combination of " if feature == SINGLETON and len(by) > 1 else "by "
    return every + listed([spoken(name) for name in by])


def _pills(t: Trust) -> list[Html]:
    if t.use is None:
        return [tag("span", tag("span", "–", aria_hidden="true"), " no verdict", class_="pill none")]
    sign, kind = KINDS[USES.index(t.use)]
    name = "public" if t.public else t.use.name
    made = [tag("span", tag("span", sign, aria_hidden="true"), f" {name}", class_=f"pill {kind}")]
    return [*made, tag("span", "large counts only", class_="pill fair")] if t.large_only else made


def _star(t: Trust) -> str:
    return "*" if t.measured and t.relative is not None else ""


def _average(t: Trust) -> str:
    if t.relative is None or t.count is None or t.margin is None:
        return "–"
    off = f"± {percent(t.relative)}" if t.relative < 10 else "over ± 1,000 %"
    return f"{number(t.count)}\n± {number(t.margin)}{_star(t)}\n{off}{_star(t)}"


def _above_zero(t: Trust, noun: Noun) -> str:
    if t.sure is None:
        return "–"
    if t.sure_trips is None or t.size == 1:
        return percent(t.sure) + _star(t)
    return f"{percent(t.sure)} of counts\n{percent(t.sure_trips)} of {noun.many}{_star(t)}"


def _noises(published: Published, found: list[Trust], noun: Noun) -> Html:
    """The noise alone, before tables were made to agree."""
    said = (
        f"In {noun.many}. The scale is that of the law of the noise; the margin is how far the noise alone moves a count at most, with {confident(published)} "
        "confidence."
    )
    rows = [[t.feature, *_noise(t)] for t in found]
    return join(tag("p", said, class_="note"), table(["Table", "Scale", "Margin"], rows))


def _noise(t: Trust) -> tuple[str, str]:
    if t.public or t.scale is None:
        return ("public" if t.public else "not measured"), "–"
    return number(t.scale), "–" if t.noise is None else f"± {t.noise:,}"
