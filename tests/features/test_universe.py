"""Universes against brute-force enumeration, and at sizes that cannot be enumerated."""

from __future__ import annotations

import functools
import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from listed import U, columns, thorough
from strategies import models

from cbdp.errors import InputError
from cbdp.features import Dimension, Feature, FeatureDag, Universe, odmts


@given(models())
@thorough
def test_rank_and_unrank_are_inverse_bijections(model):
    """The indices 0…size−1 and the listed types correspond one to one, both ways."""
    universe = model.universe()
    assert universe.size == len(model.types)
    listed = [universe.unrank(i) for i in range(universe.size)]
    assert set(listed) == set(model.types)
    assert [universe.rank(*t) for t in listed] == list(range(universe.size))
    assert universe.rank(*columns(model, listed)).tolist() == list(range(universe.size))


@given(models())
@thorough
def test_index_order_is_lexicographic(model):
    """Types stand in lexicographic order of their dimensions, those tied by structural zeros taken together."""
    tied = nx.Graph()
    tied.add_nodes_from(range(len(model.values)))
    for of, _ in model.zeros:
        tied.add_edges_from(itertools.pairwise(of))
    order = [d for group in sorted(sorted(g) for g in nx.connected_components(tied)) for d in group]
    place = [{v: i for i, v in enumerate(values)} for values in model.values]
    expected = sorted(model.types, key=lambda t: [place[d][t[d]] for d in order])
    universe = model.universe()
    assert [universe.unrank(i) for i in range(universe.size)] == expected


@given(models())
@thorough
def test_structural_zeros_and_strangers_have_no_rank(model):
    """A structural zero, and a type with a value that no dimension has, rank −1."""
    universe = model.universe()
    zeros = [t for t in itertools.product(*model.values) if model.is_zero(t)]
    for trip in zeros:
        assert universe.rank(*trip) == -1
    if zeros:
        mixed = [*zeros, model.types[0]]
        assert (universe.rank(*columns(model, mixed)) < 0).tolist() == [True] * len(zeros) + [False]
    for d in range(len(model.values)):
        stranger = list(model.types[0])
        stranger[d] = "nowhere"
        assert universe.rank(*stranger) == -1


@functools.cache
def huge():
    stops = Dimension(range(1000), zone=[i // 250 for i in range(1000)])
    universe = Universe(origin=stops, destination=stops, time=range(1000), day=range(1000))
    mode = np.add.outer(np.arange(1000), np.arange(1000)) % 7
    return universe.with_attribute("mode", ["origin", "destination"], mode).without_equal(
        "origin", "destination"
    )


def test_huge_universe_ranks_without_enumeration():
    """With 10¹² types less origin = destination, the index is the arithmetic one and inverts."""
    universe = huge()
    assert universe.size == 999_000 * 10**6
    rng = np.random.default_rng(0)
    for o, d, t, y in rng.integers(0, 1000, (200, 4)).tolist():
        expected = -1 if o == d else ((o * 999 + d - (d > o)) * 1000 + t) * 1000 + y
        assert universe.rank(o, d, t, y) == expected
        if o != d:
            assert universe.unrank(expected) == (o, d, t, y)
    index = rng.integers(0, universe.size, 1000)
    assert (universe.rank_codes(universe.unrank_codes(index)) == index).all()
    assert universe.unrank(universe.size - 1) == (999, 998, 999, 999)


def test_huge_universe_counts_types_and_cells():
    """Feature sizes, types per element and cells of 10¹² types match arithmetic on pairs alone."""
    features = [
        Feature("time", by="time"),
        Feature("zone", by=["origin.zone", "destination.zone", "day"]),
        Feature("mode", by=["mode", "day"]),
        Feature("mode_zone", by=["mode", "origin.zone"]),
    ]
    dag = FeatureDag(huge(), features)
    assert dag.sizes == {
        "total": 1, "time": 1000, "zone": 16_000, "mode": 7000, "mode_zone": 28, "singleton": 999_000_000_000,
    }  # fmt: skip
    o, d = np.divmod(np.arange(10**6), 1000)
    o, d = o[o != d], d[o != d]
    by_mode = np.bincount((o + d) % 7)
    assert dag.universe.count_types(["mode"]).tolist() == (by_mode * 10**6).tolist()
    assert dag.universe.count_types(["mode", "day"]).tolist() == np.repeat(by_mode * 1000, 1000).tolist()
    assert dag.universe.count_types([]).tolist() == [dag.universe.size]
    small = FeatureDag(huge(), [features[2], features[3]])
    assert small.cells.size == 7 * 4 * 1000
    assert small.cells.partition.sizes.sum() == dag.universe.size
    assert set(dag.edges) == {
        ("time", "total"), ("zone", "total"), ("mode", "total"), ("mode_zone", "total"),
        ("singleton", "time"), ("singleton", "zone"), ("singleton", "mode"), ("singleton", "mode_zone"),
    }  # fmt: skip


def test_size_limit():
    """2⁶³ − 1 types are the most an index can name: 2⁶² work to the last one, 2⁶³ are refused."""
    half = range(2**15)
    universe = Universe(a=half, b=half, c=half, d=half, e=range(4))
    assert universe.size == 2**62
    assert universe.rank(*universe.unrank(2**62 - 1)) == 2**62 - 1
    with pytest.raises(InputError, match="9223372036854775808"):
        Universe(a=half, b=half, c=half, d=half, e=range(8))


EYE = np.eye(2, dtype=bool)
BAD = {
    "no dimension": (Universe, "at least one dimension"),
    "a number for a dimension": (lambda: Universe(origin=5), "5"),
    "dot in a name": (lambda: Universe(**{"origin.zone": ["A"]}), "origin.zone"),
    "unhashable label": (lambda: Universe(a=Dimension(["A", "B"], zone=[["n"], ["s"]])), "zone"),
    "pair not labelled": (lambda: U.with_attribute("m", ["origin", "time"], {("A", "am"): 1}), "'A', 'pm'"),
    "function gives None": (lambda: U.with_attribute("m", ["origin", "time"], lambda o, t: None), "'A', 'am'"),
    "wrong label shape": (lambda: U.with_attribute("m", ["origin", "time"], np.zeros((2, 3))), r"\(2, 3\)"),
    "ragged labels": (lambda: U.with_attribute("m", ["origin", "time"], [[1, 2], [3]]), "m"),
    "four dimensions": (
        lambda: U.with_attribute("m", ["origin", "destination", "time", "day"], np.zeros((2, 2, 2, 1))), "4 dim",
    ),
    "no dimensions": (lambda: U.with_attribute("m", [], np.array(1)), "0 dim"),
    "dimension twice": (lambda: U.with_attribute("m", ["origin", "origin"], np.zeros((2, 2))), "origin"),
    "attribute twice": (lambda: U.with_attribute("origin.zone", ["origin"], [1, 2]), "origin.zone"),
    "unknown dimension": (lambda: U.with_attribute("m", ["via"], [1, 2]), "via"),
    "zeros of an unknown dimension": (lambda: U.without(["via"], [True, False]), "via"),
    "zeros of a dimension twice": (lambda: U.without(["origin", "origin"], EYE), "origin"),
    "zeros of the wrong shape": (lambda: U.without(["origin", "destination"], EYE[:1]), r"\(1, 2\)"),
    "nothing left": (lambda: U.without(["origin"], [True, True]), "empty"),
    "nothing left by two masks": (lambda: U.without(["origin", "destination"], EYE).without(["destination", "origin"], ~EYE), "empty"),
    "too few values": (lambda: U.rank("A", "B"), "not 2"),
    "index too large": (lambda: U.unrank(8), "8"),
    "negative index": (lambda: U.unrank(-1), "-1"),
    "too many elements": (
        lambda: Universe(a=range(10**4), b=range(10**4), c=range(10**4)).partition(["a", "b", "c"]), "1000000000000",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_definitions_are_refused(what):
    """Each wrong definition is an InputError that names the wrong value."""
    make, message = BAD[what]
    with pytest.raises(InputError, match=message):
        make()


def test_structural_zeros_need_no_label():
    """A mapping need not label combinations that cannot occur."""
    universe = Universe(origin=list("AB"), destination=list("AB"), time=list("xy")).without_equal(
        "origin", "destination"
    )
    dag = odmts(universe, {"A": "n", "B": "s"}, {("A", "B"): "bus", ("B", "A"): "walk"})
    assert dag.sizes["mode"] == 4
