"""Privacy auditing: lower bounds on ε or ρ, proven from trials on two neighbouring data sets.

A trial is what somebody who sees one run makes of it: a row of numbers (`numbers`), labelled by the data set that the run was given. Events
that tell the two data sets apart are searched on half of the trials (`search`) and tested on the others (`best_proof`); how often the best one
happened on either side proves a bound. Whoever runs mechanisms makes the trials: `cbdp.app.audit.lower_bound`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, Protocol, cast

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from scipy import special

from cbdp.arrays import Bools, Bytes, Floats, Ints
from cbdp.audit.findings import Figure, Finding, clear_finding
from cbdp.errors import InputError
from cbdp.release.layout import NUMBER_COLUMNS
from cbdp.release.release import Release

Columns = Mapping[str, Floats]

# What somebody sees of a run


PART = "part"  # the dimension that keeps apart the trials of one run
MAX_VIEW_COLUMNS = 1000  # numbers seen of one trial: the search for events takes time and memory for each
Numbers = ArrayLike | Mapping[str, ArrayLike]  # what is published, as numbers


@dataclass(frozen=True)
class StoredTable:
    """A table as it stands in its file: codes and labels of each key, and the columns of numbers."""

    length: int
    keys: Mapping[str, tuple[Ints, Sequence[Hashable]]] = field(repr=False)
    numbers: Mapping[str, Floats] = field(repr=False)


@dataclass(frozen=True)
class Reading:
    """What the reader of a folder has: every table as it is stored, every number of the manifest, and the files' sizes."""

    tables: Mapping[str, StoredTable] = field(repr=False)
    manifest: Mapping[str, float] = field(repr=False)
    sizes: Mapping[str, int]


def read(folder: Path) -> Reading:
    """All that a release's folder holds, read without this program's own reader."""
    import pyarrow.parquet as pq

    tables, sizes = {}, {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        sizes[name] = path.stat().st_size
        if path.suffix == ".parquet" and not name.startswith("universe/"):
            tables[name] = _stored_table(pq.read_table(path))
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    return Reading(tables, dict(_manifest_numbers(manifest, "")), sizes)


def _stored_table(table: pa.Table) -> StoredTable:
    keys, columns = {}, {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if name in NUMBER_COLUMNS:
            columns[name] = np.asarray(column.to_numpy(zero_copy_only=False), dtype=float)
        else:
            coded = column.dictionary_encode()
            codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
            keys[name] = (codes, coded.dictionary.to_pylist())
    return StoredTable(table.num_rows, keys, columns)


def _manifest_numbers(value: object, path: str) -> Iterator[tuple[str, float]]:
    """Every number in the manifest, by its place."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _manifest_numbers(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _manifest_numbers(inner, f"{path}[{i}]")
    elif isinstance(value, int | float):
        yield path, float(value)


def numbers(published: object, parts: int | None = None) -> dict[str, Floats]:
    """What is published as columns of numbers, a row for each part (without parts: one row).

    Of a release: the noisy answers and sums, floors, estimates, published counts, and the order of its rows. Of files: every column
    of every table, the order of rows, the numbers of the manifest, the sizes of the files. What is of no part (a total, a
    size) is left out where there are parts: one trial in thousands does not show in it. Several things published together
    come as a list. Anything else must be numbers already, with a row for each part.
    """
    if isinstance(published, list | tuple) and any(isinstance(p, Release | Reading) for p in published):
        named = [(f"{i + 1}: {n}", v) for i, p in enumerate(published) for n, v in numbers(p, parts).items()]
        return dict(named)
    if isinstance(published, Release):
        return _columns_of_release(published, parts)
    if isinstance(published, Reading):
        return _columns_of_files(published, parts)
    return as_columns(cast("Numbers", published), parts or 1)


def as_columns(published: Numbers, rows: int) -> dict[str, Floats]:
    """Numbers, a table of them, or several by name, as columns with so many rows; a number that holds for all is repeated."""
    named = published if isinstance(published, Mapping) else {"x": published}
    columns: dict[str, Floats] = {}
    for name, values in named.items():
        try:
            table = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            raise InputError(f"a view must give numbers, {name!r} is {type(values).__name__}") from None
        if table.ndim == 0 or (table.ndim == 1 and rows == 1 and len(table) != 1):
            table = table.reshape(1, -1)
        if len(table) == 1:
            table = np.broadcast_to(table, (rows, *table.shape[1:]))
        if len(table) != rows:
            raise InputError(f"a view gave {len(table)} rows of {name!r} for {rows} trials in a run")
        table = table.reshape(rows, -1)
        more = table.shape[1] > 1
        columns |= {f"{name}[{j}]" if more else name: table[:, j] for j in range(table.shape[1])}
    if len(columns) > MAX_VIEW_COLUMNS:
        raise InputError(
            f"a view gave {len(columns)} numbers for a trial, at most {MAX_VIEW_COLUMNS} can be searched: choose some"
        )
    return columns


def _columns_of_release(release: Release, parts: int | None) -> dict[str, Floats]:
    rows = parts or 1
    dag, levels = release.features, release.levels or release.features
    named: dict[str, ArrayLike] = {}
    for m in release.measurements:
        values = np.full(levels.size(m.feature), np.nan)
        values[slice(None) if m.elements is None else m.elements] = m.values
        named[f"noisy {m.feature}"] = values
        if m.floor is not None:
            named["floor"] = m.floor
    for name in dag.features:
        if release.estimate is not None:
            named[f"estimate of {name}"] = release.estimate.counts(name)
        named[f"count of {name}"] = release.counts(name)
    for name, table in () if release.running is None else release.running.tables.items():
        named |= {f"sum {n} of {name}": row for n, row in enumerate(table.answers, 1)}
    leaves = dag.universe.size // rows
    named["row"] = _row_order(release.index // leaves, release.index % leaves, rows, leaves)
    if parts is None:
        return as_columns(named | {"rows": len(release.index)}, 1)
    # elements come part by part
    return as_columns(
        {n: np.reshape(v, (rows, -1)) for n, v in named.items() if np.size(v) % rows == 0}, rows
    )


def _row_order(part: Ints, key: Ints, rows: int, keys: int) -> Floats:
    """The place of each row among those of its part, in the order in which they stand; missing rows have none."""
    rank = np.full((rows, keys), np.nan)
    stands = np.argsort(part, kind="stable")
    sorted_part = part[stands]
    start = np.searchsorted(sorted_part, sorted_part, side="left")
    rank[sorted_part, key[stands]] = np.arange(len(part)) - start
    return rank


def _columns_of_files(reading: Reading, parts: int | None) -> dict[str, Floats]:
    rows = parts or 1
    named: dict[str, ArrayLike] = {}
    if parts is None:
        named |= {f"manifest {n}": v for n, v in reading.manifest.items()}
        named |= {f"bytes of {n}": v for n, v in reading.sizes.items()}
    for file, table in reading.tables.items():
        if parts is not None and PART not in table.keys:
            continue
        part = np.zeros(table.length, dtype=np.int64)
        if parts is not None:
            codes, labels = table.keys[PART]
            part = np.asarray(labels, dtype=np.int64)[codes]
        key, names = _joint_keys(
            [k for n, k in table.keys.items() if n != PART or parts is None], table.length
        )
        wide = {"row": _row_order(part, key, rows, len(names))}
        for name, values in table.numbers.items():
            wide[name] = np.full((rows, len(names)), np.nan)
            wide[name][part, key] = values
        named |= {
            f"{file} {n} {label}".rstrip(): v[:, j] for n, v in wide.items() for j, label in enumerate(names)
        }
    return as_columns(named, rows)


def _joint_keys(columns: Sequence[tuple[Ints, Sequence[Hashable]]], length: int) -> tuple[Ints, list[str]]:
    """A number for each row's key among those that occur, and their names."""
    joint, names = np.zeros(length, dtype=np.int64), [""]
    for codes, labels in columns:
        joint = joint * len(labels) + codes
        names = [f"{name} {label}".strip() for name in names for label in labels]
    occur, key = np.unique(joint, return_inverse=True)
    return key, [names[i] for i in occur]


# Events
#
# An event is one or several conditions on the numbers of a trial that hold together: a number at least, at most or equal to a value. Conditions
# are on the numbers themselves, on whether they are there at all, on their lowest bit, on the differences of two, and on two scores that are
# learned. Each event is rated by what it would prove; the best are joined with further conditions as long as that helps (a beam search).
# Nothing here proves anything: what is found is tested on other trials.


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


def _both_ways(rate: Rate, one: Ints | Floats, two: Ints | Floats, first: Bools) -> Floats:
    n1, n2 = _sizes(first)
    a, b = one.astype(np.float64), two.astype(np.float64)
    return np.stack([rate(a, b, n1, n2), rate(b, a, n2, n1)])


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


# What an event proves
#
# In every trial a coin decides which of the two data sets the mechanism gets, and an attacker who sees what is published says
# which, or nothing. If the mechanism is ε-differentially private, the odds of the coin given all that is published, and given
# every other coin, are at most e^ε to one (Bayes). So of all that the attacker says, each word is right with a chance of at
# most p = e^ε / (1 + e^ε), whatever was right before, and the number of right ones is at most binomial with p in law. This
# needs no independence of trials within a run: neighbouring data sets differ in one coin (Steinke, Nasr and Jagielski,
# "Privacy auditing with one (1) training run", 2023). The Clopper–Pearson (1934) limit on p then gives a limit on ε.
#
# With a δ, the attacker's event has probability P₁ and P₂ under the two, and P₁ ≤ e^ε P₂ + δ: both get a Clopper–Pearson
# limit. Here trials must be independent: no answer may mix parts.
#
# ρ-zCDP (Bun and Steinke, 2016, Definition 1.1) bounds the Rényi divergence of what is published by αρ, for every order α > 1, and in the limit α = 1;
# whether an event happened is post-processing, whose divergence is no larger. An event of probability p under one data set and q < p under the other therefore proves ρ ≥ D_α(p, q)/α. With a lower
# Clopper-Pearson limit of p and an upper one of q the divergence is smaller, so that the bound holds but for the chance of a false alarm. One
# event of Gaussian noise shows about 2/π of ρ at best: a claim that is too small by a factor of two is refuted, one by a tenth is not.
# Here, too, trials must be independent. For the (ε, δ) that is stated of a ρ the bound on ε serves.


EPSILON_CHECK = "epsilon"
MIN_TRIALS = 16  # trials: fewer prove nothing at any usual risk
MAX_EVENTS_TESTED = 6  # events tested on the second half: the risk of a false alarm is shared out among them
RENYI_ORDERS = np.concatenate([[1.0], 1 + np.geomspace(0.01, 30, 40)])  # α that are tried

Events = Mapping[str, Callable[[Columns], ArrayLike]]


class Proof(Protocol):
    """What an event proves that happened a times in n trials of one data set and b times in m of the other, but for a chance of `level`."""

    def __call__(self, a: Floats, b: Floats, n: int, m: int, *, level: float) -> Floats: ...


@dataclass(frozen=True)
class LowerBound:
    """What was proven: the ε or ρ is at least `value`, but for a chance of `alpha`; and by which event."""

    sign: ClassVar[str]
    measure: ClassVar[str]

    value: float
    event: str
    counts: tuple[int, int]  # how often it happened in trials of the two data sets
    trials: tuple[int, int]  # on which it was tested
    delta: float = 0.0
    alpha: float = 1e-6
    claim: float | None = None

    @property
    def exceeds(self) -> bool:
        """Whether the claim is refuted."""
        return self.claim is not None and self.value > self.claim

    @property
    def figures(self) -> dict[str, Figure]:
        return {self.measure: self.value, "alpha": self.alpha}

    def __str__(self) -> str:
        refuted = ", refuted" if self.exceeds else ""
        claimed = "" if self.claim is None else f" (claim {self.claim:g}{refuted})"
        at = f" at δ = {self.delta:.3g}" if self.delta else ""
        (a, b), (n, m) = self.counts, self.trials
        return f"{self.sign} ≥ {self.value:.3f}{claimed}{at}: {self.event}, in {a:,} of {n:,} trials against {b:,} of {m:,}"

    def finding(self) -> Finding:
        """The bound for a reviewer: clear unless it refutes the claim."""
        if not self.exceeds:
            return clear_finding(
                EPSILON_CHECK,
                f"The attack proves no more than {self.sign} ≥ {self.value:.3g}",
                str(self),
                f"A claim of less than {self.sign} = {self.value:.3g} would have been refuted by these {sum(self.trials):,} trials, with a "
                f"false alarm of at most {self.alpha:g}. Other pairs of data sets, and other events, were not tried.",
                self.figures,
            )
        return Finding(
            EPSILON_CHECK, "contradicts", f"The mechanism leaks {self.sign} ≥ {self.value:.3g}, more than the {self.claim:g} it claims", str(self),
            f"Whoever sees the event ({self.event}) knows which of the two data sets it was, with better odds than promised.",
            "Do not release with this mechanism: look for what makes the event differ.", self.figures,
        )  # fmt: skip


@dataclass(frozen=True)
class EpsilonBound(LowerBound):
    """A lower bound on ε at a δ."""

    sign: ClassVar[str] = "ε"
    measure: ClassVar[str] = "epsilon"

    @property
    def epsilon(self) -> float:
        return self.value

    @property
    def figures(self) -> dict[str, Figure]:
        return {"epsilon": self.value, "delta": self.delta, "alpha": self.alpha}


@dataclass(frozen=True)
class RhoBound(LowerBound):
    """A lower bound on ρ."""

    sign: ClassVar[str] = "ρ"
    measure: ClassVar[str] = "rho"

    @property
    def rho(self) -> float:
        return self.value


# an event, how often it happened on either side, and in how many trials
Witness = tuple[str, tuple[int, int], tuple[int, int]]


def best_proof(
    columns: Columns, first: Bools, events: Events | None, proves: Proof, alpha: float
) -> tuple[float, *Witness]:
    """The most that an event proves, and which: by those given, or by those found on half of the trials and tested on the others.

    The risk of a false alarm is shared out among the events tested and both directions.
    """
    half = 0 if events is not None else len(first) // 2
    if events is None:
        rate = partial(proves, level=alpha / (2 * MAX_EVENTS_TESTED))
        searched = search({n: v[:half] for n, v in columns.items()}, first[:half], rate, MAX_EVENTS_TESTED)
        events = {str(event): event.holds for event in searched}
    columns, first = {n: v[half:] for n, v in columns.items()}, first[half:]
    n1, n2 = _sizes(first)
    most, witness = 0.0, ("no event", (0, 0), (n1, n2))
    level = alpha / (2 * max(len(events), 1))
    for name, happens in events.items():
        occurs = np.asarray(happens(columns), dtype=bool)
        k1, k2 = int((occurs & first).sum()), int((occurs & ~first).sum())
        proven = float(max(_both_ways(partial(proves, level=level), np.array(k1), np.array(k2), first)))
        if proven > most:
            most, witness = proven, (name, (k1, k2), (n1, n2))
    return (most, *witness)


def check_terms(trials: int, alpha: float, delta: float | None) -> None:
    """Refuse terms of an audit that make no sense."""
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < MIN_TRIALS:
        raise InputError(f"trials is {trials!r}: give a whole number of at least {MIN_TRIALS}")
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha!r}: the chance of a false alarm lies between 0 and 1")
    if delta is not None and not 0 <= delta < 1:
        raise InputError(f"delta is {delta!r}: it must be at least 0 and below 1")


def epsilon_proof(delta: float) -> Proof:
    """How ε is proven at this δ."""
    return partial(ratio_bound, delta=delta) if delta > 0 else _odds_of_counts


def _odds_of_counts(a: Floats, b: Floats, n: int, m: int, *, level: float) -> Floats:  # noqa: ARG001
    return odds_bound(a, b, level=level)


def odds_bound(right: ArrayLike, wrong: ArrayLike, *, level: float) -> Floats:
    """The ε that so many right and wrong guesses of coins prove, but for a chance of `level`; it may be negative.

    The logit of the lower Clopper–Pearson limit of the share of right guesses (Steinke, Nasr and Jagielski, 2023, with δ = 0).

    >>> round(float(odds_bound(1000, 0, level=1e-6)), 2)
    4.28
    """
    right, wrong = np.asarray(right, dtype=float), np.asarray(wrong, dtype=float)
    low = lower_limit(right, right + wrong, level)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(right > 0, np.log(low) - np.log1p(-low), -np.inf))


def ratio_bound(
    a: ArrayLike, b: ArrayLike, n: ArrayLike, m: ArrayLike, *, delta: float, level: float
) -> Floats:
    """The ε that an event proves which happened a times in n trials of one data set and b times in m of the other.

    log((p − δ)/q) with the lower Clopper–Pearson limit p of the one probability and the upper limit q of the other.
    """
    low, high = lower_limit(a, n, level / 2), upper_limit(b, m, level / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(low > delta, np.log((low - delta) / high), -np.inf))


def rho_bound(a: ArrayLike, b: ArrayLike, n: ArrayLike, m: ArrayLike, *, level: float) -> Floats:
    """The ρ that an event proves which happened a times in n trials of one data set and b times in m of the other.

    >>> round(float(rho_bound(691_000, 309_000, 10**6, 10**6, level=1e-6)), 2)  # half a deviation to either side: ρ = 1/2
    0.3
    """
    low, high = lower_limit(a, n, level / 2), upper_limit(b, m, level / 2)
    return np.asarray(np.where(low > high, _divergence(low, np.minimum(high, 1 - 1e-16)), 0.0))


def _divergence(p: Floats, q: Floats) -> Floats:
    """The largest D_α/α of an event with these probabilities over all orders that are tried; α = 1 is Kullback and Leibler's."""
    with np.errstate(divide="ignore", invalid="ignore"):
        yes, no = np.log(p / q)[..., None], np.log((1 - p) / (1 - q))[..., None]
        plain = special.xlogy(p, p / q) + special.xlogy(1 - p, (1 - p) / (1 - q))
        order = RENYI_ORDERS[1:] - 1
        log_p, log_no = np.log(p)[..., None], np.log1p(-p)[..., None]
        raised = np.logaddexp(log_p + order * yes, np.where(p[..., None] < 1, log_no + order * no, -np.inf))
        renyi = (raised / order / (order + 1)).max(axis=-1)
    return np.asarray(np.maximum(plain, renyi))


def lower_limit(hits: ArrayLike, trials: ArrayLike, risk: float) -> Floats:
    """Below this a probability lies with a chance of at most `risk`, given so many hits (Clopper and Pearson, 1934).

    >>> round(float(lower_limit(10, 10, 0.025)), 4), float(lower_limit(0, 10, 0.025))
    (0.6915, 0.0)
    """
    hits, trials = np.asarray(hits, dtype=float), np.asarray(trials, dtype=float)
    misses = np.maximum(trials - hits, 0)
    return np.where(hits > 0, special.betaincinv(np.maximum(hits, 1e-300), misses + 1, risk), 0.0)


def upper_limit(hits: ArrayLike, trials: ArrayLike, risk: float) -> Floats:
    """Above this a probability lies with a chance of at most `risk`.

    >>> round(float(upper_limit(0, 10, 0.025)), 4), float(upper_limit(10, 10, 0.025))
    (0.3085, 1.0)
    """
    hits, trials = np.asarray(hits, dtype=float), np.asarray(trials, dtype=float)
    misses = np.maximum(trials - hits, 1e-300)
    return np.where(hits < trials, special.betainccinv(hits + 1, misses, risk), 1.0)
