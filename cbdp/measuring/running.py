"""Sums over the periods of a series with noise, each measured when its last period is over. Here privacy is spent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.measuring.samplers import sampler_of
from cbdp.privacy.entropy import Entropy
from cbdp.privacy.laws import Law
from cbdp.privacy.running import Strategy

LARGEST = 2**62  # sums stay far from the ends of 64 bits


def measure_sums(strategy: Strategy, tables: Sequence[Ints], law: Law, entropy: Entropy) -> Ints:
    """The noisy sums that end in the last of these periods: a row for each, a column for each count of the table.

    `tables` are the true counts of every period so far, the oldest first. Sums and noise are whole numbers, so nothing is rounded.

    Proof: docs/proofs/continual.md.
    """
    if not 0 < len(tables) <= strategy.periods:
        raise InputError(f"{len(tables)} periods of a strategy for {strategy.periods}: start a new one")
    held = np.array([np.asarray(t, dtype=np.int64) for t in tables])
    asked = strategy.asked(len(tables) - 1)[:, : len(tables)]
    largest = int(asked.sum(axis=1).max(initial=0)) * int(np.abs(held).max(initial=0))
    if largest > LARGEST:
        raise InputError(f"sums of up to {largest:,} do not fit in 64 bits: count shorter periods")
    noise = sampler_of(law).sample(asked.shape[0] * held.shape[1], entropy)
    made: Ints = asked @ held + noise.reshape(asked.shape[0], held.shape[1])
    return made
