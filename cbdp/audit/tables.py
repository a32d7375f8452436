"""Published tables of counts as an attacker meets them: cells, counts, relations, and what is declared about their noise.

They come from any folder (`cbdp.audit.external_tables`), or from a release of ours (`from_release`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Bools, Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation.engine import MAX_LISTED_TYPES
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.noise import NoiseDistribution, noise_distribution
from cbdp.release.release import Release
from cbdp_features.universe import connected_components

# of exact counts, and of tables all of whose counts are hidden
NO_NOISE_DISTRIBUTION = noise_distribution("laplace", 0.0)

Labels = NDArray[np.generic]  # the keys of rows: text, numbers or whatever a file holds


@dataclass(frozen=True, eq=False)
class CountTable:
    """One published table of counts: a row per cell, named by its keys.

    `noise` is the law that is declared; of scale 0, counts are exact. Counts below `threshold` are not shown: such a row,
    or one whose count is not a number, is a hidden cell. In a `closed` table every cell that can be non-zero has a row;
    otherwise cells may be missing altogether. `shows_zeros` says that empty cells get noise like all others. `rounding` is how far
    rounding may have moved a shown count; with `complementary` suppression larger counts are hidden too.

    >>> table = CountTable("by stop", {"stop": ["A", "B", "C"]}, [41, 3, 91], threshold=5)
    >>> table.shown.tolist()
    [True, False, True]
    """

    name: str
    keys: Mapping[str, Labels] = field(repr=False)
    counts: Floats = field(repr=False)
    noise: NoiseDistribution | None = None
    threshold: float | None = None
    shows_zeros: bool = True
    universe: int | None = None
    closed: bool = True
    canonical: bool = False  # rows are known to follow a public list
    # made of other published figures, so differences of counts show no noise of its own
    derived: bool = False
    rounding: float = 0.0
    complementary: bool = False
    may_be_exact: bool = True  # without a declared law; False for noisy answers whose law is not known

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts, dtype=np.float64)
        if counts.ndim != 1:
            raise InputError(f"table {self.name!r}: counts have shape {counts.shape}, give one per cell")
        keys = {name: np.asarray(column) for name, column in self.keys.items()}
        for name, column in keys.items():
            if column.shape != counts.shape:
                raise InputError(
                    f"table {self.name!r}: key {name!r} has {len(column)} values for {len(counts)} counts"
                )
        if not keys and len(counts) > 1:
            raise InputError(
                f"table {self.name!r} has {len(counts)} counts and no keys: name its key columns"
            )
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "keys", keys)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def bounded(self) -> bool:
        """Whether shown counts are exact, or off by no more than their rounding."""
        return self.noise is not None and not self.noise.scale

    @property
    def most_hidden(self) -> float:
        """The largest count that a hidden cell of a table without noise may have."""
        if self.threshold is None or self.complementary:
            return math.inf
        return math.ceil(self.threshold) - 1 + self.rounding

    @cached_property
    def shown(self) -> Bools:
        """Which cells have a published count."""
        shown: Bools = np.isfinite(self.counts)
        noisy = self.noise is not None and self.noise.scale
        blank = not noisy and not shown.all()  # what is hidden is left blank, so that a 0 is a count
        if not blank and (self.threshold is not None or not self.shows_zeros):
            shown = shown & np.not_equal(self.counts, 0)
        if self.threshold is not None:  # which may have been applied before rounding
            enough = np.greater_equal(self.counts, self.threshold - 0.5)
            shown = shown & (enough | np.equal(self.counts, 0) if blank else enough)
        return shown

    def label(self, row: int) -> str:
        """A cell in words.

        >>> CountTable("by time", {"tap": ["on"], "time": ["06:45"]}, [88]).label(0)
        'by time: tap on, time 06:45'
        """
        words = ", ".join(f"{name} {column[row]}" for name, column in self.keys.items())
        return f"{self.name}: {words}" if words else self.name

    def find(self, cells: Mapping[str, Sequence[Hashable] | Labels]) -> Ints:
        """The row of each cell given by its keys; −1 where there is none, and the first where there are several."""
        if set(cells) != set(self.keys):
            raise InputError(
                f"table {self.name!r} has the keys {quoted(self.keys)}, not {quoted(cells)}: name them all"
            )
        return match_rows(self.keys, {name: np.asarray(cells[name]) for name in self.keys})


@dataclass(frozen=True, eq=False)
class Pair:
    """Cells with equal truth: row `first_rows[i]` of one table counts the same people as `second_rows[i]` of another.

    >>> Pair("ferry", [0], "ferry", [1]).second_rows.tolist()
    [1]
    """

    first: str
    first_rows: Ints = field(repr=False)
    second: str = ""
    second_rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)

    def __post_init__(self) -> None:
        for name in ("first_rows", "second_rows"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))
        if self.first_rows.shape != self.second_rows.shape:
            raise InputError(
                f"pairs of {self.first!r} and {self.second!r} have {len(self.first_rows)} and "
                f"{len(self.second_rows)} cells: give as many of one as of the other"
            )
        if not self.second:
            object.__setattr__(self, "second", self.first)


@dataclass(frozen=True, eq=False)
class Sum:
    """One table adds up another: row i of `part` belongs to row `rows[i]` of `total` (−1: to none that is listed).

    `exact` says that the published figures themselves are claimed to add up, not only what is behind them.

    >>> Sum("by line", "by stop", [0, 0, 1]).exact
    False
    """

    total: str
    part: str
    rows: Ints = field(repr=False)
    exact: bool = False


@dataclass(frozen=True, eq=False)
class PublishedTables:
    """All that an attacker holds: tables, what the release claims, and which of its counts are related.

    Where no sums are declared, a table whose key columns are among those of another is taken for a sum of it.

    >>> stops = CountTable("by stop", {"stop": ["A", "B"]}, [41, 91])
    >>> total = CountTable("in all", {}, [132])
    >>> [(s.total, s.part) for s in PublishedTables((stops, total)).relations]
    [('in all', 'by stop')]
    """

    tables: tuple[CountTable, ...]
    epsilon: float | None = None
    delta: float = 0.0
    equal: tuple[Pair, ...] = ()
    sums: tuple[Sum, ...] = ()
    imply: bool = True  # False: tables with shared key columns are about different people

    def __post_init__(self) -> None:
        names = [t.name for t in self.tables]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two tables are named {name!r}: give each its own name")
        for used in [n for p in self.equal for n in (p.first, p.second)] + [
            n for s in self.sums for n in (s.total, s.part)
        ]:
            if used not in names:
                raise InputError(f"a relation names the table {used!r}: there are {', '.join(names)}")
        for s in self.sums:
            rows = np.asarray(s.rows)
            if rows.shape != (len(self[s.part]),) or (len(rows) and rows.max() >= len(self[s.total])):
                raise InputError(f"{s.total!r} as a sum of {s.part!r}: give a row of the total for each part")
        for p in self.equal:
            for name, at in ((p.first, p.first_rows), (p.second, p.second_rows)):
                if len(at) and not (at.min() >= 0 and at.max() < len(self[name])):
                    raise InputError(f"a pair names a row that table {name!r} does not have")

    def __getitem__(self, name: str) -> CountTable:
        for table in self.tables:
            if table.name == name:
                return table
        raise InputError(f"no table {name!r}: there are {', '.join(t.name for t in self.tables)}")

    @cached_property
    def relations(self) -> tuple[Sum, ...]:
        """The declared sums, or those that shared key columns imply."""
        if self.sums or not self.imply:
            return self.sums
        return implied_sums(self.tables)

    @cached_property
    def families(self) -> list[list[CountTable]]:
        """Tables of the same people, grouped: those that sums or pairs tie together."""
        position = {t.name: i for i, t in enumerate(self.tables)}
        ties = [{position[s.total], position[s.part]} for s in self.relations]
        ties += [{position[p.first], position[p.second]} for p in self.equal]
        groups = connected_components([{i} for i in range(len(self.tables))] + ties)
        count = len(self.tables)
        return [[self.tables[i] for i in group if i < count] for group in groups]


def with_public_support(published: PublishedTables, table: str, possible: Bools) -> PublishedTables:
    """What is left to find for an attacker who knows which cells of a table can be non-zero, say from a timetable.

    Cells that cannot are dropped, unless they have a published count; the others are all there is, so the table is closed.
    """
    old = published[table]
    keep = np.flatnonzero(np.asarray(possible, dtype=bool) | old.shown)
    new_row = np.full(len(old), -1, dtype=np.int64)
    new_row[keep] = np.arange(len(keep))
    keys = {name: column[keep] for name, column in old.keys.items()}
    new = replace(old, keys=keys, counts=old.counts[keep], closed=True)
    sums = []
    for s in published.relations:
        rows = np.asarray(s.rows)
        if s.part == table:
            rows = rows[keep]
        if s.total == table:
            rows = np.where(rows >= 0, new_row[rows], -1)
        sums.append(replace(s, rows=rows))
    pairs = []
    for p in published.equal:
        first = new_row[p.first_rows] if p.first == table else p.first_rows
        second = new_row[p.second_rows] if p.second == table else p.second_rows
        both = (first >= 0) & (second >= 0)
        pairs.append(replace(p, first_rows=first[both], second_rows=second[both]))
    tables = tuple(new if t.name == table else t for t in published.tables)
    return replace(published, tables=tables, sums=tuple(sums), equal=tuple(pairs))


def implied_sums(tables: Sequence[CountTable]) -> tuple[Sum, ...]:
    """A sum for each two tables of which one has some of the other's key columns, and none besides."""
    sums = []
    for total in tables:
        for part in tables:
            if set(total.keys) < set(part.keys):
                inner = {name: part.keys[name] for name in total.keys}
                rows = match_rows(total.keys, inner) if inner else np.zeros(len(part), dtype=np.int64)
                sums.append(Sum(total.name, part.name, rows))
    return tuple(sums)


def match_rows(keys: Mapping[str, Labels], cells: Mapping[str, Labels]) -> Ints:
    """For each cell the first row whose keys are its own, −1 where there is none."""
    if not keys:
        size = max((len(c) for c in cells.values()), default=1)
        return np.zeros(size, dtype=np.int64)
    here, there = joint_codes(keys, cells)
    values, first = np.unique(here, return_index=True)
    if not len(values):
        return np.full(len(there), -1, dtype=np.int64)
    position = np.minimum(np.searchsorted(values, there), len(values) - 1)
    return np.where(values[position] == there, first[position], -1).astype(np.int64)


def joint_codes(first: Mapping[str, Labels], second: Mapping[str, Labels]) -> tuple[Ints, Ints]:
    """A number for each row of two tables, the same where all keys are; labels are compared as text if types differ."""
    size = len(next(iter(first.values())))
    codes = np.zeros(size + len(next(iter(second.values()))), dtype=np.int64)
    for name, column in first.items():
        both = _concatenated(column, second[name])
        _, code = np.unique(both, return_inverse=True)
        codes = np.unique(codes * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1]
    return codes[:size].astype(np.int64), codes[size:].astype(np.int64)


def _concatenated(one: Labels, other: Labels) -> Labels:
    numeric = one.dtype.kind in "iuf" and other.dtype.kind in "iuf"
    if numeric or (one.dtype.kind == other.dtype.kind and one.dtype.kind != "O"):
        return np.concatenate([one, other])
    return np.concatenate([one.astype(str), other.astype(str)])


def quoted(names: Iterable[str]) -> str:
    """Names in quotation marks, for messages."""
    return ", ".join(map(repr, names)) or "none"


# A release of ours: counts, and the noisy answers beside them


# after a feature's name: its noisy answers, where they are published beside the counts
MEASURED_SUFFIX = " (measured)"


def from_release(release: Release) -> PublishedTables:
    """What a release of ours publishes: every feature's counts, and the noisy measurements where it has any.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.ConstraintBased(features, epsilon=1).simulate(trips, seed=0)
    >>> [table.name for table in from_release(release).tables][:3]
    ['total', 'time', 'singleton']
    """
    features = release.features
    names = list(release.tables) or [n for n in features.features if features.size(n) <= MAX_LISTED_TYPES]
    tables = [_published_table(release, name) for name in names]
    sums = _sums_to_coarser(features, names, "", exact=not release.tables)
    tree = release.levels or features
    measured = [m for m in release.measurements if m.floor is None]
    # A feature may be measured twice: each measurement has its own name, and sums hold for the first of them.
    tables = _unique_names([*tables, *(_measurement_table(tree, m) for m in measured)])
    whole = [m.feature for m in measured if m.elements is None]
    sums += _sums_to_coarser(tree, list(dict.fromkeys(whole)), MEASURED_SUFFIX, exact=False)
    claim = release.claim
    epsilon = float(claim.cost.epsilon) if claim.holds else None
    delta = float(claim.cost.delta) if claim.holds else 0.0
    return PublishedTables(tuple(tables), epsilon, delta, (), tuple(sums))


def declared_distribution(measured: Measurement) -> NoiseDistribution | None:
    """The law that a measurement declares for its noise; None where it has none, or a variance that contradicts it."""
    law = measured.noise
    if law is None:
        return None
    law = law.times(1.0)  # the scale as a float, so that equal scales are equal laws
    variance = measured.variance
    if variance is None or not len(variance):
        return law
    return law if np.isclose(float(variance[0]), law.variance(), rtol=1e-6, atol=0) else None


def _published_table(release: Release, name: str) -> CountTable:
    """A feature's published counts. Counts that were post-processed have no noise law of their own."""
    features = release.features
    stated = release.recipe.tables.get(name) if name in release.tables else None
    return CountTable(
        name,
        _key_columns(features, name),
        np.asarray(release.counts(name), dtype=np.float64),
        None if stated is None else stated.law.times(1.0),
        None if stated is None else stated.threshold,
        stated is None or not stated.skips_zeros,
        features.size(name),
        canonical=True,
        derived=name not in release.tables,
    )


def _measurement_table(tree: FeatureDag, m: Measurement) -> CountTable:
    keys = _key_columns(tree, m.feature)
    if m.elements is not None:
        keys = {name: column[m.elements] for name, column in keys.items()}
    return CountTable(
        m.feature + MEASURED_SUFFIX,
        keys,
        np.asarray(m.values, dtype=np.float64),
        declared_distribution(m),
        universe=tree.size(m.feature),
        closed=m.elements is None,
        canonical=True,
        may_be_exact=False,
    )


def _key_columns(features: FeatureDag, name: str) -> dict[str, Labels]:
    if name == SINGLETON:
        universe = features.universe
        codes = universe.unrank_codes(np.arange(universe.size, dtype=np.int64))
        pairs = zip(universe.dimensions.items(), codes, strict=True)
        return {n: _sortable_labels(d.values)[c] for (n, d), c in pairs}
    partition = features.partition(name)
    return {
        a.name: _sortable_labels(a.labels)[c]
        for a, c in zip(partition.attributes, partition.label_codes(), strict=True)
    }


def _sortable_labels(values: Sequence[Hashable]) -> Labels:
    """Labels as an array of text, so that they can be sorted and compared whatever they are."""
    return np.array([str(v) for v in values])


def _unique_names(tables: Sequence[CountTable]) -> list[CountTable]:
    seen: dict[str, int] = {}
    renamed = []
    for table in tables:
        seen[table.name] = seen.get(table.name, 0) + 1
        again = seen[table.name]
        renamed.append(table if again == 1 else replace(table, name=f"{table.name} {again}"))
    return renamed


def _sums_to_coarser(features: FeatureDag, names: Sequence[str], suffix: str, *, exact: bool) -> list[Sum]:
    """The sums among some features' tables: from each to the next coarser ones."""
    return [
        Sum(coarse + suffix, fine + suffix, features.map_elements(fine, coarse), exact)
        for fine in names
        for coarse in names
        if fine != coarse and features.size(fine) > features.size(coarse) and features.refines(fine, coarse)
    ]
