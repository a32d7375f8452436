"""Any folder of count tables, read as `audit.toml` describes them, and attacked by all attacks on published tables.

First tables as people save them (Parquet, or text with commas, semicolons or tabs, from Excel or from elsewhere), then the description,
whose settings are listed above `DESCRIPTION_FILE`; last the attacks one after the other, on these tables or on those of a release of ours.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.audit import consistency, detection, differencing, exact_counts, scale_recovery
from cbdp.audit.exact_counts import assumed_noise
from cbdp.audit.findings import Audit, Finding
from cbdp.audit.tables import (
    NO_NOISE_DISTRIBUTION,
    CountTable,
    Labels,
    Pair,
    PublishedTables,
    Sum,
    joint_codes,
    match_rows,
    quoted,
)
from cbdp.errors import InputError
from cbdp.parts import did_you_mean
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS, NoiseDistribution
from cbdp.progress import tell
from cbdp.text import message
from cbdp.untrusted import gzip_content, parse_toml, read_file, read_parquet

FIELD_SEPARATORS = ",;\t|"
SPREADSHEET_SUFFIXES = (".xlsx", ".xls", ".ods")
GROUPED_DIGITS = re.compile(r"[-+−]?\d{1,3}(,\d{3})+(\.\d+)?")


def read_columns(path: Path) -> dict[str, Labels]:
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


def _parquet_columns(path: Path) -> dict[str, Labels]:
    table = read_parquet(path)
    return {n.strip(): np.asarray(table[n].to_pylist(), dtype=object) for n in table.column_names}


def parse_count(value: object, hidden: Sequence[str] = ()) -> float | None:
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
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


# The description, `audit.toml`
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


Columns = dict[str, Labels]
Settings = Mapping[str, object]

DESCRIPTION_FILE = "audit.toml"
MAX_PRODUCT_CELLS = 2**22  # cells of a product of labels: each is a row in memory
TOP_LEVEL_KEYS = ("epsilon", "delta", "table", "equal", "sum", "sums")
TABLE_KEYS = (
    "name", "file", "keys", "count", "noise", "threshold", "hidden", "hidden_as", "rounded", "zeros", "cells", "universe",
)  # fmt: skip
NO_NOISE = "none"
TIME_OF_DAY = re.compile(r"^(\d{1,2}):(\d{2})$")
MINUTES_PER_DAY = 24 * 60
# what laws are called elsewhere, and here
DISTRIBUTION_SYNONYMS = {"discrete-laplace": "geometric", "rounded-laplace": "rounded"}


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
        description = parse_toml(text)
    except (tomllib.TOMLDecodeError, InputError) as wrong:
        raise InputError(f"{path}: {wrong}") from None
    return _Description(folder, path).published(description)


@dataclass(frozen=True)
class _Description:
    folder: Path
    path: Path

    def wrong(self, message: str) -> InputError:
        return InputError(f"{self.path}: {message}")

    def published(self, description: Settings) -> PublishedTables:
        self.settings(description, TOP_LEVEL_KEYS, "the description")
        listed = description.get("table", [])
        if not isinstance(listed, list) or not listed:
            raise self.wrong("no table is described: add a [[table]] with its file, keys and count")
        tables = tuple(self.table(t) for t in listed)
        epsilon = None if "epsilon" not in description else self.number(description["epsilon"], "epsilon")
        delta = self.number(description.get("delta", 0), "delta")
        if not 0 <= delta < 1:
            raise self.wrong(f"delta is {delta:g}: it must be at least 0 and below 1")
        if epsilon is not None and epsilon <= 0:
            raise self.wrong(f"epsilon is {epsilon:g}: it must be above 0")
        if description.get("sums", "implied") not in ("implied", "none"):
            raise self.wrong(f"sums is {description['sums']!r}: use 'implied' or 'none'")
        imply = description.get("sums", "implied") == "implied"
        try:
            base = PublishedTables(tables, epsilon, delta)
            sums = tuple(self.sum(base, s) for s in cast("list[object]", description.get("sum", [])))
            equal = tuple(self.equal(base, e) for e in cast("list[object]", description.get("equal", [])))
            return PublishedTables(tables, epsilon, delta, equal, sums, imply)
        except InputError as error:
            raise (
                error if str(error).startswith(message(str(self.path))) else self.wrong(str(error))
            ) from None

    def settings(self, settings: object, names: Sequence[str], where: str) -> Settings:
        """A table of settings, all of whose names are known."""
        if not isinstance(settings, Mapping):
            raise self.wrong(f"{where} is {settings!r}: it must be a table of settings")
        for name in settings:
            if name not in names:
                raise self.wrong(f"{where} has {name!r}, which is not known: there are {', '.join(names)}")
        return settings

    def number(self, value: object, what: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise self.wrong(f"{what} is {value!r}: give a finite number")
        return float(value)

    # A table

    def table(self, described: object) -> CountTable:
        settings = self.settings(described, TABLE_KEYS, "a [[table]]")
        for need in ("file", "keys"):
            if need not in settings:
                raise self.wrong(f"a [[table]] has no {need!r}: name its file and its key columns")
        name = str(settings.get("name", Path(str(settings["file"])).name.split(".")[0]))
        columns = self.columns(settings["keys"], name)
        count = str(settings.get("count", "count"))
        loaded = self.load(str(settings["file"]), [*columns.values(), count], name)
        keys = {key: _label_text(loaded[column]) for key, column in columns.items()}
        counts = self.counts(loaded[count], settings, count)
        threshold = settings.get("threshold")
        if threshold is not None:
            threshold = self.number(threshold, f"the threshold of {name!r}")
        universe = settings.get("universe")
        if universe is not None and (
            isinstance(universe, bool) or not isinstance(universe, int) or universe < 1
        ):
            raise self.wrong(f"the universe of {name!r} is {universe!r}: give the number of its cells")
        zeros = self.choice(settings, "zeros", ("perturbed", "skipped"), name)
        hidden = self.choice(settings, "hidden", ("small", "any"), name)
        try:
            table = CountTable(
                name, keys, counts, self.noise(settings, name), threshold, zeros == "perturbed", universe,
                rounding=self.rounding(settings, name), complementary=hidden == "any",
            )  # fmt: skip
        except InputError as error:
            raise (
                error if str(error).startswith(message(str(self.path))) else self.wrong(str(error))
            ) from None
        return self.completed(table, settings.get("cells", "listed"), columns)

    def choice(self, settings: Settings, key: str, choices: tuple[str, ...], name: str) -> str:
        """A setting that is one of a few words, the first of which it is unless told otherwise."""
        value = settings.get(key, choices[0])
        if value not in choices:
            raise self.wrong(f"{key} of {name!r} are {value!r}: say {' or '.join(map(repr, choices))}")
        return str(value)

    def rounding(self, settings: Settings, name: str) -> float:
        """How far rounding may have moved a count: half the multiple, or all but one where it went up or down at random."""
        rounded = settings.get("rounded", 1)
        rounded = rounded if isinstance(rounded, Mapping) else {"to": rounded}
        rounded = self.settings(rounded, ("to", "at_random"), f"rounded of {name!r}")
        to = rounded.get("to")
        if isinstance(to, bool) or not isinstance(to, int) or to < 1:
            raise self.wrong(f"rounded of {name!r} is {to!r}: give the multiple that counts are rounded to")
        return float(to - 1 if rounded.get("at_random") else to // 2)

    def columns(self, keys: object, name: str) -> dict[str, str]:
        if isinstance(keys, list) and all(isinstance(k, str) for k in keys) and len(set(keys)) == len(keys):
            return {k: k for k in keys}
        if isinstance(keys, Mapping) and all(isinstance(k, str) for k in keys.values()):
            return dict(keys)
        raise self.wrong(f"keys of {name!r} are {keys!r}: give a list of columns, each once")

    def noise(self, settings: Settings, name: str) -> NoiseDistribution | None:
        if "noise" not in settings:
            return None
        noise = self.settings(settings["noise"], ("law", "scale"), f"the noise of {name!r}")
        if noise.get("law") == NO_NOISE:
            if noise.get("scale", 0) != 0:
                raise self.wrong(f"the noise of {name!r} has the law 'none' and a scale: leave the scale out")
            return NO_NOISE_DISTRIBUTION
        if set(noise) != {"law", "scale"}:
            raise self.wrong(
                f"the noise of {name!r} needs a law and a scale: {{ law = 'laplace', scale = 1.4 }}"
            )
        law = noise["law"]
        names = ["laplace", *DISTRIBUTION_SYNONYMS, *NOISE_DISTRIBUTIONS.names(), NO_NOISE]
        if not isinstance(law, str) or law not in names:
            hint = did_you_mean(str(law), list(dict.fromkeys(names)))
            raise self.wrong(f"unknown law of noise {law!r} of {name!r}: {hint}")
        scale = self.number(noise["scale"], f"the noise scale of {name!r}")
        return NOISE_DISTRIBUTIONS.installed(DISTRIBUTION_SYNONYMS.get(law, law))(scale)

    def load(self, file: str, names: Sequence[str], what: str) -> Columns:
        """Some columns of a file in the folder, as they are: CSV as text."""
        path = self.folder / file
        if not os.path.isfile(path):  # noqa: PTH113 - False, not an error, for a name that no file can have
            raise self.wrong(f"table {what!r} is in {file!r}, which is not in {self.folder}")
        try:
            columns = read_columns(path)
        except InputError as wrong:
            raise self.wrong(f"{file!r} cannot be read: {wrong}") from None
        for name in names:
            if name not in columns:
                there = ", ".join(map(repr, columns))
                raise self.wrong(f"table {what!r} has no column {name!r} in {file!r}: there are {there}")
        return {name: columns[name] for name in names}

    def counts(self, column: Labels, settings: Settings, name: str) -> Floats:
        marks = settings.get("hidden_as", [])
        if not isinstance(marks, list) or not all(isinstance(m, str) for m in marks):
            raise self.wrong(f"hidden_as is {marks!r}: give a list of texts, such as ['*', '<5']")
        counts = np.empty(len(column))
        for row, value in enumerate(column):
            number = parse_count(value, marks)
            if number is None:
                raise self.wrong(
                    f"{settings['file']!r}: column {name!r}, row {row + 1} is {value!r}, which is not a number; if it stands for a hidden "
                    f"count, say hidden_as = [{value!r}]"
                )
            counts[row] = number
        return counts

    # Its cells

    def completed(self, table: CountTable, cells: object, columns: Mapping[str, str]) -> CountTable:
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
        listed = {key: _label_text(loaded[column]) for key, column in columns.items()}
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

    def sum(self, published: PublishedTables, described: object) -> Sum:
        settings = self.settings(described, ("total", "part", "match", "exact"), "a [[sum]]")
        for need in ("total", "part"):
            if need not in settings:
                raise self.wrong(f"a [[sum]] has no {need!r}: name two tables")
        total, part = published[str(settings["total"])], published[str(settings["part"])]
        pairs = cast("Mapping[str, str]", settings.get("match", {name: name for name in total.keys}))
        if set(pairs) != set(total.keys):
            raise self.wrong(
                f"{total.name!r} as a sum of {part.name!r}: match all of the total's keys, {quoted(total.keys)}"
            )
        for name in pairs.values():
            if name not in part.keys:
                raise self.wrong(
                    f"{total.name!r} as a sum of {part.name!r}: the part has no key {name!r}, it has {quoted(part.keys)}"
                )
        inner = {name: part.keys[key] for name, key in pairs.items()}
        rows = match_rows(total.keys, inner) if inner else np.zeros(len(part), dtype=np.int64)
        if len(part) and (rows < 0).all():
            raise self.wrong(
                f"no key of {part.name!r} occurs in {total.name!r}: are their labels written alike?"
            )
        return Sum(total.name, part.name, rows, bool(settings.get("exact", False)))

    def equal(self, published: PublishedTables, described: object) -> Pair:
        settings = self.settings(described, ("first", "second", "shift"), "an [[equal]]")
        sides = []
        for need in ("first", "second"):
            side = self.settings(settings.get(need), ("table", "where"), f"{need!r} of an [[equal]]")
            sides.append(self.side(published, side))
        (one, here, free), (other, there, free_there) = sides
        if sorted(free) != sorted(free_there):
            raise self.wrong(
                "the two sides of an [[equal]] differ in keys that `where` does not fix: fix them on both"
            )
        shift = self.settings(settings.get("shift", {}), free, "the shift of an [[equal]]")
        moved = {k: self.shifted(one.keys[k][here], shift.get(k), k) for k in free}
        at = (
            match_rows({k: other.keys[k][there] for k in free}, moved)
            if free
            else np.zeros(len(here), dtype=np.int64)
        )
        matched = at >= 0
        return Pair(one.name, here[matched], other.name, there[at[matched]])

    def side(self, published: PublishedTables, settings: Settings) -> tuple[CountTable, Ints, list[str]]:
        """The table, the rows that `where` leaves, and the keys that it does not fix."""
        table = published[str(settings.get("table"))]
        keep = np.ones(len(table), dtype=bool)
        where = cast("Settings", settings.get("where", {}))
        for name, value in where.items():
            if name not in table.keys:
                raise self.wrong(f"table {table.name!r} has no key {name!r}: it has {quoted(table.keys)}")
            keep &= table.keys[name] == str(value)
        if not keep.any():
            raise self.wrong(f"no row of {table.name!r} is where {dict(where)}")
        return table, np.flatnonzero(keep), [k for k in table.keys if k not in where]

    def shifted(self, column: Labels, by: object, name: str) -> Labels:
        if by is None:
            return column
        amount = self.number(by, f"the shift of {name!r}")
        return np.array([self._shifted_label(str(label), amount, name) for label in column])

    def _shifted_label(self, label: str, by: float, name: str) -> str:
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
    _, codes = joint_codes(table.keys, ordered)
    _, first = np.unique(codes, return_index=True)
    new = np.zeros(len(codes), dtype=bool)
    new[first] = True
    new &= missing
    keys = {name: np.concatenate([table.keys[name], ordered[name][new]]) for name in table.keys}
    counts = np.concatenate([table.counts, np.full(int(new.sum()), np.nan)])
    return replace(table, keys=keys, counts=counts, closed=True)


def _label_text(column: Labels) -> Labels:
    return np.array(["" if v is None else str(v) for v in column], dtype=str)


# All attacks


ATTACKS = (consistency, scale_recovery, exact_counts, detection, differencing)
# these make out themselves what noise there is where none is declared
NOISE_INFERRING = (exact_counts, differencing)


def audit_folder(folder: Path) -> Audit:
    """All attacks on the tables of a folder, as its audit.toml describes them."""
    tell("reading the described tables")
    published = read(folder)
    findings = tuple(attack(published))
    claim = "no ε is claimed" if published.epsilon is None else f"ε = {published.epsilon:g} is claimed"
    if published.epsilon is None and not all(t.shown.all() for t in published.tables):
        claim += "; some counts are hidden"
    if published.epsilon is not None and published.delta:
        claim = f"ε = {published.epsilon:g} and δ = {published.delta:g} are claimed"
    uncharged = "There is no manifest and no ledger: how much was spent in all was not checked."
    return Audit(folder.resolve().name, findings, claim=claim, left_out=(*left_out(published), uncharged))


def attack(published: PublishedTables) -> Iterator[Finding]:
    """What each attack finds."""
    settled = assumed_noise(published).settled
    for module in ATTACKS:
        tell(f"attack: {module.CHECK}")
        yield from module.attack(published if module in NOISE_INFERRING else settled)


def left_out(published: PublishedTables) -> Iterator[str]:
    """What the attacks could not look at."""
    settled = assumed_noise(published).settled
    for module in ATTACKS:
        yield from module.left_out(published if module in NOISE_INFERRING else settled)
