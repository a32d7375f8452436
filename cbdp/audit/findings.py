"""What an audit says: one finding for every thing that was looked at, in plain words; all of them as text, as JSON and as the reviewer's page."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

from cbdp.numbers import number_text
from cbdp.release.layout import NUMBER_COLUMNS
from cbdp.report.rendering import Pill, Table, Tile, render
from cbdp.text import INTERNAL_WARNING

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


def clear_finding(
    check: str, title: str, evidence: str, power: str, figures: Mapping[str, Figure] | None = None
) -> Finding:
    """The finding that a check was made and found nothing, with how large a leak it would have found."""
    return Finding(check, "clear", title, evidence, figures=figures or {}, power=power)


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


VERDICT_SIGNS: dict[Verdict, Pill] = {
    "contradicts": Pill("contradiction", "poor", "✕"),
    "weakness": Pill("weakness", "fair", "!"),
    "clear": Pill("nothing found", "good", "✓"),
}
VERDICT_TEXTS: dict[Verdict, tuple[str, str]] = {
    "contradicts": ("The release is not what it claims.", "Do not rely on it, and do not publish it, before the findings below are cured."),
    "weakness": ("Nothing contradicts the release, but it has weaknesses.", "An attacker learns what is listed below; the release does not claim otherwise."),
    "clear": ("Nothing speaks against the release.", "Every check below was made, and none found anything. This does not prove privacy: it shows that these attacks fail."),
}  # fmt: skip


def build(audit: Audit) -> str:
    """The reviewer's page: the verdict, then every finding in plain words with evidence, attack and cure. It opens offline.

    >>> found = Finding("order", "weakness", "Rows are in no order", "They follow neither keys nor counts.")
    >>> "Rows are in no order" in build(Audit("tables of May", (found,)))
    True
    """
    sections = {
        "contradictions": ("What contradicts the release", audit.of("contradicts")),
        "weaknesses": ("What an attacker learns", audit.of("weakness")),
        "clear": ("What was checked and found sound", audit.of("clear")),
        "left-out": ("What was not checked", audit.left_out),
    }
    verdict, advice = VERDICT_TEXTS[audit.verdict]
    return render(
        "audit/audit.html.jinja",
        internal=audit.sensitive,
        audit=audit,
        title=f"Audit of {audit.subject}",
        verdict=verdict,
        advice=advice,
        sign=VERDICT_SIGNS[audit.verdict],
        signs=VERDICT_SIGNS,
        head=[
            Tile("Contradictions", f"{len(audit.of('contradicts')):,}", "the release claims otherwise"),
            Tile("Weaknesses", f"{len(audit.of('weakness')):,}", "it claims nothing about them"),
            Tile("Checks that found nothing", f"{len(audit.of('clear')):,}", "listed below"),
            Tile("Not checked", f"{len(audit.left_out):,}", "because input was missing"),
        ],
        sections={key: name for key, (name, inside) in sections.items() if inside},
        clear=Table(
            ["Finding", "What was looked at, and what would have been found", "Check"],
            [[f.title, f"{f.evidence}\n{f.power}", f.check] for f in audit.of("clear")],
        ),
        figures=_figures,
    )


def _figures(finding: Finding) -> Table:
    return Table(
        ["Figure", "Value"], [[name, _figure_text(value)] for name, value in finding.figures.items()]
    )


def _figure_text(value: Figure) -> str:
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return str(value)
    sign, size = "−" if value < 0 else "", abs(float(value))
    return sign + (f"{size:.2e}" if 0 < size < 1e-3 else number_text(size))
