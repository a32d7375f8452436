"""Rows of public files: values of dimensions, modes of pairs, weights, counts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from cbdp.app.config import Config
from cbdp.errors import InputError
from cbdp.features import places
from cbdp.parts import did_you_mean

PLACES = ("origin", "destination")


class ColumnTypes(Protocol):
    """What the public inputs ask of the trips: the types of columns, and no row."""

    def numbers(self, dimensions: Sequence[str]) -> bool: ...


def holidays(config: Config) -> dict[dt.date, str]:
    return {dt.date.fromisoformat(day): label for day, label in config.data.holidays.items()}


LISTED = 50  # known values up to which one is suggested for an unknown one


def rows_with(path: Path, columns: Sequence[str]) -> list[places.Row]:
    """The rows of a public CSV file that has these columns."""
    rows = places.table_rows(places.text_of(path), path)
    for column in columns:
        if rows and column not in rows[0]:
            raise InputError(f"{str(path)!r} has no column {column!r}: there are {', '.join(rows[0])}")
    return rows


def table_of(path: Path) -> list[places.Row]:
    """The rows of a public CSV or Parquet file, as text."""
    if path.suffix.lower() == ".parquet":
        return _parquet_rows(path)
    return places.table_rows(places.text_of(path), path)


def _parquet_rows(path: Path) -> list[places.Row]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        held = parquet.read_table(path)
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}") from None
    except (OSError, pa.ArrowException):
        raise InputError(f"{str(path)!r} cannot be read as Parquet: it is damaged") from None
    return [{k: str(v) for k, v in row.items()} for row in held.to_pylist()]


def code_of(value: str, name: str, known: Mapping[str, int], row: int, file: str) -> int:
    """The code of a value in a row of a file."""
    if value not in known:
        what = name.rpartition(".")[2]
        cure = did_you_mean(value, list(known)) if len(known) <= LISTED else "correct the file"
        raise InputError(f"row {row} of {file!r} has the unknown {what} {value!r}: {cure}")
    return known[value]
