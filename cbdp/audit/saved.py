"""A table as people save it: Parquet, or text with commas, semicolons or tabs, from Excel or from elsewhere."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.untrusted import gzip_content, read_file, read_parquet

SEPARATORS = ",;\t|"
BOOKS = (".xlsx", ".xls", ".ods")
GROUPED = re.compile(r"[-+−]?\d{1,3}(,\d{3})+(\.\d+)?")


def columns(path: Path) -> dict[str, NDArray[Any]]:
    """The columns of a file by their names, without blanks around them; of text files as text, empty fields as None."""
    if path.suffix.lower() in BOOKS:
        raise InputError("it is a workbook: save the sheet as CSV")
    if path.suffix == ".parquet":
        return _parquet(path)
    text = _text(path)
    header, _, _ = text.partition("\n")
    separator = max(SEPARATORS, key=header.count)
    rows = [r for r in csv.reader(io.StringIO(text), delimiter=separator) if any(f.strip() for f in r)]
    if not rows:
        raise InputError("it has no rows")
    names = [name.strip() for name in rows[0]]
    for at, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise InputError(f"line {at} has {len(row)} fields, the first line has {len(names)}")
    fields = [[field.strip() or None for field in row] for row in rows[1:]]
    return {n: np.array([row[i] for row in fields], dtype=object) for i, n in enumerate(names) if n}


def _text(path: Path) -> str:
    """A file's text: UTF-8, with or without a mark, UTF-16 with one; or else as Western European Windows writes it."""
    try:
        raw = gzip_content(path) if path.suffix == ".gz" else read_file(path)
    except OSError as wrong:
        raise InputError(str(wrong).splitlines()[0]) from None
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", errors="replace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")


def _parquet(path: Path) -> dict[str, NDArray[Any]]:
    found = read_parquet(path)
    return {n.strip(): np.asarray(found[n].to_pylist(), dtype=object) for n in found.column_names}


def number(value: Any, hidden: Sequence[str] = ()) -> float | None:
    """A count as a number; NaN where it is empty or one of the marks for a hidden count; None where it is no number.

    >>> number("1,234"), number("1 234"), number("41"), number("*"), number("*", ["*"])
    (1234.0, 1234.0, 41.0, None, nan)
    """
    if value is None or value == "" or value in hidden:
        return math.nan
    if isinstance(value, str):
        value = re.sub(r"(?<=\d)[\s\u00a0\u202f'’](?=\d{3})", "", value.strip()).replace("−", "-")
        value = value.replace(",", "") if GROUPED.fullmatch(value) else value
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
