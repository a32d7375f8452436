"""OpenDP's sampler, the independent source of the same noise."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest
from noise_fits import ALPHA, sampler
from scipy import stats

import cbdp
from cbdp.errors import InputError
from cbdp.measuring.answers import sample_opendp
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import DiscreteLaplace


@pytest.mark.slow
@pytest.mark.parametrize("scale", [3, Fraction(200, 3)])
def test_samples_agree_with_opendp(scale):
    """A hundred thousand of OpenDP's draws and a million of ours look alike."""
    ours = sampler(scale).sample(1_000_000, InsecureSeededEntropy(11))
    theirs = sample_opendp(DiscreteLaplace(Fraction(scale)), 100_000)
    reach = int(theirs.max(initial=ours.max()) - min(ours.min(), theirs.min()) + 1)
    low = min(ours.min(), theirs.min())
    table = np.array([np.bincount(x - low, minlength=reach) for x in (ours, theirs)])
    full = table[:, table.sum(axis=0) >= 100]
    rest = table.sum(axis=1, keepdims=True) - full.sum(axis=1, keepdims=True)
    assert stats.chi2_contingency(np.hstack([full, rest + 1])).pvalue > ALPHA


def test_missing_or_old_opendp_says_what_to_install(monkeypatch):
    """Without OpenDP, or with a version that samples wrongly, the error holds the install command."""
    for version in ("0.13.0", "0.14.1", "0.9"):
        with monkeypatch.context() as patch:
            patch.setattr("importlib.metadata.version", lambda _, version=version: version)
            with pytest.raises(InputError, match=rf"opendp {version} .*cbdp\[opendp\]"):
                sample_opendp(DiscreteLaplace(Fraction(1)), 1)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(InputError, match=r"cbdp\[opendp\]"):
        sample_opendp(DiscreteLaplace(Fraction(1)), 1)


TINY = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"]), [])
COUNTS = cbdp.count(np.array([1, 0]), TINY.universe)


def test_opendp_can_draw_the_noise():
    """The independent backend gives answers of the same shape, with the same scale."""
    answers = cbdp.measure(COUNTS, TINY, epsilon=1, budget="uniform", backend="opendp")
    assert [len(m.values) for m in answers] == [1, 2]
    assert {m.scale for m in answers} == {Fraction(2)}
    assert sample_opendp(DiscreteLaplace(Fraction(1)), 0).dtype == np.int64
    assert sample_opendp(DiscreteLaplace(Fraction(1)), 0).size == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"backend": "numpy"}, "choose 'cbdp' or 'opendp'"),
        ({"backend": "opendp", "entropy": InsecureSeededEntropy(0)}, "own entropy"),
        ({"backend": "opendp", "law": "rounded"}, "geometric or gaussian noise"),
        ({"backend": "opendp", "sparse": True}, "every trip type"),
    ],
    ids=["unknown", "seeded", "another law", "not listed"],
)
def test_what_opendp_cannot_do_is_refused(options, says):
    """Nothing that was asked for is dropped silently: a seed, another law, noise drawn on demand."""
    with pytest.raises(InputError, match=says):
        cbdp.measure(COUNTS, TINY, epsilon=1, **options)
