"""The distinguisher of a privacy audit: events that tell two data sets apart, searched among trials whose data set is known.

A trial is a row of numbers. An event is one or several conditions on them that hold together: a number at least, at most or
equal to a value. Conditions are on the numbers themselves, on whether they are there at all, on their lowest bit, on the
differences of two, and on two scores that are learned. Each event is rated by the ε that it would prove; the best are
joined with further conditions as long as that helps (a beam search). Nothing here proves anything: what is found is tested on other
trials (`cbdp.app.audit.lower_bound`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Bools, Bytes, Floats, Ints
from cbdp.audit.findings import Figure, Finding

Columns = Mapping[str, Floats]
Formula = Callable[[Columns], Floats]
# how often in trials of the one and of the other, and of how many each → the ε (or ρ) it would prove
Rate = Callable[[Floats, Floats, int, int], Floats]

MAX_COLUMN_VALUES = 24  # values of a column that conditions are made of
EXTREME_VALUES = 4  # values at either end that are always among them
COMMON_VALUES = 16  # values of a column that are common enough for a condition "="
MIN_SHARE_OF_COMMON = 0.002  # of the trials: rarer values are not common
COLUMNS_PAIRED = 5  # columns, those that say most, whose differences are looked at
MAX_ALIKE_PAIRS = 20  # differences of columns that are correlated, as two with the same noise are
TRIALS_FOR_PAIRS = 5_000  # trials from which correlations are computed
MAX_CONDITIONS = 300  # conditions that events are joined of, the best first
MAX_CONDITIONS_PER_COLUMN = 12  # conditions of one column among them, so that no column crowds out the others
SEARCH_SHARE = 0.6  # of the trials are searched for events; the others judge them
MAX_TRIALS_SEARCHED = 36_000  # trials, at most: with so many every event worth having is seen
SINGLE_CONDITION_EVENTS = 20  # conditions that are events by themselves
BEAM_WIDTH = 6  # events that are joined further
MAX_CONDITIONS_PER_EVENT = 6  # conditions of an event, at most
MIN_GAIN_EPSILON = 3e-3  # in ε, for which one more condition is worth having
SCORE_STEPS = 10  # Newton steps of the additive score
SMOOTHING_TRIALS = 4.0  # trials added to the curvature of a class (ridge), so that rare classes move little


@dataclass(frozen=True)
class Condition:
    column: str
    how: Literal["≥", "≤", "="]
    value: float

    def holds(self, values: Floats) -> Bools:
        if self.how == "=":
            return np.asarray(values == self.value)
        return np.asarray(values >= self.value if self.how == "≥" else values <= self.value)

    def __str__(self) -> str:
        return f"{self.column} {self.how} {self.value:.6g}"


@dataclass(frozen=True)
class Event:
    """Conditions that hold together, and how their columns come out of those of a trial."""

    conditions: tuple[Condition, ...]
    formulas: Mapping[str, Formula]

    def holds(self, columns: Columns, cache: dict[str, Floats] | None = None) -> Bools:
        """In which trials it happened; `cache` keeps the columns worked out, for other events of the same search."""
        cache = {} if cache is None else cache
        for c in self.conditions:
            if c.column not in cache:
                cache[c.column] = self.formulas[c.column](columns)
        return np.asarray(np.logical_and.reduce([c.holds(cache[c.column]) for c in self.conditions]))

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))


def search(columns: Columns, first: Bools, rate: Rate, most: int) -> list[Event]:
    """The events that best tell the trials of the first data set from the others, in either direction.

    They are made from some of the trials and judged by the others, because the best of many is partly luck.
    """
    searched = min(int(len(first) * SEARCH_SHARE), MAX_TRIALS_SEARCHED)
    events = _candidates({n: v[:searched] for n, v in columns.items()}, first[:searched], rate)
    rest, coin = {n: v[searched:] for n, v in columns.items()}, first[searched:]
    worth, cache = {}, dict[str, Floats]()
    for event in events:
        occurs = event.holds(rest, cache)
        one, two = np.array([(occurs & coin).sum()]), np.array([(occurs & ~coin).sum()])
        worth[event.conditions] = float(max(_both_ways(rate, one, two, coin)[:, 0]))
    return sorted(events, key=lambda e: (-worth[e.conditions], len(e.conditions)))[:most]


def _candidates(columns: Columns, first: Bools, rate: Rate) -> list[Event]:
    base = {n: _identity(n) for n, v in columns.items() if not (v == v[0]).all() and not np.isnan(v).all()}
    formulas = base | _presence_flags(columns) | _lowest_bits(base, columns)
    rated = _rated(formulas, columns, first, rate)
    wide = {n: r for n, r in base.items() if len(_cut_points(columns[n])) > 2}
    pairs = _pairs(list(wide), _best_columns(rated, wide), columns)
    more = _differences(pairs) | _scores(base, columns, first)
    rated += _rated(more, columns, first, rate)
    conjunctions = {c: None for direction in (0, 1) for c in _conjunctions(rated, first, rate, direction)}
    return [Event(conditions, formulas | more) for conditions in conjunctions]


def _both_ways(rate: Rate, one: NDArray[Any], two: NDArray[Any], first: Bools) -> Floats:
    n1, n2 = _sizes(first)
    one, two = one.astype(float), two.astype(float)
    return np.stack([rate(one, two, n1, n2), rate(two, one, n2, n1)])


def _sizes(first: Bools) -> tuple[int, int]:
    return int(first.sum()), int((~first).sum())


# Columns


def _identity(name: str) -> Formula:
    return lambda columns: columns[name]


def _presence_flags(columns: Columns) -> dict[str, Formula]:
    def there(name: str) -> Formula:
        return lambda columns: (~np.isnan(columns[name])).astype(float)

    return {f"[{n} is there]": there(n) for n, values in columns.items() if np.isnan(values).any()}


def _lowest_bits(base: Mapping[str, Formula], columns: Columns) -> dict[str, Formula]:
    def low(name: str) -> Formula:
        return lambda columns: lowest_bit(columns[name])

    return {f"lowest bit of {n}": low(n) for n in base if not np.isin(columns[n], (0.0, 1.0)).all()}


def lowest_bit(values: Floats) -> Floats:
    """The exponent of the lowest bit that is set in each number: 0 for odd ones, −1 for halves; 2000 for zero.

    >>> lowest_bit(np.array([3.0, 4.0, 0.75, 0.0])).tolist()
    [0.0, 2.0, -2.0, 2000.0]
    """
    mantissa, exponent = np.frexp(np.nan_to_num(values))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    low = np.log2(np.maximum(whole & -whole, 1)) + exponent - 53
    return np.where(np.isnan(values), np.nan, np.where(whole == 0, 2000.0, low))


def _differences(pairs: Sequence[tuple[str, str]]) -> dict[str, Formula]:
    def less(one: str, two: str) -> Formula:
        return lambda columns: columns[one] - columns[two]

    return {f"[{one} − {two}]": less(one, two) for one, two in pairs}


def _pairs(names: Sequence[str], best: Sequence[str], columns: Columns) -> list[tuple[str, str]]:
    """The columns that say most, two by two; and those that go together most, as do two with the same noise."""
    pairs = list(itertools.combinations(best, 2))
    if len(names) > 1:
        filled = np.stack([np.nan_to_num(columns[n][:TRIALS_FOR_PAIRS]) for n in names])
        filled = filled + 1e-9 * np.arange(filled.shape[1])  # so that no column is constant
        alike = np.triu(np.abs(np.corrcoef(filled)), 1)
        for entry in np.argsort(-alike, axis=None)[:MAX_ALIKE_PAIRS]:
            i, j = np.unravel_index(entry, alike.shape)
            if alike[i, j] > 0:
                pairs.append((names[i], names[j]))
    return list(dict.fromkeys(pairs))


def _scores(base: Mapping[str, Formula], columns: Columns, first: Bools) -> dict[str, Formula]:
    """A sum of functions of single columns, fitted to the coin's log-odds; and the best linear combination."""
    names = [n for n in base if len(_cut_points(columns[n])) > 1]
    if len(names) < 2 or first.all() or not first.any():
        return {}
    return {
        "[additive score]": _additive(names, columns, first),
        "[linear score]": _linear(names, columns, first),
    }


def _additive(names: Sequence[str], columns: Columns, first: Bools) -> Formula:
    """By steps: the column that explains most of what is left gets a Newton step of the log-likelihood in each class.

    Additive logistic regression by stagewise Newton steps (Friedman, Hastie and Tibshirani, 2000), with a ridge.
    """
    cuts = {n: _cut_points(columns[n]) for n in names}
    which = {n: _classes(columns[n], cuts[n]) for n in names}
    value = {n: np.zeros(len(cuts[n]) + 2) for n in names}
    score = np.zeros(len(first))
    for _ in range(SCORE_STEPS):
        chance = 1 / (1 + np.exp(-score))
        slope, bend = first - chance, chance * (1 - chance)
        steps, gains = {}, {}
        for n in names:
            g, h = (np.bincount(which[n], w, len(value[n])) for w in (slope, bend))
            steps[n], gains[n] = g / (h + SMOOTHING_TRIALS), float((g**2 / (h + SMOOTHING_TRIALS)).sum())
        best = max(gains, key=lambda n: gains[n])
        value[best] += steps[best]
        score += steps[best][which[best]]
    used = [n for n in names if value[n].any()]
    return lambda columns: np.asarray(sum(value[n][_classes(columns[n], cuts[n])] for n in used))


def _linear(names: Sequence[str], columns: Columns, first: Bools) -> Formula:
    """Fisher's linear discriminant of the columns, clipped to their central 98 % and scaled."""
    filled = np.stack([np.nan_to_num(columns[n]) for n in names], axis=1)
    low, high = np.quantile(filled, (0.01, 0.99), axis=0)
    scale = np.maximum(high - low, 1e-12)

    def scaled(columns: Columns) -> Floats:
        together = np.stack([np.nan_to_num(columns[n]) for n in names], axis=1)
        return np.asarray((np.clip(together, low, high) - low) / scale)

    x = scaled(columns)
    spread = np.cov(x.T) + 1e-3 * np.eye(len(names))
    towards = np.linalg.solve(spread, x[first].mean(axis=0) - x[~first].mean(axis=0))
    return lambda columns: scaled(columns) @ towards


def _cut_points(values: Floats) -> Floats:
    """The values of a column; of many, some that are spread evenly over the trials, and the outermost, which may be rare."""
    distinct = np.unique(values[~np.isnan(values)])
    if len(distinct) <= MAX_COLUMN_VALUES:
        return distinct
    present = values[~np.isnan(values)]
    spread = np.quantile(present, np.linspace(0, 1, MAX_COLUMN_VALUES), method="inverted_cdf")
    return np.unique(np.concatenate([spread, distinct[:EXTREME_VALUES], distinct[-EXTREME_VALUES:]]))


def _classes(values: Floats, cuts: Floats) -> Ints:
    """How many cuts each value reaches; one more than there are for a value that is missing."""
    return np.where(np.isnan(values), len(cuts) + 1, np.searchsorted(cuts, values, side="right"))


# Conditions


@dataclass(frozen=True)
class _Rated:
    condition: Condition
    bits: Bytes  # of the trials in which it holds
    epsilon: tuple[float, float]  # that it would prove, by direction


def _rated(formulas: Mapping[str, Formula], columns: Columns, first: Bools, rate: Rate) -> list[_Rated]:
    """The conditions of each column that say most."""
    rated = []
    for name, formula in formulas.items():
        values = formula(columns)
        conditions, one, two = _conditions(name, values, first)
        if not conditions:
            continue
        epsilon = _both_ways(rate, one, two, first)
        best = {int(i) for side in epsilon for i in np.argsort(-side)[:MAX_CONDITIONS_PER_COLUMN]}
        rated += [
            _Rated(
                conditions[i],
                np.packbits(conditions[i].holds(values)),
                (float(epsilon[0, i]), float(epsilon[1, i])),
            )
            for i in sorted(best)
        ]
    return rated


def _conditions(name: str, values: Floats, first: Bools) -> tuple[list[Condition], Floats, Floats]:
    """At least, at most and equal to each of some values; and how often each holds in trials of either data set."""
    cuts = _cut_points(values)
    if len(cuts) < 2 and not np.isnan(values).any():
        return [], np.empty(0), np.empty(0)
    which = _classes(values, cuts)
    hit = np.append(cuts, np.nan)[which - 1] == values  # class 0 and missing values hit no cut
    conditions = [Condition(name, "≥", float(c)) for c in cuts]
    conditions += [Condition(name, "≤", float(c)) for c in cuts]
    counts = []
    for y in (first, ~first):
        k = np.bincount(which[y], minlength=len(cuts) + 2)[:-1].astype(float)
        exact = np.bincount(which[y & hit], minlength=len(cuts) + 2)[1:-1].astype(float)
        least = np.cumsum(k[::-1])[::-1][1:]  # class i + 1 and above reach cut i
        counts.append([least, np.cumsum(k)[:-1] + exact, exact])
    often = np.flatnonzero(counts[0][2] + counts[1][2] >= MIN_SHARE_OF_COMMON * len(values))
    often = often[np.argsort(-(counts[0][2] + counts[1][2])[often], kind="stable")[:COMMON_VALUES]]
    conditions += [Condition(name, "=", float(cuts[i])) for i in often]
    totals = [np.concatenate([c[0], c[1], c[2][often]]) for c in counts]
    return conditions, totals[0], totals[1]


def _best_columns(rated: Sequence[_Rated], base: Mapping[str, Formula]) -> list[str]:
    """Those that say most; a flag has no differences worth looking at."""
    best: dict[str, float] = {}
    for r in rated:
        best[r.condition.column] = max(best.get(r.condition.column, -np.inf), *r.epsilon)
    return sorted((n for n in best if n in base), key=lambda n: -best[n])[:COLUMNS_PAIRED]


# Conditions that hold together


def _conjunctions(
    rated: Sequence[_Rated], first: Bools, rate: Rate, direction: int
) -> list[tuple[Condition, ...]]:
    """The best conditions, and the best of those joined with one more, and so on."""
    pool = sorted(rated, key=lambda r: -r.epsilon[direction])[:MAX_CONDITIONS]
    if not pool:
        return []
    ones = np.packbits(first if direction == 0 else ~first)
    others = np.packbits(~first if direction == 0 else first)
    sizes = _sizes(first)[:: 1 if direction == 0 else -1]
    bits = np.stack([r.bits for r in pool])
    in_ones, in_others = bits & ones, bits & others
    beam = _distinct_supports(
        [((r.condition,), r.epsilon[direction], r.bits) for r in pool], SINGLE_CONDITION_EVENTS
    )
    conjunctions = [conditions for conditions, _, _ in beam]
    for _ in range(MAX_CONDITIONS_PER_EVENT - 1):
        grown = []
        for conditions, epsilon, support in beam[:BEAM_WIDTH]:
            one = np.bitwise_count(in_ones & support).sum(axis=1, dtype=np.int64)
            two = np.bitwise_count(in_others & support).sum(axis=1, dtype=np.int64)
            proves = rate(one.astype(float), two.astype(float), *sizes)
            for i in np.argsort(-proves)[:BEAM_WIDTH]:
                if proves[i] > epsilon + MIN_GAIN_EPSILON:
                    joined = (*conditions, pool[i].condition)
                    grown.append((joined, float(proves[i]), support & bits[i]))
        if not grown:
            break
        beam = _distinct_supports(sorted(grown, key=lambda g: -g[1]), BEAM_WIDTH)
        conjunctions += [conditions for conditions, _, _ in beam]
    return conjunctions


Candidate = tuple[tuple[Condition, ...], float, Bytes]


def _distinct_supports(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """The best candidates of which no two hold in the same trials."""
    kept: list[Candidate] = []
    for candidate in candidates:
        if not any(np.array_equal(candidate[2], other[2]) for other in kept):
            kept.append(candidate)
        if len(kept) == most:
            break
    return kept


# A lower bound in words, the same for ε and for ρ


EPSILON_CHECK = "epsilon"


class Proven(Protocol):
    """A lower bound on ε or ρ, with the event that proves it."""

    @property
    def event(self) -> str: ...
    @property
    def counts(self) -> tuple[int, int]: ...
    @property
    def trials(self) -> tuple[int, int]: ...
    @property
    def alpha(self) -> float: ...
    @property
    def claim(self) -> float | None: ...
    @property
    def exceeds(self) -> bool: ...


def bound_text(bound: Proven, sign: str, value: float, suffix: str = "") -> str:
    """The bound, its claim, and the event that proves it."""
    refuted = ", refuted" if bound.exceeds else ""
    claimed = "" if bound.claim is None else f" (claim {bound.claim:g}{refuted})"
    (a, b), (n, m) = bound.counts, bound.trials
    return f"{sign} ≥ {value:.3f}{claimed}{suffix}: {bound.event}, in {a:,} of {n:,} trials against {b:,} of {m:,}"


def bound_finding(bound: Proven, sign: str, value: float, figures: Mapping[str, Figure]) -> Finding:
    """The bound for a reviewer: clear unless it refutes the claim."""
    figures = {**figures, "alpha": bound.alpha}
    if not bound.exceeds:
        return Finding(
            EPSILON_CHECK,
            "clear",
            f"The attack proves no more than {sign} ≥ {value:.3g}",
            str(bound),
            figures=figures,
            power=f"A claim of less than {sign} = {value:.3g} would have been refuted by these {sum(bound.trials):,} trials, with a false "
            f"alarm of at most {bound.alpha:g}. Other pairs of data sets, and other events, were not tried.",
        )
    return Finding(
        EPSILON_CHECK,
        "contradicts",
        f"The mechanism leaks {sign} ≥ {value:.3g}, more than the {bound.claim:g} it claims",
        str(bound),
        f"Whoever sees the event ({bound.event}) knows which of the two data sets it was, with better odds than promised.",
        "Do not release with this mechanism: look for what makes the event differ.",
        figures,
    )
