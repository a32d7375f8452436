"""What of a plan deserves a warning before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from cbdp.app.explain import gaps as told
from cbdp.app.explain.advice import meaningful
from cbdp.app.explain.expected import ExpectedTable
from cbdp.app.explain.meaning import CAREFUL, TOO_MUCH, reason
from cbdp.app.explain.numbers import (
    ExpectedNoise,
    epsilon_for,
    number,
    percent,
    sign_of,
    told_by_others,
    trips_text,
)
from cbdp.app.plan.facts import PlannedRelease
from cbdp.errors import InputError
from cbdp.privacy.accounting import in_words
from cbdp.privacy.unit import Person
from cbdp.release.counted import counted


def warnings(
    plan: PlannedRelease, measured: Sequence[ExpectedNoise], expected: Sequence[ExpectedTable]
) -> Iterator[str]:
    """One line each, the gravest first."""
    yield from _protection(plan)
    yield from _noise(plan, measured, expected)
    yield from _tables(plan)
    yield from _account(plan)


def _protection(plan: PlannedRelease) -> Iterator[str]:
    """What is promised, and what that is worth."""
    claim = plan.mechanism.claim()
    if not claim.holds:
        yield f"{plan.mechanism.name} with these settings is {claim}; `cbdp release` refuses it"
    elif claim.cost.epsilon > TOO_MUCH:
        yield (
            f"ε = {in_words(claim.cost.epsilon)} protects hardly anybody: it is above {TOO_MUCH:g}, and "
            f"{reason(float(claim.cost.epsilon))}. Below {CAREFUL:g} counts as a careful choice (NIST). Longer periods, larger zones or fewer "
            "tables need less: `cbdp plan` shows how much"
        )


def _noise(
    plan: PlannedRelease, measured: Sequence[ExpectedNoise], expected: Sequence[ExpectedTable]
) -> Iterator[str]:
    """Tables whose average count may be off by more than is wanted: as the screen says, or by the noise alone where nothing else is known."""
    bound, told = plan.config.output.noise_bound, {e.feature: e.relative for e in expected}
    for n in measured:
        if n.relative is None or n.relative <= bound or told_by_others(plan, n, bound):
            continue
        off = told.get(n.feature, n.relative)
        if off > bound:
            yield (
                f"{n.feature}: its average count, {trips_text(n.expected)}, may be off by {percent(off)}, more than the {percent(bound)} of "
                f"output.noise_bound; {_cure(plan, n.feature, bound)}"
            )


def _tables(plan: PlannedRelease) -> Iterator[str]:
    """What is counted, and what is not."""
    if len(plan.features.features) == 2 and plan.mechanism.asks_tables:
        yield "there is no table between the total and single trip types: add a [[feature]] or a preset"
    for gap in told.missing(told.gaps(plan)):
        yield counted(plan.universe).say(str(gap))
    if plan.unbought and isinstance(plan.unit, Person):
        yield f"max_trips is bought by `cbdp choose`, which was not done yet: what is shown goes by {plan.unit.max_trips}"
    if plan.public and isinstance(plan.unit, Person):
        yield (
            f"privacy.public states {', '.join(plan.public)}, and at most {plan.unit.max_trips} trips of each person{plan.unit.period} are counted: if "
            "the public counts are of all trips, the release is scaled up to them"
        )
    yield from plan.schema_warnings()


def _account(plan: PlannedRelease) -> Iterator[str]:
    if not plan.account.exists and plan.config.privacy.cap is None:
        yield (
            f"privacy.cap is not stated: the ledger will be created with a cap of {plan.account.cap}, so that no "
            "second release fits, and none at all if the first run dies after it has paid. For one retry, which costs as much again, state twice that"
        )
    elif not plan.account.exists and plan.config.series is None and not _retry_fits(plan):
        yield (
            f"the cap of {plan.account.caps} leaves no room for a retry: if a run dies after it has paid (a power cut), it stays paid and the release is lost. "
            "A cap of twice the cost allows one; riders are then promised twice the cost in the worst case. It is fixed when the ledger is created"
        )
    if plan.account.forgotten:
        yield f"`cbdp release` will refuse: {plan.account.forgotten}"
    if plan.account.unfinished:
        yield "an identical request was charged and never released: unless its folder is whole, it is charged again"


def _retry_fits(plan: PlannedRelease) -> bool:
    """Whether the cap has room for the release twice."""
    charge = plan.account.charge
    return (charge + charge).within(plan.account.left)


def _cure(plan: PlannedRelease, feature: str, bound: float) -> str:
    try:
        needed = epsilon_for(plan, feature, repr(bound))
    except InputError:
        return f"no {sign_of(plan)} meets it with this budget: use another, or a coarser table"
    allowed = (
        Fraction(repr(bound)) * (plan.expected_trips or 0) / plan.mechanism.measured_features.size(feature)
    )
    if not meaningful(plan, needed, allowed):
        return f"no {sign_of(plan)} that still protects meets it: merge periods or zones, or read sums of its counts only"
    return f"to meet it {sign_of(plan)} would have to be {number(needed)}, or the table coarser"
