"""Universes, partitions and their order against brute-force enumeration, and at sizes that cannot be enumerated."""

from __future__ import annotations

import functools
import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Model, feature_lists, models

import cbdp
from cbdp.errors import CbdpError, InputError
from cbdp.features import Dimension, Feature, FeatureDag, Universe, odmts, opal, periods

thorough = settings(deadline=None, max_examples=150, derandomize=True)


def columns(model: Model, trips):
    return [list(column) for column in zip(*trips, strict=True)]


def codes(model: Model, trips):
    return [np.array([v.index(t[d]) for t in trips]) for d, v in enumerate(model.values)]


def some_by(model: Model):
    return st.lists(st.sampled_from(model.attributes()), max_size=4, unique=True).map(tuple)


def element_sets(model: Model, partition):
    """The partition as cbdp numbers it: a list of sets of types."""
    numbers = partition.element_of(codes(model, model.types))
    found = [set() for _ in range(partition.size)]
    for trip, number in zip(model.types, numbers, strict=True):
        found[number].add(trip)
    return [frozenset(s) for s in found]


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


@given(models(types=60), st.data())
@thorough
def test_refinement_is_set_inclusion(model, data):
    """F′ refines F exactly when every element of F′ is a subset of an element of F."""
    features = {"total": (), **data.draw(feature_lists(model)), "singleton": model.names}
    dag = FeatureDag(model.universe(), [Feature(n, by=by) for n, by in features.items()])
    sets = {n: list(model.groups(by).values()) for n, by in features.items()}
    for fine, coarse in itertools.product(features, repeat=2):
        inside = all(any(a <= b for b in sets[coarse]) for a in sets[fine])
        assert dag.refines(fine, coarse) == inside, (fine, coarse)
        if inside:
            mapped = dag.map_elements(fine, coarse)
            fine_sets, coarse_sets = (element_sets(model, dag.partition(n)) for n in (fine, coarse))
            assert all(a <= coarse_sets[j] for a, j in zip(fine_sets, mapped, strict=True))


@given(models(types=60), st.data())
@thorough
def test_graph_and_reduction(model, data):
    """The graph orders all comparable pairs without a cycle; the reduction reaches the same pairs with no edge to spare."""
    features = data.draw(feature_lists(model, most=5))
    dag = FeatureDag(model.universe(), [Feature(n, by=by) for n, by in features.items()])
    names = list(dag.features)
    assert list(dag) == names
    assert names[0] == "total"
    assert names[-1] == "singleton"
    assert set(dag.graph) == set(dag.reduction) == set(names)
    assert nx.is_directed_acyclic_graph(dag.graph)
    sets = {n: set(model.groups(dag.features[n].by).values()) for n in names}
    below = {(f, c): all(any(a <= b for b in sets[c]) for a in sets[f]) for f in names for c in names}
    for fine, coarse in itertools.combinations(names, 2):
        edges = dag.graph.has_edge(fine, coarse) + dag.graph.has_edge(coarse, fine)
        assert edges == (below[fine, coarse] or below[coarse, fine])
    assert all(below[edge] for edge in dag.graph.edges)
    reach = {(a, b) for a in names for b in nx.descendants(dag.reduction, a)}
    assert reach == set(dag.graph.edges)
    assert set(dag.edges) == set(dag.reduction.edges)
    for edge in dag.edges:
        fewer = dag.reduction.copy()
        fewer.remove_edge(*edge)
        assert not nx.has_path(fewer, *edge)


@given(models(types=100), st.data())
@thorough
def test_cells_are_the_common_refinement(model, data):
    """Two types share a cell exactly when every feature but `singleton` puts them into one element."""
    features = data.draw(feature_lists(model))
    dag = FeatureDag(model.universe(), [Feature(n, by=by) for n, by in features.items()])
    held = {n: model.groups(by) for n, by in features.items()}
    atoms = {}
    for trip in model.types:
        at = tuple(next(k for k, s in groups.items() if trip in s) for groups in held.values())
        atoms.setdefault(at, set()).add(trip)
    found = {}
    for i, cell in enumerate(dag.cell_of_leaf):
        found.setdefault(int(cell), set()).add(dag.universe.unrank(i))
    assert sorted(found) == list(range(dag.cells.size))
    assert {frozenset(s) for s in found.values()} == {frozenset(s) for s in atoms.values()}
    for name, of_cell in dag.cells.element_of_cell.items():
        assert (of_cell[dag.cell_of_leaf] == dag.partition(name).of_every_type()).all()


def test_singleton_and_total_are_always_there():
    """A DAG of no features still has both ends, and they may be listed without changing anything."""
    universe = Universe(a=[1, 2], b=[3, 4, 5])
    ends = [Feature("singleton", by=["a", "b"]), Feature("total", by=[])]
    for listed in ([], ends, ends[:1]):
        dag = FeatureDag(universe, listed)
        assert dag.sizes == {"total": 1, "singleton": 6}
        assert dag.edges == (("singleton", "total"),)
        assert "total" in dag
        assert "nope" not in dag


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


U = Universe(
    origin=Dimension(["A", "B"], zone=["n", "s"]), destination=["A", "B"], time=["am", "pm"], day=[1]
)
EYE = np.eye(2, dtype=bool)
BAD = {
    "no dimension": (Universe, "at least one dimension"),
    "no values": (lambda: Universe(origin=[]), "no values"),
    "value twice": (lambda: Dimension(["A", "B", "A"]), "'A'"),
    "missing value": (lambda: Dimension(["A", None]), "None"),
    "NaN value": (lambda: Dimension([1.0, math.nan]), "nan"),
    "unhashable value": (lambda: Dimension([["A"], ["B"]]), "A"),
    "a number for a dimension": (lambda: Universe(origin=5), "5"),
    "dot in a name": (lambda: Universe(**{"origin.zone": ["A"]}), "origin.zone"),
    "unlabelled in a list": (lambda: Dimension(["A", "B"], zone=["n", None]), "'B'"),
    "NaN label": (lambda: Dimension(["A", "B"], zone=[1.0, math.nan]), "'B'"),
    "32-bit NaN label": (lambda: Dimension(["A", "B"], zone=[np.float32(1), np.float32("nan")]), "'B'"),
    "unlabelled in a mapping": (lambda: Dimension(["A", "B"], zone={"A": "n"}), "'B'"),
    "too few labels": (lambda: Dimension(["A", "B"], zone=["n"]), "zone"),
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
    "unknown attribute": (lambda: FeatureDag(U, [Feature("f", by="origin.color")]), "origin.color"),
    "feature twice": (lambda: FeatureDag(U, [Feature("f", by="time"), Feature("f", by="origin")]), "'f'"),
    "attribute twice in a feature": (lambda: Feature("f", by=["time", "time"]), "time"),
    "slash in a name": (lambda: Feature("a/b", by="time"), "a/b"),
    "no name": (lambda: Feature("", by="time"), "''"),
    "total by something": (lambda: FeatureDag(U, [Feature("total", by="time")]), "total"),
    "singleton by less": (lambda: FeatureDag(U, [Feature("singleton", by="time")]), "singleton"),
    "not a feature": (lambda: FeatureDag(U, ["time"]), "time"),
    "unknown feature": (lambda: FeatureDag(U, []).partition("zone"), "zone"),
    "unknown feature's size": (lambda: FeatureDag(U, []).size("zone"), "zone"),
    "unknown finer feature": (lambda: FeatureDag(U, [Feature("f", by="time")]).refines("nope", "f"), "nope"),
    "unknown coarser feature": (lambda: FeatureDag(U, []).refines("singleton", "nope"), "nope"),
    "too few values": (lambda: U.rank("A", "B"), "not 2"),
    "index too large": (lambda: U.unrank(8), "8"),
    "negative index": (lambda: U.unrank(-1), "-1"),
    "too many elements": (
        lambda: Universe(a=range(10**4), b=range(10**4), c=range(10**4)).partition(["a", "b", "c"]), "1000000000000",
    ),
    "odmts level": (lambda: odmts(U, level=2), "2"),
    "odmts without zones": (lambda: odmts(U, level=4), "destination.zone"),
    "odmts without modes": (lambda: odmts(Universe(origin=["A"], destination=["A"], time=[1]), {"A": 1}, {}), "mode"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_definitions_are_refused(what):
    """Each wrong definition is an InputError that names the wrong value."""
    make, message = BAD[what]
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("start", "end", "every", "wrong"),
    [
        ("8", "10:00", "30min", "'8'"),
        ("25:00", "26:00", "30min", "'25:00'"),
        ("08:60", "10:00", "30min", "'08:60'"),
        ("08:00:61", "10:00", "30min", "'08:00:61'"),
        ("-1:00", "10:00", "30min", "'-1:00'"),
        ("eight", "10:00", "30min", "'eight'"),
        ("08:00", "24:01", "30min", "'24:01'"),
        ("10:00", "08:00", "30min", "'08:00'"),
        ("08:00", "08:00", "30min", "'08:00'"),
        ("08:00", "10:00", "7min", "'7min'"),
        ("08:00", "10:00", "0min", "'0min'"),
        ("08:00", "10:00", "-30min", "'-30min'"),
        ("08:00", "10:00", "30", "'30'"),
        ("08:00", "10:00", "min", "'min'"),
        ("08:00", "10:00", "1.5h", "'1.5h'"),
        ("08:00", "10:00", "2days", "'2days'"),
        ("08:00", "10:00", "²min", "'²min'"),
        ("08:00", "10:00", "", "''"),
    ],
)
def test_bad_periods_are_refused(start, end, every, wrong):
    """A time of day or a length that cannot be read is named in the error."""
    with pytest.raises(InputError, match=wrong):
        periods(start, end, every)


@given(st.integers(0, 1439), st.integers(1, 300), st.integers(1, 200))
@settings(deadline=None, derandomize=True)
def test_periods_cover_the_day(begin, step, number):
    """Periods are named by their first minute and follow each other without a gap."""
    end = begin + step * number
    if end > 1440:
        return
    made = periods(f"{begin // 60:02d}:{begin % 60:02d}", f"{end // 60:02d}:{end % 60:02d}", f"{step}min")
    minutes = range(begin, end, step)
    assert made.values == tuple(f"{m // 60:02d}:{m % 60:02d}" for m in minutes)
    assert made.edges == (*(m * 60 for m in minutes), end * 60)


def test_periods_of_seconds_are_named_by_the_second():
    """A length below a minute, or a start within one, shows seconds."""
    assert periods("23:59", "24:00", "20s").values == ("23:59:00", "23:59:20", "23:59:40")
    assert periods("08:00:30", "10:00:30", "1h").values == ("08:00:30", "09:00:30")


def city(stops=130, zones=4, modes=12, times=4):
    names = [f"s{i}" for i in range(stops)]
    universe = Universe(origin=names, destination=names, time=[f"t{i}" for i in range(times)])
    mode = np.add.outer(np.arange(stops), 3 * np.arange(stops)) % modes
    return universe, {s: f"z{i % zones}" for i, s in enumerate(names)}, mode


def test_odmts_has_the_paper_sizes():
    """130 stops, 4 zones, 12 modes and 4 periods make the case study's features of 1, 4, 64, 48 and 67,600 elements."""
    universe, zones, modes = city()
    dag = odmts(universe, zones, modes)
    assert dag.sizes == {"total": 1, "time": 4, "zone": 64, "mode": 48, "singleton": 67_600}
    assert set(dag.edges) == {
        ("time", "total"), ("zone", "time"), ("mode", "time"), ("singleton", "zone"), ("singleton", "mode"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("level", "names"),
    [(3, ["total", "time", "singleton"]), (4, ["total", "time", "zone", "singleton"]),
     (5, ["total", "time", "zone", "mode", "singleton"])],
)  # fmt: skip
def test_odmts_levels(level, names):
    """Levels 3, 4 and 5 are the paper's O3, O4 and O5, each with one more feature."""
    universe, zones, modes = city(stops=12)
    assert list(odmts(universe, zones, modes, level=level)) == names


class Fares:
    def of_pair(self, o, d):
        return o == d

    def __call__(self, o, d, t):
        return (o == d, t)


PAIRS = {(o, d): o == d for o in "AB" for d in "AB"}
TRIPLES = {(o, d, t): (o == d, t) for o in "AB" for d in "AB" for t in "xy"}
MODES = {
    "a mapping of pairs": (PAIRS, 2),
    "a mapping of triples": (TRIPLES, 3),
    "a function of pairs": (lambda o, d: o == d, 2),
    "a function of triples": (lambda o, d, t: (o == d, t), 3),
    "a partial function": (functools.partial(lambda k, o, d: (o == d) + k, 1), 2),
    "a bound method": (Fares().of_pair, 2),
    "a callable object": (Fares(), 3),
    "an array of pairs": (np.eye(2), 2),
    "an array of triples": (np.stack([np.eye(2), 2 + np.eye(2)], axis=-1), 3),
    "lists of pairs": ([[1, 0], [0, 1]], 2),
    "lists of triples": ([[[1, 3], [0, 2]], [[0, 2], [1, 3]]], 3),
}


@pytest.mark.parametrize("kind", MODES)
def test_odmts_reads_modes_of_any_kind(kind):
    """Modes given in any form are of the pair or of the triple as they are given, and label alike."""
    modes, width = MODES[kind]
    universe = Universe(origin=list("AB"), destination=list("AB"), time=list("xy"))
    dag = odmts(universe, {"A": "n", "B": "s"}, modes)
    assert len(dag.universe.attribute("mode").of) == width
    assert dag.sizes["mode"] == 4
    assert {len(set(s)) for s in [dag.universe.count_types(["mode", "time"])]} == {1}


def test_structural_zeros_need_no_label():
    """A mapping need not label combinations that cannot occur."""
    universe = Universe(origin=list("AB"), destination=list("AB"), time=list("xy")).without_equal(
        "origin", "destination"
    )
    dag = odmts(universe, {"A": "n", "B": "s"}, {("A", "B"): "bus", ("B", "A"): "walk"})
    assert dag.sizes["mode"] == 4


def test_opal_tables():
    """Opal's tables are taps by kind, by kind and time, by kind and location, and all three."""
    dag = opal(Universe(tap=["on", "off"], time=periods("04:00", "24:00", "15min"), location=range(300)))
    assert dag.sizes == {"total": 1, "tap": 2, "time": 160, "location": 600, "singleton": 48_000}
    assert set(dag.edges) == {
        ("tap", "total"), ("time", "tap"), ("location", "tap"), ("singleton", "time"), ("singleton", "location"),
    }  # fmt: skip


def test_mermaid_text():
    """The Mermaid text has a box per feature with its size and an arrow per edge of the reduction."""
    stops = Dimension(["A", "B", "C"], zone=["n", "n", "s"])
    features = [Feature("zone & time", by=["origin.zone", "time"]), Feature("time", by="time")]
    dag = FeatureDag(Universe(origin=stops, time=["am", "pm"]), features)
    lines = dag.mermaid().splitlines()
    assert lines[0] == "graph TD"
    boxes = {line.split("[")[0].strip(): line for line in lines if "[" in line}
    arrows = [tuple(line.split()[::2]) for line in lines if "-->" in line]
    assert len(boxes) == 4
    assert len(arrows) == len(dag.edges) == 3
    assert all(end in boxes for arrow in arrows for end in arrow)
    assert '"zone & time<br/>origin.zone × time<br/>4"' in dag.mermaid()
    assert all(name.replace("_", "").isalnum() for name in boxes)


def test_mermaid_survives_any_name():
    """A quote in a feature's name does not end its box, and names that differ have boxes that differ."""
    universe = Universe(a=[1, 2], b=[1, 2])
    dag = FeatureDag(universe, [Feature('say "a"', by="a"), Feature("a_b", by="b"), Feature("a b", by="b")])
    boxes = [line.strip() for line in dag.mermaid().splitlines() if "[" in line]
    assert len({box.split("[")[0] for box in boxes}) == 5
    assert all(box.count('"') == 2 for box in boxes)


def test_picture(tmp_path):
    """The picture is a PNG of some size whose pixels are neither one colour nor nearly all blank."""
    import matplotlib.image

    universe, zones, modes = city(stops=12)
    path = odmts(universe, zones, modes).draw(tmp_path / "dag.png")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    pixels = matplotlib.image.imread(path)
    assert min(pixels.shape[:2]) > 300
    inked = (pixels[..., :3].min(axis=-1) < 0.97).mean()
    assert 0.05 < inked < 0.9
    rows = (pixels[..., :3].min(axis=-1) < 0.6).any(axis=1)
    assert rows.mean() > 0.2


@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_picture_in_other_formats(tmp_path, ending):
    """The path's ending chooses the format."""
    path = FeatureDag(U, [Feature("time", by="time")]).draw(tmp_path / f"dag.{ending}")
    assert (b"<svg" if ending == "svg" else b"%PDF") in path.read_bytes()[:1000]


def test_public_names():
    """The names of the design are those of the package."""
    assert cbdp.Universe is Universe
    assert cbdp.FeatureDag is FeatureDag
    assert cbdp.features.odmts is odmts
    assert issubclass(InputError, CbdpError)
