"""What an audit says: one finding for every thing that was looked at, in plain words, and all of them as an `Audit` (and JSON)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from cbdp.release.layout import NUMBER_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa


Verdict = Literal["contradicts", "weakness", "clear"]
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
    order: tuple[Verdict, ...] = ("contradicts", "weakness", "clear")
    return next((v for v in order if any(f.verdict == v for f in findings)), "clear")


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


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else float(value)
