"""Each leaf's own answer: the expected count and its variance, given the noisy count and what was to be expected."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.estimate.posterior.lattice import SHAPES, TINY, Lattice
from cbdp.estimate.posterior.settings import TUNING
from cbdp.estimate.posterior.shapes import believed, counted, evidence, strata, sums_by
from cbdp.estimate.posterior.threads import each, in_parts

LEVER = 1.1  # by which rates are multiplied to see how expected counts follow them


@dataclass(frozen=True, eq=False)
class ExpectedLeaves:
    """Posterior mean and variance of each leaf, and its lever: the slope of the mean in the logarithm of its rate."""

    mean: Floats
    variance: Floats
    lever: Floats


@dataclass(frozen=True, eq=False)
class LeafLaw:
    """The law of each leaf's count before its own noisy count is looked at: the same for all leaves of a stratum."""

    table: Lattice
    group: NDArray[np.uint8]  # the stratum of each leaf
    often: Ints  # strata × columns that occur: how often
    prior: Floats  # strata × means
    more: Floats  # the same, for rates that are larger by LEVER

    def expected(self, noisy: NDArray[Any]) -> ExpectedLeaves:
        """Given its noisy count, what is to be expected of each leaf."""
        answers = np.zeros((*self.often.shape, 3))  # strata × columns
        moments = [moment[:, self.table.used] for moment in self.table.moments]

        def answer(s: int) -> None:
            here = np.flatnonzero(self.often[s])
            law = self.table.occurring[:, here], *(moment[:, here] for moment in moments)
            mean, variance = _moments(self.prior[s], *law)
            lever = (_moments(self.more[s], *law)[0] - mean) / math.log(LEVER)
            answers[s, here] = np.stack([mean, variance, np.maximum(lever, 0.0)], axis=1)

        each(answer, range(len(self.often)), len(noisy))
        table, made = self.table, [np.empty(len(noisy)) for _ in range(3)]
        leaves = self.group, table.place, noisy, table.capped, table.variance, TUNING.certain
        in_parts(lambda begin, end: _look_up(*made, answers, *leaves, begin, end), len(noisy))
        return ExpectedLeaves(*made)

    def drawn(self, noisy: NDArray[Any], rng: np.random.Generator) -> Floats:
        """Given its noisy count, a count of each leaf as it may be, in trips."""
        table, columns = self.table, self.table.counts.shape[1]
        laws = self.prior @ table.counts[:, table.zero :]  # strata × counts, of the count without noise
        alone = np.zeros((1, 2 * columns + 1))
        alone[0, columns] = 1.0
        noise = table.noise.blurred(alone, table.step)[0]
        made = np.empty(len(self.group))
        counts = np.arange(laws.shape[1])
        for here, stratum, column in _alike(self.group, table.column, columns):
            seen_at = column - table.zero  # in steps
            likely = np.cumsum(laws[stratum] * noise[columns + seen_at - counts])
            found = np.searchsorted(likely, rng.random(len(here)) * likely[-1], side="right")
            found = (
                np.minimum(found, len(counts) - 1) if likely[-1] > 0 else np.full(len(here), max(seen_at, 0))
            )
            made[here] = table.step * found
        np.copyto(made, np.maximum(noisy, 0.0), where=table.capped)
        return made


def _alike(group: NDArray[Any], column: NDArray[Any], columns: int) -> Iterator[tuple[Ints, int, int]]:
    """Leaves of the same stratum and column, and which these are."""
    key = group.astype(np.int64) * columns + column
    order = np.argsort(key, kind="stable")
    ends = np.flatnonzero(np.diff(key[order])) + 1
    for here in np.split(order, ends):
        yield here, *divmod(int(key[here[0]]), columns)


def leaf_law(noisy: NDArray[Any], rate: NDArray[Any], table: Lattice, shapes: Floats = SHAPES) -> LeafLaw:
    """Within strata of the expected count, a prior of the shape that the noisy counts there, and elsewhere, speak for."""
    group = strata(rate, TUNING.leaf_strata)
    expected = _calibrated(noisy, rate, group, table.variance)
    often = counted(group, table.place, len(expected), len(table.used))
    fit, mixed = evidence(table, expected, often, len(noisy), shapes)
    weight = believed(fit, shapes)

    def more(s: int) -> Floats:
        """As the prior, for larger rates."""
        made: Floats = weight[s] @ table.mixtures(LEVER * expected[s : s + 1], shapes)[0]
        return made

    prior = np.einsum("sk,skm->sm", weight, mixed)
    return LeafLaw(table, group, often, prior, np.array(each(more, range(len(fit)), len(noisy))))


@njit(cache=True, nogil=True)
def _look_up(mean, spread, lever, answers, group, place, noisy, capped, variance, least, begin, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Each leaf's answer; beyond the tables a noisy count and its variance stand for themselves."""
    for u in range(begin, end):
        s, k = group[u], place[u]
        mean[u], lever[u] = answers[s, k, 0], answers[s, k, 2]
        spread[u] = max(answers[s, k, 1], least)
        if capped[u]:
            mean[u], spread[u] = noisy[u], max(variance, least)


def _moments(prior: Floats, law: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """The mean and the variance of a count, given noisy counts, by their laws and moments under each mean of the prior."""
    likely = np.maximum(prior @ law, TINY)
    mean = prior @ first / likely
    return mean, prior @ second / likely - mean**2


def _calibrated(noisy: NDArray[Any], rate: NDArray[Any], group: NDArray[Any], variance: float) -> Floats:
    """The mean of each stratum: as expected, or drawn to what its noisy counts say where these differ for sure."""
    sums: Floats = sums_by(group, rate, noisy, int(group.max()) + 1)
    many, told = sums[0], sums[2] / sums[0]
    wanted: Floats = np.maximum(sums[1] / many, TINY)
    chance: Floats = variance / many
    lever = wanted**2 / ((TUNING.drift * wanted) ** 2 + chance) ** 2
    scale = (lever * wanted**2).sum()
    if not scale > 0:
        return wanted
    off = float((lever * ((told - wanted) ** 2 - chance)).sum() / scale)
    doubt = float(np.sqrt((lever**2 * 2 * chance**2).sum()) / scale)
    off = min(off, 1.0) if off > TUNING.stratum_sure * doubt else 0.0
    believed = np.where(many < TUNING.fewest_leaves, 0.0, off * wanted**2 / (off * wanted**2 + chance))
    made: Floats = np.maximum(wanted + believed * (told - wanted), 1e-3 * wanted)
    made *= (many @ wanted) / (many @ made)  # the total is known better from all answers together
    return made
