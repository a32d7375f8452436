"""Expected counts of leaves from margins: a leaf's own noise never enters its own rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from posterior_cases import DAG, UNIVERSE, demand, measure_demand

from cbdp.estimation.posterior import likelihood, rate_model
from cbdp.estimation.posterior.margins import margins
from cbdp.estimation.posterior.rate_model import fold_of_types
from cbdp.features import SINGLETON
from cbdp.privacy.noise import DiscreteLaplace


class Played:
    """Decisions made for all leaves together, kept the first time and given again the second."""

    def __init__(self, make: Any) -> None:
        self.make, self.kept, self.again = make, [], None

    def __call__(self, *given: Any) -> Any:
        if self.again is not None:
            return next(self.again)
        self.kept.append(self.make(*given))
        return self.kept[-1]

    def play(self) -> None:
        self.again = iter(self.kept)


@pytest.mark.parametrize("wild", [-500, 40, 900])
def test_a_leaf_never_enters_its_own_rate(wild: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given what is decided for all leaves together, the rate of a leaf is the same to the bit whatever its noisy count.

    Those decisions are the total, the shape of counts, the belief in spreads, and which sums help: scalars for all leaves.
    """
    measured = measure_demand(DAG, demand(1, 6.0), 1)
    noisy = next(m for m in measured if m.feature == SINGLETON).values.astype(float)
    changed, u = noisy.copy(), 37
    changed[u] = wild
    table = likelihood.count_likelihood(np.concatenate([noisy, changed]), DiscreteLaplace(2.0))
    tables = [
        replace(table, column=c, capped=k)
        for c, k in zip(*(np.split(a, 2) for a in (table.column, table.capped)), strict=True)
    ]
    fold, found = fold_of_types(UNIVERSE), margins(DAG, measured)
    decisions = (
        (rate_model, "most_likely_shape"),
        (rate_model, "accepted_spreads"),
        (rate_model, "overdispersion"),
        (rate_model, "_best_trial"),
    )
    played = [Played(getattr(module, name)) for module, name in decisions]
    for (module, name), decision in zip(decisions, played, strict=True):
        monkeypatch.setattr(module, name, decision)
    before = rate_model.fit_rates(
        noisy, fold, found, rate_model.ExpectedTotals(1500.0, 1500.0), tables[0]
    ).rate
    for decision in played:
        decision.play()
    after = rate_model.fit_rates(
        changed, fold, found, rate_model.ExpectedTotals(1500.0, 1500.0), tables[1]
    ).rate
    assert after[u] == before[u]
    np.testing.assert_array_equal(after[fold == fold[u]], before[fold == fold[u]])
    assert (after[fold != fold[u]] != before[fold != fold[u]]).mean() > 0.9


def test_a_wild_noisy_count_raises_its_neighbours_and_hardly_itself() -> None:
    """A count of hundreds out of the blue moves its own rate far less than others', beyond what moves all alike."""
    measured = measure_demand(DAG, demand(1, 6.0), 1)
    codes, fold, u = UNIVERSE.unrank_codes(np.arange(UNIVERSE.size)), fold_of_types(UNIVERSE), 37
    made = []
    for wild in (0, 400):
        given = [
            replace(m, values=np.where(np.arange(len(m.values)) == u, wild, m.values))
            if m.feature == SINGLETON
            else m
            for m in measured
        ]
        noisy = given[-1].values.astype(float)
        table = likelihood.count_likelihood(noisy, given[-1].noise)
        total = rate_model.expected_total(given)
        made.append(
            rate_model.fit_rates(
                noisy, fold, margins(DAG, given), rate_model.ExpectedTotals(total, total), table
            ).rate
        )
    change = np.log(made[1] / made[0])
    moved = np.abs(change - np.median(change))  # the total and the shape are decided once, for all leaves
    beside = (codes[0] == codes[0][u]) & (fold != fold[u])
    assert moved[u] < 0.2 * moved[beside].max()


def test_strata_of_few_leaves_keep_their_expected_counts() -> None:
    """A stratum of three leaves does not take their noise for what was to be expected of them."""
    noisy = np.array([900.0, 0, 0, *np.ones(40)])
    rate = np.concatenate([np.full(3, 10.0), np.full(40, 1.0)])
    group = np.concatenate([np.zeros(3, int), np.ones(40, int)])
    np.testing.assert_allclose(likelihood._calibrated_means(noisy, rate, group, 2.0), [10.0, 1.0], rtol=1e-12)
    many = np.concatenate([[0], group])  # with a fourth leaf it is a stratum
    told = likelihood._calibrated_means(np.append(300.0, noisy), np.append(10.0, rate), many, 2.0)
    assert told[0] > 2 * told[1] * 10
