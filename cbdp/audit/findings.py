"""What an audit says: one finding for every thing that was looked at, in plain words; all of them as text, as JSON and as the reviewer's page."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

from cbdp.release.layout import NUMBER_COLUMNS
from cbdp.release.summary import number_text
from cbdp.report.markup import INTERNAL_WARNING, Html, internal_banner, join, page, table, tag

if TYPE_CHECKING:
    import pyarrow as pa


Verdict = Literal["contradicts", "weakness", "clear"]
VERDICTS: tuple[Verdict, ...] = ("contradicts", "weakness", "clear")  # the gravest first
Figure = float | int | str


@dataclass(frozen=True)
class Finding:
    """A result of one check: what was seen, how an attacker would use it, what to change.

    `contradicts`: the release claims otherwise (the audit fails). `weakness`: an attacker learns something, and nothing in the
    release claims that they cannot. `clear`: the check was made and found nothing; then `power` says how large a leak
    it would have found, and how surely, for a check that finds nothing is worth no more than that.

    >>> Finding("files", "clear", "All hashes match", "12 files.", power="One changed byte would have been found.").verdict
    'clear'
    >>> Finding("files", "clear", "All hashes match", "12 files.")
    Traceback (most recent call last):
    ValueError: the finding 'All hashes match' is clear and does not say with what power
    """

    check: str
    verdict: Verdict
    title: str
    evidence: str
    attack: str = ""
    cure: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    power: str = ""

    def __post_init__(self) -> None:
        if self.verdict == "clear" and not self.power:
            raise ValueError(f"the finding {self.title!r} is clear and does not say with what power")


def worst(findings: list[Finding]) -> Verdict:
    """The gravest verdict among findings; nothing looked at counts as clear.

    >>> worst([Finding("order", "weakness", "Rows are in no order", "They follow nothing.")])
    'weakness'
    """
    return next((v for v in VERDICTS if any(f.verdict == v for f in findings)), "clear")


# Tampering: a number or a file is not what was released


MAX_ITEMS_NAMED = 3  # rows or fields: a finding names the first, and counts the others
ATTACK_BY_CHANGE = (
    "Whoever changed it makes readers believe a number that was never released, or hides one that was."
)
CURE_RESTORE = "Restore the folder from a copy whose manifest has the SHA-256 that the ledger notes."


def tampering_finding(check: str, title: str, evidence: str, **figures: float | str) -> Finding:
    """The finding that something was changed after the release."""
    return Finding(check, "contradicts", title, evidence, ATTACK_BY_CHANGE, CURE_RESTORE, figures)


def and_more(number: int) -> str:
    """How many further ones there are beside those shown."""
    return f" And {number - MAX_ITEMS_NAMED:,} more." if number > MAX_ITEMS_NAMED else ""


def row_words(table: pa.Table, row: int) -> str:
    """A row of a file by its keys."""
    keys = [n for n in table.column_names if n not in NUMBER_COLUMNS]
    return " · ".join(str(table[n][row].as_py()) for n in keys) or "the whole"


# All findings


@dataclass(frozen=True)
class Audit:
    """What was found about a subject. `sensitive`: it was made with the trips, and must not be published.

    A check that was made and found nothing is a finding with the verdict `clear`. A check that could not be made is no finding:
    `left_out` says what was not looked at, and why.

    >>> found = Finding("order", "weakness", "Rows are in no order", "They follow neither keys nor counts.")
    >>> audit = Audit("tables of May", (found,))
    >>> audit.verdict, len(audit.of("clear"))
    ('weakness', 0)
    """

    subject: str
    findings: tuple[Finding, ...]
    sensitive: bool = False
    claim: str = ""
    left_out: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        return worst(list(self.findings))

    def of(self, verdict: Verdict) -> list[Finding]:
        """The findings with this verdict."""
        return [f for f in self.findings if f.verdict == verdict]

    def json(self) -> str:
        """All of it as JSON; numbers that are not finite are written as text."""
        stated = {"format": "cbdp-audit", "version": 1, "verdict": self.verdict, **asdict(self)}
        return json.dumps(_finite(stated), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else float(value)  # type: ignore[arg-type]


# As text: what the command prints


VERDICT_WORDS: dict[Verdict, str] = {"contradicts": "CONTRADICTS", "weakness": "weakness", "clear": "clear"}
VERDICT_SUMMARIES: dict[Verdict, str] = {
    "contradicts": "the release is not what it claims",
    "weakness": "nothing contradicts the release; see its weaknesses",
    "clear": "nothing was found",
}
LINE_WIDTH = 108  # characters


def lines(audit: Audit) -> Iterator[str]:
    """The findings as a short table: the gravest first, then what was not checked."""
    if audit.sensitive:
        yield INTERNAL_WARNING
    yield f"{audit.subject}: {audit.claim}"
    wide = max((len(f.check) for f in audit.findings), default=0)
    for verdict in VERDICTS:
        for f in audit.of(verdict):
            yield f"  {VERDICT_WORDS[verdict]:<11}  {f.check:<{wide}}  {f.title}"
            detail = f.power if verdict == "clear" else f.evidence
            yield from textwrap.wrap(
                detail, LINE_WIDTH, initial_indent=" " * (17 + wide), subsequent_indent=" " * (17 + wide)
            )
    for words in audit.left_out:
        yield f"  {'not checked':<11}  {words}"
    yield f"{VERDICT_SUMMARIES[audit.verdict]}: {_counts_text(audit)}"


def _counts_text(audit: Audit) -> str:
    bad, weak, clear = (len(audit.of(v)) for v in VERDICTS)
    return f"contradictions: {bad}, weaknesses: {weak}, checks that found nothing: {clear}"


# As the reviewer's page


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
    """The reviewer's page: the verdict, then every finding in plain words with evidence, attack and cure. It opens offline.

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
