"""What an attacker sees of a release: as numbers, one row for each trial. And how one run can hold thousands of trials."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Bools, Floats, Ints
from cbdp.errors import InputError
from cbdp.features import TOTAL, Feature, FeatureDag, Universe
from cbdp.release.release import Release

Rows = Mapping[str, Sequence[Hashable]]

PART = "part"
MOST = 1000  # columns of a view that can be searched


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
        from cbdp.trips.count import count

        tiny = Universe(**self.dimensions)
        dense = [count(dict(table), tiny).dense() for table in (one, two)]
        return lambda first: np.where(first[:, None], *dense).reshape(-1)

    def mix(self, one: Rows, two: Rows, first: Bools) -> dict[str, NDArray[Any]]:
        """The trips of all parts: those of the tiny data set `one` where `first` is true, else those of `two`."""
        sets = [{n: list(column) for n, column in table.items()} for table in (one, two)]
        rows = [len(next(iter(table.values()), [])) for table in sets]
        size = np.where(first, rows[0], rows[1])
        part = np.repeat(np.arange(len(first)), size)
        place = np.arange(len(part)) - np.repeat(np.cumsum(size) - size, size)
        row = place + np.where(first[part], 0, rows[0])
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
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "release"
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
            tables[name] = _stored(pq.read_table(path))
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    return Reading(tables, dict(_leaves(manifest, "")), sizes)


def _stored(table: Any) -> StoredTable:
    from cbdp.release.layout import NUMBERS

    keys, columns = {}, {}
    for name in table.column_names:
        held = table[name].combine_chunks()
        if name in NUMBERS:
            columns[name] = np.asarray(held.to_numpy(zero_copy_only=False), dtype=float)
        else:
            coded = held.dictionary_encode()
            codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
            keys[name] = (codes, coded.dictionary.to_pylist())
    return StoredTable(table.num_rows, keys, columns)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, float]]:
    """Every number in the manifest, by its place."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{i}]")
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
        return _of_release(published, parts)
    if isinstance(published, Reading):
        return _of_reading(published, parts)
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
    if len(columns) > MOST:
        raise InputError(
            f"a view gave {len(columns)} numbers for a trial, at most {MOST} can be searched: choose some"
        )
    return columns


def _of_release(release: Release, parts: TrialParts | None) -> dict[str, Floats]:
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
    named["row"] = _order(release.index // leaves, release.index % leaves, rows, leaves)
    if parts is None:
        return as_columns(named | {"rows": len(release.index)}, 1)
    # elements come part by part
    return as_columns(
        {n: np.reshape(v, (rows, -1)) for n, v in named.items() if np.size(v) % rows == 0}, rows
    )


def _order(part: Ints, key: Ints, rows: int, keys: int) -> Floats:
    """The place of each row among those of its part, in the order in which they stand; missing rows have none."""
    place = np.full((rows, keys), np.nan)
    stands = np.argsort(part, kind="stable")
    sorted_part = part[stands]
    start = np.searchsorted(sorted_part, sorted_part, side="left")
    place[sorted_part, key[stands]] = np.arange(len(part)) - start
    return place


def _of_reading(reading: Reading, parts: TrialParts | None) -> dict[str, Floats]:
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
        key, names = _keys([k for n, k in table.keys.items() if n != PART or parts is None], table.length)
        wide = {"row": _order(part, key, rows, len(names))}
        for name, values in table.numbers.items():
            wide[name] = np.full((rows, len(names)), np.nan)
            wide[name][part, key] = values
        named |= {
            f"{file} {n} {label}".rstrip(): v[:, j] for n, v in wide.items() for j, label in enumerate(names)
        }
    return as_columns(named, rows)


def _keys(columns: Sequence[tuple[Ints, Sequence[Hashable]]], length: int) -> tuple[Ints, list[str]]:
    """A number for each row's key among those that occur, and their names."""
    joint, names = np.zeros(length, dtype=np.int64), [""]
    for codes, labels in columns:
        joint = joint * len(labels) + codes
        names = [f"{name} {label}".strip() for name in names for label in labels]
    occur, key = np.unique(joint, return_inverse=True)
    return key, [names[i] for i in occur]
