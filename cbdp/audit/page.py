"""The reviewer's page: the verdict, then every finding in plain words with evidence, attack and cure. It opens offline."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cbdp.audit.findings import Audit, Figure, Finding, Verdict
from cbdp.release.summary import number_text
from cbdp.report.markup import INTERNAL_WARNING, Html, internal_banner, join, page, table, tag

VERDICT_SIGNS: dict[Verdict, tuple[str, str, str]] = {
    "contradicts": ("✕", "poor", "contradiction"),
    "weakness": ("!", "fair", "weakness"),
    "clear": ("✓", "good", "nothing found"),
}
VERDICT_TEXTS: dict[Verdict, tuple[str, str]] = {
    "contradicts": ("The release is not what it claims.", "Do not rely on it, and do not publish it, before the findings below are cured."),
    "weakness": ("Nothing contradicts the release, but it has weaknesses.", "An attacker learns what is listed below; the release does not claim otherwise."),
    "clear": ("Nothing speaks against the release.", "Every check below was made, and none found anything. This does not prove privacy: it shows that these attacks fail."),
}  # fmt: skip
SECTIONS: tuple[tuple[Verdict, str, str], ...] = (
    ("contradicts", "contradictions", "What contradicts the release"),
    ("weakness", "weaknesses", "What an attacker learns"),
)


def build(audit: Audit) -> str:
    """The page of an audit as HTML, which opens offline and asks nothing of any server.

    >>> found = Finding("order", "weakness", "Rows are in no order", "They follow neither keys nor counts.")
    >>> "Rows are in no order" in build(Audit("tables of May", (found,)))
    True
    """
    title = f"Audit of {audit.subject}"
    sections = [
        (key, name, _articles(audit.of(verdict)))
        for verdict, key, name in SECTIONS
        if audit.of(verdict)
    ]  # fmt: skip
    if audit.of("clear"):
        sections.append(("clear", "What was checked and found sound", _clear(audit.of("clear"))))
    if audit.left_out:
        sections.append(
            ("left-out", "What was not checked", tag("ul", [tag("li", w) for w in audit.left_out]))
        )
    body = join(
        internal_banner() if audit.sensitive else None,
        _header(audit, title),
        tag("nav", [tag("a", name, href=f"#{key}") for key, name, _ in sections], aria_label="Contents"),
        tag("main", [tag("section", tag("h2", name), inside, id=key) for key, name, inside in sections]),
        tag("footer", tag("p", INTERNAL_WARNING if audit.sensitive else "Made by cbdp from published values only. Opening this page sends no request.")),
    )  # fmt: skip
    return page(f"INTERNAL: {title}" if audit.sensitive else title, body, None)


def _header(audit: Audit, title: str) -> Html:
    verdict, advice = VERDICT_TEXTS[audit.verdict]
    sign, kind, short = VERDICT_SIGNS[audit.verdict]
    tiles = [
        ("Contradictions", len(audit.of("contradicts")), "the release claims otherwise"),
        ("Weaknesses", len(audit.of("weakness")), "it claims nothing about them"),
        ("Checks that found nothing", len(audit.of("clear")), "listed below"),
        ("Not checked", len(audit.left_out), "because input was missing"),
    ]
    return tag(
        "header",
        tag("h1", title),
        tag("p", tag("span", f"{sign} {short}", class_=f"pill {kind}"), " ", tag("strong", verdict), class_="lead", id="verdict"),
        tag("p", advice),
        tag("p", "Claim: ", audit.claim, class_="note") if audit.claim else None,
        tag("div", [_tile(*t) for t in tiles], class_="tiles"),
    )  # fmt: skip


def _tile(head: str, value: int, about: str) -> Html:
    return tag(
        "div", tag("span", head, class_="head"), tag("span", f"{value:,}", class_="value"), tag("span", about, class_="about"),
        class_="tile",
    )  # fmt: skip


def _articles(findings: Sequence[Finding]) -> Html:
    return join([_article(f, n) for n, f in enumerate(findings)])


def _article(finding: Finding, number: int) -> Html:
    sign, kind, words = VERDICT_SIGNS[finding.verdict]
    facts = [
        ("What was seen", finding.evidence),
        ("How an attacker would use it", finding.attack),
        ("What to change", finding.cure),
    ]
    entries = [[tag("dt", head), tag("dd", text)] for head, text in facts if text]
    return tag(
        "article",
        tag("h3", finding.title),
        tag("p", tag("span", f"{sign} {words}", class_=f"pill {kind}"), tag("span", f" {finding.check}", class_="muted")),
        tag("dl", entries, class_="facts"),
        _figures(finding),
        id=f"{finding.verdict}-{number}",
    )  # fmt: skip


def _figures(finding: Finding) -> Html | None:
    if not finding.figures:
        return None
    rows = [[name, _figure(value)] for name, value in finding.figures.items()]
    return tag("details", tag("summary", "Figures"), tag("div", table(["Figure", "Value"], rows), class_="scroll"))  # fmt: skip


def _figure(value: Figure) -> str:
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return str(value)
    sign = "−" if value < 0 else ""
    size = abs(float(value))
    return sign + (f"{size:.2e}" if 0 < size < 1e-3 else number_text(size))


def _clear(findings: Sequence[Finding]) -> Html:
    rows = [[f.title, f"{f.evidence}\n{f.power}", f.check] for f in findings]
    return table(
        ["Finding", "What was looked at, and what would have been found", "Check"], rows, class_="cards"
    )
