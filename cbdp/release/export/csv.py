"""CSV: a folder with the trips, a table per feature and the stops, as in the release, and what it says about itself."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from pyarrow import csv

from cbdp.release.export.base import Format, provenance
from cbdp.release.export.flows import flow_tables, flows_of, with_intervals
from cbdp.release.layout import tables
from cbdp.release.release import Release
from cbdp.text import spreadsheet_cell

ABOUT_FILE = "about.json"
LONG_TABLE_FILE = "od.csv"


@dataclass(frozen=True)
class Csv(Format):
    name: ClassVar[str] = "csv"
    about: ClassVar[str] = (
        "a folder with the trips and a table per feature; with a level or intervals, also one long table"
    )

    def write(
        self,
        release: Release,
        path: Path,
        *,
        level: str | None = None,
        intervals: float | None = None,
        origin: str | None = None,
        destination: str | None = None,
    ) -> None:
        """Write trips.csv, features/<name>.csv, universe/places.csv (the names of stops) and about.json. Unknown numbers are empty.

        With `level` or `intervals` (a confidence, say 0.9), od.csv is a long table of origin, destination, the other dimensions and
        count; with intervals also low and high, of every flow that is possible, those without published trips too.
        """
        for name, pieces in tables(release):
            _write(path / f"{name}.csv", pieces)
        if level is not None or intervals is not None:
            flows = flows_of(release, level=level, origin=origin, destination=destination)
            flows = with_intervals(release, flows, intervals, zeros=True)
            _write(path / LONG_TABLE_FILE, (table for _, table in flow_tables(flows)))
        content = provenance(release) | ({} if intervals is None else {"confidence": intervals})
        (path / ABOUT_FILE).write_text(
            f"{json.dumps(content, indent=1, ensure_ascii=False)}\n", encoding="utf-8"
        )


def _write(file: Path, pieces: Iterable[pa.Table]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    safe = map(_spreadsheet_safe, pieces)
    first = next(safe)
    with csv.CSVWriter(file, first.schema) as writer:
        for piece in itertools.chain([first], safe):
            writer.write_table(piece)


def _spreadsheet_safe(piece: pa.Table) -> pa.Table:
    """The table with text that no spreadsheet computes (`cbdp.text.spreadsheet_cell`); numbers are as they are."""
    table = piece
    for place, name in enumerate(table.column_names):
        kind = table.schema.field(place).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
            table = table.set_column(place, name, table[place].cast(kind))
        if pa.types.is_string(kind):
            coded = table[place].combine_chunks().dictionary_encode()
            labels = [
                None if text is None else spreadsheet_cell(text) for text in coded.dictionary.to_pylist()
            ]
            guarded = pa.DictionaryArray.from_arrays(coded.indices, pa.array(labels, pa.string()))
            table = table.set_column(place, name, guarded.cast(pa.string()))
    return table.rename_columns([spreadsheet_cell(name) for name in table.column_names])
