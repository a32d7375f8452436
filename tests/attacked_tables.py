"""Tables of counts to be attacked: with noise of a known law, and small counts suppressed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cbdp.audit.findings import Finding
from cbdp.audit.tables import CountTable, Pair, PublishedTables
from cbdp.measuring.samplers import sampler_of
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import NoiseDistribution, noise_distribution

P = 1.4  # the scale of the assessment's noise
LAWS = ("laplace", "geometric", "rounded")
SECRET = [("Manly Wharf", 91), ("Circular Quay No. 3 Wharf", 41), ("Cremorne Point Wharf", 0)]


def draw(noise: NoiseDistribution, n: int, seed: int) -> NDArray[np.float64]:
    """Noise of a law; continuous noise by numpy's generator."""
    if not noise.whole:
        return np.random.default_rng(seed).laplace(0, float(noise.scale), n)
    sampler = sampler_of(noise_distribution(noise.name, Fraction(str(noise.scale))))
    drawn: NDArray[np.float64] = sampler.sample(n, InsecureSeededEntropy(seed)).astype(float)
    return drawn


def manly(
    noise: NoiseDistribution,
    n: int,
    seed: int,
    declared: NoiseDistribution | None,
    threshold: float | None = 18,
    low: int = 1,
) -> PublishedTables:
    """Crossings counted at both ends, of which small counts are suppressed."""
    truth = np.random.default_rng(seed).integers(low, 400, n)
    counts = np.tile(truth, 2) + draw(noise, 2 * n, seed)
    if threshold is not None:
        counts[counts < threshold] = 0
    keys = {"tap": np.repeat(["on", "off"], n), "crossing": np.tile(np.arange(n), 2)}
    table = CountTable("ferry", keys, counts, declared, threshold, shows_zeros=False)
    return PublishedTables((table,), equal=(Pair("ferry", np.arange(n), "ferry", np.arange(n, 2 * n)),))


def tables_of(
    rng: np.random.Generator, times: int, places: int, hidden: float = 0.0, b: float = 1.0
) -> tuple[PublishedTables, NDArray[np.int64]]:
    """Tables by time, by place and by both, noised on their own; a share of the cells is small and hidden below 18."""
    time, place = (axis.reshape(-1) for axis in np.indices((times, places)))
    truth = rng.integers(80, 400, times * places)
    small = rng.random(len(truth)) < hidden
    truth[small] = rng.integers(1, 12, int(small.sum()))
    fine, coarse = noise_distribution("rounded", b), noise_distribution("rounded", 2 * b)
    counts = truth + np.rint(rng.laplace(0, b, len(truth)))
    counts[counts < 18] = 0
    by_time = np.bincount(time, truth) + np.rint(rng.laplace(0, 2 * b, times))
    by_place = np.bincount(place, truth) + np.rint(rng.laplace(0, 2 * b, places))
    made = (
        CountTable("time", {"time": np.arange(times)}, by_time, coarse, 18, shows_zeros=False),
        CountTable("place", {"place": np.arange(places)}, by_place, coarse, 18, shows_zeros=False),
        CountTable("both", {"time": time, "place": place}, counts, fine, 18, shows_zeros=False),
    )
    return PublishedTables(made, epsilon=8, delta=1e-6), truth


def secret(
    noise: NoiseDistribution | None = None, *, listed: bool = True, zeros: bool = False, delta: float = 0.0
) -> PublishedTables:
    """The assessment's Table 2: 91 and 41 by place, 150 in all, and a wharf whose count is hidden."""
    own = noise or noise_distribution("laplace", P)
    rows = SECRET if listed else SECRET[:2]
    keys = {"time": np.full(len(rows), "00:00"), "loc": np.array([r[0] for r in rows])}
    counts = np.array([r[1] for r in rows], dtype=float)
    both = CountTable("time-loc", keys, counts, own, 18, shows_zeros=zeros, closed=listed)
    time = CountTable("time", {"time": np.array(["00:00"])}, np.array([150.0]), own, 18, shows_zeros=zeros)
    return PublishedTables((both, time), epsilon=8, delta=delta)


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [f.title for f in findings]
    return findings[0]
