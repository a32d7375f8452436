"""Types by element and place, in universes listed by hand and in the largest there can be."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Model, feature_lists, models
from wide import widest

from cbdp.features import Universe


@given(models().flatmap(lambda m: st.tuples(st.just(m), feature_lists(m))))
@settings(deadline=None, max_examples=150, derandomize=True)
def test_every_type_has_one_element_and_place(drawn: tuple[Model, dict[str, tuple[str, ...]]]) -> None:
    """Over all elements and places, `type_at` meets every trip type once, and each in the element listed by hand."""
    model, features = drawn
    universe = model.universe()
    codes = universe.unrank_codes(np.arange(universe.size))
    values = [d.values for d in universe.dimensions.values()]
    for by in {*features.values(), (), model.names}:
        partition = universe.partition(by)
        sizes = partition.sizes
        element = np.repeat(np.arange(partition.size), sizes)
        place = np.arange(universe.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        index = partition.type_at(element, place)
        assert np.array_equal(np.sort(index), np.arange(universe.size))
        assert np.array_equal(partition.element_of([c[index] for c in codes]), element)
        keys = list(zip(*partition.keys().values(), strict=True)) if by else [()]
        groups = model.groups(by)
        for j, key in enumerate(keys):
            trips = {tuple(v[c[i]] for v, c in zip(values, codes, strict=True)) for i in index[element == j]}
            assert trips == groups[key]


def check_corners(universe: Universe, partition: Any, seed: int) -> None:
    """Ranks, elements and places fit each other at the ends and anywhere between."""
    rng = np.random.default_rng(seed)
    index = np.append(rng.integers(0, universe.size, 2000), [0, 1, universe.size - 2, universe.size - 1])
    codes = universe.unrank_codes(index)
    assert np.array_equal(universe.rank_codes(codes), index)
    assert universe.rank(*universe.unrank(universe.size - 1)) == universe.size - 1
    sizes = partition.sizes
    assert sum(sizes.tolist()) == universe.size
    element = rng.integers(0, partition.size, 2000)
    place = np.where(rng.random(2000) < 0.2, sizes[element] - 1, rng.integers(0, sizes[element]))
    found = partition.type_at(element, place)
    assert ((found >= 0) & (found < universe.size)).all()
    assert np.array_equal(partition.element_of(universe.unrank_codes(found)), element)
    pairs = set(zip(element.tolist(), place.tolist(), strict=True))
    assert len(np.unique(found)) == len(pairs)


def test_types_by_number_in_the_largest_universes() -> None:
    """2^62 types with a pair attribute, others with structural zeros, and 2^63 − 1, the most there can be."""
    check_corners(widest().universe, widest().cells.partition, 1)
    zeros = (
        widest()
        .universe.without_equal("origin", "destination")
        .without(["time", "origin"], lambda t, o: t == o)
    )
    check_corners(zeros, zeros.partition(["mode", "time"]), 2)
    check_corners(zeros, zeros.partition(["x", "mode"]), 3)
    factors = (49, 73, 127, 337, 92737, 649657)  # of 2^63 − 1
    most = Universe(**{f"d{i}": range(n) for i, n in enumerate(factors)})
    assert most.size == 2**63 - 1
    check_corners(most, most.partition(["d2", "d0"]), 4)
    check_corners(most, most.partition([]), 5)
