"""InfTDA's six synthetic sets, drawn again from the laws, seeds and sizes of its published generator.

Two hierarchies of areas: *binary*, where each area has 2 areas inside and places lie 8 deep (256 places), and *random*, where
it has 2 to 10 and places lie 4 deep (435 places). On each, all pairs of places are filled, or a half, or a hundredth, chosen at
random. Filled pairs have Pareto flows of shape 3, scaled so that the largest is 1,000, and none is below 1.
The same generators with the same seeds are asked in the same order, so these are the published sets and not others like them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np

from benchmarks.inftda.demand import Demand, Ints

SEED = 42
EMPTY: Mapping[str, float] = {
    "complete": 0.0,
    "dense": 0.5,
    "sparse": 0.99,
}  # the share of pairs without trips
SHAPE = 3  # of the Pareto law
LARGEST = 1000  # trips of a pair
MOST_INSIDE = 10  # areas inside one, in the random hierarchy


def six() -> list[str]:
    return [f"{tree} {density}" for tree in ("binary", "random") for density in EMPTY]


def demand(name: str) -> Demand:
    """One of the six, by its name.

    >>> made = demand("binary sparse")
    >>> made.places, made.sizes[:4], len(made.trips), int(made.trips.max())
    (256, (1, 2, 4, 8), 655, 1000)
    """
    tree, density = name.split()
    return flowing(name, binary(8) if tree == "binary" else drawn(4), EMPTY[density])


def small(name: str) -> Demand:
    """A set of the same kind with 16 places, to try things on."""
    return flowing(name, binary(4), 0.5)


def flowing(name: str, above: list[Ints], empty: float) -> Demand:
    """Flows between pairs of places drawn at random."""
    places = len(above[-1])
    filled = int(places**2 * (1 - empty))
    chosen = np.array(random.Random(SEED).sample(range(places**2), filled), dtype=np.int64)
    return Demand(name, above, chosen // places, chosen % places, flows(filled))


def binary(depth: int) -> list[Ints]:
    """The areas above each place, two in each."""
    places = np.arange(2**depth)
    return [places >> (depth - level) for level in range(depth + 1)]


def drawn(depth: int) -> list[Ints]:
    """The areas above each place; the n-th area inside one has that one's seed + n, and draws how many it holds from it."""
    seeds, above = [SEED], [np.zeros(1, dtype=np.int64)]
    for _ in range(depth):
        inside = [random.Random(seed).randint(2, MOST_INSIDE) for seed in seeds]
        above = [np.repeat(area, inside) for area in above]
        seeds = [seed + n for seed, many in zip(seeds, inside, strict=True) for n in range(many)]
        above.append(np.arange(len(seeds)))
    return above


def flows(many: int) -> Ints:
    """Heavy-tailed trips between 1 and the largest."""
    pareto = np.random.RandomState(SEED).pareto(SHAPE, many)  # the stream that is published
    whole: Ints = np.floor(1 + pareto / pareto.max() * (LARGEST - 1)).astype(np.int64)
    return whole
