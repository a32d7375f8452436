"""Three crossing families: what is kept, what is off, and that this is reported as it is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from twins import Twin, check, filled, labelled

from cbdp.rounding.bounds import cell_problem, rounding_sets
from cbdp.rounding.crossing import crossing_pairs, exact_features, largest_bipartite_subset


def _odd(*labels: str) -> Twin:
    """Types of half a trip each, grouped by features p0, p1, p2 by these labels."""
    model, between = labelled({f"p{i}": list(by) for i, by in enumerate(labels)})
    features = {"total": (), **between, "singleton": ("d0",)}
    return Twin(model, features, dict.fromkeys(model.types, Fraction(1, 2)))


def test_three_families_that_cannot_be_kept() -> None:
    """Three features that each pair two of three types: one element of one of them is off by one trip, and said to be."""
    twin = _odd("app", "pap", "ppa")
    rounded, whole = twin.round()
    check(twin, rounded, whole)
    assert list(rounded.violation.values()) == list(rounded.excess.values()) == [1]


@pytest.mark.parametrize("small", range(3))
def test_features_with_the_most_elements_are_exact(small: int) -> None:
    """Of three features that cannot be kept together, the one that tells the fewest types apart is off."""
    labels = [pairs + ("xx" if i == small else "xy") for i, pairs in enumerate(["app", "pap", "ppa"])]
    twin = _odd(*labels)
    rounded, whole = twin.round()
    check(twin, rounded, whole)
    assert rounded.violation == {f"p{small}": 1}


def test_taking_the_largest_feature_first_is_not_always_best() -> None:
    """A feature of five elements that stands in two triangles is left out for four of four elements."""
    triangles = np.array([[0, 1], [0, 2], [1, 2], [0, 3], [0, 4], [3, 4]])
    assert largest_bipartite_subset(np.array([5, 4, 4, 4, 4]), triangles) == [1, 2, 3, 4]


def test_features_that_cross_are_kept_where_their_sets_fit() -> None:
    """Of p0, p1 and p3 any two cross, but no set of one crosses sets of both others: only p2 is given up."""
    apart = "".join(map(chr, range(ord("A"), ord("A") + 18)))  # many types, so that p0 and p1 are the largest
    twin = _odd(
        *("abb" + "ccdd" + "efgh" + apart, "aba" + "cdef" + "gghh" + apart),
        *("aab" + "cccc" + "cccc" + 18 * "c", "aaa" + "bcbc" + "dede" + 18 * "f"),
    )
    _, index, value = twin.estimate(twin.dag())
    problem = cell_problem(rounding_sets(twin.dag(), index, value))
    exact = exact_features(problem, crossing_pairs(problem))
    assert [problem.names[row] for row in exact] == ["p0", "p1", "p3", "total"]


def test_many_crossing_features() -> None:
    """With more features than choices can be compared, all is still reported as it is."""
    rng = np.random.default_rng(5)
    twin = filled(*labelled({f"l{i}": rng.choice(["x", "y", "z"], 24).tolist() for i in range(14)}), 1)
    rounded, whole = twin.round()
    check(twin, rounded, whole)
    assert len(rounded.violation) <= 12
