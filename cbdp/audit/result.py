"""What an audit found, as a value and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cbdp.audit.finding import Finding, Verdict, worst


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
