"""Trials of a privacy audit: a mechanism is run on two neighbouring data sets, and what its runs show proves a lower bound on its ε or ρ.

First, how one run holds thousands of trials (`TrialParts`); then the bound on ε and on ρ, and the runs. What an attacker sees of a trial, the search for events and their proofs are in `cbdp.audit.lower_bound`.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Bools, Floats, Ints
from cbdp.audit.lower_bound import (
    PART,
    EpsilonBound,
    Events,
    Numbers,
    Reading,
    RhoBound,
    as_columns,
    best_proof,
    check_terms,
    epsilon_proof,
    numbers,
    read,
    rho_bound,
)
from cbdp.counting.counts import count
from cbdp.errors import InputError
from cbdp.features import TOTAL, Feature, FeatureDag, Universe
from cbdp.mechanisms import Mechanism
from cbdp.privacy.accounting import Cost
from cbdp.privacy.unit import Trip
from cbdp.release.release import Release

Rows = Mapping[str, Sequence[Hashable]]


@dataclass(frozen=True)
class TrialParts:
    """Copies of a tiny universe, kept apart by a dimension `part`: one run over all of them is as many trials.

    `features` groups each copy by `part` and by whatever is given; build the mechanism over it. Answers that mix copies
    (`total`) waste ε; measure those in `measured`. In every run a coin decides for each part which of the two tiny data
    sets it holds, so that two runs which differ in one coin are neighbours, whatever the mechanism does across parts.

    >>> parts = TrialParts(3, {"stop": ["A", "B"]})
    >>> parts.features.sizes, parts.measured
    ({'total': 1, 'part': 3, 'singleton': 6}, ['part', 'singleton'])
    >>> parts.mix({"stop": ["A", "B"]}, {"stop": ["B"]}, np.array([True, False, True]))["stop"].tolist()
    ['A', 'B', 'B', 'A', 'B']
    """

    number: int
    dimensions: Mapping[str, Iterable[Hashable]]  # of one copy
    between: Sequence[Feature] = ()  # of one copy
    person: str | None = None  # the column that names persons, who are then others in each part

    def __post_init__(self) -> None:
        if isinstance(self.number, bool) or not isinstance(self.number, int) or self.number < 1:
            raise InputError(f"{self.number!r} parts: give a whole number of at least 1")
        if PART in self.dimensions:
            raise InputError(f"a dimension is named {PART!r}, which keeps the copies apart: rename it")

    @cached_property
    def features(self) -> FeatureDag:
        universe = Universe(**{PART: range(self.number)}, **self.dimensions)
        between = [Feature(f.name, by=(PART, *f.by)) for f in self.between]
        return FeatureDag(universe, [Feature(PART, by=PART), *between])

    @property
    def measured(self) -> list[str]:
        """The features that do not mix parts."""
        return [name for name in self.features.features if name != TOTAL]

    def counted(self, one: Rows, two: Rows) -> Callable[[Bools], Ints]:
        """As `mix`, but the trips are counted by type; the tiny data sets are counted once."""
        tiny = Universe(**self.dimensions)
        dense = [count(dict(table), tiny).dense() for table in (one, two)]
        return lambda first: np.where(first[:, None], *dense).reshape(-1)

    def mix(self, one: Rows, two: Rows, first: Bools) -> dict[str, NDArray[np.generic]]:
        """The trips of all parts: those of the tiny data set `one` where `first` is true, else those of `two`."""
        sets = [{n: list(column) for n, column in table.items()} for table in (one, two)]
        rows = [len(next(iter(table.values()), [])) for table in sets]
        size = np.where(first, rows[0], rows[1])
        part = np.repeat(np.arange(len(first)), size)
        rank = np.arange(len(part)) - np.repeat(np.cumsum(size) - size, size)
        row = rank + np.where(first[part], 0, rows[0])
        mixed: dict[str, NDArray[np.generic]] = {PART: part}
        for name in sets[0] | sets[1]:
            both = np.array([*sets[0].get(name, []), *sets[1].get(name, [])])
            if name == self.person:
                kinds, code = np.unique(both, return_inverse=True)
                mixed[name] = part * len(kinds) + code[row]
            else:
                mixed[name] = both[row]
        return mixed


@runtime_checkable
class Simulated(Protocol):
    """What can be run on data with noise from a seed."""

    def simulate(self, data: object, seed: int, /) -> object: ...


@dataclass(frozen=True)
class ThroughFiles:
    """A mechanism whose releases are saved, and read by somebody who has nothing but the files.

    `mechanism` is anything with `simulate(data, seed)` that returns a release.
    """

    mechanism: Simulated

    def simulate(self, data: object, seed: int) -> Reading:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "release"
            cast("Release", self.mechanism.simulate(data, seed)).save(folder, simulation=True)
            return read(folder)


# Bounds


View = Callable[..., Numbers]


def epsilon_lower_bound(
    mechanism: object,
    d1: object,
    d2: object,
    *,
    trials: int = 200_000,
    parts: TrialParts | None = None,
    claim: float | None = None,
    delta: float | None = None,
    alpha: float = 1e-6,
    seed: int = 0,
    events: Events | None = None,
    view: View | None = None,
) -> EpsilonBound:
    """The largest ε that runs of a mechanism on two neighbouring data sets prove, with a false alarm of at most `alpha`.

    `mechanism` is one of ours, anything with `simulate(data, seed)`, or any callable from data to what it publishes (pass
    `mechanism.release` to attack the real thing). `parts` puts thousands of trials into one run: `d1` and `d2` are then tables
    of one part. `view` turns what is published into numbers: a row, or by name; with parts, a row for each. `events`
    are conditions on those columns by name; without, they are searched on half of the trials. `claim` and `delta` are
    those of the mechanism unless told otherwise.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> bound = epsilon_lower_bound(lambda count: [round(count + rng.laplace(0, 1))], 1, 0, trials=4000, claim=1.0)
    >>> bound.exceeds, bool(0.5 < bound.epsilon < 1)
    (False, True)
    """
    check_terms(trials, alpha, delta)
    promised = _promised_cost(mechanism)
    if promised is not None:
        claim = float(promised.epsilon) if claim is None else claim
        delta = float(promised.delta) if delta is None else delta
    delta = delta or 0.0
    outcomes = _run_trials(mechanism, d1, d2, trials, parts, seed, view)
    return EpsilonBound(*best_proof(*outcomes, events, epsilon_proof(delta), alpha), delta, alpha, claim)


def rho_lower_bound(
    mechanism: object,
    d1: object,
    d2: object,
    *,
    trials: int = 200_000,
    parts: TrialParts | None = None,
    claim: float | None = None,
    alpha: float = 1e-6,
    seed: int = 0,
    events: Events | None = None,
    view: View | None = None,
) -> RhoBound:
    """The largest ρ that runs of a mechanism on two neighbouring data sets prove; arguments as of `epsilon_lower_bound`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> bound = rho_lower_bound(lambda count: [count + rng.normal(0, 1)], 1, 0, trials=4000, claim=0.5)
    >>> bound.exceeds, bool(0.1 < bound.rho < 0.5)
    (False, True)
    """
    check_terms(trials, alpha, None)
    promised = _promised_cost(mechanism)
    if claim is None and promised is not None:
        claim = float(promised.rho)
    outcomes = _run_trials(mechanism, d1, d2, trials, parts, seed, view)
    return RhoBound(*best_proof(*outcomes, events, rho_bound, alpha), 0.0, alpha, claim)


def _promised_cost(mechanism: object) -> Cost | None:
    """What a mechanism claims to cost; None where it claims nothing."""
    inner = mechanism.mechanism if isinstance(mechanism, ThroughFiles) else mechanism
    return cast("Mechanism", inner).claim().cost if hasattr(inner, "claim") else None


def _run_trials(
    mechanism: object,
    d1: object,
    d2: object,
    trials: int,
    parts: TrialParts | None,
    seed: int,
    view: View | None,
) -> tuple[dict[str, Floats], Bools]:
    """Columns of numbers with a row for each trial, and the coins: whether it was of the first data set."""
    rng = np.random.default_rng(seed)
    rows = None if parts is None else parts.number
    deal = _data_by_coins(mechanism, d1, d2, parts)
    coins: list[Bools] = []
    seen: list[dict[str, Floats]] = []
    for _ in range(math.ceil(trials / (rows or 1))):
        coin = rng.random(rows or 1) < 0.5
        published = _run_mechanism(mechanism, deal(coin), int(rng.integers(2**62)))
        seen.append(numbers(published, rows) if view is None else as_columns(view(published), rows or 1))
        coins.append(coin)
    names = dict.fromkeys(n for columns in seen for n in columns)
    none = np.full(rows or 1, np.nan)
    together = {n: np.concatenate([columns.get(n, none) for columns in seen]) for n in names}
    return together, np.concatenate(coins)


def _data_by_coins(
    mechanism: object, d1: object, d2: object, parts: TrialParts | None
) -> Callable[[Bools], object]:
    """What a run gets, given its coins."""
    by_trip = (
        mechanism if isinstance(mechanism, Mechanism) and isinstance(mechanism.protected, Trip) else None
    )
    if parts is not None:
        rows = cast("Rows", d1), cast("Rows", d2)
        return partial(parts.mix, *rows) if by_trip is None else parts.counted(*rows)
    if by_trip is not None:  # counting trips draws nothing: once is enough
        d1, d2 = (count(d, by_trip.features.universe, unit=by_trip.protected) for d in (d1, d2))
    return lambda coin: d1 if coin[0] else d2


def _run_mechanism(mechanism: object, data: object, seed: int) -> object:
    if isinstance(mechanism, Simulated):
        return mechanism.simulate(data, seed)
    if not callable(mechanism):
        raise InputError(
            f"{type(mechanism).__name__} is not a mechanism: give one of ours, or a function of the data"
        )
    return mechanism(data)
