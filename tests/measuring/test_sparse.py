"""What is revealed of noisy counts: in order, without a trace of where it comes from, and never worth more than ε."""

from __future__ import annotations

import itertools
import pickle
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sparse_mutants import AllWithTrips, Overwritten, Unperturbed
from sparse_twin import CELLS, SCALE, TRUTH, TYPES, answer_of, city, sparse

import cbdp
from cbdp import FeatureDag, Universe
from cbdp.app.audit.lower_bound import TrialParts, epsilon_lower_bound
from cbdp.errors import InputError
from cbdp.measuring.answers import ALL_HIDDEN_THRESHOLD, SparseThresholdedAnswer
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.entropy import InsecureSeededEntropy


def test_what_is_revealed_is_in_order_and_stays() -> None:
    """Types ascend, a floor that is not lower changes nothing, and lowering keeps every count revealed before."""
    answer = sparse(5, 41)
    before: dict[int, int] = {}
    rng = np.random.default_rng(0)
    for level in (6, 3, 4, 1, -3, 0):
        answer.lower(np.full(answer.floor.size, level) + rng.integers(0, 3, answer.floor.size))
        now = dict(zip(answer.index.tolist(), answer.value.tolist(), strict=True))
        assert (np.diff(answer.index) > 0).all()
        assert before.items() <= now.items()
        assert (answer.value > answer.floor[city(5).cell_of_leaf[answer.index]]).all()
        before = now
    held = answer.measurement()
    answer.lower(answer.floor + 1)
    assert pickle.dumps(answer.measurement()) == pickle.dumps(held)
    with pytest.raises(InputError, match="lower than any count can be"):
        answer.lower(np.full(answer.floor.size, -ALL_HIDDEN_THRESHOLD - 1))


def test_order_of_rows_changes_no_byte() -> None:
    """Under one source, rows in any order, or counts given as an array, make the same measurement byte for byte."""
    universe = city(1).universe
    index = np.repeat(np.arange(TYPES), TRUTH)
    found = set()
    for seed in range(4):
        rows = universe.unrank_codes(np.random.default_rng(seed).permutation(index))
        names = universe.dimensions.items()
        table = {n: [d.values[c] for c in code] for (n, d), code in zip(names, rows, strict=True)}
        counts = cbdp.count(table if seed else TRUTH, universe)
        answer = answer_of(SparseThresholdedAnswer, counts, city(1), SCALE, InsecureSeededEntropy(42))
        for level in (4, 2, -1):
            answer.lower(np.full(CELLS, level))
        found.add(pickle.dumps(answer.measurement()))
    assert len(found) == 1


def test_a_measurement_has_no_trace_of_where_its_counts_come_from() -> None:
    """With a trip and without, the same revealed counts are the same bytes."""
    dag = FeatureDag(Universe(stop=["A", "B", "C"]), [])
    seen: dict[Any, list[set[bytes]]] = defaultdict(lambda: [set(), set()])
    for seed, trips in itertools.product(range(500), (0, 1)):
        counts = cbdp.count(np.array([0, trips, 0]), dag.universe)
        answer = answer_of(
            SparseThresholdedAnswer, counts, dag, Fraction(1), InsecureSeededEntropy(10_000 * trips + seed)
        )
        for level in (1, 0):
            answer.lower(np.array([level]))
        key = tuple(answer.index), tuple(answer.value)
        seen[key][trips].add(pickle.dumps(answer.measurement()))
    both = [one | two for one, two in seen.values() if one and two]
    assert len(both) > 10
    assert all(len(bytes_) == 1 for bytes_ in both)


# ε through the sparse path


# (the path itself is attacked with the other honest mechanisms, in test_audit_epsilon)
PARTS = TrialParts(4000, {"stop": ["A", "B"]})
SHARES = {"part": Fraction(3, 5), "singleton": Fraction(2, 5)}  # with these, floors hide some of the counts
SPARSE = ConstraintBased(
    PARTS.features, 1, measured=PARTS.measured, budget=SHARES, sparse=True, estimator="projection"
)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [Unperturbed, Overwritten, AllWithTrips])
def test_mutant_of_the_sparse_path_exceeds_epsilon(
    monkeypatch: pytest.MonkeyPatch, mutant: type[SparseThresholdedAnswer]
) -> None:
    """Zeros without noise, hits on types with trips kept, trips shown whatever the floor: each proves more than ε."""
    monkeypatch.setattr("cbdp.measuring.answers.SparseThresholdedAnswer", mutant)
    one, none = {"stop": ["A"]}, {"stop": []}
    bound = epsilon_lower_bound(SPARSE, one, none, parts=PARTS, trials=120_000, seed=24)
    assert bound.epsilon > 1.2, bound
