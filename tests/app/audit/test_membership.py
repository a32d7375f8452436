"""Membership inference: as strong as theory allows on honest noise, and beyond the bound where noise is missing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.stats import binom

import cbdp
from cbdp.app.audit import membership
from cbdp.app.audit.truth import truth
from cbdp.audit.membership import bound, noisy_answers


def test_the_attack_reaches_the_bound_of_one_table() -> None:
    """For geometric noise on one table the advantage is tanh(ε/2) exactly: over 4,000 riders it is within 0.1 of it."""
    stops = [f"S{i}" for i in range(80)]
    universe = cbdp.Universe(origin=stops, destination=stops)
    dag = cbdp.FeatureDag(universe, [])
    counts = cbdp.count(np.ones(universe.size, dtype=np.int64), universe)
    release = cbdp.Laplace(dag, 1, law="geometric").release(counts)
    made, _ = membership.trials(release, truth(counts, release))
    n = len(made.member)
    assert n > 4000
    r = np.exp(-1)
    # TPR is 1/(1+r) and FPR r/(1+r); each of n trials is independent of the others
    for hits, p in ((made.caught, 1 / (1 + r)), (made.falsely, r / (1 + r))):
        assert binom.ppf(1e-8, n, p) <= hits <= binom.isf(1e-8, n, p)
    assert abs(bound(1) - (1 - r) / (1 + r)) < 1e-12
    [found] = membership.attack_membership(release, truth(counts, release))
    assert found.verdict == "clear"


def test_riders_are_recognised_where_noise_is_missing() -> None:
    """A release with a tenth of the noise that its ε needs lets riders be told apart beyond the bound."""
    stops = [f"S{i}" for i in range(40)]
    universe = cbdp.Universe(origin=stops, destination=stops)
    dag = cbdp.FeatureDag(universe, [])
    counts = cbdp.count(np.ones(universe.size, dtype=np.int64), universe)
    release = cbdp.Laplace(dag, 10, law="geometric").release(counts)
    claimed = cbdp.Laplace(dag, 1, law="geometric")
    [m] = release.measurements
    m = replace(m, scale=Fraction(1), variance=None, epsilon=Fraction(1))
    liar = replace(release, claim=claimed.claim(), measurements=[m])
    [found] = membership.attack_membership(liar, truth(counts, liar))
    assert found.verdict == "contradicts"
    assert found.figures["advantage at least"] > bound(1)


def test_riders_on_trial_share_no_count() -> None:
    """No two riders of the independent trials have an element in common, in any table used."""
    rng = np.random.default_rng(0)
    stops = [f"S{i}" for i in range(40)]
    universe = cbdp.Universe(origin=stops, destination=stops, time=["a", "b"])
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("pair", by=["origin", "destination"])])
    counts = cbdp.count(rng.integers(0, 3, universe.size), universe)
    release = cbdp.ConstraintBased(dag, 1).release(counts)
    true = truth(counts, release)
    scored = [membership._scored_riders(a, true, true.riders) for a in noisy_answers(release)]
    chosen, apart = membership._chosen_answers(scored, len(true.riders))
    assert {s.answers.name for s in chosen} == {"pair", "singleton"}
    assert len(apart) >= membership.MIN_RIDERS
    for s in chosen:
        here = np.isin(s.rider, apart)
        assert len(np.unique(s.element[here])) == here.sum()
