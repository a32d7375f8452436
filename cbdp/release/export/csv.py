"""CSV: a folder with the trips and a table per feature, as in the release, and what it says about itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from pyarrow import csv

from cbdp.release.export.base import Format
from cbdp.release.export.beside import stated
from cbdp.release.layout import tables
from cbdp.release.release import Release

ABOUT = "about.json"


@dataclass(frozen=True)
class Csv(Format):
    name: ClassVar[str] = "csv"
    about: ClassVar[str] = "a folder with the trips and a table per feature"

    def write(self, release: Release, path: Path) -> None:
        """Write trips.csv, features/<name>.csv and, if there is anything to say, about.json. Unknown numbers are empty."""
        for name, pieces in tables(release):
            file = path / f"{name}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            first = _plain(next(pieces))
            with csv.CSVWriter(file, first.schema) as writer:
                writer.write_table(first)
                for piece in pieces:
                    writer.write_table(_plain(piece))
        if said := stated(release):
            text = json.dumps(said, indent=1, ensure_ascii=False)
            (path / ABOUT).write_text(f"{text}\n", encoding="utf-8")


def _plain(table: pa.Table) -> pa.Table:
    """Codes into lists of labels as the labels themselves."""
    for place, held in enumerate(table.schema):
        if pa.types.is_dictionary(held.type):
            table = table.set_column(place, held.name, table[place].cast(held.type.value_type))
    return table
