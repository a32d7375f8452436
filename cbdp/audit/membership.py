"""Membership inference: how well an attacker who knows everybody else tells whether a rider is in the data.

First the published noisy answers whose noise has a declared distribution; then the attacker's scores, their advantage, and the advantage that
differential privacy allows. Whoever has the trips makes the scores: `cbdp.app.audit.membership`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from cbdp.arrays import Bools, Floats, Ints
from cbdp.audit.findings import Figure, Finding, Verdict
from cbdp.audit.lower_bound import lower_limit, upper_limit
from cbdp.audit.tables import declared_distribution
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.accounting import Cost, PrivacyGuarantee, cost_amount
from cbdp.privacy.noise import NoiseDistribution
from cbdp.release.manifest import cost_of_feature
from cbdp.release.release import Release
from cbdp.release.views import enumerated

FALSE_ALARM_CHANCE = 1e-6  # of any test of an audit with trips, over residuals and membership together


@dataclass(frozen=True, eq=False)
class PublishedAnswer:
    """A published noisy answer to a feature: of all elements, or of those that exceed a floor (by cell, or one for all).

    `zeros` says that empty elements got noise like all others.
    """

    name: str
    dag: FeatureDag = field(repr=False)
    law: NoiseDistribution
    spent: float  # on it: ε, or ρ where its law is paid for in ρ
    values: Ints = field(repr=False)
    elements: Ints | None = field(default=None, repr=False)
    floor: Ints | int | None = field(default=None, repr=False)
    zeros: bool = True

    @property
    def adaptive(self) -> bool:
        """Whether what is hidden depends on other answers' noise."""
        return isinstance(self.floor, np.ndarray)

    @property
    def size(self) -> int:
        return self.dag.size(self.name)

    def element_of(self, types: Ints) -> Ints:
        """The element that holds each trip type."""
        if self.name == SINGLETON:
            return types
        return self.dag.partition(self.name).element_of(self.dag.universe.unrank_codes(types))

    def cell_of(self, types: Ints) -> Ints:
        return self.dag.cells.partition.element_of(self.dag.universe.unrank_codes(types))

    def floor_at(self, elements: Ints) -> Ints:
        if self.floor is None:
            return np.full(len(elements), np.iinfo(np.int64).min // 2)
        if isinstance(self.floor, np.ndarray):
            return self.floor[self.cell_of(elements)]
        return np.full(len(elements), self.floor, dtype=np.int64)

    def at(self, elements: Ints) -> tuple[Ints, Bools]:
        """The noisy answer of each element, and whether it is shown."""
        if self.elements is None:
            return self.values[elements], np.ones(len(elements), dtype=bool)
        if not len(self.elements):
            return np.zeros(len(elements), dtype=np.int64), np.zeros(len(elements), dtype=bool)
        row = np.minimum(np.searchsorted(self.elements, elements), len(self.elements) - 1)
        return self.values[row], np.asarray(self.elements[row] == elements)


def noisy_answers(release: Release) -> list[PublishedAnswer]:
    """All answers of a release whose noise has a declared law, coarse ones first."""
    return sorted([*_measured(release), *_tables(release)], key=lambda n: n.size)


def _measured(release: Release) -> Iterator[PublishedAnswer]:
    for m in release.measurements:
        law = declared_distribution(m)
        if law is None or not law.whole or m.values.dtype.kind != "i":
            continue
        if m.elements is None or m.floor is not None:
            spent = m.rho if law.currency == "rho" else m.epsilon
            dag = release.levels or release.features
            yield PublishedAnswer(m.feature, dag, law, float(spent or 0), m.values, m.elements, m.floor)


def _tables(release: Release) -> Iterator[PublishedAnswer]:
    """Tables that are published as they were measured."""
    for name, table in release.tables.items():
        noise = release.recipe.tables.get(name)
        if noise is None or not noise.law.whole:
            continue
        shown = np.flatnonzero(table).astype(np.int64)
        floor = 0 if noise.threshold is None else math.ceil(noise.threshold) - 1
        law = noise.law.times(1.0)
        spent = float(cost_of_feature(release, name).get(law.currency) or 0)
        yield PublishedAnswer(
            name, release.features, law, spent, table[shown], shown, floor, not noise.skips_zeros
        )


# The advantage
#
# For any mechanism that is (ε, δ)-differentially private an attacker's advantage, the share of members they call members less that of others
# (Yeom et al., 2018), is at most (e^ε − 1 + 2δ) / (e^ε + 1) (Kairouz, Oh and Viswanath, 2015). Trials are independent, and the intervals are
# Clopper and Pearson's.


@dataclass(frozen=True, eq=False)
class Trials:
    """The attacker's scores for riders who are in the data, and for fresh ones with the same trips who are not."""

    member: Floats = field(repr=False)
    stranger: Floats = field(repr=False)
    tables: tuple[str, ...]
    spent: float  # on these tables: ε, or ρ
    # False: what is hidden depends on others' noise, so trials are only nearly independent
    exact: bool = True

    @property
    def caught(self) -> int:
        """Members that the attacker says are in."""
        return int((self.member > 0).sum())

    @property
    def falsely(self) -> int:
        """Strangers that the attacker says are in."""
        return int((self.stranger > 0).sum())

    @property
    def advantage(self) -> float:
        return (self.caught - self.falsely) / len(self.member)

    def interval(self, risk: float) -> tuple[float, float]:
        """Where the true advantage lies, except with this probability."""
        n, tail = len(self.member), risk / 4  # each of two shares is on either side of its interval
        low = lower_limit(self.caught, n, tail) - upper_limit(self.falsely, n, tail)
        high = upper_limit(self.caught, n, tail) - lower_limit(self.falsely, n, tail)
        return float(low), float(high)


def bound(epsilon: float, delta: float = 0.0) -> float:
    """The largest advantage that (ε, δ)-differential privacy allows: its total variation distance (Kairouz, Oh and Viswanath, 2015).

    >>> round(bound(1), 4)
    0.4621
    """
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta / (1 + math.exp(min(epsilon, 700))))


def bound_of_rho(rho: float) -> float:
    """The largest advantage that ρ-zCDP allows: its Kullback-Leibler divergence is at most ρ (Pinsker; Bretagnolle and Huber).

    >>> round(bound_of_rho(0.02), 4), round(bound_of_rho(5), 4)
    (0.1, 0.9966)
    """
    return min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))


def allowed(cost: Cost, spent: float) -> float:
    """The largest advantage that is allowed where so much was spent, in the currency of the claim."""
    return bound_of_rho(spent) if cost.currency == "rho" else bound(spent, float(cost.delta))


def advantage_finding(claim: PrivacyGuarantee, outcome: Trials, together: float | None) -> Finding:
    """The attacker's advantage in trials, and in one draw on all tables together, against what the claim allows."""
    n = len(outcome.member)
    most = allowed(claim.cost, outcome.spent) if claim.holds else 1.0
    low, high = outcome.interval(0.05)
    floor = outcome.interval(FALSE_ALARM_CHANCE / 2)[0]
    tables = enumerated(outcome.tables)
    text = (
        f"Of {n:,} riders of whom no two share a count in {tables}, the attacker recognises {outcome.caught:,}, and takes "
        f"{outcome.falsely:,} of as many others, who are not in the data, for riders: an advantage of {outcome.advantage:.3f} (95 % interval "
        f"{low:.3f} to {high:.3f})."
    )
    if claim.holds:
        sign = "ρ" if claim.cost.currency == "rho" else "ε"
        text += f" {sign} = {outcome.spent:.4g} on {tables} allows {most:.3f}."
    if together is not None:
        whole = f", where the whole claim allows {allowed(claim.cost, float(cost_amount(claim.cost))):.3f}"
        text += f" On all tables at once, in this one draw: {together:.3f}{whole if claim.holds else ''}."
    figures: dict[str, Figure] = {
        "riders": n,
        "advantage": round(outcome.advantage, 4),
        "advantage at least": round(floor, 4),
    }
    if claim.holds:
        figures["allowed"] = round(most, 4)
    verdict, title = _verdict(outcome, claim, floor, most)
    if verdict == "clear":
        power = _membership_power(outcome, floor, most)
        return Finding("membership", verdict, title, text, figures=figures, power=power)
    attack = "Whoever knows all other trips learns whether a particular rider is in the data."
    cure = "Withdraw the release; look for noise that is missing or too small."
    if not claim.holds:
        cure = "Use a mechanism with a guarantee, such as constraint-based."
    return Finding("membership", verdict, title, text, attack, cure, figures)


def _membership_power(outcome: Trials, floor: float, most: float) -> str:
    """The advantage that would have been found: above what is allowed by the widths of both intervals."""
    reach = most + (outcome.advantage - floor) + (outcome.advantage - outcome.interval(0.1)[0])
    if reach >= 1:
        return f"{len(outcome.member):,} riders are too few to tell any advantage from the {most:.2f} that is allowed."
    return f"An advantage of {reach:.2f} or more would have been found with a probability of 95 %."


def _verdict(outcome: Trials, claim: PrivacyGuarantee, floor: float, most: float) -> tuple[Verdict, str]:
    sign = "ρ" if claim.cost.currency == "rho" else "ε"
    if claim.holds and floor > most:
        return (
            "contradicts" if outcome.exact else "weakness",
            f"Riders can be told apart better than {sign} allows",
        )
    if claim.holds:
        return "clear", f"Riders cannot be told apart better than {sign} allows"
    if floor > 0:
        return (
            "weakness",
            f"An attacker tells riders from others, with an advantage of {outcome.advantage:.2f}",
        )
    return "clear", "No advantage over guessing could be shown"
