"""The files of a release: what is written is all or nothing, says what it is, and comes back as it was."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import feature_lists, models

import cbdp
from cbdp import mechanisms
from cbdp.errors import InputError
from cbdp.estimate.intervals import Interval
from cbdp.features.places import Stops
from cbdp.mechanisms import Mechanism
from cbdp.privacy.claim import Claim
from cbdp.privacy.composition import Parallel, Sequential, Spend
from cbdp.release.labels import KINDS, column, decoded, encoded, kind_of, labels_of
from cbdp.release.layout import check
from cbdp.release.loading import load
from cbdp.release.recipe import Recipe
from cbdp.release.release import Release
from cbdp.release.saving import leftovers
from cbdp.release.schema import check as check_manifest
from cbdp.release.schema import schema
from cbdp.release.universe_files import universe_hash

jsonschema = pytest.importorskip("jsonschema")


def _city(hours: int = 2) -> cbdp.FeatureDag:
    stops = cbdp.Dimension(["A", "B", "C", "D"], zone=["n", "n", "s", "s"])
    universe = cbdp.Universe(
        origin=stops, destination=stops, time=cbdp.periods("06:00", f"{6 + hours:02d}:00", "1h")
    ).without_equal("origin", "destination")
    modes = np.array([["walk", "bus", "bus", "rail"]] * 4)
    universe = universe.with_attribute("mode", ["origin", "destination"], modes)
    return cbdp.FeatureDag(
        universe,
        [
            cbdp.Feature("time", by="time"),
            cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"]),
            cbdp.Feature("mode", by=["mode", "time"]),
        ],
    )


def _counts(dag: cbdp.FeatureDag) -> np.ndarray:
    return np.arange(dag.universe.size, dtype=np.int64) % 7 * 5


def _weights() -> np.ndarray:
    return 1.0 + np.arange(_city().universe.size) % 3


def _made(mechanism: Mechanism, *, secure: bool = True) -> Release:
    counts = _counts(mechanism.features)
    return mechanism.release(counts) if secure else mechanism.simulate(counts, seed=5)


def _person_release() -> Release:
    dag = _city()
    mechanism = cbdp.ConstraintBased(dag, 2, unit=cbdp.Person("card", 3), budget="geometric")
    trips = {
        "origin": ["A", "B"] * 20,
        "destination": ["C", "D"] * 20,
        "time": ["06:00", "07:00"] * 20,
        "card": list(range(40)),
    }
    return mechanism.release(trips)


MECHANISMS = {
    "constraint-based": lambda: _made(cbdp.ConstraintBased(_city(), 1)).with_intervals(0.9),
    "paper": lambda: _made(cbdp.ConstraintBased(_city(), 1, preset="paper")).with_intervals(0.9),
    "prior": lambda: _made(
        cbdp.ConstraintBased(_city(), 1, prior=_weights(), prior_source={"file": "w.csv", "sha256": "a" * 64})
    ),
    "target": lambda: _made(
        cbdp.ConstraintBased(
            _city(), 1, target={"zone": 2, "singleton": "1/3"}, expected_trips=900, expected_filled=0.8
        )
    ),
    "sparse posterior": lambda: _made(cbdp.ConstraintBased(_city(), 1, sparse=True, estimator="posterior")),
    "sparse": lambda: _made(cbdp.ConstraintBased(_city(), "1/3", sparse=True)),
    "in part": lambda: _made(cbdp.ConstraintBased(_city(), 1, measured=["singleton", "zone"])),
    "person": _person_release,
    "laplace": lambda: _made(cbdp.Laplace(_city(), 1)),
    "laplace, sparse": lambda: _made(cbdp.Laplace(_city(), 1, law="geometric", sparse=True)),
    "hierarchical": lambda: _made(cbdp.Hierarchical(_city(), 1)),
    "stability-histogram": lambda: _made(cbdp.StabilityHistogram(_city(), 5, delta="1/1000")),
    "threshold-laplace": lambda: _made(cbdp.ThresholdLaplace(_city(), 1, threshold=5)),
}


@cache
def _release(name: str) -> Release:
    return MECHANISMS[name]()


def _same_universe(a: cbdp.Universe, b: cbdp.Universe) -> None:
    assert list(a.dimensions) == list(b.dimensions)
    for x, y in zip(a.dimensions.values(), b.dimensions.values(), strict=True):
        assert (x.values, x.edges, x.attributes) == (y.values, y.edges, y.attributes)
        assert [*map(type, x.values)] == [*map(type, y.values)]
    assert list(a.attributes) == list(b.attributes)
    for x, y in zip(a.attributes.values(), b.attributes.values(), strict=True):
        assert (x.name, x.of, x.labels) == (y.name, y.of, y.labels)
        assert [*map(type, x.labels)] == [*map(type, y.labels)]
        assert np.array_equal(x.codes, y.codes)
    assert len(a.zeros) == len(b.zeros)
    assert all(x[0] == y[0] and np.array_equal(x[1], y[1]) for x, y in zip(a.zeros, b.zeros, strict=True))
    assert (a.size, universe_hash(a)) == (b.size, universe_hash(b))


def _same(a: Any, b: Any) -> bool:
    """Equal numbers of the same type, or both missing."""
    if a is None or b is None:
        return a is b
    return np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b, equal_nan=True)


def _sorted(m: cbdp.Measurement) -> cbdp.Measurement:
    if m.elements is None:
        return m
    order = np.argsort(m.elements)
    variance = None if m.variance is None else m.variance[order]
    return replace(m, values=m.values[order], variance=variance, elements=m.elements[order])


def _same_release(a: Release, b: Release) -> None:
    """Everything a release says is the same in both."""
    _same_universe(a.features.universe, b.features.universe)
    assert a.features.features == b.features.features
    assert (a.mechanism, a.claim, a.secure, a.total) == (b.mechanism, b.claim, b.secure, b.total)
    assert _same(a.index, b.index)
    assert _same(a.value, b.value)
    ours, theirs = a.trips(), b.trips()
    assert list(ours) == list(theirs)
    assert all(list(ours[name]) == list(theirs[name]) for name in ours)
    for name in a.features.features:
        assert _same(a.counts(name), b.counts(name))
        if a.estimate is not None:
            assert _same(a.estimate.counts(name), b.estimate.counts(name))
    assert (a.estimate is None) == (b.estimate is None)
    if a.estimate is not None:
        assert _same(a.estimate.index, b.estimate.index)
        assert a.estimate.solution.certificate == b.estimate.solution.certificate
        assert a.estimate.solution.solver == b.estimate.solution.solver
    assert len(a.measurements) == len(b.measurements)
    for x, y in zip(map(_sorted, a.measurements), b.measurements, strict=True):
        assert (x.feature, x.scale, x.epsilon) == (y.feature, y.scale, y.epsilon)
        assert all(_same(getattr(x, f), getattr(y, f)) for f in ("values", "variance", "elements", "floor"))
    assert set(a.tables) == set(b.tables)
    assert (a.confidence, set(a.intervals)) == (b.confidence, set(b.intervals))
    for name, interval in a.intervals.items():
        stored = b.interval(name, a.confidence)
        assert _same(interval.low, stored.low)
        assert _same(interval.high, stored.high)
    assert (a.places is None) == (b.places is None)
    for f in fields(Stops) if a.places is not None else ():
        x, y = getattr(a.places, f.name), getattr(b.places, f.name)
        assert _same(x, y) if isinstance(x, np.ndarray) else x == y


def _bytes(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@st.composite
def releases(draw: Any) -> Release:
    """Anything a release can hold, over random universes, from numbers that mean nothing."""
    model = draw(models(types=120))
    universe = model.universe()
    by = draw(feature_lists(model))
    dag = cbdp.FeatureDag(universe, [cbdp.Feature(n, by=b) for n, b in by.items()])
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    measured = []
    for name in dag.features:
        if name == "singleton" or draw(st.booleans()):
            several = st.lists(_measurements(dag, name, rng), min_size=1, max_size=2)
            measured.extend(draw(several))
    index = np.flatnonzero(rng.random(universe.size) < draw(st.sampled_from([0.0, 0.3, 1.0])))
    estimate = None
    if draw(st.booleans()):
        noisy = {n: rng.normal(size=dag.size(n)) * 9 for n in dag.features}
        estimate = cbdp.post_process(dag, noisy)
    names = draw(st.lists(st.sampled_from(list(dag.features)), unique=True))
    low = {n: rng.integers(0, 9, dag.size(n)) for n in names}
    tables = draw(st.lists(st.sampled_from(list(dag.features)), unique=True))
    value = rng.integers(1, 10**12, len(index))
    published = {n: rng.integers(0, 9, dag.size(n)) for n in tables if n != "singleton"}
    return Release(
        dag,
        Recipe("by hand", {"note": "ε"}),
        draw(_claims()),
        index.astype(np.int64),
        value,
        measured,
        estimate,
        published,
        intervals={n: Interval(v, v + rng.integers(0, 9, len(v))) for n, v in low.items()},
        confidence=draw(st.sampled_from([0.9, 0.5])) if names else None,
    )


@st.composite
def _measurements(draw: Any, dag: cbdp.FeatureDag, name: str, rng: Any) -> cbdp.Measurement:
    size = dag.size(name)
    elements = None
    if draw(st.booleans()):
        elements = rng.permutation(size)[: draw(st.integers(1, size))]
        size = len(elements)
    values = rng.integers(-9, 9, size) if draw(st.booleans()) else rng.normal(size=size)
    law = draw(st.sampled_from(["none", "scale", "float", "variance", "variances"]))
    floor = None
    if name == "singleton" and elements is not None and draw(st.booleans()):
        elements = np.sort(elements)
        floor = rng.integers(-5, 2**61, dag.cells.size)
    return cbdp.Measurement(
        name,
        values,
        scale={"scale": Fraction(7, 3), "float": 0.1}.get(law),
        variance={"variance": 2.5, "variances": rng.uniform(1, 2, size)}.get(law),
        elements=elements,
        epsilon=draw(st.sampled_from([None, Fraction(1, 7)])),
        floor=floor,
    )


def _claims() -> st.SearchStrategy[Claim]:
    spend = st.builds(
        Spend,
        st.text("abc", max_size=3),
        st.fractions(0, 9).filter(bool),
        st.fractions(0, 1, max_denominator=10**9),
    )
    several = st.lists(spend, min_size=1, max_size=3).map(tuple)
    cost = st.one_of(
        spend,
        st.builds(Sequential, several, st.just("features")),
        st.builds(lambda parts: Parallel((Sequential(parts),) * 2, "days"), several),
    )
    unit = st.sampled_from([cbdp.Trip(), cbdp.Trip("replace"), cbdp.Person("card", 4)])
    holds = st.builds(Claim, unit, cost)
    return st.one_of(holds, st.builds(Claim, unit, cost, st.just(False), st.just("no promise")))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(releases())
def test_any_release_comes_back_as_it_was(release: Release) -> None:
    """Random universes, features, measurements, estimates, tables, intervals and claims survive, and a second save too."""
    with tempfile.TemporaryDirectory() as place:
        saved = release.save(f"{place}/one")
        back = load(saved.path)
        _same_release(release, back)
        assert (
            back.manifest == saved.manifest == json.loads((saved.path / "manifest.json").read_text("utf-8"))
        )
        back.save(f"{place}/two")
        assert _bytes(Path(place, "one")) == _bytes(Path(place, "two"))


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_s_release_comes_back(name: str, tmp_path: Path) -> None:
    """Save and load change nothing; the manifest fits its schema; saved again, every byte is the same."""
    release = _release(name)
    saved = release.save(tmp_path / "one", ledger={"head": "ab" * 32})
    jsonschema.Draft202012Validator(schema()).validate(saved.manifest)
    back = load(tmp_path / "one")
    _same_release(release, back)
    assert back.manifest["ledger"]["head"] == "ab" * 32
    again = release.save(tmp_path / "two", ledger={"head": "ab" * 32})
    third = back.save(tmp_path / "three")
    assert _bytes(again.path) == _bytes(saved.path) == _bytes(third.path)
    assert again.sha256 == saved.sha256 == hashlib.sha256(_bytes(saved.path)["manifest.json"]).hexdigest()


LABELS: dict[str, list[Any]] = {
    "text": ["ä", "", "a\nb\x00"],
    "integer": [3, -(2**63), 2**63 - 1],
    "number": [0.1, -1e300, 3.0],
    "boolean": [True, False],
    "bytes": [b"", b"\xff"],
    "date": [dt.date(2026, 3, 2), dt.date(1, 1, 1)],
    "moment": [dt.datetime(2026, 3, 2, 4, 5, 6, 789), dt.datetime(1969, 1, 1)],  # noqa: DTZ001
    "time": [dt.time(23, 59, 59, 999999), dt.time(0)],
    "huge": [2**63, 1],
    "broken text": ["\ud800", "a"],
    "zoned": [dt.datetime(2026, 3, 2, tzinfo=dt.UTC), dt.datetime(2027, 3, 2, tzinfo=dt.UTC)],
    "mixed": [1, "1", 2.5, (1, "1"), dt.date(2026, 1, 1), b"x", (dt.time(3), (None, True))],
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind_come_back(kind: str, tmp_path: Path) -> None:
    """As values of a dimension, as labels of one, two and three dimensions, and in structural zeros."""
    values = LABELS[kind]
    size = len(values)
    dim = cbdp.Dimension(values, own=values[::-1])
    universe = cbdp.Universe(a=dim, b=values, time=cbdp.periods("06:00", "08:00", "30min"))
    universe = universe.with_attribute("own", "a", dict(zip(values, values, strict=True)))
    rng = np.random.default_rng(1)
    for of in (["b", "a"], ["time", "a", "b"]):
        shape = [len(universe.dimensions[d]) for d in of]
        table = np.empty(shape, dtype=object)
        for place in np.ndindex(*shape):
            table[place] = values[rng.integers(size)]
        universe = universe.with_attribute("pair" if len(of) == 2 else "triple", of, table)
    zero = np.zeros((size, size), dtype=bool)
    zero[0, -1] = True
    universe = universe.without(["b", "a"], zero).without("time", np.array([False, True, False, False]))
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("f", by=["own", "pair"]), cbdp.Feature("t", by=["triple"])])
    release = _made(cbdp.ConstraintBased(dag, 10))
    release.save(tmp_path / "out")
    _same_release(release, load(tmp_path / "out"))


LABEL = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.times(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
)


@given(st.lists(LABEL, min_size=1))
def test_a_column_gives_its_labels_back(labels: list[Any]) -> None:
    """Whatever the labels are, alone in JSON and together in a column, their values and types are kept."""
    kind = kind_of(labels)
    assert kind in KINDS
    for back in (labels_of(column(labels), kind), [decoded(encoded(v)) for v in labels]):
        assert back == labels
        assert repr(back) == repr(labels).replace(", fold=1", "")  # equal without it, so the same label


def test_a_label_that_no_file_holds_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """The message names the label; so does the check that can be made before any ε is spent."""
    dag = cbdp.FeatureDag(cbdp.Universe(a=[frozenset("x"), frozenset("y")]), [])
    with pytest.raises(InputError, match="frozenset"):
        check(dag)
    with pytest.raises(InputError, match="frozenset"):
        _made(cbdp.ConstraintBased(dag, 1)).save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["count", "noisy", "low", "estimate"])
def test_a_dimension_named_like_a_column_is_refused(name: str) -> None:
    """Two columns of one name could not be told apart."""
    with pytest.raises(InputError, match=f"{name!r}.*rename"):
        check(cbdp.FeatureDag(cbdp.Universe(**{name: ["x"]}), []))


def test_awkward_names_become_safe_file_names(tmp_path: Path) -> None:
    """Names that differ by case, look like paths, or are those of our own files get files of their own."""
    universe = cbdp.Universe(**{"a/b": [1, 2], "A\\B": [3, 4], "places": [5, 6], "zeros": [7, 8]})
    universe = universe.without(["zeros", "places"], np.array([[True, False], [False, False]]))
    names = ["Zone", "zone", "floors", ".", "..", ".hidden", "a:b*?", "ä" * 60, "ä" * 61, "con", "x y", "%2e"]
    dag = cbdp.FeatureDag(universe, [cbdp.Feature(n, by=["a/b"]) for n in names])
    release = replace(
        _made(cbdp.ConstraintBased(dag, 9, sparse=True)),
        places=Stops((1, "x"), ("one", "two"), np.array([1.5, np.nan]), np.array([2.5, np.nan])),
    )
    saved = release.save(tmp_path / "out")
    _same_release(release, load(tmp_path / "out"))
    files = [f.lower() for f in saved.manifest["files"]]
    assert len(set(files)) == len(files)
    assert all(part.isascii() and part.strip(". ") == part for f in files for part in f.split("/"))
    assert {f.count("/") for f in files} <= {0, 1}


def test_a_tree_s_measurements_keep_the_labels_they_were_made_of(tmp_path: Path) -> None:
    """Levels of a tree have a feature's name but other elements, or another order: each noisy count keeps its own key."""
    mechanism = cbdp.Hierarchical(_city(), 1)
    release = _made(mechanism)
    saved = release.save(tmp_path / "out")
    tree = mechanism.measured_features
    for m, entry in zip(release.measurements, saved.manifest["measurements"], strict=True):
        table = pq.read_table(saved.path / entry["file"]).to_pydict()
        keys = tree.partition(m.feature).keys()
        wanted = dict(zip(zip(*keys.values(), strict=True), m.values.tolist(), strict=True))
        found = dict(zip(zip(*(table[n] for n in keys), strict=True), table["noisy"], strict=True))
        assert found == wanted
    zone = pq.read_table(saved.path / "features" / "zone.parquet").to_pydict()
    assert set(zone["noisy"]) == {None}


def test_tables_say_what_the_release_says(tmp_path: Path) -> None:
    """By label, not by place: counts, noisy counts, estimates and intervals in the files are those of the release."""
    release = _release("constraint-based")
    release.save(tmp_path / "out")
    trips = pq.read_table(tmp_path / "out" / "trips.parquet").to_pylist()
    assert {(r["origin"], r["destination"], r["time"]): r["count"] for r in trips} == {
        release.features.universe.unrank(int(i)): int(v)
        for i, v in zip(release.index, release.value, strict=True)
    }
    assert all(r["count"] > 0 for r in trips)
    for m in release.measurements:
        name = m.feature
        table = pq.read_table(tmp_path / "out" / "features" / f"{name}.parquet")
        keys = release.features.partition(name).keys()
        assert table.column_names == [*keys, "noisy", "scale", "estimate", "count", "low", "high"]
        assert {n: table[n].to_pylist() for n in keys} == keys
        assert table["noisy"].to_pylist() == m.values.tolist()
        assert set(table["scale"].to_pylist()) == {float(m.scale)}
        assert table["estimate"].to_pylist() == release.estimate.counts(name).tolist()
        assert table["count"].to_pylist() == release.counts(name).tolist()
        if name in release.intervals:
            assert table["low"].to_pylist() == release.intervals[name].low.tolist()
            assert table["high"].to_pylist() == release.intervals[name].high.tolist()


def test_other_programs_see_plain_columns(tmp_path: Path) -> None:
    """pandas, polars and DuckDB read text as text and whole numbers as whole numbers, and find the same total."""
    duckdb = pytest.importorskip("duckdb")
    release = _release("constraint-based")
    path = release.save(tmp_path / "out").path / "trips.parquet"
    frame, table = pd.read_parquet(path), pl.read_parquet(path)
    assert table.schema == {
        "origin": pl.String,
        "destination": pl.String,
        "time": pl.String,
        "count": pl.Int64,
    }
    assert frame["count"].dtype == np.int64
    assert not isinstance(frame["origin"].dtype, pd.CategoricalDtype)
    ((total,),) = duckdb.read_parquet(str(path)).aggregate("sum(count)").fetchall()
    assert int(total) == frame["count"].sum() == table["count"].sum() == release.total


def test_a_sparse_release_lists_what_was_published_about_types_only(tmp_path: Path) -> None:
    """In a universe of 9·10⁸ types the files hold the types above the floors, and the floor of every cell."""
    n = 30_000
    ends = {"origin": range(n), "destination": range(n)}
    universe = cbdp.Universe(**{k: cbdp.Dimension(v, zone=[i % 3 for i in v]) for k, v in ends.items()})
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("zone", by=["origin.zone", "destination.zone"])])
    mechanism = cbdp.ConstraintBased(dag, 30)
    release = mechanism.release({"origin": list(range(500)), "destination": list(range(500, 1000))})
    saved = release.save(tmp_path / "out")
    back = load(tmp_path / "out")
    measured = next(m for m in back.measurements if m.feature == "singleton")
    original = next(m for m in release.measurements if m.feature == "singleton")
    assert _same(measured.elements, original.elements)
    assert _same(measured.floor, original.floor)
    assert _same(back.index, release.index)
    assert _same(back.estimate.solution.leaves, release.estimate.solution.leaves)
    floors = pq.read_table(tmp_path / "out" / "features" / "floors.parquet")
    assert floors["floor"].to_pylist() == original.floor.tolist()
    assert floors.column_names == ["origin.zone", "destination.zone", "floor"]
    rows = pq.read_metadata(tmp_path / "out" / "features" / "singleton.parquet").num_rows
    assert rows == len(np.union1d(original.elements, release.estimate.index))
    assert sum(f["bytes"] for n, f in saved.manifest["files"].items() if "universe" not in n) < 10**6


def test_the_manifest_states_what_was_promised(tmp_path: Path) -> None:
    """ε in total and by feature as exact fractions, noise, unit, solver and certificate, rounding, confidence, versions."""
    release = _release("paper")
    made = release.save(tmp_path / "out").manifest
    assert made["privacy"]["epsilon"] == {"exact": "1", "decimal": 1.0}
    assert made["privacy"]["delta"] == {"exact": "0", "decimal": 0.0}
    assert made["privacy"]["unit"]["words"] == "one trip, added or removed"
    assert "one trip added or removed" in made["privacy"]["unit"]["neighbouring"]
    assert made["privacy"]["composition"] == "5 features × 1/5, same data: 1"
    parts = [f["epsilon"]["exact"] for f in made["features"]]
    assert sum(map(Fraction, parts)) == 1
    assert all(
        f["noise"]["scale"]["exact"] == "5" and "geometric" in f["noise"]["law"] for f in made["features"]
    )
    assert {f["name"]: (tuple(f["by"]), f["size"]) for f in made["features"]} == {
        n: (f.by, release.features.size(n)) for n, f in release.features.features.items()
    }
    assert made["estimate"]["weights"] == "size"
    assert made["estimate"]["solver"] == "newton"
    assert made["estimate"]["estimator"] == "projection"
    assert made["estimate"]["kkt_residual"] == release.estimate.solution.kkt_residual
    assert made["rounding"] == {"exact": True, "violations": {}}
    assert made["intervals"]["confidence"] == 0.9
    assert made["universe"]["size"] == release.features.universe.size
    assert made["universe"]["dimensions"][2]["edges"] == [21600, 25200, 28800]
    assert made["software"]["cbdp"] == cbdp.__version__
    assert made["status"] == "release"
    assert made["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
    assert made["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 0.0}
    unsaved = release.manifest
    assert unsaved["files"] == {}
    assert {k: v for k, v in unsaved.items() if k != "files"} == {
        k: v for k, v in made.items() if k != "files"
    }


def test_the_manifest_states_how_counts_were_estimated(tmp_path: Path) -> None:
    """Estimator, preset, budget, target and the facts it was worked out from, in the file and in what is loaded from it."""
    for name, estimator, preset, budget in (
        ("constraint-based", "posterior", "best", "balanced"),
        ("paper", "projection", "paper", "uniform"),
        ("target", "posterior", "best", "optimal"),
    ):
        _release(name).save(tmp_path / name)
        made = load(tmp_path / name).manifest
        stated = made["recipe"]["settings"]
        assert (stated["estimator"], stated["preset"], stated["budget"]) == (estimator, preset, budget)
        assert made["estimate"]["estimator"] == estimator
        assert ("Expected counts" in made["deployment"]["accounting"]["post_processing"]) == (
            estimator == "posterior"
        )
    assert stated["target"] == {"zone": "2", "singleton": "1/3"}
    assert (stated["expected_trips"], stated["expected_filled"]) == (900, 0.8)


def test_a_public_prior_is_part_of_the_release(tmp_path: Path) -> None:
    """Its weights are a file, its hash and source are stated, and the estimate follows from the noisy answers with it."""
    release = _release("prior")
    made = release.save(tmp_path / "out").manifest
    digest = hashlib.sha256(_weights().astype("<f8").tobytes()).hexdigest()
    stated = made["recipe"]["settings"]
    assert stated["prior"] == {"numbers": len(_weights()), "sha256": digest}
    assert stated["prior_source"] == {"file": "w.csv", "sha256": "a" * 64}
    held = pq.read_table(tmp_path / "out" / made["prior"]["file"])
    assert held.column_names == ["origin", "destination", "time", "weight"]
    assert held["weight"].to_pylist() == _weights().tolist()
    back = load(tmp_path / "out")
    again = cbdp.post_process(back.features, back.measurements, estimator="posterior", prior=back.prior)
    assert np.array_equal(again.solution.leaves, release.estimate.solution.leaves)
    assert "prior" not in _release("constraint-based").manifest
    (tmp_path / "out" / made["prior"]["file"]).unlink()
    with pytest.raises(InputError, match=r"universe/prior\.parquet.* is missing"):
        load(tmp_path / "out")


@pytest.mark.parametrize("name", ["constraint-based", "prior", "target", "paper", "sparse posterior"])
def test_an_estimate_is_audited_with_the_estimator_that_made_it(name: str, tmp_path: Path) -> None:
    """Made again it agrees, and so do the trips; with a noisy count changed it does not."""
    _release(name).save(tmp_path / "out")
    back = cbdp.load(tmp_path / "out")
    again = mechanisms.of(back).finish(back.measurements)
    scale = 1e-9 * (1 + back.estimate.counts("total")[0])
    assert np.abs(again.estimate.counts("singleton") - back.estimate.counts("singleton")).max() <= scale
    assert _same(again.index, back.index)
    assert _same(again.value, back.value)
    *rest, last = back.measurements
    assert last.feature == "singleton"
    changed = replace(last, values=last.values + 40 * (np.arange(len(last.values)) == 3))
    other = mechanisms.of(back).finish([*rest, changed])
    assert np.abs(other.estimate.counts("singleton") - back.estimate.counts("singleton")).max() > 1


def _version_1(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as version 1 stated it."""
    old = {n: part for n, part in manifest.items() if n != "recipe"}
    names = {"expected_trips": "trips", "expected_filled": "filled"}
    settings_ = {names.get(n, n): v for n, v in manifest["recipe"]["settings"].items()}
    old["mechanism"] = {"name": manifest["recipe"]["mechanism"], "settings": settings_}
    old["measurements"] = [{n: v for n, v in m.items() if n != "law"} for m in manifest["measurements"]]
    for feature in old["features"]:
        if feature["noise"] is not None:
            feature["noise"].pop("zeros", None)
    return {**old, "version": 1}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_folder_of_version_1_is_read_as_it_was_meant(name: str, tmp_path: Path) -> None:
    """The first format had a mechanism instead of a recipe, and no law by measurement: nothing is lost."""
    release = _release(name)
    manifest = release.save(tmp_path / "out").path / "manifest.json"
    stated = json.loads(manifest.read_text("utf-8"))
    manifest.write_text(json.dumps(_version_1(deepcopy(stated))), encoding="utf-8")
    back = load(tmp_path / "out")
    _same_release(release, back)
    assert back.recipe.json() == release.recipe.json()
    assert [m.law for m in back.measurements] == [m.law for m in release.measurements]
    assert back.manifest["features"] == stated["features"]


def test_a_loaded_release_makes_further_intervals(tmp_path: Path) -> None:
    """From its recipe alone, the same that the mechanism which made it makes."""
    release = _release("paper")
    release.save(tmp_path / "out")
    fresh, back = release.interval("zone", 0.5), cbdp.load(tmp_path / "out").interval("zone", 0.5)
    assert _same(fresh.low, back.low)
    assert _same(fresh.high, back.high)


def test_a_mechanism_that_promises_nothing_states_no_epsilon(tmp_path: Path) -> None:
    """The manifest says that it does not hold, why, and gives no number that could be taken for a promise."""
    made = _release("threshold-laplace").save(tmp_path / "out").manifest
    assert made["privacy"]["holds"] is False
    assert "zeros are not perturbed" in made["privacy"]["caveat"]
    assert made["privacy"]["epsilon"] is None
    assert made["deployment"]["dp_variant"]["variant_name"] is None
    assert all(f["epsilon"] is None for f in made["features"])
    assert [f["noise"]["threshold"] for f in made["features"] if f["noise"]] == [5.0] * 4


def test_noise_laws_are_told_apart(tmp_path: Path) -> None:
    """The paper's rounded Laplace noise, geometric noise, and thresholds that came with a δ."""
    rounded = _release("laplace").manifest["features"][-1]["noise"]
    geometric = _release("laplace, sparse").manifest["features"][-1]["noise"]
    assert "rounded" in rounded["law"]
    assert "geometric" in geometric["law"]
    assert rounded["scale"] == geometric["scale"] == {"exact": "1", "decimal": 1.0}
    made = _release("stability-histogram").manifest
    assert made["privacy"]["delta"]["exact"] == "1/250"
    assert made["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"
    assert all(f["noise"]["threshold"] > 1 for f in made["features"] if f["name"] != "total")


def test_a_rounding_that_is_off_is_told() -> None:
    """Counts that are not their estimates rounded down or up are counted by feature, whoever rounded."""
    for rounding in (
        "nearest",
        "few",
    ):  # of few types, which hold what others have too, the tables alone are told
        release = _made(cbdp.ConstraintBased(_city(), 1, rounding=rounding))
        value = release.value.copy()
        value[0] += 2
        off = replace(release, value=value, violations=None).manifest["rounding"]
        assert off["exact"] is False
        assert off["violations"].get("singleton", 0) == (rounding == "nearest")
        assert off["violations"]["total"] == 1
    assert replace(release, violations={"zone": 3, "time": 0}).manifest["rounding"]["violations"] == {
        "zone": 3
    }


def test_a_seeded_release_is_refused_or_marked(tmp_path: Path) -> None:
    """A simulation is saved only when asked for, and its manifest says what it is."""
    seeded = _made(cbdp.ConstraintBased(_city(), 1), secure=False)
    with pytest.raises(InputError, match="simulation=True"):
        seeded.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    made = seeded.save(tmp_path / "out", simulation=True).manifest
    assert (made["status"], made["secure"]) == ("simulation, not a release", False)
    assert load(tmp_path / "out").secure is False


def test_a_folder_that_exists_is_never_touched(tmp_path: Path) -> None:
    """A file, a folder, an empty one and a dangling link are refused, and nothing is left behind."""
    release = _release("laplace")
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    before = sorted(p.name for p in tmp_path.iterdir())
    for name in before:
        with pytest.raises(InputError, match="exists already"):
            release.save(tmp_path / name)
    with pytest.raises(InputError, match="no folder"):
        release.save(tmp_path / "none" / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_save_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """An error while files are written, after the first of them, removes them all."""
    wrong = Stops(("A",), (7,), np.zeros(1), np.zeros(1))  # type: ignore[arg-type]  # a name that is no text
    with pytest.raises(Exception, match="int"):
        replace(_release("laplace"), places=wrong).save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_further_files_are_hashed_and_plainly_named(tmp_path: Path) -> None:
    """A report stands beside the tables, in the manifest too; names that lead elsewhere are refused."""
    release = _release("laplace")
    saved = release.save(tmp_path / "out", extra={"report.html": "<p>ä</p>"})
    assert saved.manifest["files"]["report.html"]["sha256"] == hashlib.sha256("<p>ä</p>".encode()).hexdigest()
    load(tmp_path / "out")
    for name in ("manifest.json", "features", "../x", "a/b", ".x", "trips.parquet", "a\\b", ""):
        with pytest.raises(InputError, match="plain name"):
            release.save(tmp_path / "other", extra={name: b""})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def test_files_that_do_not_match_the_manifest_are_named(tmp_path: Path) -> None:
    """A changed byte, a missing file and an extra one, for every file of a release."""
    saved = _release("sparse").save(tmp_path / "out")
    for name in saved.manifest["files"]:
        path = saved.path / name
        content = path.read_bytes()
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        with pytest.raises(InputError, match=f"{name!r}.*does not match"):
            load(saved.path)
        path.unlink()
        with pytest.raises(InputError, match=f"{name!r}.*is missing"):
            load(saved.path)
        path.write_bytes(content)
    for name in ("more.txt", "features/more.parquet", ".hidden"):
        (saved.path / name).write_text("x")
        with pytest.raises(InputError, match=f"{name!r} does not belong"):
            load(saved.path)
        (saved.path / name).unlink()
    load(saved.path)


def _damages(manifest: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every key that the schema requires."""
    if isinstance(manifest, dict):
        for key, value in manifest.items():
            yield (*at, key)
            if (*at, key) not in (("files",), ("recipe", "settings"), ("software",)) and at != (
                "deployment",
            ):
                yield from _damages(value, (*at, key))
    elif isinstance(manifest, list):
        for place, value in enumerate(manifest):
            yield from _damages(value, (*at, place))


def test_a_manifest_without_any_one_of_its_keys_is_refused(tmp_path: Path) -> None:
    """Each key taken out, or a stranger put in: the schema finds it; a file that is no manifest is said to be none."""
    saved = _release("constraint-based").save(tmp_path / "out")
    text = saved.path / "manifest.json"
    original = json.loads(text.read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema())
    for *parents, key in _damages(original):
        damaged = deepcopy(original)
        inner = damaged
        for step in parents:
            inner = inner[step]
        del inner[key]
        assert not validator.is_valid(damaged), (parents, key)
    damaged = original | {"stranger": 1}
    text.write_text(json.dumps(damaged), "utf-8")
    with pytest.raises(InputError, match="schema"):
        load(saved.path)
    for content, said_so in (
        ("{", "JSON"),
        ("[]", "not the manifest"),
        (json.dumps(original | {"version": 3}), "version 3"),
        (json.dumps(original | {"version": 1}), "not a manifest of version 1"),
        (json.dumps(original | {"files": {"../x": {"sha256": "0" * 64, "bytes": 1}}}), "schema"),
    ):
        text.write_text(content, "utf-8")
        with pytest.raises(InputError, match=said_so):
            load(saved.path)
    text.unlink()
    with pytest.raises(InputError, match=r"no manifest\.json"):
        load(saved.path)
    with pytest.raises(InputError, match="no folder"):
        load(tmp_path / "nowhere")


def test_tables_that_contradict_the_manifest_are_damage_not_a_traceback(tmp_path: Path) -> None:
    """Even when hashes are not checked, files of another release are one clear error."""
    one = _release("constraint-based").save(tmp_path / "one").path
    dag = cbdp.FeatureDag(cbdp.Universe(origin=["X"], destination=["Y"], time=["Z"]), [])
    other = _made(cbdp.ConstraintBased(dag, 1)).save(tmp_path / "two").path
    for name in ("trips.parquet", "features/singleton.parquet", "universe/origin.parquet"):
        content = (one / name).read_bytes()
        (one / name).write_bytes((other / name).read_bytes())
        with pytest.raises(InputError, match="damaged"):
            load(one, verify=False)
        (one / name).write_bytes(b"no table")
        with pytest.raises(InputError, match="damaged"):
            load(one, verify=False)
        (one / name).write_bytes(content)
    load(one, verify=False)


@pytest.mark.parametrize("verify", [True, False])
def test_a_manifest_that_names_no_feature_of_its_own_is_damage(tmp_path: Path, verify: bool) -> None:
    """Intervals of an unknown feature, or an estimate without `singleton`: the error has the name and the known ones."""
    place = _release("constraint-based").save(tmp_path / "out").path
    original = json.loads((place / "manifest.json").read_text("utf-8"))
    names = [f["name"] for f in original["features"]]
    known = ", ".join(map(repr, names))

    def refused(changed: Mapping[str, Any], message: str) -> None:
        (place / "manifest.json").write_text(json.dumps(original | changed), "utf-8")
        with pytest.raises(InputError, match="damaged") as caught:
            load(place, verify=verify)
        assert message in str(caught.value)

    intervals = original["intervals"] | {"features": [*original["intervals"]["features"], "speed"]}
    refused(
        {"intervals": intervals}, f"intervals of 'speed', which is none of its features: use one of {known}"
    )
    others = [f for f in original["features"] if f["name"] != "singleton"]
    refused({"features": others}, "an estimate of 'singleton', which is none of its features")


@pytest.mark.parametrize("text", ['{"colour":"red"}', "{}", '{"date":"2026-03-02","time":"08:00"}'])
def test_a_label_of_no_known_kind_is_refused(text: str) -> None:
    """A tag that no label has, none, or two: the error has the label and the tags there are."""
    with pytest.raises(InputError, match="of no known kind: use one of datetime, date, time, bytes"):
        decoded(text)


SCRIPT = """
import sys
sys.path[:0] = ["tests", "tests/release"]
from test_files import _simulated
_simulated().save(sys.argv[1], simulation=True)
"""
ROOT = Path(__file__).parents[2]


def _simulated() -> Release:
    mechanism = cbdp.ConstraintBased(_city(), 1)
    return mechanism.simulate(np.arange(mechanism.features.universe.size) % 7, 3)


@pytest.mark.slow
def test_bytes_depend_on_nothing_but_the_release(tmp_path: Path) -> None:
    """Another process, another hash seed, another folder and time zone: the same bytes, and no word of any of them."""
    _simulated().save(tmp_path / "here", simulation=True)
    zone = "UTC" if time.timezone == -9 * 3600 else "Asia/Tokyo"
    seed = "5" if os.environ.get("PYTHONHASHSEED") != "5" else "6"
    env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone}
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "there")], check=True, cwd=ROOT, env=env)
    assert _bytes(tmp_path / "here") == _bytes(tmp_path / "there")
    for content in _bytes(tmp_path / "here").values():
        assert str(tmp_path).encode() not in content
        assert os.uname().nodename.encode() not in content


KILLED = """
import itertools, sys, numpy as np, cbdp
universe = cbdp.Universe(a=range(100), b=range(100))
mechanism = cbdp.Laplace(cbdp.FeatureDag(universe, [cbdp.Feature("a", by="a")]), 1)
release = mechanism.simulate(np.ones(10_000, dtype=int), 3)
for n in itertools.count():
    release.save(f"{sys.argv[1]}/out{n}", simulation=True)
    print("saved", flush=True)
"""


@pytest.mark.slow
def test_a_killed_save_leaves_all_or_nothing(tmp_path: Path) -> None:
    """SIGKILL while saves follow each other: every folder is whole, and what was under way is known as leftovers."""
    for attempt in range(3):
        place = tmp_path / str(attempt)
        place.mkdir()
        command = [sys.executable, "-c", KILLED, str(place)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
            assert process.stdout is not None
            said_so = [process.stdout.readline() for _ in range(2 + attempt)]
            time.sleep(0.003 * attempt)
            process.send_signal(signal.SIGKILL)
            said_so += process.stdout.readlines()
        whole = [p for p in place.iterdir() if not p.name.startswith(".")]
        assert len(whole) >= len(said_so)
        assert all(load(folder).total > 0 for folder in whole)
        broken = [p for p in place.iterdir() if p.name.startswith(".")]
        assert len(broken) <= 1
        assert broken == leftovers(place / f"out{len(whole)}")


def test_intervals_are_published_computed_or_refused(tmp_path: Path) -> None:
    """A release knows those it has, computes others while its mechanism is known, and says what it lacks after loading."""
    release = _release("constraint-based")
    assert release.interval("zone", 0.9) is release.intervals["zone"]
    wide, narrow = release.interval("time", 0.95), release.interval("time", 0.5)
    assert (wide.low <= narrow.low).all()
    assert (wide.high >= narrow.high).all()
    with pytest.raises(InputError, match="unknown feature 'none'"):
        release.interval("none", 0.9)
    release.save(tmp_path / "out")
    back = load(tmp_path / "out")
    assert _same(back.interval("zone", 0.9).high, release.intervals["zone"].high)
    with pytest.raises(InputError, match=r"no intervals of 'zone' at 0.5.*at 0.9"):
        back.interval("zone", 0.5)
    with pytest.raises(InputError, match="published without any"):
        replace(back, intervals={}).interval("zone", 0.9)
    with pytest.raises(InputError, match="mechanism"):
        back.with_intervals(0.5)


def test_places_come_back(tmp_path: Path) -> None:
    """Ids of any kind, coordinates with gaps, and zones."""
    places = Stops((1, 2), ("one", "zwölf"), np.array([42.25, np.nan]), np.array([-83.5, np.nan]), ("n", "s"))
    release = replace(_release("laplace"), places=places)
    release.save(tmp_path / "out")
    _same_release(release, load(tmp_path / "out"))


def test_the_universe_s_hash_is_of_its_definition() -> None:
    """Anything changed changes it: a value, their order, a type, an edge, a name, an attribute, a structural zero."""
    stops = ["A", "B"]
    one = cbdp.Universe(a=stops, b=[1, 2])
    two = [
        one,
        cbdp.Universe(a=["B", "A"], b=[1, 2]),
        cbdp.Universe(a=stops, b=["1", "2"]),
        cbdp.Universe(a=stops, b=[1.0, 2.0]),
        cbdp.Universe(a=stops, c=[1, 2]),
        cbdp.Universe(b=[1, 2], a=stops),
        cbdp.Universe(a=stops, b=cbdp.Dimension([1, 2], edges=(0, 1, 2))),
        cbdp.Universe(a=stops, b=cbdp.Dimension([1, 2], edges=(0, 1, 3))),
        cbdp.Universe(a=stops, b=cbdp.Dimension([1, 2], z=["x", "y"])),
        cbdp.Universe(a=stops, b=cbdp.Dimension([1, 2], z=["y", "x"])),
        one.with_attribute("z", ["a", "b"], [["x", "y"], ["y", "x"]]),
        one.with_attribute("z", ["b", "a"], [["x", "y"], ["y", "x"]]),
        one.without(["a", "b"], np.array([[True, False], [False, False]])),
        one.without(["a", "b"], np.array([[False, True], [False, False]])),
    ]
    assert len({universe_hash(u) for u in two}) == len(two)
    assert universe_hash(one) == universe_hash(cbdp.Universe(a=list("AB"), b=np.array([1, 2])))


def test_tables_of_more_than_one_piece(tmp_path: Path) -> None:
    """A million and more types, in pieces of a row group: none is lost, twice or out of order."""
    universe = cbdp.Universe(origin=[f"s{i}" for i in range(1100)], destination=range(1000))
    index = np.arange(universe.size, dtype=np.int64)
    claim = Claim(cbdp.Trip(), Spend("all", Fraction(1)))
    release = Release(cbdp.FeatureDag(universe, []), Recipe("by hand"), claim, index, index % 9 + 1)
    path = release.save(tmp_path / "out").path / "trips.parquet"
    assert pq.read_metadata(path).num_row_groups == 2
    back = load(tmp_path / "out")
    assert _same(back.index, index)
    assert _same(back.value, release.value)
    table = pq.read_table(path)
    assert table["origin"][-1].as_py() == "s1099"
    assert table["destination"].to_pylist()[:1001] == [*range(1000), 0]


def test_settings_are_stated_as_plain_values() -> None:
    """Fractions as text, arrays by size and hash, solvers by name, infinite weights in words."""
    dag = _city()
    weights = {"zone": np.ones(dag.size("zone")), "time": 2.5, "total": float("inf")}
    shares = {n: Fraction(1, 5) for n in dag.features}
    mechanism = cbdp.ConstraintBased(
        dag,
        1,
        weights={**weights, "mode": 1, "singleton": 1},
        budget=shares,
        solver=cbdp.solvers.get("newton"),
    )
    made = _made(mechanism).manifest
    stated = made["recipe"]["settings"]
    assert stated["budget"] == dict.fromkeys(dag.features, "1/5")
    assert stated["solver"] == "newton"
    assert stated["weights"]["time"] == 2.5
    assert stated["weights"]["total"] == "inf"
    assert stated["weights"]["zone"]["numbers"] == dag.size("zone")
    assert made["estimate"]["weights"] == stated["weights"]
    check_manifest(made, "the manifest")
