"""Partitions as sets of types, for tests that list whole universes."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from strategies import Model

from cbdp.features import Dimension, Universe

thorough = settings(deadline=None, max_examples=150, derandomize=True)
U = Universe(
    origin=Dimension(["A", "B"], zone=["n", "s"]), destination=["A", "B"], time=["am", "pm"], day=[1]
)


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


def city(stops=130, zones=4, modes=12, times=4):
    names = [f"s{i}" for i in range(stops)]
    universe = Universe(origin=names, destination=names, time=[f"t{i}" for i in range(times)])
    mode = np.add.outer(np.arange(stops), 3 * np.arange(stops)) % modes
    return universe, {s: f"z{i % zones}" for i, s in enumerate(names)}, mode
