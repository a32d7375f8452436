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
    release claims that they cannot. `clear`: the check was made and found nothing.
    """

    check: str
    verdict: Verdict
    title: str
    evidence: str
    attack: str = ""
    cure: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict)


def worst(findings: list[Finding]) -> Verdict:
    """The gravest verdict among findings; nothing looked at counts as clear."""
    order: tuple[Verdict, ...] = ("contradicts", "weakness", "clear")
    return next((v for v in order if any(f.verdict == v for f in findings)), "clear")
