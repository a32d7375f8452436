"""Releases that audits are tested on: published from a small city, tampered with, and audited."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cbdp
from benchmarks.harness.small_city import configured, write_stops
from cbdp.app import cli
from cbdp.app.audit.run import recipe_mechanism
from cbdp.app.plan import plan
from cbdp.app.publish import publish
from cbdp.audit import Finding
from cbdp.audit.optimality import published_answers
from cbdp.config import read
from cbdp.release.release import Release

CONFIG = configured(
    "a small city",
    """
[privacy]
epsilon = 3
unit = "trip"
ledger = "ledger.sqlite"
cap = 10

[output]
path = "release"
""",
    columns='origin = "from", destination = "to", time = "at"',
    until="14:00",
)
STOPS = 8


def finished_again(release: Release) -> Release:
    """The release made again from its noisy answers, by the mechanism that its recipe names."""
    return recipe_mechanism(release).finish(published_answers(release))


def write_inputs(folder: Path, n: int = 4000) -> None:
    rng = np.random.default_rng(5)
    seconds = rng.integers(5 * 3600, 15 * 3600, n)
    start = np.datetime64("2026-03-02T00:00:00")
    table = pa.table(
        {
            "from": [f"S{i}" for i in rng.integers(0, 9, n)],  # S8 is no stop
            "to": [f"S{i}" for i in rng.integers(0, 8, n)],
            "at": pa.array(start + seconds.astype("timedelta64[s]")),
        }
    )
    pq.write_table(table, folder / "trips.parquet")
    write_stops(folder, STOPS)
    (folder / "cbdp.toml").write_text(CONFIG)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_inputs(folder)
    publish(plan(read(folder / "cbdp.toml")), create_ledger=True)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of an honest release, with its configuration, ledger and trips, to be tampered with."""
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture(scope="session")
def made_by_projection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("projected")
    write_inputs(folder)
    (folder / "cbdp.toml").write_text(CONFIG + '\n[mechanism]\npreset = "paper"\n')
    publish(plan(read(folder / "cbdp.toml")), create_ledger=True)
    return folder


@pytest.fixture
def projected(made_by_projection: Path, tmp_path: Path) -> Path:
    """A copy of an honest release in the paper's configuration."""
    shutil.copytree(made_by_projection, tmp_path / "projected")
    return tmp_path / "projected"


def run(folder: Path, *options: str) -> int:
    return cli.main(["audit", str(folder / "release"), *options])


def contradictions(folder: Path, **given: object) -> list[Finding]:
    return cbdp.audit_release(folder / "release", **given).of("contradicts")


def row_of(table: pa.Table, row: int) -> str:
    keys = [n for n in table.column_names if n not in ("noisy", "scale", "estimate", "count", "low", "high")]
    return " · ".join(str(table[n][row].as_py()) for n in keys)


def change(folder: Path, file: str, column: str, row: int, by: float) -> str:
    """Add to one number of a table; the row's name."""
    path = folder / "release" / file
    table = pq.read_table(path)
    values = table[column].to_numpy().copy()
    values[row] += by
    place = table.column_names.index(column)
    changed = table.set_column(place, column, pa.array(values, table[column].type))
    pq.write_table(changed, path, compression="zstd", store_schema=False)
    return row_of(table, row)


def manifest_of(folder: Path) -> dict:
    return json.loads((folder / "release" / "manifest.json").read_text())


def write_manifest(folder: Path, manifest: dict) -> None:
    text = json.dumps(manifest, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    (folder / "release" / "manifest.json").write_text(text)


def correct_hashes(folder: Path) -> None:
    """What a careful tamperer does: hashes, sizes and totals in the manifest are those of the files."""
    manifest = manifest_of(folder)
    for name, stated in manifest["files"].items():
        content = (folder / "release" / name).read_bytes()
        stated |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    trips = pq.read_table(folder / "release" / "trips.parquet")
    manifest["trips"] |= {"types": trips.num_rows, "total": int(trips["count"].to_numpy().sum())}
    write_manifest(folder, manifest)


def busiest(folder: Path, file: str, column: str = "count") -> int:
    return int(np.argmax(pq.read_table(folder / "release" / file)[column].to_numpy()))


def edited(folder: Path, edit: Callable[[dict], None]) -> None:
    manifest = manifest_of(folder)
    edit(manifest)
    write_manifest(folder, manifest)


def small() -> tuple[cbdp.FeatureDag, cbdp.Counts]:
    """600 trips over 4,800 types, some of them crowded."""
    stops = cbdp.Dimension([f"S{i}" for i in range(20)], zone=[f"Z{i // 5}" for i in range(20)])
    universe = cbdp.Universe(origin=stops, destination=stops, time=cbdp.periods("06:00", "18:00", "1h"))
    dag = cbdp.FeatureDag(
        universe,
        [cbdp.Feature("time", by="time"), cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"])],
    )  # fmt: skip
    rng = np.random.default_rng(3)
    counts = np.bincount((rng.beta(0.6, 2, 3000) * universe.size).astype(np.int64), minlength=universe.size)
    return dag, cbdp.count(counts, universe)


def as_version_1(manifest: dict) -> dict:
    """A manifest as version 1 of the format stated it."""
    recipe = manifest.pop("recipe")
    old = {"expected_trips": "trips", "expected_filled": "filled"}
    settings = {old.get(name, name): value for name, value in recipe["settings"].items()}
    for measured in manifest["measurements"]:
        del measured["law"]
    for feature in manifest["features"]:
        (feature["noise"] or {}).pop("zeros", None)
    return {**manifest, "version": 1, "mechanism": {"name": recipe["mechanism"], "settings": settings}}
