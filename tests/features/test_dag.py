"""Features ordered by refinement: derived, verified, and drawn."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from listed import U, city, element_sets, thorough
from strategies import feature_lists, models

import cbdp
from cbdp.errors import CbdpError, InputError
from cbdp.features import Dimension, Feature, FeatureDag, Universe, odmts


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


BAD = {
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
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_definitions_are_refused(what):
    """Each wrong definition is an InputError that names the wrong value."""
    make, message = BAD[what]
    with pytest.raises(InputError, match=message):
        make()


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
