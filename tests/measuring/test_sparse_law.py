"""Noise drawn only where it can matter has the law of noise on every trip type, and mutants of it have not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sparse_mutants import MUTANTS, Earlier, Later, Short
from sparse_twin import (
    ALPHA,
    CELLS,
    FEWER,
    LAW,
    RUNS,
    SCALE,
    TRUTH,
    TYPES,
    answer_of,
    city,
    counts_of,
    dense,
    least_p,
    revealed,
    sparse,
    twin,
)

from cbdp.measuring.answers import SparseThresholdedAnswer
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import DiscreteGaussian, NoiseDistribution

BOTH = pytest.mark.parametrize("law", [LAW.law, DiscreteGaussian(Fraction(13, 5))], ids=lambda law: law.name)


@pytest.mark.slow
@BOTH
def test_revealed_as_if_all_had_been_noised(law: NoiseDistribution) -> None:
    """Under floors that follow what is revealed, 20,000 runs and the twin's cannot be told apart."""
    assert least_p(revealed(sparse(RUNS, 2, law=law), RUNS), twin(law)) > ALPHA


@pytest.mark.slow
@BOTH
def test_the_twin_is_like_another_twin(law: NoiseDistribution) -> None:
    """The comparison itself raises no false alarm."""
    assert least_p(revealed(dense(RUNS, 3, law), RUNS), twin(law)) > ALPHA


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_of_the_law_is_caught(mutant: type[SparseThresholdedAnswer], law: NoiseDistribution) -> None:
    """The same comparison finds each mutant out, with a fifth of the runs."""
    assert least_p(revealed(sparse(FEWER, 4, mutant, law), FEWER), twin(law)) < ALPHA


@pytest.mark.slow
def test_the_wrong_law_above_floors_is_caught() -> None:
    """Hits as the discrete Gaussian law has them, and values above them as the geometric one: the comparison sees it."""
    law = DiscreteGaussian(Fraction(13, 5))

    class Mixed(SparseThresholdedAnswer):
        def _excess(self, n: int, low: int, high: int) -> np.ndarray:
            own, self._sampler = self._sampler, LAW
            drawn = super()._excess(n, low, high)
            self._sampler = own
            return drawn

    assert least_p(revealed(sparse(FEWER, 4, Mixed, law), FEWER), twin(law)) < ALPHA


def end_to_end(kind: type[SparseThresholdedAnswer], runs: int) -> float:
    """The least p-value (times their number) of how often each type shows, in runs drawn one by one, exact by law."""
    counts, features = counts_of(1), city(1)
    entropy = InsecureSeededEntropy(6)
    levels = (3, 0)
    seen = np.zeros((len(levels), TYPES), dtype=np.int64)
    for _ in range(runs):
        answer = answer_of(kind, counts, features, SCALE, entropy)
        for row, level in zip(seen, levels, strict=True):
            answer.lower(np.full(CELLS, level))
            row[answer.index] += 1
    chance = np.stack([LAW.law.survival(level - TRUTH) for level in levels])
    p = 2 * np.minimum(stats.binom.cdf(seen, runs, chance), stats.binom.sf(seen - 1, runs, chance))
    return float(p.min() * p.size)


@pytest.mark.slow
def test_every_type_shows_as_often_as_its_law_says() -> None:
    """The first and the last type of all included, where batches of runs would hide a slip."""
    assert end_to_end(SparseThresholdedAnswer, 1500) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [Later, Earlier, Short])
def test_mutant_of_the_walk_is_caught(mutant: type[SparseThresholdedAnswer]) -> None:
    """Hits shifted by one position, or one position too few, are found out at the ends."""
    assert end_to_end(mutant, 500) < ALPHA
