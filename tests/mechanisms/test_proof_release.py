"""The checks that docs/proofs names for mechanisms: the stability histogram's δ by sums over all outcomes, and the wall."""

from __future__ import annotations

import itertools
import math
import shutil
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from house import graph
from house.mutants import source_of

import cbdp
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.unit import Person, Trip

UNIVERSE = cbdp.Universe(stop=["A", "B", "C"])
FEATURES = cbdp.FeatureDag(UNIVERSE, [])


def outcomes(mechanism: cbdp.StabilityHistogram, count: int, reach: int = 120) -> Any:
    """The probabilities of what one count shows: nothing, or each number from the threshold on."""
    least = math.ceil(mechanism.threshold_of("singleton"))
    if count == 0:
        return np.array([1.0, *np.zeros(reach)])
    shown = mechanism.noise_of("singleton").pmf(np.arange(least, least + reach) - count)
    return np.array([1 - shown.sum(), *shown])


def least_delta(mechanism: cbdp.StabilityHistogram, before: tuple[int, ...], after: tuple[int, ...]) -> float:
    """Σ max(0, P − exp(ε) P′) over all outcomes of the counts that change: the least δ that holds at this ε."""
    p, q = np.ones(1), np.ones(1)
    for a, b in zip(before, after, strict=True):
        if a != b:
            p, q = np.outer(p, outcomes(mechanism, a)).ravel(), np.outer(q, outcomes(mechanism, b)).ravel()
    return float(np.maximum(p - math.exp(mechanism.epsilon) * q, 0).sum())


def test_the_delta_of_a_stability_histogram_holds() -> None:
    """All neighbours among small tables, for a trip replaced and for persons with up to two trips: no outcome set exceeds exp(ε)·P′ + δ."""
    small = list(itertools.product(range(4), repeat=2))
    nearest = 0.0
    for epsilon, delta in itertools.product(
        (Fraction(1, 2), Fraction(2), Fraction(6)), (Fraction(1, 100), Fraction(1, 3))
    ):
        for unit, moves in (
            (Trip("replace"), [(-1, 1), (1, -1)]),
            (Trip(), [(1, 0), (-1, 0)]),
            (Person("card", 2), [(2, 0), (1, 1), (-2, 0), (-1, -1), (1, 0)]),
        ):
            mechanism = cbdp.StabilityHistogram(
                FEATURES, epsilon=epsilon, delta=delta, unit=unit, tables=["singleton"]
            )
            for before, move in itertools.product(small, moves):
                after = (before[0] + move[0], before[1] + move[1])
                if min(after) >= 0:
                    result = least_delta(mechanism, before, after)
                    assert result <= delta * (1 + Fraction(1, 10**9)), (unit, before, after)
                    nearest = max(nearest, result / float(delta))
    assert nearest > 0.4


def test_only_noisy_counts_are_shown() -> None:
    """Five counts just below the threshold: noise decides which of them show, and what shows is the noisy count."""
    mechanism = cbdp.StabilityHistogram(FEATURES, epsilon=1, tables=["singleton"], delta=Fraction(1, 10))
    least = math.ceil(mechanism.threshold_of("singleton"))
    counts = cbdp.count(np.array([least - 1, 0, least + 1]), UNIVERSE, unit=Trip("replace"))
    shown = [mechanism.measure(counts, InsecureSeededEntropy(seed))[0] for seed in range(60)]
    first = [m.values[m.elements == 0].tolist() for m in shown]  # type: ignore[union-attr]
    seen = [v for values in first for v in values]
    assert 5 < len(seen) < 55
    assert len(set(seen)) > 3
    assert min(seen) >= least
    assert not any((m.elements == 1).any() for m in shown)  # type: ignore[union-attr]


def test_nothing_right_of_the_wall_reaches_a_trip() -> None:
    """The import graph of the sources as they run: no chain leads from an estimator to trips or to what draws noise."""
    with tempfile.TemporaryDirectory() as folder:
        for name in (
            "cbdp/estimation",
            "cbdp/privacy",
            "cbdp/counting/__init__.py",
            "cbdp/measuring/__init__.py",
            "cbdp/__init__.py",
        ):
            place = graph.ROOT / name
            for path in [place] if place.is_file() else place.rglob("*.py"):
                copy = Path(folder) / path.relative_to(graph.ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(source_of(path), "utf-8")
        result = graph.build(Path(folder))
        assert len(result.imports) > 30
        assert not graph.leaks(result)
        shutil.rmtree(Path(folder) / "cbdp")


def test_a_release_is_a_function_of_its_answers() -> None:
    """Answers of one data set, finished with no data in sight, twice: the same release; and it is not that of the true counts."""
    universe = cbdp.Universe(stop=["A", "B"], time=["am", "pm"])
    features = cbdp.FeatureDag(universe, [cbdp.Feature("time", by=["time"])])
    mechanism = cbdp.ConstraintBased(features, epsilon=1, estimator="projection")
    counts = cbdp.count(np.array([40, 0, 7, 3]), universe)
    answers = mechanism.measure(counts, InsecureSeededEntropy(1))
    for array in (counts.index, counts.value):
        array.setflags(write=True)
        array[:] = 0  # whatever read them now would be found out
    one, two = mechanism.finish(answers), mechanism.finish(answers)
    assert one.counts("singleton").tolist() == two.counts("singleton").tolist()
    assert 20 < int(one.counts("total")[0]) < 80
