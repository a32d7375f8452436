"""Prices for sets that the network cannot hold."""

from __future__ import annotations

import numpy as np

from cbdp.features import Dimension, Feature, FeatureDag, Universe
from cbdp.rounding import crossing as leaning
from cbdp.rounding.bounds import cell_problem, rounding_sets
from cbdp.rounding.crossing import crossing_pairs, exact_features, second_family
from cbdp.rounding.network import min_cost_flow, network_of


def test_what_is_added_to_costs_is_about_normal_and_the_same_for_the_same_cell() -> None:
    """Of a million: mean and deviation within five standard errors, beyond two deviations 4.55 % give or take the sum of four."""
    cells = np.arange(10**6)
    told = leaning._hash_perturbation(cells, 10_000)
    assert np.array_equal(told[500:600], leaning._hash_perturbation(cells[500:600], 10_000))
    assert abs(told.mean()) < 5 * 10_000 / 1000
    assert abs(told.std() / 10_000 - 7 / 8 * 2 / np.sqrt(3)) < 5 / np.sqrt(2 * 10**6)
    assert 0.035 < np.mean(np.abs(told) > 2 * told.std()) < 0.05
    assert abs(np.corrcoef(told[1:], told[:-1])[0, 1]) < 5 / 1000


def test_costs_that_are_moved_bring_soft_sets_nearer_to_their_bounds() -> None:
    """Equal costs, three crossing tables: the flow alone picks the first cells, and most destinations end up far from their counts."""
    place = Dimension(range(20), zone=[i // 5 for i in range(20)])
    universe = Universe(origin=place, destination=place, time=range(12))
    tables = [["origin", "destination.zone"], ["time", "destination.zone"], ["destination"]]
    features = FeatureDag(universe, [Feature(" ".join(by), by=by) for by in tables])
    value = np.full(universe.size, 0.05)
    problem = cell_problem(rounding_sets(features, np.arange(universe.size), value))
    crossing = crossing_pairs(problem)
    soft = ~np.isin(problem.feature_of(), exact_features(problem, crossing))
    assert soft.any()
    network = network_of(problem, soft, second_family(crossing, soft))

    def out_of_bounds(up: np.ndarray) -> int:
        count = np.bincount(problem.set_of_cell.ravel(), np.tile(up, len(problem.set_of_cell)), len(soft))
        return int(
            np.where(soft, np.maximum(np.maximum(problem.low - count, count - problem.high), 0), 0).sum()
        )

    alone = out_of_bounds(min_cost_flow(network, problem.cost).up)
    leant = out_of_bounds(min_cost_flow(network, leaning.lagrangian_costs(problem, soft)).up)
    assert leant < 0.7 * alone
    assert out_of_bounds(leaning.round_crossing(problem, crossing, soft)) == 0
