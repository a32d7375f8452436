"""Partitions against brute-force enumeration."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from listed import codes, columns, element_sets, some_by, thorough
from strategies import models

from cbdp.features import Feature, FeatureDag


@given(models(), st.data())
@thorough
def test_partitions_are_the_brute_force_ones(model, data):
    """Elements, their sizes and their keys are those found by labelling every type."""
    by = data.draw(some_by(model))
    universe = model.universe()
    partition = universe.partition(by)
    groups = model.groups(by)
    assert partition.size == len(groups)
    found = element_sets(model, partition)
    assert partition.sizes.tolist() == universe.count_types(by).tolist() == [len(s) for s in found]
    keys = partition.keys()
    assert tuple(keys) == by
    for number, group in enumerate(found):
        assert groups[tuple(keys[a][number] for a in by)] == group


@given(models(), st.data())
@thorough
def test_every_type_and_representatives(model, data):
    """`of_every_type` follows the index order, and each element's representative is a type of its own."""
    by = data.draw(some_by(model))
    universe = model.universe()
    partition = universe.partition(by)
    in_order = [universe.unrank(i) for i in range(universe.size)]
    assert partition.of_every_type().tolist() == partition.element_of(codes(model, in_order)).tolist()
    chosen = partition.representatives()
    assert partition.element_of(chosen).tolist() == list(range(partition.size))
    for row in range(partition.size):
        assert tuple(v[c[row]] for v, c in zip(model.values, chosen, strict=True)) in set(model.types)


@given(models(), st.data())
@thorough
def test_find_undoes_keys(model, data):
    """Looking up the keys in any order gives the elements back, and labels that do not occur together give −1."""
    by = data.draw(some_by(model))
    partition = model.universe().partition(by)
    if not by:
        assert partition.find({}).tolist() == [0]
        return
    keys = partition.keys()
    order = data.draw(st.permutations(range(partition.size)))
    assert partition.find({a: [c[i] for i in order] for a, c in keys.items()}).tolist() == list(order)
    groups = model.groups(by)
    every = list(itertools.product(*({model.label(a, t) for t in model.types} for a in by)))
    absent = [key for key in every if key not in groups] + [("nowhere",) * len(by)]
    assert set(partition.find(dict(zip(by, columns(model, absent), strict=True)))) == {-1}


@given(models(), st.data())
@thorough
def test_singleton_is_numbered_by_rank(model, data):
    """Element i of `singleton` is the type with index i, however its dimensions are listed."""
    by = data.draw(st.permutations(model.names))
    dag = FeatureDag(model.universe(), [Feature("singleton", by=by)])
    keys = dag.partition("singleton").keys()
    for i in range(dag.universe.size):
        assert tuple(keys[d][i] for d in model.names) == dag.universe.unrank(i)
