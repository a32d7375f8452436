"""Sensitivity on the sparse path by exact comparison: every way the noise can fall, with its probability as a fraction.

Three types in two cells; floors that follow what is revealed. The law of what is revealed is that of noise on every type, to
the last digit; so one trip more changes no outcome's probability by more than e^ε, and some by exactly that.
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
from cbdp.measuring import sparse
from cbdp.measuring.sparse import SparseAnswer
from cbdp.mechanisms import Laplace, laplace
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.laws.geometric import Geometric

DAG = FeatureDag(
    Universe(stop=cbdp.Dimension("ABC", zone=["n", "n", "s"])), [Feature("zone", by="stop.zone")]
)
CELL = DAG.cell_of_leaf
TOP = 3  # larger counts are cut down to it: a function of the noisy count alone
NONE = (0, 0, 0)
PAIRS = [(NONE, (1, 0, 0)), ((1, 0, 0), (2, 0, 0)), (NONE, (0, 0, 1)), ((1, 0, 0), (1, 0, 1))]


def floors(step: int, shown: dict[int, int]) -> np.ndarray:
    """First the same for all, then lower where something showed."""
    if step == 0:
        return np.array([1, 1])
    seen = np.isin([0, 1], [CELL[u] for u in shown])
    return np.where(seen, -1, 0)


def revealed(answer) -> tuple:
    """What is published in the end, and on the way."""
    told = []
    for step in (0, 1):
        shown = told[-1] if told else {}
        answer.lower(floors(step, shown))
        told.append(dict(zip(answer.index.tolist(), answer.value.tolist(), strict=True)))
    return tuple(tuple(sorted(t.items())) for t in told)


class Everywhere:
    """Noise on every type, read off above floors."""

    def __init__(self, counts: tuple[int, ...], choices: Choices) -> None:
        self.noisy = np.minimum(np.array(counts) + Enumerated(choices).sample(3), TOP)
        self.floor = np.full(2, TOP)

    def lower(self, floor: np.ndarray) -> None:
        self.floor = np.minimum(self.floor, floor)
        self.index = np.flatnonzero(self.noisy > self.floor[CELL])
        self.value = self.noisy[self.index]


@cache
def dense_law(counts: tuple[int, ...]):
    return law_of(lambda choices: revealed(Everywhere(counts, choices)))


@cache
def sparse_law(counts: tuple[int, ...], kind: type[SparseAnswer] = SparseAnswer):
    given = cbdp.count(np.array(counts), DAG.universe)
    cell = CELL[given.index]

    def program(choices: Choices):
        draws.choices = choices
        return revealed(kind(given, cell, DAG, Geometric(1), InsecureSeededEntropy(0), None))

    draws = Enumerated(Choices([]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "sampler_of", lambda _: draws)
        patch.setattr(sparse, "HIDDEN", TOP)
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


@pytest.mark.parametrize("counts", sorted({c for pair in PAIRS for c in pair}))
def test_what_is_revealed_has_exactly_the_law_of_noise_everywhere(counts):
    """Every outcome, with floors that were lowered on the way, has the same fraction for its probability."""
    assert sparse_law(counts) == dense_law(counts)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_one_trip_more_is_worth_exactly_epsilon(pair):
    """No outcome is more than e^ε times as likely with the trip as without it, or the other way, and one is."""
    assert greatest_ratio(*(sparse_law(counts) for counts in pair)) == RATIO


@pytest.mark.parametrize(
    "mutant",
    [Overwritten, Added, HitAgain, Peeking, NoTwoInARow, AllWithTrips, AtLeast, TopLess, Unperturbed, Short],
)
def test_mutant_has_another_law(mutant, monkeypatch):
    """Each slip shows in some probability."""
    monkeypatch.setattr("sparse_mutants.HIDDEN", TOP)
    assert sparse_law((1, 0, 0), mutant) != dense_law((1, 0, 0)) or sparse_law(NONE, mutant) != dense_law(
        NONE
    )


@pytest.mark.parametrize("mutant", [Overwritten, AllWithTrips, Unperturbed, Peeking])
def test_mutant_is_worth_more_than_epsilon(mutant, monkeypatch):
    """Some outcome gives the trip away, or is more than e^ε times as likely with it."""
    monkeypatch.setattr("sparse_mutants.HIDDEN", TOP)
    found = [greatest_ratio(*(sparse_law(counts, mutant) for counts in pair)) for pair in PAIRS]
    assert any(ratio is None or ratio > RATIO for ratio in found)


def laplace_law(counts: tuple[int, ...], *, large: bool):
    mechanism, given = (
        Laplace(DAG, 1, law="geometric", sparse=large),
        cbdp.count(np.array(counts), DAG.universe),
    )

    def program(choices: Choices):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(laplace, "sampler_of", lambda _: Enumerated(choices))
            patch.setattr("cbdp.measuring.dense.sampler_of", lambda _: Enumerated(choices))
            release = mechanism.finish(mechanism.measure(given, InsecureSeededEntropy(0)))
        return tuple(zip(release.index.tolist(), np.minimum(release.value, TOP).tolist(), strict=True))

    return law_of(program)


@pytest.mark.parametrize("pair", PAIRS[:3], ids=str)
def test_laplace_on_demand_is_laplace(pair):
    """The baseline's own sparse path publishes by the law of its dense one, and a trip more is worth exactly ε."""
    laws = [laplace_law(counts, large=True) for counts in pair]
    assert laws == [laplace_law(counts, large=False) for counts in pair]
    assert greatest_ratio(*laws) == RATIO
