"""Privacy auditing: lower bounds on the ε or ρ of a mechanism, proven from nothing but runs on two neighbouring data sets.

First, how one run holds thousands of trials (`TrialParts`) and what an attacker sees of each as a row of numbers (`numbers`); then the
bound on ε, the bound on ρ, and a series of releases as one mechanism. Events are searched by `cbdp.audit.distinguishing`.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cbdp.arrays import Bools, Floats, Ints
from cbdp.audit.distinguishing import bound_finding, bound_text, search
from cbdp.audit.findings import Finding
from cbdp.counting.clock import Clock
from cbdp.counting.counts import Counts, count
from cbdp.counting.plan import ServiceDays
from cbdp.errors import InputError
from cbdp.features import TOTAL, Feature, FeatureDag, Universe
from cbdp.ledger import Amount, Charge, ChargeScope
from cbdp.ledger.charges import amount_charged, measure_of
from cbdp.ledger.windows import PrivacyStatement, privacy_statement
from cbdp.mechanisms import ConstraintBased, Mechanism
from cbdp.mechanisms.continual import History, release_in_series
from cbdp.privacy.continual import STRATEGIES, Span, table_noise_costs
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.unit import Trip
from cbdp.release.release import Release

Rows = Mapping[str, Sequence[Hashable]]

PART = "part"
MAX_VIEW_COLUMNS = 1000  # numbers seen of one trial: the search for events takes time and memory for each


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
    dimensions: Mapping[str, Any]  # of one copy
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
        from cbdp.counting.counts import count

        tiny = Universe(**self.dimensions)
        dense = [count(dict(table), tiny).dense() for table in (one, two)]
        return lambda first: np.where(first[:, None], *dense).reshape(-1)

    def mix(self, one: Rows, two: Rows, first: Bools) -> dict[str, NDArray[Any]]:
        """The trips of all parts: those of the tiny data set `one` where `first` is true, else those of `two`."""
        sets = [{n: list(column) for n, column in table.items()} for table in (one, two)]
        rows = [len(next(iter(table.values()), [])) for table in sets]
        size = np.where(first, rows[0], rows[1])
        part = np.repeat(np.arange(len(first)), size)
        rank = np.arange(len(part)) - np.repeat(np.cumsum(size) - size, size)
        row = rank + np.where(first[part], 0, rows[0])
        mixed: dict[str, NDArray[Any]] = {PART: part}
        for name in sets[0] | sets[1]:
            both = np.array([*sets[0].get(name, []), *sets[1].get(name, [])])
            if name == self.person:
                kinds, code = np.unique(both, return_inverse=True)
                mixed[name] = part * len(kinds) + code[row]
            else:
                mixed[name] = both[row]
        return mixed


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


@dataclass(frozen=True)
class ThroughFiles:
    """A mechanism whose releases are saved, and read by somebody who has nothing but the files.

    `mechanism` is anything with `simulate(data, seed)` that returns a release.
    """

    mechanism: Any

    def simulate(self, data: Any, seed: int) -> Reading:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "release"
            self.mechanism.simulate(data, seed).save(folder, simulation=True)
            return read(folder)


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


def _stored_table(table: Any) -> StoredTable:
    from cbdp.release.layout import NUMBER_COLUMNS

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


def _manifest_numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    """Every number in the manifest, by its place."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _manifest_numbers(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _manifest_numbers(inner, f"{path}[{i}]")
    elif isinstance(value, int | float):
        yield path, float(value)


# Views


def numbers(published: Any, parts: TrialParts | None = None) -> dict[str, Floats]:
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
    return as_columns(published, 1 if parts is None else parts.number)


def as_columns(published: Any, rows: int) -> dict[str, Floats]:
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


def _columns_of_release(release: Release, parts: TrialParts | None) -> dict[str, Floats]:
    rows = 1 if parts is None else parts.number
    dag, levels = release.features, release.levels or release.features
    named: dict[str, Any] = {}
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


def _columns_of_files(reading: Reading, parts: TrialParts | None) -> dict[str, Floats]:
    rows = 1 if parts is None else parts.number
    named: dict[str, Any] = {}
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


# A lower bound on ε.
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
# Events are searched on one half of the trials and tested on the other, with the risk of a false alarm
# shared out among the events tested and both directions.


Columns = Mapping[str, Floats]
Events = Mapping[str, Callable[[Columns], Any]]
View = Callable[[Any], Any]

MAX_EVENTS_TESTED = 6  # events tested on the second half: the risk of a false alarm is shared out among them
MIN_TRIALS = 16  # trials: fewer prove nothing at any usual risk


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
        return bound_text(self, "ε", self.epsilon, f" at δ = {self.delta:.3g}" if self.delta else "")

    def finding(self) -> Finding:
        """The same for a reviewer."""
        return bound_finding(self, "ε", self.epsilon, {"epsilon": self.epsilon, "delta": self.delta})


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
    check_terms(trials, alpha, delta)
    inner = mechanism.mechanism if isinstance(mechanism, ThroughFiles) else mechanism
    if hasattr(inner, "claim"):
        promised = inner.claim().cost
        claim = float(promised.epsilon) if claim is None else claim
        delta = float(promised.delta) if delta is None else delta
    delta = delta or 0.0
    outcomes = run_trials(mechanism, d1, d2, trials, parts, seed, view)
    proven, best = best_proof(*outcomes, events, partial(_epsilon_bound, delta=delta), alpha)
    return EpsilonBound(proven, *best, delta, alpha, claim)


def check_terms(trials: int, alpha: float, delta: float | None) -> None:
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < MIN_TRIALS:
        raise InputError(f"trials is {trials!r}: give a whole number of at least {MIN_TRIALS}")
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
    deal = _data_by_coins(mechanism, d1, d2, parts)
    coins: list[Bools] = []
    seen: list[dict[str, Floats]] = []
    for _ in range(math.ceil(trials / rows)):
        coin = rng.random(rows) < 0.5
        published = _run_mechanism(mechanism, deal(coin), int(rng.integers(2**62)))
        seen.append(numbers(published, parts) if view is None else as_columns(view(published), rows))
        coins.append(coin)
    names = dict.fromkeys(n for columns in seen for n in columns)
    none = np.full(rows, np.nan)
    together = {n: np.concatenate([columns.get(n, none) for columns in seen]) for n in names}
    return together, np.concatenate(coins)


def _data_by_coins(mechanism: Any, d1: Any, d2: Any, parts: TrialParts | None) -> Callable[[Bools], Any]:
    """What a run gets, given its coins."""
    by_trip = isinstance(mechanism, Mechanism) and isinstance(mechanism.protected, Trip)
    if parts is None:
        if by_trip:  # counting trips draws nothing: once is enough
            d1, d2 = (count(d, mechanism.features.universe, unit=mechanism.protected) for d in (d1, d2))
        return lambda coin: d1 if coin[0] else d2
    if by_trip:
        return parts.counted(d1, d2)
    return partial(parts.mix, d1, d2)


def _run_mechanism(mechanism: Any, data: Any, seed: int) -> Any:
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
        events = _searched_events({n: v[:half] for n, v in columns.items()}, first[:half], proves, alpha)
    columns, first = {n: v[half:] for n, v in columns.items()}, first[half:]
    n1, n2 = int(first.sum()), int((~first).sum())
    most, best = 0.0, ("no event", (0, 0), (n1, n2))
    level = alpha / (2 * max(len(events), 1))
    for name, happens in events.items():
        occurs = np.asarray(happens(columns), dtype=bool)
        k1, k2 = int((occurs & first).sum()), int((occurs & ~first).sum())
        for a, n, b, m in ((k1, n1, k2, n2), (k2, n2, k1, n1)):
            proven = float(proves(a, b, n, m, level=level))
            if proven > most:
                most, best = proven, (name, (k1, k2), (n1, n2))
    return most, best


def _searched_events(columns: Columns, first: Bools, proves: Callable[..., Any], alpha: float) -> Events:
    rate = partial(proves, level=alpha / (2 * MAX_EVENTS_TESTED))
    return {str(event): event.holds for event in search(columns, first, rate, MAX_EVENTS_TESTED)}


def _epsilon_bound(a: Any, b: Any, n: int, m: int, *, delta: float, level: float) -> Floats:
    if delta > 0:
        return ratio_bound(a, n, b, m, delta=delta, level=level)
    return odds_bound(a, b, level=level)


def odds_bound(right: Any, wrong: Any, *, level: float) -> Floats:
    """The ε that so many right and wrong guesses of coins prove, but for a chance of `level`; it may be negative.

    The logit of the lower Clopper–Pearson limit of the share of right guesses (Steinke, Nasr and Jagielski, 2023, with δ = 0).

    >>> round(float(odds_bound(1000, 0, level=1e-6)), 2)
    4.28
    """
    right, wrong = np.asarray(right, dtype=float), np.asarray(wrong, dtype=float)
    with np.errstate(divide="ignore"):
        low = special.betaincinv(np.maximum(right, 1e-300), wrong + 1, level)
        return np.asarray(np.where(right > 0, np.log(low) - np.log1p(-low), -np.inf))


def ratio_bound(a: Any, n: Any, b: Any, m: Any, *, delta: float, level: float) -> Floats:
    """The ε that an event proves which happened a times in n trials of one data set and b times in m of the other.

    log((p − δ)/q) with the lower Clopper–Pearson limit p of the one probability and the upper limit q of the other.
    """
    a, n, b, m = (np.asarray(v, dtype=float) for v in (a, n, b, m))
    low = np.where(a > 0, special.betaincinv(np.maximum(a, 1e-300), np.maximum(n - a, 0) + 1, level / 2), 0.0)
    high = np.where(b < m, special.betainccinv(b + 1, np.maximum(m - b, 1e-300), level / 2), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(low > delta, np.log((low - delta) / high), -np.inf))


# A lower bound on ρ.
#
# ρ-zCDP (Bun and Steinke, 2016, Definition 1.1) bounds the Rényi divergence of what is published by αρ, for every order α > 1, and in the limit α = 1;
# whether an event happened is post-processing, whose divergence is no larger. An event of probability p under one data set and q < p under the other therefore proves ρ ≥ D_α(p, q)/α. With a lower
# Clopper-Pearson limit of p and an upper one of q the divergence is smaller, so that the bound holds but for the chance of a false alarm. One
# event of Gaussian noise shows about 2/π of ρ at best: a claim that is too small by a factor of two is refuted, one by a tenth is not.
#
# Trials must be independent: no answer may mix parts. For the (ε, δ) that is stated of a ρ use `epsilon_lower_bound`.


RENYI_ORDERS = np.concatenate([[1.0], 1 + np.geomspace(0.01, 30, 40)])  # α that are tried


@dataclass(frozen=True)
class RhoBound:
    """What was proven: ρ is at least this, but for a chance of `alpha`; and by which event."""

    rho: float
    event: str
    counts: tuple[int, int]  # how often it happened in trials of the two data sets
    trials: tuple[int, int]  # on which it was tested
    alpha: float = 1e-6
    claim: float | None = field(default=None)

    @property
    def exceeds(self) -> bool:
        """Whether the claim is refuted."""
        return self.claim is not None and self.rho > self.claim

    def __str__(self) -> str:
        return bound_text(self, "ρ", self.rho)

    def finding(self) -> Finding:
        """The same for a reviewer."""
        return bound_finding(self, "ρ", self.rho, {"rho": self.rho})


def rho_lower_bound(
    mechanism: Any,
    d1: Any,
    d2: Any,
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
    inner = mechanism.mechanism if isinstance(mechanism, ThroughFiles) else mechanism
    if claim is None and hasattr(inner, "claim"):
        claim = float(inner.claim().cost.rho)
    outcomes = run_trials(mechanism, d1, d2, trials, parts, seed, view)
    proven, best = best_proof(*outcomes, events, rho_bound, alpha)
    return RhoBound(proven, *best, alpha, claim)


def rho_bound(a: Any, b: Any, n: Any, m: Any, *, level: float) -> Floats:
    """The ρ that an event proves which happened a times in n trials of one data set and b times in m of the other.

    >>> round(float(rho_bound(691_000, 309_000, 10**6, 10**6, level=1e-6)), 2)  # half a deviation to either side: ρ = 1/2
    0.3
    """
    a, b, n, m = (np.asarray(v, dtype=float) for v in (a, b, n, m))
    low = np.where(a > 0, special.betaincinv(np.maximum(a, 1e-300), np.maximum(n - a, 0) + 1, level / 2), 0.0)
    high = np.where(b < m, special.betainccinv(b + 1, np.maximum(m - b, 1e-300), level / 2), 1.0)
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


# A series as one mechanism: what an outsider sees is all of its releases


@dataclass(frozen=True)
class AsSeries:
    """A mechanism that is run once for each period, on the rows of that period alone, as `cbdp series run` does.

    With a `span` it also keeps running totals, and every release holds the sums that end with it.
    """

    mechanism: Mechanism
    periods: Sequence[ServiceDays]
    columns: Mapping[str, str] = field(default_factory=lambda: {"day": "day"})
    clock: Clock = field(default_factory=Clock)
    span: Span | None = None

    def simulate(self, trips: Any, seed: int) -> list[Release]:
        """All releases, in order, each with noise of its own."""
        seeds = np.random.SeedSequence(seed).generate_state(2 * len(self.periods), np.uint64).tolist()
        counted = (self.counts(trips, period, seeds[2 * n]) for n, period in enumerate(self.periods))
        if self.span is not None:
            return self._with_running_totals(counted, seeds[1::2])
        return [
            self.mechanism.simulate(counts, seed) for counts, seed in zip(counted, seeds[1::2], strict=True)
        ]

    def _with_running_totals(self, counted: Iterable[Counts], seeds: Sequence[int]) -> list[Release]:
        """Each release from its own noise, the sums that end with it, and what was published before."""
        assert self.span is not None
        assert isinstance(self.mechanism, ConstraintBased)
        history = {name: History() for name in self.span.tables}
        releases = []
        for counts, seed in zip(counted, seeds, strict=True):
            entropy = InsecureSeededEntropy(seed)
            release = release_in_series(self.mechanism, counts, self.span, history, entropy)
            assert release.running is not None
            measured = {m.feature: m for m in release.measurements}
            for name, past in history.items():
                true = counts.of(self.mechanism.features, name)
                past.add(true, release.running.tables[name].answers, measured[name], release.counts(name))
            releases.append(release)
        return releases

    def counts(self, trips: Any, period: ServiceDays, seed: int) -> Counts:
        """The counts of one period."""
        return count(
            trips,
            self.mechanism.features.universe,
            columns=self.columns,
            unit=self.mechanism.protected,
            entropy=InsecureSeededEntropy(seed),
            clock=self.clock,
            days=period,
        )

    def statement(self) -> PrivacyStatement:
        """What the ledger of such a series would say of one person."""
        cost = self.mechanism.claim().cost
        unit, days = self.mechanism.protected, self.periods
        charges = [
            Charge(
                str(n),
                "",
                amount_charged(cost, measure_of(cost)),
                "",
                "",
                "",
                ChargeScope.of(unit, period.first, period.last),
            )
            for n, period in enumerate(days)
        ]
        if self.span is not None:
            amount = sum((paid.amount for paid in self.span.tables.values()), Fraction(0))
            price = Amount.charge_rho(amount) if self.span.currency == "rho" else Amount.charge(amount)
            covers = ChargeScope.of_releases(unit, days[0].first, days[-1].last)
            covers = replace(covers, strategy=self.span.strategy, periods=self.span.periods)
            charges.append(Charge("span", "", price, "", "", "", covers))
        return privacy_statement(charges)


def running_span(
    mechanism: ConstraintBased, first: dt.date, periods: int, tables: Mapping[str, Fraction], strategy: str
) -> Span:
    """Running totals of some tables over so many releases, with what each costs for one period of the unit."""
    paid = table_noise_costs(mechanism, tables, STRATEGIES[strategy](periods))
    return Span(first, periods, strategy, "", paid)


def daily(first: dt.date, days: int) -> list[ServiceDays]:
    """So many days, each a period."""
    dates = [first + dt.timedelta(days=n) for n in range(days)]
    return [ServiceDays(day, day) for day in dates]


__all__ = ["EpsilonBound", "ThroughFiles", "TrialParts", "epsilon_lower_bound", "odds_bound", "ratio_bound"]
