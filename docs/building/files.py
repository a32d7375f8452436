"""The page of the files: releases are made, small ones, and every file and column found in them is told.

What a column is, a release says itself, in its datapackage.json. A file without a line here, or a column without one there, stops the build: nothing is
published that the documentation does not name.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from building.markdown import table
from cbdp.app.cli import main

PAGE = "reference/files.md"
COMMON = """
preset = "odmts"
[about]
title = "A small city"
[data]
trips = "trips.csv"
id = "small"
stops = "stops.csv"
[privacy]
epsilon = 1
[output]
path = "release"
"""
UNLISTED = "too many trip types to list"
# each makes files that the others do not have
WAYS = {
    "as usual": """
[universe]
time = { start = "06:00", end = "10:00", every = "1h" }
modes = { distance_km = [2] }
origin_is_destination = false
[mechanism]
prior = "prior.csv"
""",
    UNLISTED: """
[universe]
time = { start = "00:00", end = "24:00", every = "1h" }
""",
    "levels of its own": """
[universe]
time = { start = "06:00", end = "10:00", every = "1h" }
[mechanism]
name = "hierarchical"
""",
}
MANY = 850  # stops: with 24 periods more trip types than are listed
KEYS = {"origin", "destination", "time", "origin.zone", "destination.zone", "mode"}  # of these releases

FILES: Mapping[str, str] = {
    r"README\.md": "What the release is, how to read each column, how to cite it: for people who were handed the folder.",
    r"report\.html": "The report: one page that opens offline, with maps, charts, intervals and the promise in words.",
    r"manifest\.json": "What was promised and how it was kept, for programs and reviewers, with the SHA-256 of every other file. "
    "[Every key](manifest.md).",
    r"datapackage\.json": "The tables and their columns for programs that read Frictionless data packages.",
    r".*\.ya?ml": "The release as an entry of the OpenDP deployments registry.",
    r"trips\.parquet": "The published trips by trip type. Types without a trip are left out.",
    r"features/floors\.parquet": "Where trip types are too many to list: above which noisy count a type of each cell was looked at.",
    r"features/(?!floors).*\.parquet": "A table: one file for each feature, a row for each of its elements.",
    r"measurements/.*\.parquet": "Noisy answers about groups that have no table of their own.",
    r"universe/places\.parquet": "The stops as the publisher listed them.",
    r"universe/prior\.parquet": "The public weights that entered the estimate.",
    r"universe/zeros.*\.parquet": "Trip types that cannot occur, declared publicly beforehand.",
    r"universe/(?!places|prior|zeros).*\.parquet": "A dimension with its attributes, or an attribute of several dimensions.",
}
KINDS = {"integer": "whole number", "number": "number", "string": "text", "any": "any"}
KEY = "A dimension or an attribute, by its name in the configuration: what the row is about."


def described(path: str) -> str:
    """The line about a file.

    >>> described("trips.parquet")
    'The published trips by trip type. Types without a trip are left out.'
    """
    found = [about for pattern, about in FILES.items() if re.fullmatch(pattern, path)]
    if not found:
        raise LookupError(f"a release holds {path}, of which docs/building/files.py says nothing: add a line")
    return found[0]


def generic(path: str) -> str:
    """The name of a file, or of files of its kind.

    >>> generic("features/zone.parquet"), generic("universe/places.parquet"), generic("trips.parquet")
    ('features/<name>.parquet', 'universe/places.parquet', 'trips.parquet')
    """
    if path.endswith(("places.parquet", "prior.parquet", "zeros.parquet", "floors.parquet")):
        return path
    return re.sub(r"^(features|measurements|universe)/[^/]+\.parquet$", r"\1/<name>.parquet", path)


def make(folder: Path, way: str) -> Path:
    """A release of a few made-up trips."""
    number = MANY if way == UNLISTED else 6
    rows = [f"S{i % number},S{(i * 5 + 1) % number},2026-03-02 0{6 + i % 4}:10" for i in range(400)]
    (folder / "trips.csv").write_text("\n".join(["origin,destination,time", *rows]) + "\n")
    stops = [
        f"S{i},Stop {i},{42 + i / 100},-83.{i:03},{'north' if i < 3 else 'south'}" for i in range(number)
    ]
    (folder / "stops.csv").write_text("\n".join(["id,name,lat,lon,zone", *stops]) + "\n")
    (folder / "prior.csv").write_text(
        "\n".join(["stop,weight", *(f"S{i},{i + 1}" for i in range(number))]) + "\n"
    )
    (folder / "cbdp.toml").write_text(COMMON + WAYS[way])
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(["release", str(folder / "cbdp.toml"), "--create-ledger"])
    if code != 0:
        raise RuntimeError(f"the release for the page of the files failed:\n{said.getvalue()}")
    return folder / "release"


@dataclass(frozen=True)
class Column:
    """A column as the release itself describes it, in its datapackage.json."""

    name: str
    kind: str
    about: str


def found() -> dict[str, dict[str, Column]]:
    """Files of a release, by kind, and the columns of the tables among them."""
    kinds: dict[str, dict[str, Column]] = {}
    for way in WAYS:
        with tempfile.TemporaryDirectory() as place:
            release = make(Path(place), way)
            told = json.loads((release / "datapackage.json").read_text("utf-8"))
            tables = {resource["path"]: resource for resource in told["resources"]}
            for path in sorted(p for p in release.rglob("*") if p.is_file()):
                name = path.relative_to(release).as_posix()
                described(name)
                columns = kinds.setdefault(generic(name), {})
                if path.suffix == ".parquet":
                    columns |= {
                        c.name: c for c in columns_of(path, tables.get(name, {})) if c.name not in columns
                    }
    return kinds


def columns_of(path: Path, resource: Mapping[str, Any]) -> list[Column]:
    """The columns of a table; one that the release does not describe stops the build."""
    fields = {f["name"]: f for f in resource.get("schema", {}).get("fields", [])}
    there = pq.read_schema(path).names
    new = [name for name in there if not fields.get(name, {}).get("description")]
    if new:
        raise LookupError(
            f"{path.name} holds {new}, of which its release's datapackage.json says nothing: describe it there"
        )
    return [
        Column(n, fields[n]["type"], fields[n]["description"].replace(" Empty in this file.", ""))
        for n in there
    ]


def order(name: str) -> int:
    """Files in the order in which they are explained."""
    return next(n for n, pattern in enumerate(FILES) if re.fullmatch(pattern, name.replace("<name>", "zone")))


def page() -> str:
    """The page."""
    kinds = dict(sorted(found().items(), key=lambda item: order(item[0])))
    made = [HEAD, table(["file", "what it is"], [(f"`{n}`", _about(n)) for n in kinds])]
    for name, columns in kinds.items():
        if columns:
            made += [
                f"## `{name}`",
                _about(name),
                table(["column", "kind", "what it is"], rows(columns.values())),
            ]
    return "\n\n".join([*made, TAIL]) + "\n"


def _about(name: str) -> str:
    return described(name.replace("<name>", "zone"))


def rows(columns: Iterable[Column]) -> list[tuple[str, str, str]]:
    """A row for each column; keys, whose names are the user's, in one row."""
    listed = [(f"`{c.name}`", KINDS[c.kind], c.about) for c in columns if c.name not in KEYS]
    keys = [("*keys*", "text or whole number", KEY)] if any(c.name in KEYS for c in columns) else []
    return keys + listed


HEAD = """# Files of a release

A release is a folder. Everything in it may be published; nothing in it depends on private rows beyond the noisy answers.

This page is made from releases: the build makes some, and lists what it finds in them. Columns that are the keys of a table have the names of
your dimensions and attributes (`origin`, `origin.zone`, `time`, …); the other names are always the same."""

TAIL = """## Reading them

```python
import pandas as pd

trips = pd.read_parquet("release/trips.parquet")
zones = pd.read_parquet("release/features/zone.parquet")
```

`cbdp.load("release")` gives everything at once ([`Release`](api/release.md)). [`cbdp export`](command-line.md#cbdp-export) writes other formats. Parquet
files keep their rows in the order of the universe; do not rely on row numbers, read the keys. Where the noise differs from row to row (counts that somebody else
measured), a table has a column `variance` beside `scale`."""


def pages() -> Iterator[tuple[str, str]]:
    yield PAGE, page()
