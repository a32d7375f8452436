"""What a fleet is sized on: the data sets of mechanisms, by name, and probes that change one thing of the real demand.

A mechanism is any of the harness's (`benchmarks.harness.mechanism`): to compete here takes its one registration, in a file
given by `--with FILE` where it is not built in, and its name in `--mechanisms`. The harness asks for O3, O4 and O5 in the
paper's configuration, whatever the defaults of `ConstraintBased` become.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.registry import MECHANISMS, Case, Setup, answer, prepare
from benchmarks.transit.city import dataset, demand
from benchmarks.transit.published import laplace_trips
from benchmarks.transit.trees import READ_OTHERWISE, tree_counts
from cbdp.datasets import Dataset
from cbdp.errors import InputError
from cbdp.features import FeatureDag
from cbdp.release import Release
from cbdp.transit.modes import fleet_counts

Ints = NDArray[np.int64]


def _again(_: Dataset, real: Ints, __: int) -> Ints:
    return real


def _scaled(_: Dataset, real: Ints, __: int) -> Ints:
    """The real demand with as many trips as Laplace noise makes of a weekday, on its own types."""
    made: Ints = np.rint(real * (laplace_trips() / real.sum())).astype(np.int64)
    return made


def _anywhere(data: Dataset, real: Ints, seed: int) -> Ints:
    """As many trips, each of any type with equal chances."""
    return _thrown(np.zeros(data.universe.size, dtype=np.int64), real, seed)


def _in_period(data: Dataset, real: Ints, seed: int) -> Ints:
    """Every trip in its half hour, otherwise anywhere: what O3's features say, exactly, and nothing else."""
    return _thrown(_cells(data.features(3)), real, seed)


def _in_cell(data: Dataset, real: Ints, seed: int) -> Ints:
    """Every trip in its half hour, zones and mode, otherwise anywhere: what O5's features say, exactly."""
    return _thrown(_cells(data.features(5)), real, seed)


def _cells(features: FeatureDag) -> Ints:
    return np.asarray(features.cell_of_leaf, dtype=np.int64)


def _thrown(cell: Ints, real: Ints, seed: int) -> Ints:
    """Each trip moved to a random type of its cell."""
    order = np.argsort(cell, kind="stable")
    size = np.bincount(cell)
    first = np.cumsum(size) - size
    trips = cell[np.repeat(np.arange(len(real)), real)]
    pick = np.random.Generator(np.random.PCG64(seed)).random(len(trips))
    chosen = order[first[trips] + np.floor(pick * size[trips]).astype(np.int64)]
    return np.bincount(chosen, minlength=len(real)).astype(np.int64)


FLOOR, VOLUME = "D again", "D × Lap's trips"
CELL, HALF_HOUR, ANYWHERE = "D in its cell", "D in its half hour", "D anywhere"
# name → (data set, real counts, seed) → counts. FLOOR differs by the riders' seconds alone.
PROBES: Mapping[str, Callable[[Dataset, Ints, int], Ints]] = {
    FLOOR: _again,
    VOLUME: _scaled,
    ANYWHERE: _anywhere,
    HALF_HOUR: _in_period,
    CELL: _in_cell,
}
THROWN = "O5, thrown in its cells"


@cache
def case(day: str, shape: str) -> Case:
    return Case(f"{day}, {shape}", dataset(day).features(), demand(day, shape))


def known(name: str) -> None:
    """Whether there is such a contestant; an error that lists them if not."""
    prepare(_setups[-1] if _setups else Setup())
    names = [*PROBES, THROWN, *READ_OTHERWISE, *MECHANISMS]
    if name not in names:
        raise InputError(f"unknown mechanism {name!r}: there are {', '.join(dict.fromkeys(names))}")


_setups: list[Setup] = []  # the plug-ins of this process


def load(plugins: tuple[str, ...]) -> None:
    """Register the mechanisms of these files."""
    _setups.append(Setup(plugins=plugins))
    prepare(_setups[-1])


def counts_of(name: str, epsilon: str, day: str, shape: str, seed: int) -> Ints:
    """One data set of a contestant: trips of every type."""
    known(name)
    if name in PROBES:
        return PROBES[name](dataset(day), demand(day, shape), seed)
    if name == THROWN:
        return _in_cell(dataset(day), counts_of("O5", epsilon, day, shape, seed), seed)
    given = case(day, shape)
    if name in READ_OTHERWISE:
        return tree_counts(*READ_OTHERWISE[name], epsilon, seed)
    made = MECHANISMS[name].make(given, epsilon)(seed)
    if not isinstance(made, Release):
        return answer(given, made).leaves
    counts = np.zeros(len(given.truth), dtype=np.int64)
    index, value = fleet_counts(made)
    counts[index] = value
    return counts
