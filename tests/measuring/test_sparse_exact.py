"""Sensitivity on the sparse path by exact comparison: every way the noise can fall, with its probability as a fraction.

A few types in one or two cells; floors that follow what is revealed. The law of what is revealed is that of noise on every
type, to the last digit; so one trip more changes no outcome's probability by more than e^ε, and some by exactly that.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from enumeration import RATIO, Choices, Enumerated, law_of, mass
from sparse_mutants import (
    Added,
    AllWithTrips,
    AtLeast,
    HitAgain,
    NoTwoInARow,
    Overwritten,
    Peeking,
    Short,
    TopLess,
    Unperturbed,
)

import cbdp
from cbdp import Feature, FeatureDag, Universe
from cbdp.measuring import answers
from cbdp.measuring.answers import SparseThresholdedAnswer
from cbdp.mechanisms import Laplace, laplace
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import DiscreteLaplace

ONE_CELL = FeatureDag(Universe(stop=["A", "B"]), [])
TWO_CELLS = FeatureDag(
    Universe(stop=cbdp.Dimension("ABC", zone=["n", "n", "s"])), [Feature("zone", by="stop.zone")]
)
DAGS = {2: ONE_CELL, 3: TWO_CELLS}
TOP = 3  # larger counts are cut down to it: a function of the noisy count alone
PAIRS = [
    ((0, 0), (1, 0)),
    ((0, 0), (0, 1)),
    ((1, 0), (2, 0)),
    ((1, 1), (1, 2)),
    ((0, 0, 0), (1, 0, 0)),
    ((0, 0, 0), (0, 0, 1)),
]


def floors(dag: FeatureDag, step: int, shown: dict[int, int]) -> np.ndarray:
    """First the same for all cells, then lower where something showed."""
    cells = np.arange(dag.cells.size)
    seen = np.isin(cells, [dag.cell_of_leaf[u] for u in shown])
    return np.ones_like(cells) if step == 0 else np.where(seen, -1, 0)


def revealed(dag: FeatureDag, answer) -> tuple:
    """What is known in the end, and on the way."""
    told = [{}]
    for step in (0, 1):
        answer.lower(floors(dag, step, told[-1]))
        told.append(dict(zip(answer.index.tolist(), answer.value.tolist(), strict=True)))
    return tuple(tuple(sorted(t.items())) for t in told[1:])


class Everywhere:
    """Noise on every type, read off above floors."""

    def __init__(self, dag: FeatureDag, counts: tuple[int, ...], choices: Choices) -> None:
        self.noisy = np.minimum(np.array(counts) + Enumerated(choices).sample(len(counts)), TOP)
        self.cell, self.floor = dag.cell_of_leaf, np.full(dag.cells.size, TOP)

    def lower(self, floor: np.ndarray) -> None:
        self.floor = np.minimum(self.floor, floor)
        self.index = np.flatnonzero(self.noisy > self.floor[self.cell])
        self.value = self.noisy[self.index]


@cache
def dense_law(counts: tuple[int, ...]):
    dag = DAGS[len(counts)]
    return law_of(lambda choices: revealed(dag, Everywhere(dag, counts, choices)))


@cache
def sparse_law(counts: tuple[int, ...], kind: type[SparseThresholdedAnswer] = SparseThresholdedAnswer):
    dag = DAGS[len(counts)]
    given = cbdp.count(np.array(counts), dag.universe)
    draws = Enumerated(Choices([]))

    def program(choices: Choices):
        draws.choices = choices
        answer = kind(
            given, dag.cell_of_leaf[given.index], dag, DiscreteLaplace(1), InsecureSeededEntropy(0), None
        )
        return revealed(dag, answer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "sampler_of", lambda _: draws)
        patch.setattr(answers, "ALL_HIDDEN_THRESHOLD", TOP)
        patch.setattr("sparse_mutants.ALL_HIDDEN_THRESHOLD", TOP)
        return law_of(program)


def greatest_ratio(one, other):
    """The largest ratio of an outcome's probabilities, either way; None where only one has it."""
    if one.keys() != other.keys():
        return None
    return max(max(one[o] / other[o], other[o] / one[o]) for o in one)


def test_the_noise_of_this_test_adds_up():
    """All masses are 1 together, and neighbours differ by e^ε."""
    assert sum(mass(z) for z in range(-4, 5)) == 1
    assert mass(2) / mass(3) == mass(-1) / mass(-2) == RATIO


@pytest.mark.slow
@pytest.mark.parametrize("counts", sorted({c for pair in PAIRS for c in pair}), ids=str)
def test_what_is_revealed_has_exactly_the_law_of_noise_everywhere(counts):
    """Every outcome, with floors that were lowered on the way, has the same fraction for its probability."""
    assert sparse_law(counts) == dense_law(counts)


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_one_trip_more_is_worth_exactly_epsilon(pair):
    """No outcome is more than e^ε times as likely with the trip as without it, or the other way, and one is."""
    assert greatest_ratio(*(sparse_law(counts) for counts in pair)) == RATIO


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant",
    [Overwritten, Added, HitAgain, Peeking, NoTwoInARow, AllWithTrips, AtLeast, TopLess, Unperturbed, Short],
)
def test_mutant_has_another_law(mutant):
    """Each slip shows in some probability."""
    assert any(sparse_law(counts, mutant) != dense_law(counts) for counts in ((0, 0), (1, 0)))


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [Overwritten, AllWithTrips, Unperturbed])
def test_mutant_is_worth_more_than_epsilon(mutant):
    """Some outcome gives the trip away, or is more than e^ε times as likely with it."""
    found = [greatest_ratio(*(sparse_law(counts, mutant) for counts in pair)) for pair in PAIRS[:3]]
    assert any(ratio is None or ratio > RATIO for ratio in found)


def laplace_law(counts: tuple[int, ...], *, large: bool):
    dag, draws = DAGS[len(counts)], Enumerated(Choices([]))
    mechanism = Laplace(dag, 1, law="geometric", sparse=large)
    given = cbdp.count(np.array(counts), dag.universe)

    def program(choices: Choices):
        draws.choices = choices
        release = mechanism.finish(mechanism.measure(given, InsecureSeededEntropy(0)))
        return tuple(zip(release.index.tolist(), np.minimum(release.value, TOP).tolist(), strict=True))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laplace, "sampler_of", lambda _: draws)
        patch.setattr("cbdp.measuring.answers.sampler_of", lambda _: draws)
        return law_of(program)


@pytest.mark.parametrize("pair", PAIRS[:4], ids=str)
def test_laplace_on_demand_is_laplace(pair):
    """The baseline's own sparse path publishes by the law of its dense one, and a trip more is worth exactly ε."""
    laws = [laplace_law(counts, large=True) for counts in pair]
    assert laws == [laplace_law(counts, large=False) for counts in pair]
    assert greatest_ratio(*laws) == RATIO
