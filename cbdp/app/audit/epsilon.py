"""How much a mechanism leaks at least: a lower bound on its ε, proven from nothing but runs on two neighbouring data sets.

In every trial a coin decides which of the two data sets the mechanism gets, and an attacker who sees what is published says
which, or nothing. If the mechanism is ε-differentially private, the odds of the coin given all that is published, and given
every other coin, are at most e^ε to one (Bayes). So of all that the attacker says, each word is right with a chance of at
most p = e^ε / (1 + e^ε), whatever was right before, and the number of right ones is at most binomial with p in law. This
needs no independence of trials within a run: neighbouring data sets differ in one coin (Steinke, Nasr and Jagielski,
"Privacy auditing with one (1) training run", 2023). The Clopper–Pearson limit on p then gives a limit on ε.

With a δ, the attacker's event has probability P₁ and P₂ under the two, and P₁ ≤ e^ε P₂ + δ: both get a Clopper–Pearson
limit. Here trials must be independent: no answer may mix parts.

Events are searched on one half of the trials (`epsilon_events`) and tested on the other, with the risk of a false alarm
shared out among the events tested and both directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from cbdp.app.audit.epsilon_events import search
from cbdp.app.audit.epsilon_views import ThroughFiles, TrialParts, as_columns, numbers
from cbdp.app.audit.proven import as_finding, in_a_line
from cbdp.arrays import Bools, Floats
from cbdp.audit.finding import Finding
from cbdp.errors import InputError
from cbdp.mechanisms import Mechanism
from cbdp.privacy.unit import Trip
from cbdp.trips.count import count

__all__ = ["EpsilonBound", "ThroughFiles", "TrialParts", "epsilon_lower_bound", "odds_bound", "ratio_bound"]

Columns = Mapping[str, Floats]
Events = Mapping[str, Callable[[Columns], Any]]
View = Callable[[Any], Any]

TESTED = 6  # events that are tested, of those found
LEAST = 16  # trials without which nothing can be said


@dataclass(frozen=True)
class EpsilonBound:
    """What was proven: ε is at least this, but for a chance of `alpha`; and by which event."""

    epsilon: float
    event: str
    counts: tuple[int, int]  # how often it happened in trials of the two data sets
    trials: tuple[int, int]  # on which it was tested
    delta: float = 0.0
    alpha: float = 1e-6
    claim: float | None = field(default=None)

    @property
    def exceeds(self) -> bool:
        """Whether the claim is refuted."""
        return self.claim is not None and self.epsilon > self.claim

    def __str__(self) -> str:
        return in_a_line(self, "ε", self.epsilon, f" at δ = {self.delta:.3g}" if self.delta else "")

    def finding(self) -> Finding:
        """The same for a reviewer."""
        return as_finding(self, "ε", self.epsilon, {"epsilon": self.epsilon, "delta": self.delta})


def epsilon_lower_bound(
    mechanism: Any,
    d1: Any,
    d2: Any,
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
    check_asked(trials, alpha, delta)
    inner = mechanism.mechanism if isinstance(mechanism, ThroughFiles) else mechanism
    if hasattr(inner, "claim"):
        promised = inner.claim().cost
        claim = float(promised.epsilon) if claim is None else claim
        delta = float(promised.delta) if delta is None else delta
    delta = delta or 0.0
    made = run_trials(mechanism, d1, d2, trials, parts, seed, view)
    proven, best = best_proof(*made, events, partial(_proven, delta=delta), alpha)
    return EpsilonBound(proven, *best, delta, alpha, claim)


def check_asked(trials: int, alpha: float, delta: float | None) -> None:
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < LEAST:
        raise InputError(f"trials is {trials!r}: give a whole number of at least {LEAST}")
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha!r}: the chance of a false alarm lies between 0 and 1")
    if delta is not None and not 0 <= delta < 1:
        raise InputError(f"delta is {delta!r}: it must be at least 0 and below 1")


def run_trials(
    mechanism: Any, d1: Any, d2: Any, trials: int, parts: TrialParts | None, seed: int, view: View | None
) -> tuple[dict[str, Floats], Bools]:
    """Columns of numbers with a row for each trial, and the coins: whether it was of the first data set."""
    rng = np.random.default_rng(seed)
    rows = 1 if parts is None else parts.number
    deal = _dealer(mechanism, d1, d2, parts)
    coins: list[Bools] = []
    seen: list[dict[str, Floats]] = []
    for _ in range(math.ceil(trials / rows)):
        coin = rng.random(rows) < 0.5
        published = _published(mechanism, deal(coin), int(rng.integers(2**62)))
        seen.append(numbers(published, parts) if view is None else as_columns(view(published), rows))
        coins.append(coin)
    names = dict.fromkeys(n for columns in seen for n in columns)
    none = np.full(rows, np.nan)
    together = {n: np.concatenate([columns.get(n, none) for columns in seen]) for n in names}
    return together, np.concatenate(coins)


def _dealer(mechanism: Any, d1: Any, d2: Any, parts: TrialParts | None) -> Callable[[Bools], Any]:
    """What a run gets, given its coins."""
    by_trip = isinstance(mechanism, Mechanism) and isinstance(mechanism.unit, Trip)
    if parts is None:
        if by_trip:  # counting trips draws nothing: once is enough
            d1, d2 = (count(d, mechanism.features.universe, unit=mechanism.unit) for d in (d1, d2))
        return lambda coin: d1 if coin[0] else d2
    if by_trip:
        return parts.counted(d1, d2)
    return partial(parts.mix, d1, d2)


def _published(mechanism: Any, data: Any, seed: int) -> Any:
    if hasattr(mechanism, "simulate"):
        return mechanism.simulate(data, seed)
    if not callable(mechanism):
        raise InputError(
            f"{type(mechanism).__name__} is not a mechanism: give one of ours, or a function of the data"
        )
    return mechanism(data)


Witness = tuple[
    str, tuple[int, int], tuple[int, int]
]  # an event, how often it happened in either, and in how many


def best_proof(
    columns: Columns, first: Bools, events: Events | None, proves: Callable[..., Any], alpha: float
) -> tuple[float, Witness]:
    """The most that an event proves, and which: by those given, or by those found on half of the trials and tested on the others."""
    half = 0 if events is not None else len(first) // 2
    if events is None:
        events = _found({n: v[:half] for n, v in columns.items()}, first[:half], proves, alpha)
    columns, first = {n: v[half:] for n, v in columns.items()}, first[half:]
    n1, n2 = int(first.sum()), int((~first).sum())
    most, best = 0.0, ("no event", (0, 0), (n1, n2))
    level = alpha / (2 * max(len(events), 1))
    for name, happens in events.items():
        held = np.asarray(happens(columns), dtype=bool)
        k1, k2 = int((held & first).sum()), int((held & ~first).sum())
        for a, n, b, m in ((k1, n1, k2, n2), (k2, n2, k1, n1)):
            proven = float(proves(a, b, n, m, level=level))
            if proven > most:
                most, best = proven, (name, (k1, k2), (n1, n2))
    return most, best


def _found(columns: Columns, first: Bools, proves: Callable[..., Any], alpha: float) -> Events:
    rate = partial(proves, level=alpha / (2 * TESTED))
    return {str(event): event.holds for event in search(columns, first, rate, TESTED)}


def _proven(a: Any, b: Any, n: int, m: int, *, delta: float, level: float) -> Floats:
    if delta > 0:
        return ratio_bound(a, n, b, m, delta=delta, level=level)
    return odds_bound(a, b, level=level)


def odds_bound(right: Any, wrong: Any, *, level: float) -> Floats:
    """The ε that so many right and wrong guesses of coins prove, but for a chance of `level`; it may be negative.

    >>> round(float(odds_bound(1000, 0, level=1e-6)), 2)
    4.28
    """
    right, wrong = np.asarray(right, dtype=float), np.asarray(wrong, dtype=float)
    with np.errstate(divide="ignore"):
        low = special.betaincinv(np.maximum(right, 1e-300), wrong + 1, level)
        return np.asarray(np.where(right > 0, np.log(low) - np.log1p(-low), -np.inf))


def ratio_bound(a: Any, n: Any, b: Any, m: Any, *, delta: float, level: float) -> Floats:
    """The ε that an event proves which happened a times in n trials of one data set and b times in m of the other."""
    a, n, b, m = (np.asarray(v, dtype=float) for v in (a, n, b, m))
    low = np.where(a > 0, special.betaincinv(np.maximum(a, 1e-300), np.maximum(n - a, 0) + 1, level / 2), 0.0)
    high = np.where(b < m, special.betainccinv(b + 1, np.maximum(m - b, 1e-300), level / 2), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(low > delta, np.log((low - delta) / high), -np.inf))
