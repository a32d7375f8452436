"""Tables of few counts hold what trip types add up to: no sum is worse than its own noise because counts cannot be negative."""

from __future__ import annotations

import numpy as np
import pytest

import cbdp
from benchmarks.harness.elsewhere import elsewhere, network
from cbdp.estimation.compiler import compile as compiled
from cbdp.estimation.compiler import merge_measurements
from cbdp.estimation.posterior.benchmarking import Benchmarks
from cbdp.estimation.posterior.rate_model import expected_total
from cbdp.estimation.posterior.settings import TUNING
from cbdp_solvers.problem import Problem

DAG = network(12, [s // 3 for s in range(12)], 5)
ALL = np.arange(DAG.universe.size)


def _noisy(seed: int) -> list[cbdp.Measurement]:
    rng = np.random.default_rng(seed)
    return [
        cbdp.Measurement(name, rng.integers(0, 50, DAG.size(name)), scale=2)
        for name in ("total", "time", "zone")
    ] + [cbdp.Measurement("singleton", rng.integers(-3, 4, len(ALL)), scale=2)]


def _held(tables: list[cbdp.Measurement]) -> tuple[Problem, Problem]:
    problem = compiled(DAG, tables, "inverse-variance")
    return problem, Benchmarks(DAG, merge_measurements(DAG, tables)).hold(problem)


def test_the_fewer_counts_a_table_has_the_more_it_is_held_to_what_was_measured() -> None:
    """To the inverse-variance combination of its own counts and the sums of finer ones, by least squares on these alone."""
    tables = _noisy(1)
    problem, made = _held(tables)
    held = {term.name: term for term in made.terms}
    for before in problem.terms:
        after, many = held[before.name], len(before.target)
        np.testing.assert_allclose(after.weight, before.weight * (1 + _more(many)))
        if before.name == "total":
            wanted = np.array([expected_total(tables, 0.0)])
        else:
            wanted = _combined(before.name, [m for m in tables if m.feature != "total"])
        more = _more(many)
        np.testing.assert_allclose(after.target, (before.target + more * wanted) / (1 + more))
    np.testing.assert_array_equal(made.target, problem.target)


def test_margins_of_few_elements_that_tables_add_up_to_get_a_term() -> None:
    """At the inverse-variance combination of the tables that refine them, by the same arithmetic; a table's own elements get none again."""
    problem, made = _held(_noisy(1))
    names = {term.name for term in problem.terms}
    derived = [term for term in made.terms if term.name not in names]
    assert derived
    held = [term.element_of_cell.tolist() for term in made.terms]
    assert all(held.count(elements) == 1 for elements in held)
    for term in derived:
        size = len(term.target)
        assert 1 < size <= TUNING.benchmarked_elements
        weighted, precision = np.zeros(size), np.zeros(size)
        for m in _noisy(1):
            member = np.zeros((size, len(m.values)), dtype=bool)
            member[term.element_of_cell[DAG.cell_of_leaf], DAG.partition(m.feature).of_every_type()] = True
            if (member.sum(axis=0) == 1).all():  # it refines the margin
                weighted += member @ m.values / (member @ m.variance)
                precision += 1.0 / (member @ m.variance)
        np.testing.assert_allclose(term.target, weighted / precision)
        np.testing.assert_allclose(term.weight, precision * _more(size))


def _more(elements: int) -> float:
    """How many times its precision that combination weighs: 20/n, and from three elements down its square over 5."""
    return 20 / elements if elements > 3 else 80 / elements**2


def _combined(name: str, tables: list[cbdp.Measurement]) -> np.ndarray:
    """Tables that do not refine this one are left out; the others are added up, and averaged by inverse variance."""
    own, told, precision = DAG.partition(name).of_every_type(), 0.0, 0.0
    for m in tables:
        if DAG.size(m.feature) < DAG.size(name):
            continue
        fine = DAG.partition(m.feature).of_every_type()
        member = np.zeros((DAG.size(name), len(m.values)))
        member[own, fine] = 1.0
        told = told + member @ m.values / (member @ m.variance)
        precision = precision + 1.0 / (member @ m.variance)
    return np.asarray(told / precision)


def test_a_public_total_stays_as_it_is() -> None:
    """The number of trips that noise speaks for is no match for one that is known."""
    tables = [cbdp.Measurement("total", [400], exact=True), *_noisy(2)[1:]]
    term = _held(tables)[1].terms[0]
    assert (term.name, term.target.tolist(), term.weight.tolist()) == ("total", [400.0], [np.inf])
    assert cbdp.post_process(DAG, tables).counts("total") == pytest.approx([400.0])


def test_next_to_no_noise_leaves_the_total_as_it_is() -> None:
    """Also where there are no trips at all: none is invented."""
    for true in (0, 1, 5):
        told = [
            cbdp.Measurement("total", [true], scale=0.05),
            cbdp.Measurement("singleton", 0 * ALL, scale=3),
        ]
        assert expected_total(told, 0.0) == pytest.approx(true, abs=0.01)
    release = cbdp.ConstraintBased(DAG, 1000).simulate(np.zeros(len(ALL), dtype=np.int64), 1)
    assert release.total == 0


@pytest.mark.slow
def test_no_table_is_worse_than_its_noise_or_a_projection_of_the_same_answers() -> None:
    """Few trips among many types, where noise of zones, clipped at none, used to move the total by half of its noise's deviation."""
    features, truth = elsewhere("night")
    mechanism = cbdp.ConstraintBased(features, "0.1", budget="balanced")
    squares: dict[str, list[list[float]]] = {}
    for seed in range(40):
        release = mechanism.simulate(truth, seed)
        projected = cbdp.post_process(features, release.measurements, estimator="projection")
        assert release.estimate is not None
        for m in release.measurements[:-1]:
            element = features.partition(m.feature).of_every_type()
            true = np.bincount(element, truth, features.size(m.feature))
            found = (release.estimate.counts(m.feature), projected.counts(m.feature), m.values)
            squares.setdefault(m.feature, []).append([float(np.mean((x - true) ** 2)) for x in found])
    for name, rows in squares.items():
        ours, *others = np.sqrt(np.mean(rows, axis=0))
        assert ours <= 1.05 * min(others), name
