"""What the suite expects of every configuration, on any machine: `expected.json`.

Of every table: whole numbers, words and missing values as a hash for each column, with the sum where they are numbers; real numbers as
their number, sum, sum of squares and largest size, which are compared with a tolerance, for their last digits differ between machines.
Of ledgers: the events and what each charges. Of other files: that they are there.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from golden.comparing import ledger_rows

EXPECTED = Path(__file__).with_name("expected.json")
RELATIVE = (
    1e-5  # of sums of real numbers: estimates are certified to far less, and machines differ by less still
)
CHARGED = (
    "event",
    "what",
    "atto",
    "nano",
    "currency",
    "period",
    "stage",
    "max_trips",
    "per",
    "first",
    "last",
)

Summary = dict[str, Any]


def summary_of(folder: Path) -> Summary:
    """Of one written configuration: its files and what is in them, but for private ones, which are named after the folder."""
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and not p.parent.name.endswith("-internal"))
    return {path.relative_to(folder).as_posix(): _of_file(path) for path in paths}


def _of_file(path: Path) -> Any:
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return _of_columns({name: table[name].to_pylist() for name in table.column_names})
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        return _of_columns({name: [_number(row[n]) for row in rows] for n, name in enumerate(head)})
    if path.suffix == ".sqlite":
        entries = [json.loads(row[2]) for row in ledger_rows(path)]
        return {
            "entries": len(entries),
            "charged": _hash([{k: e[k] for k in CHARGED if k in e} for e in entries]),
        }
    if path.suffix == ".json":
        held = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(held, dict) and held and all(isinstance(v, list) for v in held.values()):
            return _of_columns(held)
    return "there"


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _of_columns(columns: Mapping[str, Sequence[Any]]) -> Summary:
    return {name: _of_column(values) for name, values in columns.items()}


def _of_column(values: Sequence[Any]) -> Any:
    """Real numbers as [number, sum, sum of squares, largest]; others as "hash" or "hash sum"."""
    if any(isinstance(value, float) for value in values):
        numbers = [float(v) for v in values if isinstance(v, int | float) and math.isfinite(v)]
        moments = sum(numbers), sum(v * v for v in numbers), max(map(abs, numbers), default=0.0)
        return [len(numbers), *(float(f"{m:.9g}") for m in moments)]
    whole = [v for v in values if isinstance(v, int) and not isinstance(v, bool)]
    return f"{_hash(values)} {sum(whole)}" if whole else _hash(values)


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:10]


def unexpected(expected: Any, actual: Any, at: str = "") -> Iterable[str]:
    """Where a summary is not as expected."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(k for k in actual if k not in expected)]:
            yield from unexpected(
                expected.get(key, "absent"), actual.get(key, "absent"), f"{at}: {key}" if at else key
            )
    elif isinstance(expected, list) and isinstance(actual, list):
        n, largest = max(1, expected[0]), max(1.0, abs(expected[-1]))
        scales = 0.0, n * largest, n * largest**2, largest
        close = all(
            abs(x - y) <= RELATIVE * scale for x, y, scale in zip(expected, actual, scales, strict=True)
        )
        if not close:
            yield f"{at}: {expected} is expected, not {actual}"
    elif expected != actual:
        yield f"{at}: {expected} is expected, not {actual}"


def write_expected(folder: Path) -> None:
    cases = {place.name: summary_of(place) for place in sorted(folder.iterdir()) if place.is_dir()}
    lines = ",\n".join(
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f" {json.dumps(file)}: {json.dumps(held)}" for file, held in files.items())
        + "\n}"
        for name, files in cases.items()
    )
    EXPECTED.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
