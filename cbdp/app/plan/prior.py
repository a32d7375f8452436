"""Public weights of trip types, from a file by stop or by dimensions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cbdp.app.config import Config
from cbdp.app.plan.public_files import code_of, table_of
from cbdp.app.plan.stops import stop_dimensions
from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.features import Dimension, Universe, places
from cbdp.parts import did_you_mean


def weights_of(
    config: Config, universe: Universe, written: str, listed: int
) -> tuple[Floats, dict[str, str]]:
    """A weight for each trip type, and which file it is from; of at most so many types, as trip types are listed."""
    if universe.size > listed:
        raise InputError(
            f"weights are listed for at most {listed:,} trip types; this universe has {universe.size:,}: leave them out"
        )
    path = config.path(written)
    rows = _rows(path)
    by = dict(zip(universe.dimensions, universe.unrank_codes(np.arange(universe.size)), strict=True))
    columns = [column for column in rows[0] if column != "weight"]
    if columns == ["stop"]:
        ends = stop_dimensions(config)
        table = _by_stop(universe, ends, rows, written)
        weights = np.prod([table[by[end]] for end in ends], axis=0)
    else:
        table = _by_dimensions(universe, columns, rows, written)
        weights = np.nan_to_num(table[tuple(by[c] for c in columns)])  # what is not listed weighs nothing
    if not (weights > 0).any():
        raise InputError(f"all weights of {written!r} are 0: give at least one above 0")
    return weights, {"file": written, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def _by_stop(universe: Universe, ends: Sequence[str], rows: Sequence[places.Row], file: str) -> Floats:
    if not ends:
        raise InputError("weights by stop need stops: name their file in data.stops")
    stops = universe.dimension(ends[0])
    table = _table(rows, ["stop"], [stops], file)
    missing = np.flatnonzero(np.isnan(table))
    if len(missing):
        stop = stops.values[int(missing[0])]
        raise InputError(f"{file!r} has no weight for the stop {stop!r}: give each stop one")
    return table


def _by_dimensions(
    universe: Universe, columns: Sequence[str], rows: Sequence[places.Row], file: str
) -> Floats:
    for column in columns:
        if column not in universe.dimensions:
            cure = did_you_mean(column, ["stop", *universe.dimensions])
            raise InputError(f"the column {column!r} of {file!r} is not a dimension: {cure}")
    return _table(rows, columns, [universe.dimension(c) for c in columns], file)


def _rows(path: Path) -> list[places.Row]:
    """The rows of a public table of weights, as text."""
    rows = table_of(path)
    if not rows or "weight" not in rows[0] or len(rows[0]) < 2:
        raise InputError(
            f"{str(path)!r} holds no weights: give a column 'weight', and columns 'stop' or the dimensions to say what it is of"
        )
    return rows


def _table(rows: Sequence[places.Row], columns: Sequence[str], of: Sequence[Dimension], file: str) -> Floats:
    """The weights by the values of these columns; NaN where there is none."""
    table = np.full([len(d) for d in of], np.nan)
    codes = [{str(value): code for code, value in enumerate(d.values)} for d in of]
    for number, row in enumerate(rows, 2):
        place = tuple(
            code_of(row[c], c, known, number, file) for c, known in zip(columns, codes, strict=True)
        )
        if not np.isnan(table[place]):
            raise InputError(
                f"row {number} of {file!r} gives a second weight to {', '.join(row[c] for c in columns)}: keep one"
            )
        table[place] = _weight(row["weight"], number, file)
    return table


def _weight(written: str, row: int, file: str) -> float:
    try:
        weight = float(written)
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise InputError(f"row {row} of {file!r} has the weight {written!r}: give a number of at least 0")
    return weight
