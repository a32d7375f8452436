"""Random words: from the operating system, or repeatably from a seed."""

from __future__ import annotations

import os

import pytest
from noise_fits import sampler

from cbdp.privacy.entropy import InsecureSeededEntropy, SystemEntropy

pytestmark = pytest.mark.system_noise


def test_system_entropy_is_the_default(monkeypatch):
    """A sample without a source asks the operating system for its words, and for all of them."""
    asked = []
    urandom = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: asked.append(n) or urandom(n))
    sampler(1).sample(1000)
    assert sum(asked) >= 8000
    assert SystemEntropy().secure
    assert not InsecureSeededEntropy(0).secure


def test_insecure_source_repeats_and_differs_by_seed():
    """The same seed gives the same noise, another seed gives another."""
    a, b, c = (sampler(10).sample(1000, InsecureSeededEntropy(seed)) for seed in (1, 1, 2))
    assert (a == b).all()
    assert (a != c).any()
    assert (sampler(10).sample(1000) != sampler(10).sample(1000)).any()


@pytest.mark.forks
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_draw_different_noise():
    """Two children forked after a draw share no noise with each other or with their parent."""
    sampler(1000).sample(100)

    def draw_in_child():
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, sampler(1000).sample(100).tobytes())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            data = pipe.read()
        os.wait()
        return data

    drawn = {draw_in_child(), draw_in_child(), sampler(1000).sample(100).tobytes()}
    assert len(drawn) == 3
    assert all(len(data) == 800 for data in drawn)
