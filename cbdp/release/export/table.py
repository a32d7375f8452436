"""Flows as a table: origin, destination, every other dimension, count and, where asked for, low and high."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.release.export.flows import Flows
from cbdp.release.labels import column

BLOCK = 2**18  # rows at once


def tables_of(made: Flows, taken: Iterable[str] = ()) -> Iterator[tuple[slice, pa.Table]]:
    """The flows by the block, and which rows these are; at least one block. `taken` are columns that the format has itself."""
    places = column(made.ids)
    periods = _periods(made, taken)
    for start in range(0, max(1, len(made.count)), BLOCK):
        rows = slice(start, start + BLOCK)
        numbers = {"count": made.count, "low": made.low, "high": made.high}
        yield (
            rows,
            pa.table(
                {
                    "origin": places.take(pa.array(made.origin[rows])),
                    "destination": places.take(pa.array(made.destination[rows])),
                    **{name: labels.take(pa.array(made.period[rows])) for name, labels in periods.items()},
                    **{
                        name: pa.array(values[rows]) for name, values in numbers.items() if values is not None
                    },
                }
            ),
        )


def other_dimensions(made: Flows, taken: Iterable[str]) -> list[str]:
    """The dimensions beside origin and destination; none may be called as a column that the format has itself."""
    names = [name for name, _ in made.periods[0].labels]
    own = {"origin", "destination", "count", "low", "high", *taken}
    for name in names:
        if name.lower() in own:
            raise InputError(f"a dimension is called {name!r}, as a column of this format is: rename it")
    return names


def _periods(made: Flows, taken: Iterable[str]) -> dict[str, pa.Array]:
    """The label of every period in each of the other dimensions."""
    found: dict[str, list[Hashable]] = {name: [] for name in other_dimensions(made, taken)}
    for period in made.periods:
        for name, label in period.labels:
            found[name].append(label)
    return {name: column(labels) for name, labels in found.items()}


def plain_table(table: pa.Table) -> pa.Table:
    """Codes into lists of labels as the labels themselves."""
    for place, held in enumerate(table.schema):
        if pa.types.is_dictionary(held.type):
            table = table.set_column(place, held.name, table[place].cast(held.type.value_type))
    return table


def lines(lon: Floats, lat: Floats, made: Flows, rows: slice) -> NDArray[Any]:
    """Each flow as a line of two points in well-known binary (OGC 06-103r4), little-endian: 41 bytes."""
    form = [
        ("order", "u1"),
        ("kind", "<u4"),
        ("points", "<u4"),
        *((end, "<f8") for end in ("x0", "y0", "x1", "y1")),
    ]
    shapes = np.zeros(len(made.origin[rows]), dtype=form)
    shapes["order"], shapes["kind"], shapes["points"] = 1, 2, 2
    for k, end in enumerate((made.origin[rows], made.destination[rows])):
        shapes[f"x{k}"], shapes[f"y{k}"] = lon[end], lat[end]
    return shapes
