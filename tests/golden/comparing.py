"""Two written folders, byte by byte, less what no change of the code answers for.

Normalised are: the version of the package and the fingerprint of its code (as the manifests' `software` states them), the versions of
Python and libraries there, the path of the written folder, and SHA-256 sums of files and ledger entries where these are right: they
are named after what they are of, so that one difference is one line.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

NOTE = "written.json"  # in a written folder: where it was written and by what; not compared
SHORT = 12  # digits of a sum that are shown to people, at least
SUM = re.compile(rf"(?<![0-9a-f])[0-9a-f]{{{SHORT},64}}(?![0-9a-f])")
ABSENT = "(absent)"


def note_writer(folder: Path) -> None:
    """Note where a folder is being written, and by what."""
    packages = ("cbdp", "numpy", "scipy", "numba", "pyarrow", "duckdb")
    versions = {name: importlib.metadata.version(name) for name in packages}
    note = {"folder": str(folder.resolve()), "python": platform.python_version(), **versions}
    (folder / NOTE).write_text(json.dumps(note, indent=1), encoding="utf-8")


class Written:
    """A written folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        note = folder / NOTE
        self.place = json.loads(note.read_text(encoding="utf-8"))["folder"] if note.exists() else str(folder)

    @cached_property
    def files(self) -> dict[str, Path]:
        found = (path for path in sorted(self.folder.rglob("*")) if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path for path in found if path.name != NOTE}

    @cached_property
    def sums(self) -> dict[str, str]:
        """SHA-256 of files and of sound ledger entries, and what each is of; of equal files the first, so equal folders say the same."""
        named: dict[str, str] = {}
        for name, path in self.files.items():
            named.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), f"<SHA-256 of {name}>")
        for name, path in self.files.items():
            for sequence, previous, text, own in ledger_rows(path):
                if hashlib.sha256((previous + text).encode()).hexdigest() == own:
                    named.setdefault(own, f"<SHA-256 of entry {sequence} of {name}>")
        return named

    @cached_property
    def software(self) -> dict[str, str]:
        """Every version and fingerprint that a manifest states."""
        found: dict[str, str] = {}
        for name, path in self.files.items():
            if name.endswith("manifest.json"):
                for what, value in json.loads(path.read_bytes()).get("software", {}).items():
                    if what in ("cbdp", "code"):
                        found[str(value)] = f"<{what}>"
        return found

    def _of_sum(self, digits: str) -> str:
        """What a sum, or the beginning of one, is of; anything else stays."""
        whole = self._starts.get(digits[:SHORT], "")
        return self.sums[whole] if whole.startswith(digits) else digits

    @cached_property
    def _starts(self) -> dict[str, str]:
        return {digits[:SHORT]: digits for digits in self.sums}

    @cached_property
    def by_name(self) -> dict[str, Path]:
        """Files by their normalised names: private ones are called after the sum of a manifest."""
        return {SUM.sub(lambda m: self._of_sum(m[0]), name): path for name, path in self.files.items()}

    def normal(self, text: str) -> str:
        text = text.replace(self.place, "<folder>")
        text = SUM.sub(lambda m: self._of_sum(m[0]), text)
        for value, name in self.software.items():
            text = re.sub(rf"(?<![\w.]){re.escape(value)}(?![\w]|\.\d)", name, text)
        return text

    def json(self, path: Path) -> Any:
        return self._normal_json(json.loads(self.normal(path.read_text(encoding="utf-8"))))

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {f"<SHA-256 of {name}>": path.stat().st_size for name, path in self.files.items()}

    def _normal_json(self, value: Any) -> Any:
        """Sizes in bytes stand beside sums, and versions of libraries under `software`."""
        if isinstance(value, list):
            return [self._normal_json(item) for item in value]
        if not isinstance(value, dict):
            return value
        sums = [str(value.get(key, "")).removeprefix("sha256:") for key in ("sha256", "hash")]
        right = {self._sizes[s] for s in sums if s in self._sizes}
        return {
            key: "<size>" if key == "bytes" and item in right
            else dict.fromkeys(item, "<version>") if key == "software" and isinstance(item, dict)
            else self._normal_json(item)
            for key, item in value.items()
        }  # fmt: skip


def ledger_rows(path: Path) -> list[tuple[int, str, str, str]]:
    """The entries of a ledger; none of other files."""
    if path.suffix != ".sqlite" or not path.read_bytes().startswith(b"SQLite format 3"):
        return []
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)) as book:
        return list(book.execute("SELECT * FROM entry ORDER BY sequence"))


def differences(a: Path, b: Path) -> list[str]:
    """A line for every file that differs; for JSON every key, for tables every column."""
    one, two = Written(a), Written(b)
    lines = [f"{name}: only in {a}" for name in one.by_name if name not in two.by_name]
    lines += [f"{name}: only in {b}" for name in two.by_name if name not in one.by_name]
    for name in one.by_name:
        if name in two.by_name:
            lines += [f"{name}: {line}" for line in _of_file(name, one, two)]
    return lines


def _of_file(name: str, one: Written, two: Written) -> list[str]:
    x, y = one.by_name[name], two.by_name[name]
    if x.suffix == ".sqlite":
        return _of_ledgers(x, y, one, two)
    left, right = x.read_bytes(), y.read_bytes()
    if left == right:
        return []
    if x.suffix == ".parquet":
        return _of_tables(x, y)
    try:
        texts = one.normal(left.decode()), two.normal(right.decode())
    except UnicodeDecodeError:
        return [f"{len(left)} and {len(right)} bytes, first different at byte {_first(left, right)}"]
    if texts[0] == texts[1]:
        return []
    if x.suffix == ".json":
        keys = list(_of_values(one.json(x), two.json(y)))
        if keys or _layout(left, one, x) == _layout(right, two, y):
            return keys
        return ["the same content, written in another way (order of keys, spaces, digits)"]
    return [_of_lines(*texts)]


def _layout(text: bytes, written: Written, path: Path) -> str:
    """The normalised JSON as text, in the order of its keys."""
    return json.dumps(written.json(path)) + str(text.count(b"\n"))


def _first(left: Any, right: Any) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((n for n, (x, y) in pairs if x != y), min(len(left), len(right)))


def _of_lines(left: str, right: str) -> str:
    one, two = left.split("\n"), right.split("\n")
    n = _first(one, two)
    x, y = ((lines[n] if n < len(lines) else ABSENT) for lines in (one, two))
    many = sum(a != b for a, b in zip(one, two, strict=False)) + abs(len(one) - len(two))
    at = max(0, _first(x, y) - 60)
    return f"line {n + 1} (of {many} that differ): {x[at : at + 160]!r} → {y[at : at + 160]!r}"


def _of_values(x: Any, y: Any, at: str = "") -> Iterator[str]:
    if isinstance(x, dict) and isinstance(y, dict):
        for key in [*x, *(k for k in y if k not in x)]:
            yield from _of_values(x.get(key, ABSENT), y.get(key, ABSENT), f"{at}.{key}" if at else str(key))
    elif isinstance(x, list) and isinstance(y, list) and len(x) == len(y):
        for n, (a, b) in enumerate(zip(x, y, strict=True)):
            yield from _of_values(a, b, f"{at}[{n}]")
    elif json.dumps(x) != json.dumps(y):
        yield f"{at}: {json.dumps(x, ensure_ascii=False)[:160]} → {json.dumps(y, ensure_ascii=False)[:160]}"


def _of_tables(x: Path, y: Path) -> list[str]:
    one, two = pq.read_table(x), pq.read_table(y)
    if one.column_names != two.column_names:
        return [f"columns {one.column_names} → {two.column_names}"]
    if one.num_rows != two.num_rows:
        return [f"{one.num_rows} → {two.num_rows} rows"]
    lines = []
    for name in one.column_names:
        a, b = one[name], two[name]
        left, right = a.to_pylist(), b.to_pylist()
        if a.type != b.type:
            lines.append(f"column {name}: {a.type} → {b.type}")
        elif repr(left) != repr(right):
            n = next(n for n in range(len(left)) if repr(left[n]) != repr(right[n]))
            many = sum(repr(p) != repr(q) for p, q in zip(left, right, strict=True))
            lines.append(f"column {name}, row {n} (of {many} that differ): {left[n]!r} → {right[n]!r}")
    if not lines and one.schema.metadata != two.schema.metadata:
        lines.append(f"metadata {one.schema.metadata} → {two.schema.metadata}")
    return lines or [
        "the same table in other bytes (compression, row groups, statistics or the writing library)"
    ]


def _of_ledgers(x: Path, y: Path, one: Written, two: Written) -> list[str]:
    """Entries, hashes and schema: a ledger's pages may lie in any order."""
    lines = []
    schemas = []
    for path in (x, y):
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)) as book:
            schemas.append(
                sorted(str(row) for row in book.execute("SELECT type, name, sql FROM sqlite_master"))
            )
    if schemas[0] != schemas[1]:
        lines.append(_of_lines("\n".join(schemas[0]), "\n".join(schemas[1])))
    left, right = ledger_rows(x), ledger_rows(y)
    if len(left) != len(right):
        lines.append(f"{len(left)} → {len(right)} entries")
    for a, b in zip(left, right, strict=False):
        texts = [
            [json.loads(w.normal(row[2])), w.normal(row[1]), w.normal(row[3])]
            for w, row in ((one, a), (two, b))
        ]
        lines += [f"entry {a[0]}, {line}" for line in _of_values(*texts)]
    return lines
