"""Tables of thresholds: ties are broken by further digits, and the compiled loops are their Python source."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from noise_fits import ALPHA, Recorder, Script, fit, meets_the_right_pieces, sampler

from cbdp.measuring import exact_sampling
from cbdp.measuring.exact_sampling import Thresholds, powers_of_exp
from cbdp.measuring.samplers.laplace import _two_sided_sampler
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import DiscreteLaplace


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "n"), [(8, 50_000), (16, 300_000), (32, 1_000_000)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), 1, 3, 10, 200, 5_000])
def test_short_words_keep_the_law(scale, bits, n):
    """With 8- and 16-bit words most or many draws are ties, and the law stays the same."""
    source = Recorder(3)
    values = sampler(scale, word_bits=bits).sample(n, source)
    assert fit(values, DiscreteLaplace(Fraction(scale))) > ALPHA
    assert bits == 32 or source.singles > n / 2**bits


def test_ties_lead_beyond_the_table_and_on():
    """With 8-bit words the table is left through its last threshold, and values beyond it have the right law."""
    head = _two_sided_sampler(Fraction(3), 8).head
    end = head.count // 2
    assert head.prefixes[-1] == 255  # hence only a tie can go beyond
    values = sampler(3, word_bits=8).sample(60_000, InsecureSeededEntropy(8))
    assert np.abs(values).max() < end  # rare at its true size …
    short = exact_sampling.RadixSampler(
        powers_of_exp(Fraction(1, 3)),
        0,
        exact_sampling.InverseCdfTable(Thresholds(powers_of_exp(Fraction(1, 3)), 1, 4, signed=True), 8),
        restarts=True,
        width=None,
        signed=True,
    )
    values = short.draw(100_000, InsecureSeededEntropy(9))
    beyond = np.abs(values) >= 2
    assert beyond.sum() > 10_000  # … but common with two magnitudes, where it must change nothing
    assert np.abs(values).max() > 20
    assert fit(values, DiscreteLaplace(3)) > ALPHA


def test_a_tie_with_the_last_threshold_can_go_either_way():
    """Words that follow the last threshold's digits and then exceed or undercut them end beyond or inside the table."""
    table = exact_sampling.InverseCdfTable(Thresholds(powers_of_exp(Fraction(1)), 1, 6, signed=True), 8)
    digits = table.thresholds.prefix(5, 40).to_bytes(5, "big")
    assert digits[-1] not in {0, 255}
    over, under = ([*digits[:-1], digits[-1] + d] for d in (1, -1))
    assert table.draw(1, Script(over)).tolist() == [6]
    assert table.draw(1, Script(under)).tolist() == [5]
    with pytest.raises(EOFError):
        table.draw(1, Script(digits))


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(1, 4), 1, 30])
def test_every_pair_of_8_bit_words_meets_the_right_piece(scale):
    """All 65,536 pairs of words give the piece that holds them, or ask for more exactly where a threshold lies inside."""
    meets_the_right_pieces(_two_sided_sampler(Fraction(scale), 8).head)


@pytest.mark.parametrize("bits", [8, 64])
def test_compiled_look_up_is_the_python_one(bits):
    """The compiled look-up finds the same pieces and ties as its source run by Python, at every prefix and beside it."""
    table = _two_sided_sampler(Fraction(10), bits).head
    near = [int(p) + d for p in table.prefixes for d in (-1, 0, 1)]
    words = np.array([w for w in [0, 2**bits - 1, *near] if 0 <= w < 2**bits], dtype=f"u{bits // 8}")
    a, b = np.empty((2, words.size), dtype=np.int64)
    arguments = words, table.prefixes, table.guide, np.uint64(max(0, bits - 12))
    assert (
        exact_sampling.lookup_words(*arguments, a)
        == exact_sampling.compiled_on_use(exact_sampling.lookup_words)(*arguments, b)
        >= table.count
    )
    assert (a == b).all()
    assert ((a == -1) == np.isin(words, table.prefixes)).all()


# Entropy


def test_hits_beyond_saturated_gaps():
    """Gaps longer than 2^62 pass over positions without a hit and without an overflow."""
    out = np.empty(4, dtype=np.int64)
    limit, end = 2**62, 2**63 - 1
    assert exact_sampling.gaps_to_positions(np.array([limit, 5, limit, 1]), 0, end, out) == (1, end)
    assert out[0] == limit + 5
    assert exact_sampling.compiled_on_use(exact_sampling.gaps_to_positions)(
        np.array([limit, 5, limit, 1]), 0, end, out
    ) == (1, end)
    assert exact_sampling.gaps_to_positions(np.array([2, 0, 3]), 10, 100, out) == (3, 18)
    assert out[:3].tolist() == [12, 13, 17]


# Input and backends
