"""The curator's membership inference: riders, and strangers with the same trips, are scored by the attacker who knows everybody else. Private.

The attacker knows the rider's trips and all other trips, so of each published answer y they know the count c without the noise, up to the
rider. The best test (Neyman and Pearson) compares the likelihoods: log P(y | with) − log P(y | without), added up over tables, and says "in" where
it is above 0. What the scores show is told by `cbdp.audit.membership`.

There is one draw of the noise. A rider who is in the data is tested with c and c less their trips; a
fresh rider with the same trips, who is not, with c plus their trips and c. Both use the noise as it was published; nothing is
simulated. Riders who share a count share its noise, so trials of them are no evidence of a probability; the total has one
draw for all riders. Therefore riders are chosen of whom no two share a count in the tables used, and only tables with
many such riders are used; the bound is then that of the ε spent on these tables, which is the stricter one.
In a release of a large universe what is hidden of the trip types depends a little on others' noise: where nothing else can be
used, an advantage beyond the bound is reported as a weakness, not as a contradiction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cbdp.app.audit.truth import TrueCounts
from cbdp.arrays import Bools, Floats, Ints
from cbdp.audit.findings import Finding
from cbdp.audit.membership import PublishedAnswer, Trials, advantage_finding, noisy_answers
from cbdp.release.release import Release
from cbdp_features.universe import is_member

# riders of whom no two share a count: with fewer, the interval of the advantage says nothing
MIN_RIDERS = 200
# riders tested, at most: the interval of the advantage is then about 0.03 wide to either side
MAX_RIDERS = 5_000


def attack_membership(release: Release, true: TrueCounts) -> list[Finding]:
    """The advantage of the best attacker over sampled riders, against what the claim allows."""
    outcome, together = trials(release, true)
    return [] if outcome is None else [advantage_finding(release.claim, outcome, together)]


@dataclass(frozen=True, eq=False)
class _Scored:
    """What riders do to one answer: for each of their elements, the true count and by how much they change it."""

    answers: PublishedAnswer
    rider: Ints
    element: Ints
    change: Ints
    count: Ints
    determined: Bools  # by rider: the true counts of all their elements are known

    def scores(self, riders: int, *, member: bool) -> Floats:
        without, within = (
            (self.count - self.change, self.count) if member else (self.count, self.count + self.change)
        )
        score = np.zeros(riders)
        np.add.at(score, self.rider, _log_odds(self.answers, self.element, within, without))
        return score


def _log_odds(answers: PublishedAnswer, element: Ints, within: Ints, without: Ints) -> Floats:
    """The logarithm of P(published | within) / P(published | without)."""
    values, shown = answers.at(element)
    floor = answers.floor_at(element)

    def log(count: Ints) -> Floats:
        law = answers.law
        log_likelihood = np.where(shown, law.log_pmf(values - count), law.log_cdf(floor - count))
        if answers.zeros:
            return log_likelihood
        # nobody there: certainly not shown
        return np.where(count > 0, log_likelihood, np.where(shown, -np.inf, 0.0))

    return np.asarray(log(within) - log(without))


def _scored_riders(answers: PublishedAnswer, true: TrueCounts, riders: Sequence[Ints]) -> _Scored:
    types = np.concatenate(riders)
    rider = np.repeat(np.arange(len(riders)), [len(r) for r in riders])
    pairs = np.stack([rider, answers.element_of(types)])
    (rider, element), change = np.unique(pairs, axis=1, return_counts=True)  # ascending by rider
    elements, inside = np.unique(answers.element_of(true.index), return_inverse=True)
    counts = np.zeros(len(elements), dtype=np.int64)
    np.add.at(counts, inside, true.value)
    row = np.searchsorted(elements, element)
    loose = np.unique(answers.element_of(true.loose)) if len(true.loose) else true.loose
    determined = np.ones(len(riders), dtype=bool)
    determined[rider[is_member(element, loose)]] = False
    return _Scored(answers, rider, element, change.astype(np.int64), counts[row], determined)


def trials(release: Release, true: TrueCounts) -> tuple[Trials | None, float | None]:
    """Independent trials on the tables that allow many, and the advantage on all tables at once."""
    riders = true.riders
    every = [_scored_riders(n, true, riders) for n in noisy_answers(release)] if len(riders) else []
    fixed = [s for s in every if not s.answers.adaptive]
    chosen, apart = _chosen_answers(fixed, len(riders))
    if not chosen:
        chosen, apart = _chosen_answers(every, len(riders))
    if not chosen:
        return None, None
    member, stranger = (
        sum((s.scores(len(riders), member=m) for s in chosen), np.zeros(len(riders)))[apart]
        for m in (True, False)
    )
    tables = tuple(s.answers.name for s in chosen)
    spent, exact = sum(s.answers.spent for s in chosen), not any(s.answers.adaptive for s in chosen)
    independent = Trials(member, stranger, tables, spent, exact)
    sure = np.logical_and.reduce([s.determined for s in every])
    if not sure.any():
        return independent, None
    together = [
        sum((s.scores(len(riders), member=m) for s in every), np.zeros(len(riders)))[sure] > 0
        for m in (True, False)
    ]
    return independent, float(together[0].mean() - together[1].mean())


def _chosen_answers(scored: Sequence[_Scored], riders: int) -> tuple[list[_Scored], Ints]:
    """Tables, the finest first, as long as many riders share no count in them; and those riders."""
    chosen: list[_Scored] = []
    apart: Ints = np.empty(0, dtype=np.int64)
    for s in sorted(scored, key=lambda s: -s.answers.size):
        disjoint = _riders_apart([*chosen, s], riders)
        if len(disjoint) >= MIN_RIDERS:
            chosen, apart = [*chosen, s], disjoint
    return chosen, apart


def _riders_apart(scored: Sequence[_Scored], riders: int) -> Ints:
    """Riders of whom no two share an element, taken as they come (their order is random)."""
    edges = [np.searchsorted(s.rider, np.arange(riders + 1)) for s in scored]
    determined = np.logical_and.reduce([s.determined for s in scored])
    used: set[tuple[int, int]] = set()  # table and element
    taken: list[int] = []
    for r in np.flatnonzero(determined).tolist():
        elements = {
            (table, element)
            for table, (s, edge) in enumerate(zip(scored, edges, strict=True))
            for element in s.element[edge[r] : edge[r + 1]].tolist()
        }
        if used.isdisjoint(elements):
            used |= elements
            taken.append(r)
            if len(taken) == MAX_RIDERS:
                break
    return np.array(taken, dtype=np.int64)
