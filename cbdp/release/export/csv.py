"""CSV: a folder with the trips and a table per feature, as in the release."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from pyarrow import csv

from cbdp.release.export.base import Format
from cbdp.release.layout import tables
from cbdp.release.release import Release


@dataclass(frozen=True)
class Csv(Format):
    name: ClassVar[str] = "csv"
    about: ClassVar[str] = "a folder with the trips and a table per feature"

    def write(self, release: Release, path: Path) -> None:
        """Write trips.csv and features/<name>.csv. Numbers that are not known are empty."""
        for name, pieces in tables(release):
            file = path / f"{name}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            first = _plain(next(pieces))
            with csv.CSVWriter(file, first.schema) as writer:
                writer.write_table(first)
                for piece in pieces:
                    writer.write_table(_plain(piece))


def _plain(table: pa.Table) -> pa.Table:
    """Codes into lists of labels as the labels themselves."""
    for place, held in enumerate(table.schema):
        if pa.types.is_dictionary(held.type):
            table = table.set_column(place, held.name, table[place].cast(held.type.value_type))
    return table
