"""A universe in files: its labels, its file names, its hash."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from released import made_by, same_release

import cbdp
from cbdp.release.files import load
from cbdp.release.layout import universe_hash
from cbdp_features.places import Stops

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
    release = made_by(cbdp.ConstraintBased(dag, 10))
    release.save(tmp_path / "out")
    same_release(release, load(tmp_path / "out"))


def test_awkward_names_become_safe_file_names(tmp_path: Path) -> None:
    """Names that differ by case, look like paths, or are those of our own files get files of their own."""
    universe = cbdp.Universe(**{"a/b": [1, 2], "A\\B": [3, 4], "places": [5, 6], "zeros": [7, 8]})
    universe = universe.without(["zeros", "places"], np.array([[True, False], [False, False]]))
    names = ["Zone", "zone", "floors", ".", "..", ".hidden", "a:b*?", "ä" * 60, "ä" * 61, "con", "x y", "%2e"]
    dag = cbdp.FeatureDag(universe, [cbdp.Feature(n, by=["a/b"]) for n in names])
    release = replace(
        made_by(cbdp.ConstraintBased(dag, 9, sparse=True)),
        places=Stops((1, "x"), ("one", "two"), np.array([1.5, np.nan]), np.array([2.5, np.nan])),
    )
    saved = release.save(tmp_path / "out")
    same_release(release, load(tmp_path / "out"))
    files = [f.lower() for f in saved.manifest["files"]]
    assert len(set(files)) == len(files)
    assert all(part.isascii() and part.strip(". ") == part for f in files for part in f.split("/"))
    assert {f.count("/") for f in files} <= {0, 1}


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
