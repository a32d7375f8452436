"""The engine against other formulations of the same program: cvxpy on the paper's own, enumeration of active sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from engine_cases import CERTIFIED, INF, cost, enumerated, exactly, thorough
from hypothesis import assume, given
from hypothesis import strategies as st
from paper_program import paper, size_of
from strategies import Labelling, Model, cases


@pytest.mark.slow
@given(cases(spread=2.0))
@thorough(120)
def test_agrees_with_the_paper_program(case):
    """The answer is the one an interior-point solver finds for the program of Figure 3, and never costs more."""
    dag, estimate = case.solve()
    x, other = case.leaves(dag, estimate), paper(case)
    assert estimate.solution.kkt_residual <= CERTIFIED
    assert x.min() >= 0
    scale = cost(case, np.zeros_like(x)) + cost(case, x)
    assert cost(case, x) <= cost(case, np.maximum(other, 0)) + 1e-9 * scale
    assert estimate.solution.objective == pytest.approx(cost(case, x), rel=1e-9, abs=1e-12 * scale)
    np.testing.assert_allclose(x, other, atol=2e-4 * size_of(case), rtol=0)


@given(cases(types=8))
@thorough(100)
def test_agrees_with_enumeration(case):
    """On up to eight types the answer is the best of all active sets, to nine digits of the largest count."""
    dag, estimate = case.solve()
    assert estimate.solution.kkt_residual <= CERTIFIED
    _, _, w = case.stacked()
    accuracy = 1e-9 * max(1.0, w.max() / w.min() * 1e-4)
    np.testing.assert_allclose(
        case.leaves(dag, estimate), enumerated(case), atol=accuracy * size_of(case), rtol=0
    )


@given(cases())
@thorough(100)
def test_every_feature_is_a_sum_of_leaves(case):
    """Counts of every feature, measured or not, are sums of the leaves over the types of each element."""
    dag, estimate = case.solve()
    x = case.leaves(dag, estimate)
    for name in case.features:
        expected = case.counts(name, x)
        table = estimate.table(name)
        found = dict(zip(case.keys(dag, name), estimate.counts(name), strict=True))
        assert found.keys() == expected.keys()
        np.testing.assert_allclose(
            [found[k] for k in expected], list(expected.values()), rtol=1e-12, atol=1e-12 * size_of(case)
        )
        assert [*table.keys()] == [*case.features[name], "estimate"]


@given(cases(), st.sampled_from([0.1, 3.0, 1000.0]), st.integers(0, 10**6))
@thorough(100)
def test_at_most_twice_as_far_as_the_noise(case, noise, seed):
    """Theorem 8.3: the answer is at most twice as far from the truth as the noisy counts, in the weighted norm."""
    true = case.truth(seed)
    noisy = case.around(true, noise, seed)
    dag, estimate = noisy.solve()
    a, c, w = noisy.stacked()
    far = np.sqrt(np.sum(w * (a @ (noisy.leaves(dag, estimate) - true)) ** 2))
    assert far <= 2 * np.sqrt(np.sum(w * (c - a @ true) ** 2)) * (1 + 1e-9)


@given(cases(), st.data())
@thorough(120)
def test_exact_counts_are_met(case, data):
    """Infinite weights, of one or several features that agree, are met to nine digits and the rest is optimal."""
    names = data.draw(
        st.lists(st.sampled_from([n for n in case.features if n != "singleton"]), min_size=1, unique=True)
    )
    fixed = exactly(case, names, data.draw(st.integers(0, 1000)))
    dag, estimate = fixed.solve()
    assert estimate.solution.kkt_residual <= CERTIFIED
    for name in names:
        for key, count in zip(case.keys(dag, name), estimate.counts(name), strict=True):
            assert count == pytest.approx(
                fixed.noisy[name][key], abs=1e-9 * (1 + max(fixed.noisy[name].values()))
            )


@pytest.mark.slow
@given(cases(types=16, spread=1.5), st.data())
@thorough(60)
def test_exact_counts_agree_with_equality_constraints(case, data):
    """With exact counts the answer is that of Figure 3 with those counts as equations."""
    assume(size_of(case) < 1e4)  # exact counts are of the order of ten: an interior point needs one scale
    names = data.draw(
        st.lists(st.sampled_from([n for n in case.features if n != "singleton"]), min_size=1, unique=True)
    )
    fixed = exactly(case, names, data.draw(st.integers(0, 1000)))
    dag, estimate = fixed.solve()
    np.testing.assert_allclose(fixed.leaves(dag, estimate), paper(fixed), atol=2e-4 * size_of(fixed), rtol=0)


@given(cases(types=7, spread=1.5), st.data())
@thorough(60)
def test_exact_counts_agree_with_enumeration(case, data):
    """On a few types the answer with exact counts is the best of all active sets."""
    assume(1e-2 < size_of(case) < 1e4)
    names = data.draw(
        st.lists(st.sampled_from([n for n in case.features if n != "singleton"]), min_size=1, unique=True)
    )
    fixed = exactly(case, names, data.draw(st.integers(0, 1000)))
    dag, estimate = fixed.solve()
    np.testing.assert_allclose(
        fixed.leaves(dag, estimate), enumerated(fixed), atol=1e-6 * size_of(fixed), rtol=0
    )


@given(cases(), st.data())
@thorough(80)
def test_some_elements_exact(case, data):
    """Single exact elements among soft ones of the same feature are met, the others stay soft."""
    name = data.draw(st.sampled_from([n for n in case.noisy if n != "singleton"] or ["singleton"]))
    assume(name != "singleton")
    true = case.counts(name, case.truth(1))
    chosen = data.draw(st.lists(st.sampled_from(list(case.noisy[name])), min_size=1, unique=True))
    fixed = replace(
        case,
        noisy={**case.noisy, name: {k: true[k] if k in chosen else v for k, v in case.noisy[name].items()}},
        weight={**case.weight, name: {k: INF if k in chosen else w for k, w in case.weight[name].items()}},
        rule=None,
    )
    dag, estimate = fixed.solve()
    assert estimate.solution.kkt_residual <= CERTIFIED
    found = dict(zip(case.keys(dag, name), estimate.counts(name), strict=True))
    largest = max(map(abs, fixed.noisy[name].values()))
    for key in chosen:
        assert found[key] == pytest.approx(true[key], abs=1e-9 * (1 + largest))


@given(cases(), st.data())
@thorough(60)
def test_permuting_values_permutes_the_answer(case, data):
    """Listing the values of a dimension in another order, with the data alike, gives every type the same count."""
    model = case.model
    values = tuple(tuple(data.draw(st.permutations(v))) for v in model.values)
    labels = {n: Labelling(m.of, m.table, m.given) for n, m in model.labels.items()}
    other = replace(case, model=Model(values, labels, model.zeros))
    dag, estimate = case.solve()
    dag2, estimate2 = other.solve()
    one = dict(zip(model.types, case.leaves(dag, estimate), strict=True))
    two = dict(zip(other.model.types, other.leaves(dag2, estimate2), strict=True))
    np.testing.assert_allclose([two[t] for t in one], list(one.values()), atol=1e-8 * size_of(case), rtol=0)


@given(cases(), st.floats(-6, 6))
@thorough(60)
def test_only_ratios_of_weights_matter(case, power):
    """All weights times one constant give the same answer."""
    dag, estimate = case.solve()
    times = {n: {k: v * 10**power for k, v in w.items()} for n, w in case.weight.items()}
    _, other = replace(case, weight=times, rule=None).solve()
    np.testing.assert_allclose(
        other.counts("singleton"), estimate.counts("singleton"), atol=1e-8 * size_of(case), rtol=0
    )
    assert dag.universe.size == len(case.model.types)


@given(cases(), st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 1e4, -1e9, 1e12]))
@thorough(60)
def test_warm_start_changes_nothing(case, seed, factor):
    """Starting from the answer to other data of the same features gives the same answer."""
    rng = np.random.default_rng(seed)
    other = replace(
        case, noisy={n: {k: v * factor + rng.normal() for k, v in m.items()} for n, m in case.noisy.items()}
    )
    dag, cold = case.solve()
    _, elsewhere = other.solve()
    for start in (cold, elsewhere):
        _, warm = case.solve(warm_start=start)
        assert warm.solution.kkt_residual <= CERTIFIED
        np.testing.assert_allclose(
            warm.counts("singleton"), cold.counts("singleton"), atol=1e-8 * size_of(case), rtol=0
        )
    assert case.solve(warm_start=cold)[1].solution.iterations <= 3
    assert dag.universe.size


@given(cases(), st.integers(0, 10**6))
@thorough(80)
def test_consistent_counts_are_left_alone(case, seed):
    """Counts that are consistent and non-negative already are returned, at no cost and with prices of zero."""
    true = case.truth(seed)
    dag, estimate = case.around(true, 0, 0).solve()
    np.testing.assert_allclose(case.leaves(dag, estimate), true, atol=1e-9 * (1 + true.max()), rtol=0)
    assert estimate.solution.objective <= 1e-15 * (1 + cost(case.around(true, 0, 0), 0 * true))
    _, again = case.around(case.leaves(*case.solve()), 0, 0).solve()
    np.testing.assert_allclose(
        again.counts("singleton"),
        case.solve()[1].counts("singleton"),
        atol=1e-9 * (1 + size_of(case)),
        rtol=0,
    )
