"""Anything a release can hold, from numbers that mean nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from strategies import feature_lists, models

import cbdp
from cbdp.estimation.intervals import Interval
from cbdp.numbers import MAX_NUMBER
from cbdp.privacy.accounting import DPCost, Parallel, PrivacyGuarantee, Sequential
from cbdp.release.release import Release
from cbdp.release.serialization import Recipe


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


def _claims() -> st.SearchStrategy[PrivacyGuarantee]:
    spend = st.builds(
        DPCost,
        st.text("abc", max_size=3),
        st.fractions(1 / MAX_NUMBER, 9),
        st.fractions(0, 1, max_denominator=10**9),
    )
    several = st.lists(spend, min_size=1, max_size=3).map(tuple)
    cost = st.one_of(
        spend,
        st.builds(Sequential, several, st.just("features")),
        st.builds(lambda parts: Parallel((Sequential(parts),) * 2, "days"), several),
    )
    unit = st.sampled_from([cbdp.Trip(), cbdp.Trip("replace"), cbdp.Person("card", 4)])
    holds = st.builds(PrivacyGuarantee, unit, cost)
    return st.one_of(holds, st.builds(PrivacyGuarantee, unit, cost, st.just(False), st.just("no promise")))
