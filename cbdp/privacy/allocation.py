"""Which part of ε goes to leaves and which to tables, decided before any data is seen.

A budget has a name, or is worked out for a target: how much the error of each feature matters. What is worked out rests on
public facts alone (sizes, noise laws, the unit's sensitivity, an order of magnitude of trips) and on this model of errors.

1. *Noise.* An element of feature i is known from its own measurement, with the exact variance V_i of two-sided geometric
   noise of scale Δ/ε_i, and from every measured feature f that refines it: there n_f/n_i elements add up to it, with
   variance n_f/n_i · V_f. They combine by inverse variance. What coarser features say of it is left out.
2. *Signal.* What is known to be small cannot be far off, and most counts are small. Of T trips an element holds μ = T/n_i on
   average. A share φ of the elements holds any trips, μ/φ each on average, log-normally with σ² = `SPREAD` (two in three within
   a factor of four of the middle). One that holds x is off by x²·V′/(x² + V′): the risk of an estimate that shrinks each
   count as is best for its size. V′ is V, or more where few elements are filled: to stand out among empty ones a
   count must exceed the noise's scale b by a factor ln(1/φ), for the tail of the noise is exp(−x/b); so
   V′ = V · max(1, ln²(1/φ)/2). The share of trip types that are filled is stated, or what Poisson counts have whose means are
   twice as uneven as that; an element of k types is filled when one of them is. With unknown T nothing is shrunk.
3. *Loss.* The sum over the target of weight × error variance / the error variance if all of ε went to that feature. It is
   free of scale: of two features with equal weights neither counts for more because its counts are larger.

The split is in thousandths of ε, and every measured feature gets at least a hundredth: a table about which nothing was
asked is published all the same, and helps to tell what to expect of each leaf.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.features.presets import EXTRA
from cbdp.privacy.budget import positive

Floats = NDArray[np.float64]

LEAVES = {
    "leaves": Fraction(
        9, 10
    ),  # or, where counts are estimated by the posterior, all but ENOUGH if that is more
    "balanced": Fraction(2, 5),
    "tables": Fraction(1, 6),  # of the paper's five features each table then gets more than its fifth
}
"""What the leaves get of ε; the tables share the rest evenly."""

ENOUGH = Fraction(1, 50)
"""Of ε for one trip, for all tables: tells the number of trips to within a few hundred, and the leaves tell the rest."""

OPTIMAL = "optimal"
UNITS = 1000  # parts that ε is dealt out in
LEAST = 10  # parts that every measured feature gets
SPREAD = 2.0  # variance of the logarithm of counts that are not 0
NODES = np.arange(-8.0, 12.0, 0.1)  # standard deviations from the middle; squares weigh the upper tail
WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
LARGEST = 500.0  # ε/Δ of one answer from which there is no noise to speak of
BETTER = 1e-9  # of the loss: what a part must gain to be moved


def named(
    levels: Sequence[str], epsilon: Fraction, budget: str, enough: Fraction | None = None
) -> dict[str, Fraction]:
    """Shares of ε for a budget that is named after what it serves; with "leaves", tables may have `enough` in all.

    >>> {name: str(e) for name, e in named(["total", "time", "singleton"], Fraction(1), "balanced").items()}
    {'total': '3/10', 'time': '3/10', 'singleton': '2/5'}
    >>> [str(named(["total", "singleton"], Fraction(e), "leaves", ENOUGH)["total"]) for e in ("1", "1/5", "1/10")]
    ['1/50', '1/50', '1/100']
    """
    tables = [name for name in levels if name != SINGLETON]
    if not tables or SINGLETON not in levels:
        return dict.fromkeys(levels, epsilon / len(levels))
    own = epsilon * LEAVES[budget]
    if budget == "leaves" and enough is not None:
        own = max(own, epsilon - enough)
    return {name: own if name == SINGLETON else (epsilon - own) / len(tables) for name in levels}


@dataclass(frozen=True)
class Facts:
    """What is public about the trips: the unit's sensitivity, and about how many there are and how they are spread."""

    sensitivity: Fraction | int = 1
    trips: float | None = None
    filled: float | None = None  # share of the trip types that hold any trips

    def __post_init__(self) -> None:
        if self.trips is not None:
            positive(self.trips, "trips")
        if self.filled is not None and positive(self.filled, "filled") > 1:
            raise InputError(f"filled is {self.filled}, a share of the trip types: give at most 1")


def check_target(target: Any, features: FeatureDag) -> dict[str, Fraction]:
    """How much the error of each feature matters: numbers above 0."""
    if not isinstance(target, Mapping) or not target:
        raise InputError(f"target is {target!r}: say how much features matter, like {{'singleton': 1}}")
    for name in target:
        if name not in features:
            cure = f": add it with extra=({name!r},)" if name in EXTRA else ""
            raise InputError(
                f"a target for {name!r}, which is no feature: there are {', '.join(features.features)}{cure}"
            )
    return {name: positive(weight, f"the target of {name!r}") for name, weight in target.items()}


@dataclass(frozen=True, eq=False)
class Signal:
    """How large the counts of a feature are: the share of elements that hold any trips, and about how many those hold."""

    filled: float
    square: Floats  # of the counts that are not 0, at the nodes of their law

    def error(self, variance: float) -> tuple[float, float]:
        """The error variance that noise of this variance leaves, and its slope."""
        blur = max(1.0, math.log(self.filled) ** 2 / 2.0)  # V′/V
        kept = self.square / (self.square + variance * blur)
        return self.filled * float(WEIGHTS @ kept) * blur * variance, self.filled * float(
            WEIGHTS @ kept**2
        ) * blur


@dataclass(frozen=True, eq=False)
class Model:
    """The error that is to be expected of every feature (columns) when measured features (rows) get parts of ε."""

    names: tuple[str, ...]
    measured: tuple[str, ...]
    adds: Floats  # what a measured feature lends to each feature of its precision; 0 where it does not refine it
    rate: float  # ε/Δ
    signals: tuple[Signal | None, ...]  # None: nothing is known

    def errors(self, part: Floats) -> tuple[Floats, Floats]:
        """Error variance of one element of each feature, and how it changes with each measured feature's part."""
        spent = np.minimum(part * self.rate, LARGEST)
        variance = 1.0 / np.maximum(_precision(spent) @ self.adds, np.finfo(float).tiny)
        error, slope = self._shrunk(variance)
        return error, -slope * variance**2 * self.adds * (np.sinh(spent) * self.rate)[:, None]

    def alone(self) -> Floats:
        """The error of each feature, had it all of ε to itself."""
        return self._shrunk(np.full(len(self.names), 1.0 / _precision(np.minimum(self.rate, LARGEST))))[0]

    def _shrunk(self, variance: Floats) -> tuple[Floats, Floats]:
        pairs = [
            (v, 1.0) if s is None else s.error(v)
            for s, v in zip(self.signals, variance.tolist(), strict=True)
        ]
        error, slope = np.array(pairs).T
        return error, slope


def _precision(spent: Any) -> Any:
    """Inverse variance of two-sided geometric noise of scale 1/spent."""
    return np.maximum(2.0 * np.sinh(spent / 2.0) ** 2, np.finfo(float).tiny)


def model(features: FeatureDag, measured: Sequence[str], epsilon: Fraction, facts: Facts) -> Model:
    """The model of errors for these measured features."""
    names = tuple(features.features)
    adds = np.zeros((len(measured), len(names)))
    for row, fine in enumerate(measured):
        for column, coarse in enumerate(names):
            if fine == coarse or features.graph.has_edge(fine, coarse):
                adds[row, column] = features.size(coarse) / features.size(fine)
    rate = float(epsilon / Fraction(facts.sensitivity))
    return Model(names, tuple(measured), adds, rate, tuple(_signals(features, facts)))


def _signals(features: FeatureDag, facts: Facts) -> Iterator[Signal | None]:
    if facts.trips is None:
        yield from [None] * len(features.features)
        return
    trips, types = float(facts.trips), features.universe.size
    filled = _filled(trips / types) if facts.filled is None else float(facts.filled)
    for name in features.features:
        size = features.size(name)
        any_of = 1.0 if filled >= 1 else -math.expm1(types / size * math.log1p(-filled))
        yield Signal(any_of, _log_normal(trips / size / any_of, SPREAD) ** 2)


def _log_normal(mean: float, spread: float) -> Floats:
    """Values at the nodes of a log-normal law of this mean."""
    made: Floats = mean * np.exp(math.sqrt(spread) * NODES - spread / 2.0)
    return made


def _filled(mean: float) -> float:
    """The share of trip types that hold any trips, if it is not known."""
    return max(float(WEIGHTS @ -np.expm1(-_log_normal(mean, 2 * SPREAD))), np.finfo(float).tiny)


def expected_errors(
    features: FeatureDag, given: Mapping[str, Fraction], facts: Facts | None = None
) -> dict[str, float]:
    """By feature the expected error of one count in trips (a standard deviation), if ε is shared so.

    >>> from cbdp.features import Universe
    >>> dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [])
    >>> {name: round(off, 2) for name, off in expected_errors(dag, {"singleton": Fraction(1)}).items()}
    {'total': 2.71, 'singleton': 1.36}
    """
    epsilon = sum(given.values(), Fraction(0))
    made = model(features, list(given), epsilon, facts or Facts())
    errors = np.sqrt(made.errors(np.array([float(share / epsilon) for share in given.values()]))[0])
    return dict(zip(made.names, errors.tolist(), strict=True))


def optimal(
    features: FeatureDag,
    levels: Sequence[str],
    epsilon: Fraction,
    target: Mapping[str, Any],
    facts: Facts | None = None,
) -> dict[str, Fraction]:
    """Shares of ε with the least expected loss for a target, in the order of the levels; they add up to ε exactly.

    >>> from cbdp.features import Universe
    >>> dag = FeatureDag(Universe(origin=["A", "B", "C"], time=range(8)), [])
    >>> shares = optimal(dag, ["total", "singleton"], Fraction(1), {"singleton": 1, "total": 1})
    >>> {name: str(e) for name, e in shares.items()}
    {'total': '489/1000', 'singleton': '511/1000'}
    """
    loss = _Loss(model(features, levels, epsilon, facts or Facts()), check_target(target, features))
    units = max(UNITS, 2 * LEAST * len(levels))
    best = min((_descended(loss, start, LEAST / units) for start in _starts(loss)), key=loss)
    parts = _polished(loss, _whole(best, units), units)
    return {name: epsilon * Fraction(int(n), units) for name, n in zip(levels, parts, strict=True)}


class _Loss:
    """The logarithm of the loss of a split, and its slope."""

    def __init__(self, of: Model, target: Mapping[str, Fraction]) -> None:
        self.of = of
        wanted = np.array([float(target.get(name, 0)) for name in of.names])
        self.weight: Floats = wanted / wanted.sum() / of.alone()

    def __call__(self, part: Floats) -> float:
        return float(np.log(self.of.errors(part)[0] @ self.weight))

    def slope(self, part: Floats) -> Floats:
        error, change = self.of.errors(part)
        made: Floats = change @ self.weight / (error @ self.weight)
        return made


def _starts(loss: _Loss) -> list[Floats]:
    """The loss has several valleys (a table may be bought by itself or with its leaves): begin in each."""
    many = len(loss.of.measured)
    even = np.full(many, 1.0 / many)
    return [even, *(0.5 * even + 0.5 * own for own in np.eye(many))]


def _descended(loss: _Loss, start: Floats, least: float) -> Floats:
    from scipy.optimize import minimize

    found = minimize(
        loss,
        start,
        jac=loss.slope,
        method="SLSQP",
        bounds=[(least, 1.0)] * len(start),
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1.0, "jac": lambda a: np.ones(len(a))},
        options={"maxiter": 200, "ftol": 1e-12},
    ).x
    kept = np.maximum(found, least)
    made: Floats = least + (kept - least) * (1 - least * len(kept)) / max(
        (kept - least).sum(), np.finfo(float).tiny
    )
    return made if loss(made) < loss(start) else start


def _whole(part: Floats, units: int) -> NDArray[np.int64]:
    """Whole parts nearest to these that add up, none below the least."""
    exact = part * units
    down = np.maximum(np.floor(exact + 1e-9), LEAST).astype(np.int64)
    order = np.argsort(down - exact, kind="stable")
    for n in order[: max(0, units - int(down.sum()))]:
        down[n] += 1
    while down.sum() > units:  # the least was more than some had
        down[np.argmax(down)] -= 1
    return down


def _polished(loss: _Loss, parts: NDArray[np.int64], units: int) -> NDArray[np.int64]:
    """One part at a time moved to where it gains most, until none does: the last digits owe nothing to the search."""
    now = loss(parts / units)
    for _ in range(units):
        tried: list[tuple[float, int, NDArray[np.int64]]] = []
        for giver in np.flatnonzero(parts > LEAST):
            for taker in range(len(parts)):
                if taker != giver:
                    moved = parts.copy()
                    moved[giver] -= 1
                    moved[taker] += 1
                    tried.append((loss(moved / units), len(tried), moved))
        best = min(tried, key=lambda t: t[:2], default=(now, 0, parts))
        if best[0] >= now - BETTER:
            break
        now, parts = best[0], best[2]
    return parts
