"""The hierarchical closed form against independent least squares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbdp.estimation.gls import Tree, bottom_up, tree_least_squares


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Random trees in which every inner node has children."""
    parent = []
    size = 1
    for _ in range(draw(st.integers(1, 3))):
        children = [draw(st.integers(1, 3)) for _ in range(size)]
        parent.append(np.repeat(np.arange(size), children))
        size = sum(children)
    return Tree(parent)


def _dense_gls(tree: Tree, noisy: list[np.ndarray], variance: list[float]) -> np.ndarray:
    """Leaves by dense generalised least squares: every measured node is a row."""
    n = tree.sizes[-1]
    rows, values, weights = [np.eye(n)], [noisy[-1]], [np.full(n, 1 / variance[-1])]
    above = np.eye(n)
    for level in range(len(tree.parent) - 1, -1, -1):
        gather = np.zeros((tree.sizes[level], tree.sizes[level + 1]))
        gather[tree.parent[level], np.arange(tree.sizes[level + 1])] = 1
        above = gather @ above
        if np.isfinite(variance[level]):
            rows.append(above)
            values.append(noisy[level])
            weights.append(np.full(tree.sizes[level], 1 / variance[level]))
    a, b, w = np.vstack(rows), np.concatenate(values), np.sqrt(np.concatenate(weights))
    return np.linalg.lstsq(a * w[:, None], b * w, rcond=None)[0]


@settings(deadline=None, max_examples=150)
@given(trees(), st.integers(0, 2**32 - 1), st.booleans())
def test_closed_form_is_generalised_least_squares(tree: Tree, seed: int, root: bool) -> None:
    """Any fan-out, any noise by level, the root measured or not: equal to the dense oracle, and consistent."""
    rng = np.random.default_rng(seed)
    noisy = [rng.normal(0, 10, size) for size in tree.sizes]
    variance = list(10.0 ** rng.uniform(-2, 2, len(tree.sizes)))
    if not root:
        variance[0] = np.inf
    levels = tree_least_squares(tree, noisy, variance)
    np.testing.assert_allclose(levels[-1], _dense_gls(tree, noisy, variance), atol=1e-6)
    for level, parent in enumerate(tree.parent):
        sums = np.bincount(parent, weights=levels[level + 1], minlength=tree.sizes[level])
        np.testing.assert_allclose(levels[level], sums, atol=1e-8)


@pytest.mark.parametrize(("k", "height"), [(2, 4), (3, 3), (10, 2)])
def test_regular_trees_follow_the_formula_of_hay(k: int, height: int) -> None:
    """z[v] = (k^l − k^(l−1))/(k^l − 1) h̃[v] + (k^(l−1) − 1)/(k^l − 1) Σ z[children], then (h̄[u] − Σ z)/k to each child."""
    rng = np.random.default_rng(k)
    tree = Tree([np.repeat(np.arange(k**i), k) for i in range(height - 1)])
    noisy = [rng.normal(0, 5, size) for size in tree.sizes]
    z = [noisy[-1]]
    for length in range(2, height + 1):  # length: the node's height, leaves have 1
        sums = z[0].reshape(-1, k).sum(axis=1)
        own = (k**length - k ** (length - 1)) / (k**length - 1)
        z.insert(0, own * noisy[height - length] + (k ** (length - 1) - 1) / (k**length - 1) * sums)
    final = [z[0]]
    for level in range(1, height):
        gap = (final[-1] - z[level].reshape(-1, k).sum(axis=1)) / k
        final.append(z[level] + np.repeat(gap, k))
    ours = tree_least_squares(tree, noisy, [2.0] * height)
    for mine, hay in zip(ours, final, strict=True):
        np.testing.assert_allclose(mine, hay, atol=1e-9)
    np.testing.assert_allclose(bottom_up(tree, noisy, [2.0] * height)[0][0], z[0], atol=1e-9)


def test_pruning_removes_non_positive_nodes_with_all_below() -> None:
    """A pruned node's descendants are zero, and what remains still adds up where anything remains."""
    tree = Tree([np.array([0, 0]), np.array([0, 0, 1, 1])])
    noisy = [np.array([10.0]), np.array([-4.0, 11.0]), np.array([5.0, -9.0, 6.0, 5.0])]
    total, middle, leaves = tree_least_squares(tree, noisy, [1.0, 1.0, 1.0], prune=True)
    assert middle[0] == 0
    assert leaves[:2].tolist() == [0, 0]
    assert total[0] == pytest.approx(middle.sum())
    assert middle[1] == pytest.approx(leaves[2:].sum())


def test_a_node_above_pruned_children_does_not_count() -> None:
    """Where all children are pruned the leaves say zero, whatever is left of the node above them."""
    total, leaves = tree_least_squares(
        Tree([np.array([0, 0])]), [np.array([10.0]), np.array([-3.0, -4.0])], [1.0, 1.0], prune=True
    )
    assert total[0] == pytest.approx(13 / 3)
    assert leaves.tolist() == [0, 0]
