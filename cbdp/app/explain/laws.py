"""Which law of noise serves a plan better: the errors that are to be expected of each table under either, for the same (ε, δ)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from cbdp.app.explain.numbers import facts_of, number
from cbdp.app.plan.facts import PlannedMechanism, PlannedRelease
from cbdp.app.printing import aligned
from cbdp.errors import CbdpError
from cbdp.privacy.accounting import in_words
from cbdp.privacy.laws.gaussian import Gaussian
from cbdp.privacy.laws.geometric import Geometric

CLOSE = 1.02  # errors that differ by less are the same


@dataclass(frozen=True)
class LawChoice:
    """By law, the configured one first, the expected error of each table's counts in trips; both give (ε, δ)."""

    errors: Mapping[str, Mapping[str, float]]
    epsilon: Fraction
    delta: Fraction

    @property
    def ratio(self) -> float:
        """How many times the configured law's error the other's is, as a geometric mean over all tables that have any error."""
        own, other = self.errors.values()
        logs = [math.log(other[name] / error) for name, error in own.items() if error > 0 and other[name] > 0]
        return math.exp(sum(logs) / len(logs)) if logs else 1.0

    @property
    def better(self) -> str | None:
        """The law with the smaller errors; None where they are as good as equal."""
        own, other = self.errors
        if 1 / CLOSE < self.ratio < CLOSE:
            return None
        return own if self.ratio > 1 else other


def law_choice(plan: PlannedRelease) -> LawChoice | None:
    """Both laws compared; None where the mechanism has no choice."""
    mechanism = plan.mechanism
    cost = mechanism.claim().cost
    try:
        other = mechanism.with_other_law()
        if other is None:
            return None
        errors = {_law_of(m): _errors(plan, m) for m in (mechanism, other)}
    except CbdpError:  # what cannot be had with the other law cannot be compared
        return None
    return LawChoice(errors, cost.epsilon, cost.delta or other.claim().cost.delta)


def _law_of(mechanism: PlannedMechanism) -> str:
    """The law that is paid for in the mechanism's currency."""
    return Gaussian.name if mechanism.currency == Gaussian.currency else Geometric.name


def _errors(plan: PlannedRelease, mechanism: PlannedMechanism) -> dict[str, float]:
    """By the model of errors where the mechanism has one, else those of the noise alone."""
    found = next(iter(mechanism.expected_errors(facts_of(plan)).values()), None)
    if found is not None:
        return {name: found[name] for name in plan.features.features}
    return {a.feature: math.sqrt(a.law.variance()) for a in mechanism.answers()}


def law_table(choice: LawChoice) -> list[str]:
    names = list(next(iter(choice.errors.values())))
    rows = [("law", *names)]
    for n, (law, errors) in enumerate(choice.errors.items()):
        rows.append((f"{law} (configured)" if n == 0 else law, *(f"{errors[name]:,.3g}" for name in names)))
    return aligned(rows, right=range(1, len(rows[0])))


def law_remarks(choice: LawChoice) -> Iterator[str]:
    own = next(iter(choice.errors))
    delta = f"δ = {float(choice.delta):.3g}"
    yield (
        f"Expected errors of a count in trips, both for ε = {in_words(choice.epsilon)}. Gaussian noise gives that at {delta} only; geometric "
        "noise needs no δ."
    )
    if choice.better is None:
        yield "Both are as good as equal here: keep geometric noise, whose promise has no exception."
        return
    times = choice.ratio if choice.better == own else 1 / choice.ratio
    said = (
        f"{choice.better.capitalize()} noise is better here: errors are {times:.2g} times smaller on average."
    )
    if choice.better == Gaussian.name and own != Gaussian.name:
        said += f' To use it, write law = "gaussian" and delta = {float(choice.delta):g} in [privacy].'
    elif choice.better != own:
        said += f" To use it, write epsilon = {number(choice.epsilon)} in [privacy], and leave law, rho and delta out."
    yield said
