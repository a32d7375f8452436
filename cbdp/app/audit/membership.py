"""Membership inference on the published data: can an attacker who knows everybody else tell whether a rider is in it?

The attacker knows the rider's trips and all other trips, so of each published answer y they know the count c without the noise,
up to the rider. The best test (Neyman and Pearson) compares the likelihoods: log P(y | with) − log P(y | without), added up over
tables, and says "in" where it is above 0. For any mechanism that is (ε, δ)-differentially private its advantage, the share of
members it says "in" of less that of others, is at most (e^ε − 1 + 2δ) / (e^ε + 1).

**What one release can show.** There is one draw of the noise. A rider who is in the data is tested with c and c less their trips; a
fresh rider with the same trips, who is not, with c plus their trips and c. Both use the noise as it was published; nothing is
simulated. Riders who share a count share its noise, so trials of them are no evidence of a probability; the total has one
draw for all riders. Therefore riders are chosen of whom no two share a count in the tables used, and only tables with
many such riders are used; the bound is then that of the ε spent on these tables, which is the stricter one. Trials are
independent, and the intervals are Clopper and Pearson's. The attack on all tables at once is reported too, without an interval.
In a release of a large universe what is hidden of the trip types depends a little on others' noise: where nothing else can be
used, an advantage beyond the bound is reported as a weakness, not as a contradiction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from cbdp.app.audit.noised import Noised, noised
from cbdp.app.audit.residuals import ALARM
from cbdp.app.audit.truth import Truth
from cbdp.arrays import Floats, Ints
from cbdp.audit.finding import Finding, Verdict
from cbdp.features.index import among
from cbdp.privacy.claim import Claim
from cbdp.privacy.composition import Cost, amount_of
from cbdp.release.release import Release
from cbdp.release.roles import listed

LEAST = 200  # riders of whom no two share a count: tables with fewer are not used
MOST = 5_000


@dataclass(frozen=True, eq=False)
class Trials:
    """The attacker's scores for riders who are in the data, and for fresh ones with the same trips who are not."""

    member: Floats = field(repr=False)
    stranger: Floats = field(repr=False)
    tables: tuple[str, ...]
    spent: float  # on these tables: ε, or ρ
    exact: bool = (
        True  # False: what is hidden depends on others' noise, so trials are only nearly independent
    )

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
        n = len(self.member)
        high, low = clopper_pearson(self.caught, n, risk / 2), clopper_pearson(self.falsely, n, risk / 2)
        return high[0] - low[1], high[1] - low[0]


def clopper_pearson(hits: int, trials: int, risk: float) -> tuple[float, float]:
    """The exact interval of a probability.

    >>> low, high = clopper_pearson(0, 10, 0.05)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    low = 0.0 if hits == 0 else float(beta.ppf(risk / 2, hits, trials - hits + 1))
    high = 1.0 if hits == trials else float(beta.ppf(1 - risk / 2, hits + 1, trials - hits))
    return low, high


def bound(epsilon: float, delta: float = 0.0) -> float:
    """The largest advantage that (ε, δ)-differential privacy allows.

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


# Scores


@dataclass(frozen=True, eq=False)
class _Scored:
    """What riders do to one answer: for each of their elements, the true count and by how much they change it."""

    answers: Noised
    rider: Ints
    element: Ints
    change: Ints
    count: Ints
    known: NDArray[np.bool_]  # by rider: the true counts of all their elements are known

    def scores(self, riders: int, *, member: bool) -> Floats:
        without, within = (
            (self.count - self.change, self.count) if member else (self.count, self.count + self.change)
        )
        score = np.zeros(riders)
        np.add.at(score, self.rider, _log_odds(self.answers, self.element, within, without))
        return score


def _log_odds(answers: Noised, element: Ints, within: Ints, without: Ints) -> Floats:
    """The logarithm of P(published | within) / P(published | without)."""
    values, shown = answers.at(element)
    floor = answers.floor_at(element)

    def log(count: Ints) -> Floats:
        made = np.where(shown, answers.law.log_pmf(values - count), answers.law.log_cdf(floor - count))
        if answers.zeros:
            return made
        return np.where(count > 0, made, np.where(shown, -np.inf, 0.0))  # nobody there: certainly not shown

    return np.asarray(log(within) - log(without))


def _scored(answers: Noised, true: Truth, riders: Sequence[Ints]) -> _Scored:
    types = np.concatenate(riders)
    rider = np.repeat(np.arange(len(riders)), [len(r) for r in riders])
    pairs, change = np.unique(
        np.stack([rider, answers.element_of(types)]), axis=1, return_counts=True
    )  # ascending by rider
    rider, element = pairs
    elements, inside = np.unique(answers.element_of(true.index), return_inverse=True)
    held = np.zeros(len(elements), dtype=np.int64)
    np.add.at(held, inside, true.value)
    place = np.searchsorted(elements, element)
    loose = np.unique(answers.element_of(true.loose)) if len(true.loose) else true.loose
    known = np.ones(len(riders), dtype=bool)
    known[rider[among(element, loose)]] = False
    return _Scored(answers, rider, element, change.astype(np.int64), held[place], known)


def trials(release: Release, true: Truth) -> tuple[Trials | None, float | None]:
    """Independent trials on the tables that allow many, and the advantage on all tables at once."""
    riders = true.riders
    every = [_scored(n, true, riders) for n in noised(release)] if len(riders) else []
    fixed = [s for s in every if not s.answers.adaptive]
    chosen, apart = _chosen(fixed, len(riders))
    if not chosen:
        chosen, apart = _chosen(every, len(riders))
    if not chosen:
        return None, None
    member, stranger = (
        sum((s.scores(len(riders), member=m) for s in chosen), np.zeros(len(riders)))[apart]
        for m in (True, False)
    )
    tables = tuple(s.answers.name for s in chosen)
    spent, exact = sum(s.answers.spent for s in chosen), not any(s.answers.adaptive for s in chosen)
    made = Trials(member, stranger, tables, spent, exact)
    sure = np.logical_and.reduce([s.known for s in every])
    if not sure.any():
        return made, None
    together = [
        sum((s.scores(len(riders), member=m) for s in every), np.zeros(len(riders)))[sure] > 0
        for m in (True, False)
    ]
    return made, float(together[0].mean() - together[1].mean())


def _chosen(scored: Sequence[_Scored], riders: int) -> tuple[list[_Scored], Ints]:
    """Tables, the finest first, as long as many riders share no count in them; and those riders."""
    chosen: list[_Scored] = []
    apart: Ints = np.empty(0, dtype=np.int64)
    for s in sorted(scored, key=lambda s: -s.answers.size):
        found = _apart([*chosen, s], riders)
        if len(found) >= LEAST:
            chosen, apart = [*chosen, s], found
    return chosen, apart


def _apart(scored: Sequence[_Scored], riders: int) -> Ints:
    """Riders of whom no two share an element, taken as they come (their order is random)."""
    used: list[set[int]] = [set() for _ in scored]
    own: list[list[list[int]]] = []
    for s in scored:
        edges = np.searchsorted(s.rider, np.arange(riders + 1)).tolist()
        element = s.element.tolist()
        own.append([element[a:b] for a, b in pairwise(edges)])
    known = np.logical_and.reduce([s.known for s in scored])
    taken = []
    for r in np.flatnonzero(known).tolist():
        if all(taken_here.isdisjoint(mine[r]) for taken_here, mine in zip(used, own, strict=True)):
            for taken_here, mine in zip(used, own, strict=True):
                taken_here.update(mine[r])
            taken.append(r)
            if len(taken) == MOST:
                break
    return np.array(taken, dtype=np.int64)


# The finding


def attack(release: Release, true: Truth) -> list[Finding]:
    """The advantage of the best attacker over sampled riders, against what the claim allows."""
    made, together = trials(release, true)
    if made is None:
        return []
    claim, n = release.claim, len(made.member)
    most = allowed(claim.cost, made.spent) if claim.holds else 1.0
    low, high = made.interval(0.05)
    floor = made.interval(ALARM / 2)[0]
    tables = listed(made.tables)
    text = (
        f"Of {n:,} riders of whom no two share a count in {tables}, the attacker recognises {made.caught:,}, and takes "
        f"{made.falsely:,} of as many others, who are not in the data, for riders: an advantage of {made.advantage:.3f} (95 % interval "
        f"{low:.3f} to {high:.3f})."
    )
    if claim.holds:
        sign = "ρ" if claim.cost.currency == "rho" else "ε"
        text += f" {sign} = {made.spent:.4g} on {tables} allows {most:.3f}."
    if together is not None:
        whole = f", where the whole claim allows {allowed(claim.cost, float(amount_of(claim.cost))):.3f}"
        text += f" On all tables at once, in this one draw: {together:.3f}{whole if claim.holds else ''}."
    figures: dict[str, float | str] = {
        "riders": n,
        "advantage": round(made.advantage, 4),
        "advantage at least": round(floor, 4),
    }
    if claim.holds:
        figures["allowed"] = round(most, 4)
    verdict, title = _verdict(made, claim, floor, most)
    if verdict == "clear":
        return [Finding("membership", verdict, title, text, figures=figures, power=_power(made, floor, most))]
    attack = "Whoever knows all other trips learns whether a particular rider is in the data."
    cure = "Withdraw the release; look for noise that is missing or too small."
    if not claim.holds:
        cure = "Use a mechanism with a guarantee, such as constraint-based."
    return [Finding("membership", verdict, title, text, attack, cure, figures)]


def _power(made: Trials, floor: float, most: float) -> str:
    """The advantage that would have been found: above what is allowed by the widths of both intervals."""
    reach = most + (made.advantage - floor) + (made.advantage - made.interval(0.1)[0])
    if reach >= 1:
        return f"{len(made.member):,} riders are too few to tell any advantage from the {most:.2f} that is allowed."
    return f"An advantage of {reach:.2f} or more would have been found with a probability of 95 %."


def _verdict(made: Trials, claim: Claim, floor: float, most: float) -> tuple[Verdict, str]:
    sign = "ρ" if claim.cost.currency == "rho" else "ε"
    if claim.holds and floor > most:
        return (
            "contradicts" if made.exact else "weakness",
            f"Riders can be told apart better than {sign} allows",
        )
    if claim.holds:
        return "clear", f"Riders cannot be told apart better than {sign} allows"
    if floor > 0:
        return "weakness", f"An attacker tells riders from others, with an advantage of {made.advantage:.2f}"
    return "clear", "No advantage over guessing could be shown"
