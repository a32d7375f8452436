"""A table as people save it: Parquet, or text with commas, semicolons or tabs, from Excel or from elsewhere."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.audit.feasibility import NO_NOISE_DISTRIBUTION
from cbdp.audit.tables import CountTable, Pair, PublishedTables, Sum, joint_codes, match_rows, quoted
from cbdp.errors import InputError
from cbdp.parts import did_you_mean
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS, NoiseDistribution
from cbdp.text import message
from cbdp.untrusted import gzip_content, parse_toml, read_file, read_parquet

FIELD_SEPARATORS = ",;\t|"
SPREADSHEET_SUFFIXES = (".xlsx", ".xls", ".ods")
GROUPED_DIGITS = re.compile(r"[-+−]?\d{1,3}(,\d{3})+(\.\d+)?")


def read_columns(path: Path) -> dict[str, NDArray[Any]]:
    """The columns of a file by their names, without blanks around them; of text files as text, empty fields as None."""
    if path.suffix.lower() in SPREADSHEET_SUFFIXES:
        raise InputError("it is a workbook: save the sheet as CSV")
    if path.suffix == ".parquet":
        return _parquet_columns(path)
    text = _decoded_text(path)
    header, _, _ = text.partition("\n")
    separator = max(FIELD_SEPARATORS, key=header.count)
    rows = [r for r in csv.reader(io.StringIO(text), delimiter=separator) if any(f.strip() for f in r)]
    if not rows:
        raise InputError("it has no rows")
    names = [name.strip() for name in rows[0]]
    for at, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise InputError(f"line {at} has {len(row)} fields, the first line has {len(names)}")
    fields = [[field.strip() or None for field in row] for row in rows[1:]]
    return {n: np.array([row[i] for row in fields], dtype=object) for i, n in enumerate(names) if n}


def _decoded_text(path: Path) -> str:
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


def _parquet_columns(path: Path) -> dict[str, NDArray[Any]]:
    found = read_parquet(path)
    return {n.strip(): np.asarray(found[n].to_pylist(), dtype=object) for n in found.column_names}


def parse_count(value: Any, hidden: Sequence[str] = ()) -> float | None:
    """A count as a number; NaN where it is empty or one of the marks for a hidden count; None where it is no number.

    >>> parse_count("1,234"), parse_count("1 234"), parse_count("41"), parse_count("*"), parse_count("*", ["*"])
    (1234.0, 1234.0, 41.0, None, nan)
    """
    if value is None or value == "" or value in hidden:
        return math.nan
    if isinstance(value, str):
        value = re.sub(r"(?<=\d)[\s\u00a0\u202f'’](?=\d{3})", "", value.strip()).replace("−", "-")
        value = value.replace(",", "") if GROUPED_DIGITS.fullmatch(value) else value
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


# Any folder of count tables, read by a small description: `audit.toml`.
#
#     epsilon = 8                      # what is claimed; leave out where nothing is
#     delta = 7.5e-7
#
#     [[table]]
#     name = "time-loc"
#     file = "time-loc.csv"            # CSV (also .gz; separated by commas, semicolons or tabs) or Parquet
#     keys = ["date", "tap", "time", "loc"]    # or { date = "Date", … }: our name = the file's column
#     count = "count"
#     noise = { law = "rounded-laplace", scale = 1.4 }   # laplace, discrete-laplace, rounded-laplace, gaussian, …; { law = "none" }: exact
#                                      # counts. Left out: taken for exact, unless the numbers say otherwise
#     threshold = 18                   # smaller counts are not shown
#     hidden = "small"                 # or "any": larger counts are hidden too, to protect the small ones
#     hidden_as = ["*", "<5"]          # what stands for a hidden count, beside an empty field
#     rounded = 5                      # counts are rounded to the nearest multiple; { to = 5, at_random = true }: up or down
#     zeros = "skipped"                # or "perturbed" (the default): empty cells get noise too
#     cells = "listed"                 # every cell has a row; "some": rows may be missing; "product": all combinations of
#                                      # the labels are cells; or a file that lists the cells that can be non-zero
#     universe = 2304                  # the public number of cells, if known
#
#     [[equal]]                        # cells with equal truth: what differs is fixed by `where`, or shifted
#     first = { table = "time-loc", where = { tap = "on", loc = "Manly Wharf" } }
#     second = { table = "time-loc", where = { tap = "off", loc = "Circular Quay No. 3 Wharf" } }
#     shift = { time = 30 }            # minutes for times of day, else a number: the second is that much later
#
#     [[sum]]                          # only where shared key columns do not say it already
#     total = "time"
#     part = "time-loc"
#     match = { time = "time" }        # the total's key = the part's; all of the total's keys
#     exact = false                    # true: the published figures themselves are claimed to add up
#
# With `sums = "none"`, tables with shared key columns are not taken for sums of each other. A noise law of `cbdp.privacy.noise`,
# or of another package, may be named as it is there.


Columns = dict[str, NDArray[Any]]

DESCRIPTION_FILE = "audit.toml"
MAX_PRODUCT_CELLS = 2**22  # cells that a product of labels may have
TOP_LEVEL_KEYS = ("epsilon", "delta", "table", "equal", "sum", "sums")
TABLE_KEYS = (
    "name", "file", "keys", "count", "noise", "threshold", "hidden", "hidden_as", "rounded", "zeros", "cells", "universe",
)  # fmt: skip
NO_NOISE = "none"
TIME_OF_DAY = re.compile(r"^(\d{1,2}):(\d{2})$")
MINUTES_PER_DAY = 24 * 60
DISTRIBUTION_SYNONYMS = {
    "discrete-laplace": "geometric",
    "rounded-laplace": "rounded",
}  # what laws are called elsewhere


def read(folder: str | Path) -> PublishedTables:
    r"""The tables of a folder as its audit.toml describes them.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "stops.csv").write_text("stop,count\nA,41\nB,\n")
    >>> _ = (folder / "audit.toml").write_text("[[table]]\nfile = 'stops.csv'\nkeys = ['stop']\nthreshold = 5\n")
    >>> read(folder)["stops"].shown.tolist()
    [True, False]
    """
    folder = Path(folder)
    path = folder / DESCRIPTION_FILE
    try:
        text = read_file(path).decode("utf-8")
    except (OSError, UnicodeDecodeError, InputError):
        raise InputError(
            f"no {DESCRIPTION_FILE} can be read in {folder}: describe the tables there, see docs/explanation/audit.md"
        ) from None
    try:
        said = parse_toml(text)
    except (tomllib.TOMLDecodeError, InputError) as wrong:
        raise InputError(f"{path}: {wrong}") from None
    return _Description(folder, path).published(said)


@dataclass(frozen=True)
class _Description:
    folder: Path
    path: Path

    def wrong(self, message: str) -> InputError:
        return InputError(f"{self.path}: {message}")

    def published(self, said: Mapping[str, Any]) -> PublishedTables:
        self.known(said, TOP_LEVEL_KEYS, "the description")
        listed = said.get("table", [])
        if not isinstance(listed, list) or not listed:
            raise self.wrong("no table is described: add a [[table]] with its file, keys and count")
        tables = tuple(self.table(t) for t in listed)
        epsilon = None if "epsilon" not in said else self.number(said["epsilon"], "epsilon")
        delta = self.number(said.get("delta", 0), "delta")
        if not 0 <= delta < 1:
            raise self.wrong(f"delta is {delta:g}: it must be at least 0 and below 1")
        if epsilon is not None and epsilon <= 0:
            raise self.wrong(f"epsilon is {epsilon:g}: it must be above 0")
        if said.get("sums", "implied") not in ("implied", "none"):
            raise self.wrong(f"sums is {said['sums']!r}: use 'implied' or 'none'")
        imply = said.get("sums", "implied") == "implied"
        try:
            base = PublishedTables(tables, epsilon, delta)
            sums = tuple(self.sum(base, s) for s in said.get("sum", []))
            equal = tuple(self.equal(base, e) for e in said.get("equal", []))
            return PublishedTables(tables, epsilon, delta, equal, sums, imply)
        except InputError as error:
            raise (
                error if str(error).startswith(message(str(self.path))) else self.wrong(str(error))
            ) from None

    def known(self, said: Any, names: Sequence[str], where: str) -> None:
        if not isinstance(said, Mapping):
            raise self.wrong(f"{where} is {said!r}: it must be a table of settings")
        for name in said:
            if name not in names:
                raise self.wrong(f"{where} has {name!r}, which is not known: there are {', '.join(names)}")

    def number(self, given: Any, what: str) -> float:
        if isinstance(given, bool) or not isinstance(given, int | float) or not np.isfinite(given):
            raise self.wrong(f"{what} is {given!r}: give a finite number")
        return float(given)

    # A table

    def table(self, said: Any) -> CountTable:
        self.known(said, TABLE_KEYS, "a [[table]]")
        for need in ("file", "keys"):
            if need not in said:
                raise self.wrong(f"a [[table]] has no {need!r}: name its file and its key columns")
        name = str(said.get("name", Path(str(said["file"])).name.split(".")[0]))
        columns = self.columns(said["keys"], name)
        count = str(said.get("count", "count"))
        found = self.load(str(said["file"]), [*columns.values(), count], name)
        keys = {own: _label_text(found[column]) for own, column in columns.items()}
        counts = self.counts(found[count], said, count)
        threshold = said.get("threshold")
        if threshold is not None:
            threshold = self.number(threshold, f"the threshold of {name!r}")
        universe = said.get("universe")
        if universe is not None and (
            isinstance(universe, bool) or not isinstance(universe, int) or universe < 1
        ):
            raise self.wrong(f"the universe of {name!r} is {universe!r}: give the number of its cells")
        zeros = self.choice(said, "zeros", ("perturbed", "skipped"), name)
        hidden = self.choice(said, "hidden", ("small", "any"), name)
        try:
            made = CountTable(
                name, keys, counts, self.noise(said, name), threshold, zeros == "perturbed", universe,
                rounding=self.rounding(said, name), complementary=hidden == "any",
            )  # fmt: skip
        except InputError as error:
            raise (
                error if str(error).startswith(message(str(self.path))) else self.wrong(str(error))
            ) from None
        return self.completed(made, said.get("cells", "listed"), columns)

    def choice(self, said: Mapping[str, Any], key: str, known: tuple[str, ...], name: str) -> str:
        """A setting that is one of a few words, the first of which it is unless told otherwise."""
        given = said.get(key, known[0])
        if given not in known:
            raise self.wrong(f"{key} of {name!r} are {given!r}: say {' or '.join(map(repr, known))}")
        return str(given)

    def rounding(self, said: Mapping[str, Any], name: str) -> float:
        """How far rounding may have moved a count: half the multiple, or all but one where it went up or down at random."""
        given = said.get("rounded", 1)
        given = given if isinstance(given, Mapping) else {"to": given}
        self.known(given, ("to", "at_random"), f"rounded of {name!r}")
        to = given.get("to")
        if isinstance(to, bool) or not isinstance(to, int) or to < 1:
            raise self.wrong(f"rounded of {name!r} is {to!r}: give the multiple that counts are rounded to")
        return float(to - 1 if given.get("at_random") else to // 2)

    def columns(self, said: Any, name: str) -> dict[str, str]:
        if isinstance(said, list) and all(isinstance(k, str) for k in said) and len(set(said)) == len(said):
            return {k: k for k in said}
        if isinstance(said, Mapping) and all(isinstance(k, str) for k in said.values()):
            return dict(said)
        raise self.wrong(f"keys of {name!r} are {said!r}: give a list of columns, each once")

    def noise(self, said: Mapping[str, Any], name: str) -> NoiseDistribution | None:
        if "noise" not in said:
            return None
        self.known(said["noise"], ("law", "scale"), f"the noise of {name!r}")
        if said["noise"].get("law") == NO_NOISE:
            if said["noise"].get("scale", 0) != 0:
                raise self.wrong(f"the noise of {name!r} has the law 'none' and a scale: leave the scale out")
            return NO_NOISE_DISTRIBUTION
        if set(said["noise"]) != {"law", "scale"}:
            raise self.wrong(
                f"the noise of {name!r} needs a law and a scale: {{ law = 'laplace', scale = 1.4 }}"
            )
        law = said["noise"]["law"]
        known = ["laplace", *DISTRIBUTION_SYNONYMS, *NOISE_DISTRIBUTIONS.names(), NO_NOISE]
        if law not in known:
            hint = did_you_mean(str(law), list(dict.fromkeys(known)))
            raise self.wrong(f"unknown law of noise {law!r} of {name!r}: {hint}")
        scale = self.number(said["noise"]["scale"], f"the noise scale of {name!r}")
        return NOISE_DISTRIBUTIONS.installed(DISTRIBUTION_SYNONYMS.get(law, law))(scale)

    def load(self, file: str, names: Sequence[str], what: str) -> Columns:
        """Some columns of a file in the folder, as they are: CSV as text."""
        path = self.folder / file
        if not os.path.isfile(path):  # noqa: PTH113 - False, not an error, for a name that no file can have
            raise self.wrong(f"table {what!r} is in {file!r}, which is not in {self.folder}")
        try:
            found = read_columns(path)
        except InputError as wrong:
            raise self.wrong(f"{file!r} cannot be read: {wrong}") from None
        for name in names:
            if name not in found:
                there = ", ".join(map(repr, found))
                raise self.wrong(f"table {what!r} has no column {name!r} in {file!r}: there are {there}")
        return {name: found[name] for name in names}

    def counts(self, column: NDArray[Any], said: Mapping[str, Any], name: str) -> NDArray[np.float64]:
        marks = said.get("hidden_as", [])
        if not isinstance(marks, list) or not all(isinstance(m, str) for m in marks):
            raise self.wrong(f"hidden_as is {marks!r}: give a list of texts, such as ['*', '<5']")
        made = np.empty(len(column))
        for row, value in enumerate(column):
            number = parse_count(value, marks)
            if number is None:
                raise self.wrong(
                    f"{said['file']!r}: column {name!r}, row {row + 1} is {value!r}, which is not a number; if it stands for a hidden "
                    f"count, say hidden_as = [{value!r}]"
                )
            made[row] = number
        return made

    # Its cells

    def completed(self, table: CountTable, cells: Any, columns: Mapping[str, str]) -> CountTable:
        """The table with a row for every cell that can be non-zero, as far as the description says."""
        if cells in ("listed", "some"):
            return replace(table, closed=cells == "listed")
        if cells == "product":
            return _with_hidden_rows(table, self.product(table))
        if not isinstance(cells, str) or not (self.folder / cells).is_file():
            raise self.wrong(
                f"cells of {table.name!r} are {cells!r}: use 'listed', 'some', 'product' or a file in {self.folder}"
            )
        loaded = self.load(cells, list(columns.values()), table.name)
        listed = {own: _label_text(loaded[column]) for own, column in columns.items()}
        outside = np.flatnonzero((match_rows(listed, dict(table.keys)) < 0) & table.shown)
        if len(outside):
            raise self.wrong(
                f"{table.label(int(outside[0]))} has a count and is not among the cells of {cells!r}: add it"
            )
        return _with_hidden_rows(table, listed)

    def product(self, table: CountTable) -> Columns:
        labels = {name: np.unique(column) for name, column in table.keys.items()}
        size = int(np.prod([len(v) for v in labels.values()], dtype=float))
        if size > MAX_PRODUCT_CELLS:
            raise self.wrong(
                f"{table.name!r} would have {size} cells, more than {MAX_PRODUCT_CELLS}: use cells = 'some'"
            )
        grids = np.meshgrid(*labels.values(), indexing="ij") if labels else []
        return {name: grid.reshape(-1) for name, grid in zip(labels, grids, strict=True)}

    # Relations

    def sum(self, published: PublishedTables, said: Any) -> Sum:
        self.known(said, ("total", "part", "match", "exact"), "a [[sum]]")
        for need in ("total", "part"):
            if need not in said:
                raise self.wrong(f"a [[sum]] has no {need!r}: name two tables")
        total, part = published[str(said["total"])], published[str(said["part"])]
        pairs = said.get("match", {name: name for name in total.keys})
        if set(pairs) != set(total.keys):
            raise self.wrong(
                f"{total.name!r} as a sum of {part.name!r}: match all of the total's keys, {quoted(total.keys)}"
            )
        for name in pairs.values():
            if name not in part.keys:
                raise self.wrong(
                    f"{total.name!r} as a sum of {part.name!r}: the part has no key {name!r}, it has {quoted(part.keys)}"
                )
        inner = {name: part.keys[own] for name, own in pairs.items()}
        rows = match_rows(total.keys, inner) if inner else np.zeros(len(part), dtype=np.int64)
        if len(part) and (rows < 0).all():
            raise self.wrong(
                f"no key of {part.name!r} occurs in {total.name!r}: are their labels written alike?"
            )
        return Sum(total.name, part.name, rows, bool(said.get("exact", False)))

    def equal(self, published: PublishedTables, said: Any) -> Pair:
        self.known(said, ("first", "second", "shift"), "an [[equal]]")
        sides = []
        for need in ("first", "second"):
            side = said.get(need)
            self.known(side, ("table", "where"), f"{need!r} of an [[equal]]")
            sides.append(self.side(published, side))
        (one, here), (other, there) = sides
        free = [k for k in one.keys if k not in said["first"].get("where", {})]
        if sorted(free) != sorted(k for k in other.keys if k not in said["second"].get("where", {})):
            raise self.wrong(
                "the two sides of an [[equal]] differ in keys that `where` does not fix: fix them on both"
            )
        shift = said.get("shift", {})
        self.known(shift, free, "the shift of an [[equal]]")
        moved = {k: self.shifted(one.keys[k][here], shift.get(k), k) for k in free}
        at = (
            match_rows({k: other.keys[k][there] for k in free}, moved)
            if free
            else np.zeros(len(here), dtype=np.int64)
        )
        found = at >= 0
        return Pair(one.name, here[found], other.name, there[at[found]])

    def side(
        self, published: PublishedTables, said: Mapping[str, Any]
    ) -> tuple[CountTable, NDArray[np.int64]]:
        table = published[str(said.get("table"))]
        keep = np.ones(len(table), dtype=bool)
        for name, value in said.get("where", {}).items():
            if name not in table.keys:
                raise self.wrong(f"table {table.name!r} has no key {name!r}: it has {quoted(table.keys)}")
            keep &= table.keys[name] == str(value)
        if not keep.any():
            raise self.wrong(f"no row of {table.name!r} is where {dict(said.get('where', {}))}")
        return table, np.flatnonzero(keep)

    def shifted(self, column: NDArray[Any], by: Any, name: str) -> NDArray[Any]:
        if by is None:
            return column
        amount = self.number(by, f"the shift of {name!r}")
        return np.array([self._moved(str(label), amount, name) for label in column])

    def _moved(self, label: str, by: float, name: str) -> str:
        clock = TIME_OF_DAY.match(label)
        if clock:
            minutes = int((int(clock[1]) * 60 + int(clock[2]) + by) % MINUTES_PER_DAY)
            return f"{minutes // 60:02d}:{minutes % 60:02d}"
        try:
            return f"{float(label) + by:g}"
        except ValueError:
            raise self.wrong(
                f"{label!r} of {name!r} is neither a time of day nor a number: it cannot be shifted"
            ) from None


def _with_hidden_rows(table: CountTable, cells: Columns) -> CountTable:
    """The table's rows as they are, then a hidden row for each of these cells that it does not list."""
    if not table.keys:
        return table
    ordered = {name: cells[name] for name in table.keys}
    missing = match_rows(dict(table.keys), ordered) < 0
    _, own = joint_codes(table.keys, ordered)
    _, first = np.unique(own, return_index=True)
    new = np.zeros(len(own), dtype=bool)
    new[first] = True
    new &= missing
    keys = {name: np.concatenate([table.keys[name], ordered[name][new]]) for name in table.keys}
    counts = np.concatenate([table.counts, np.full(int(new.sum()), np.nan)])
    return replace(table, keys=keys, counts=counts, closed=True)


def _label_text(column: NDArray[Any]) -> NDArray[Any]:
    return np.array(["" if v is None else str(v) for v in column], dtype=str)
