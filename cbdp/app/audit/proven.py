"""What a lower bound says to a reader: in a line, and as a finding for a reviewer; the same for ε and for ρ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from cbdp.audit.finding import Figure, Finding

CHECK = "epsilon"


class Proven(Protocol):
    """A lower bound on ε or ρ, with the event that proves it."""

    @property
    def event(self) -> str: ...
    @property
    def counts(self) -> tuple[int, int]: ...
    @property
    def trials(self) -> tuple[int, int]: ...
    @property
    def alpha(self) -> float: ...
    @property
    def claim(self) -> float | None: ...
    @property
    def exceeds(self) -> bool: ...


def in_a_line(bound: Proven, sign: str, value: float, given: str = "") -> str:
    """The bound, its claim, and the event that proves it."""
    refuted = ", refuted" if bound.exceeds else ""
    claimed = "" if bound.claim is None else f" (claim {bound.claim:g}{refuted})"
    (a, b), (n, m) = bound.counts, bound.trials
    return f"{sign} ≥ {value:.3f}{claimed}{given}: {bound.event}, in {a:,} of {n:,} trials against {b:,} of {m:,}"


def as_finding(bound: Proven, sign: str, value: float, figures: Mapping[str, Figure]) -> Finding:
    """The bound for a reviewer: clear unless it refutes the claim."""
    figures = {**figures, "alpha": bound.alpha}
    if not bound.exceeds:
        return Finding(
            CHECK,
            "clear",
            f"The attack proves no more than {sign} ≥ {value:.3g}",
            str(bound),
            figures=figures,
            power=f"A claim of less than {sign} = {value:.3g} would have been refuted by these {sum(bound.trials):,} trials, with a false "
            f"alarm of at most {bound.alpha:g}. Other pairs of data sets, and other events, were not tried.",
        )
    return Finding(
        CHECK,
        "contradicts",
        f"The mechanism leaks {sign} ≥ {value:.3g}, more than the {bound.claim:g} it claims",
        str(bound),
        f"Whoever sees the event ({bound.event}) knows which of the two data sets it was, with better odds than promised.",
        "Do not release with this mechanism: look for what makes the event differ.",
        figures,
    )
