"""What an audit says: one finding for every thing that was looked at, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

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
