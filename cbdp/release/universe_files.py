"""A universe as tables, and back: values and attributes of each dimension, attributes of several, structural zeros."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features import Attribute, Dimension, Universe
from cbdp.untrusted import read_parquet
from cbdp_features.tables import codes_of_column, column, encoded, kind_of, labels_of, take_labels

if TYPE_CHECKING:
    from cbdp.release.manifest_model import AttributeJson, DimensionJson, LabelKind, UniverseJson, ZerosJson

ROWS_PER_GROUP = 2**20  # of a row group, and of what is held in memory as a table at once
MAX_FILE_NAME_CHARACTERS = 80  # characters of a name that a file name keeps


@dataclass(frozen=True, eq=False)
class FileTables:
    """A file of a release: where it goes, and the tables it is made of, one after the other."""

    path: str
    tables: Callable[[], Iterable[pa.Table]]


class FileNames:
    """File names for names of any kind: safe on every system, and no two alike."""

    def __init__(self, folder: str, taken: Iterable[str] = ()) -> None:
        self._folder = folder
        self._taken = set(taken)

    def __call__(self, name: str) -> str:
        safe = quote(name, safe=" ")[:MAX_FILE_NAME_CHARACTERS].rstrip(" .%") or "unnamed"
        if safe.startswith("."):
            safe = f"%2E{safe[1:]}"
        tries = itertools.chain([safe], (f"{safe}~{n}" for n in itertools.count(2)))
        chosen = next(candidate for candidate in tries if candidate.lower() not in self._taken)
        self._taken.add(chosen.lower())
        return f"{self._folder}/{chosen}.parquet"


def chunks(rows: int) -> Iterator[slice]:
    """Slices of at most `ROWS_PER_GROUP` rows; an empty one where there are none, so that every table has its columns."""
    for start in range(0, max(rows, 1), ROWS_PER_GROUP):
        yield slice(start, min(start + ROWS_PER_GROUP, rows))


def universe_files(universe: Universe) -> tuple[UniverseJson, list[FileTables]]:
    """What the manifest says about a universe, and its files."""
    name, sheets = FileNames("universe", taken=["places"]), []
    dimensions: list[DimensionJson] = []
    attributes: list[AttributeJson] = []
    zeros: list[ZerosJson] = []
    for dim, dimension in universe.dimensions.items():
        path = name(dim)
        of_dimension = {n: a for n, a in universe.attributes.items() if a.of == (dim,) and n != dim}
        sheets.append(FileTables(path, partial(_dimension_tables, universe, dim, of_dimension)))
        edges = None if dimension.edges is None else [int(e) for e in dimension.edges]
        dimensions.append(
            {
                "name": dim,
                "size": len(dimension),
                "labels": cast("LabelKind", kind_of(dimension.values)),
                "edges": edges,
                "file": path,
            }
        )
        from_dimension = {f"{dim}.{key}" for key in dimension.attributes}
        attributes += [
            _attribute(a, path, from_dimension=n in from_dimension) for n, a in of_dimension.items()
        ]
    for n, a in universe.attributes.items():
        if len(a.of) > 1:
            path = name(n)
            sheets.append(FileTables(path, partial(_attribute_tables, universe, a)))
            attributes.append(_attribute(a, path, from_dimension=False))
    for of, zero in universe.zeros:
        path = name("zeros")
        sheets.append(FileTables(path, partial(_zero_tables, universe, of, zero)))
        zeros.append({"of": list(of), "file": path})
    order = list(universe.attributes)
    attributes.sort(key=lambda entry: order.index(entry["name"]))
    described: UniverseJson = {
        "dimensions": dimensions,
        "attributes": attributes,
        "zeros": zeros,
        "size": universe.size,
        "sha256": universe_hash(universe),
    }
    return described, sheets


def _attribute(attribute: Attribute, path: str, *, from_dimension: bool) -> AttributeJson:
    return {
        "name": attribute.name,
        "of": list(attribute.of),
        "labels": cast("LabelKind", kind_of(attribute.labels)),
        "own": from_dimension,
        "file": path,
    }


def _dimension_tables(universe: Universe, dim: str, attributes: Mapping[str, Attribute]) -> list[pa.Table]:
    columns = {dim: column(universe.dimensions[dim].values)}
    return [
        pa.table(columns | {name: take_labels(column(a.labels), a.codes) for name, a in attributes.items()})
    ]


def _attribute_tables(universe: Universe, attribute: Attribute) -> Iterator[pa.Table]:
    values = {dim: column(universe.dimensions[dim].values) for dim in attribute.of}
    labels, codes = column(attribute.labels), attribute.codes.reshape(-1)
    for part in chunks(codes.size):
        place = np.unravel_index(np.arange(part.start, part.stop), attribute.codes.shape)
        columns = {d: take_labels(v, p) for (d, v), p in zip(values.items(), place, strict=True)}
        yield pa.table(columns | {attribute.name: take_labels(labels, codes[part])})


def _zero_tables(universe: Universe, of: Sequence[str], zero: NDArray[np.bool_]) -> Iterator[pa.Table]:
    values = {dim: column(universe.dimensions[dim].values) for dim in of}
    where = np.flatnonzero(zero)
    for part in chunks(len(where)):
        place = np.unravel_index(where[part], zero.shape)
        yield pa.table({d: take_labels(v, p) for (d, v), p in zip(values.items(), place, strict=True)})


def universe_hash(universe: Universe) -> str:
    """The SHA-256 of a universe's definition: the same for the same universe, whatever wrote its files."""
    digest = hashlib.sha256()

    def add(*parts: object) -> None:
        digest.update((encoded(parts) + "\n").encode("ascii"))

    for name, dim in universe.dimensions.items():
        add("dimension", name, dim.edges, dim.values)
    for name, attribute in universe.attributes.items():
        if name not in universe.dimensions:
            add("attribute", name, attribute.of, attribute.labels)
            digest.update(np.ascontiguousarray(attribute.codes, dtype="<i8").tobytes())
    for of, zero in universe.zeros:
        add("zeros", of)
        digest.update(np.packbits(zero).tobytes())
    return digest.hexdigest()


# Reading


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A table of a release, or those of these columns that it has."""
    return read_parquet(path, columns)


def read_universe(folder: Path, described: UniverseJson) -> Universe:
    """The universe that a manifest describes."""
    tables = {d["name"]: read_table(folder / d["file"]) for d in described["dimensions"]}
    dims: dict[str, Dimension] = {}
    for d in described["dimensions"]:
        table = tables[d["name"]]
        of_dimension = {
            a["name"].removeprefix(f"{d['name']}."): labels_of(table[a["name"]], a["labels"])
            for a in described["attributes"]
            if a["own"] and a["of"] == [d["name"]]
        }
        _check_edges(d)
        dims[d["name"]] = Dimension(
            labels_of(table[d["name"]], d["labels"]), edges=d["edges"], **of_dimension
        )
    universe = Universe(**dims)
    attributes = dict(universe.attributes)
    for a in described["attributes"]:
        if not a["own"]:
            labels = (
                read_table(folder / a["file"])[a["name"]]
                if len(a["of"]) > 1
                else tables[a["of"][0]][a["name"]]
            )
            attributes[a["name"]] = _read_attribute(a, labels, [len(dims[d]) for d in a["of"]])
    zeros = tuple(_read_zeros(folder, z, dims) for z in described["zeros"])
    return universe._copy(attributes=attributes, zeros=zeros)


def _check_edges(described: DimensionJson) -> None:
    """Refuse ends of periods that are not those of so many periods, one after the other."""
    edges = described["edges"]
    if edges is not None and (len(edges) != described["size"] + 1 or any(b <= a for a, b in pairwise(edges))):
        raise InputError(
            f"the periods of {described['name']!r} do not follow each other, or are not {described['size']}"
        )


def _read_attribute(described: AttributeJson, values: pa.ChunkedArray, shape: Sequence[int]) -> Attribute:
    """An attribute from its label at every combination: labels in order, or as they first stand if they have none."""
    coded = values.combine_chunks().dictionary_encode()
    first = labels_of(coded.dictionary, described["labels"])
    try:
        labels: list[Hashable] = [*sorted(cast("list[str]", first))]
    except TypeError:
        labels = first
    place = {label: p for p, label in enumerate(labels)}
    renumbered = np.array([place[label] for label in first], dtype=np.int64)
    codes = renumbered[coded.indices.to_numpy()].reshape(shape)
    return Attribute(described["name"], tuple(described["of"]), tuple(labels), codes)


def _read_zeros(
    folder: Path, described: ZerosJson, dimensions: Mapping[str, Dimension]
) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    of = tuple(described["of"])
    table = read_table(folder / described["file"])
    zero = np.zeros([len(dimensions[d]) for d in of], dtype=bool)
    zero[tuple(codes_of_column(column(dimensions[d].values), table[d]) for d in of)] = True
    return of, zero


def read_types(universe: Universe, table: pa.Table, file: str) -> Ints:
    """The index of the trip type in each row of a table, which must be in the universe's order."""
    codes = [codes_of_column(column(d.values), table[name]) for name, d in universe.dimensions.items()]
    index = universe.rank_codes(codes)
    if len(index) and (index[0] < 0 or (np.diff(index) <= 0).any()):
        raise InputError(f"{file!r} has a row outside the universe, or out of order")
    return index
