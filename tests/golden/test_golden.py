"""What the same seeds publish stays what it was; what 0.2.0 wrote is still read, and its series goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cbdp
from golden import older
from golden.cases import CASES, write
from golden.comparing import differences, ledger_rows, note_writer
from golden.expecting import EXPECTED, summary_of, unexpected
from golden.ways import Case

expected = json.loads(EXPECTED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_the_same_seeds_publish_the_same(name: str, tmp_path: Path) -> None:
    """`python -m golden expect` writes anew what is expected: only where a change of what is published is meant."""
    for module in ("h5py", "osqp"):
        pytest.importorskip(module)
    write(name, tmp_path)
    assert list(unexpected(expected[name], summary_of(tmp_path / name))) == []


def test_every_configuration_has_an_expectation() -> None:
    assert set(expected) == set(CASES)


class Reopened(Case):
    """A folder that is there already."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder / "new")
        self.folder = folder


@pytest.fixture
def old_release(tmp_path: Path) -> Reopened:
    return Reopened("read a release", older.unpack("release", tmp_path))


@pytest.fixture
def old_series(tmp_path: Path) -> Reopened:
    return Reopened("go on with a series", older.unpack("series", tmp_path))


OLDER = {"manifest", "estimate"}  # 0.2.0 called a person's day "User-level", and its estimator was another


def audited(run: Case, release: str) -> None:
    """Later code estimates otherwise, and the audit says so; files, tables, price and ledger are as claimed."""
    run.run("audit", release, "--ledger", "ledger.sqlite", "--json", "audit.json", code=(0, 1))
    findings = json.loads((run.folder / "audit.json").read_text(encoding="utf-8"))["findings"]
    unclear = {f["check"] for f in findings if f["verdict"] not in ("clear", "not checked")}
    assert unclear <= OLDER
    assert {"ledger", "files", "composition"} <= {f["check"] for f in findings}


def test_a_release_of_0_2_0_is_read(old_release: Reopened) -> None:
    """Loaded, finished again from its noisy answers, asked, exported, drawn, compared with itself, audited with its ledger."""
    folder = old_release.folder / "release"
    release = cbdp.load(folder)
    table = pq.read_table(folder / "features" / "zone.parquet")
    assert np.asarray(release.counts("zone")).tolist() == table["count"].to_pylist()
    assert release.total == sum(pq.read_table(folder / "trips.parquet")["count"].to_pylist()) > 0
    old_release.run("ask", "release", "--by", "origin.zone", "--no-sharp", "--csv", "zones.csv")
    rows = (old_release.folder / "zones.csv").read_text(encoding="utf-8").splitlines()
    assert sum(int(row.split(",")[1]) for row in rows[1:]) == release.total
    old_release.run("export", "release", "--format", "csv", "--out", "trips.csv.exported", "--intervals")
    old_release.run("report", "release", "--out", "again.html")
    audited(old_release, "release")
    old_release.run("ledger", "ledger.sqlite", output="ledger.txt")


def test_a_series_of_0_2_0_goes_on(old_series: Reopened) -> None:
    """The ledger verifies, days are added without a byte of the old ones changed, and each day was charged once."""
    folder = old_series.folder
    before = {p: p.read_bytes() for p in (folder / "releases").rglob("*") if p.is_file()}
    entries = ledger_rows(folder / "ledger.sqlite")
    audited(old_series, "releases/2026-03-04")
    old_series.run(
        "series", "run", "cbdp.toml", "--until", "2026-03-06", "--accept-unusual", "--accept-dropped"
    )
    assert {p: p.read_bytes() for p in before} == before
    assert sorted(p.name for p in (folder / "releases").iterdir()) == [f"2026-03-0{n}" for n in range(2, 7)]
    after = ledger_rows(folder / "ledger.sqlite")
    assert after[: len(entries)] == entries
    charged = [json.loads(row[2]) for row in after]
    assert [e["period"] for e in charged if e["event"] == "reserved"] == [
        f"2026-03-0{n}" for n in range(2, 7)
    ]
    old_series.run("ledger", "ledger.sqlite", output="ledger.txt")
    old_series.run("series", "status", "cbdp.toml", "--until", "2026-03-06")
    old_series.run("series", "page", "cbdp.toml", "--until", "2026-03-06", "--out", "page.html")
    old_series.run("series", "compare", "cbdp.toml", "2026-03-05", "2026-03-06")
    old_series.run("audit", "releases/2026-03-06", "--ledger", "ledger.sqlite")


# The comparison itself


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Twice the same small release, by another version of the code in another place."""
    a, b = tmp_path / "a", tmp_path / "b"
    for folder in (a, b):
        folder.mkdir()
        note_writer(folder)
        shutil.copytree(older.unpack("release", tmp_path / f"old {folder.name}"), folder / "city")
    return a, b


def test_equal_folders_do_not_differ(two: tuple[Path, Path]) -> None:
    assert differences(*two) == []


def test_versions_and_places_are_no_difference(two: tuple[Path, Path]) -> None:
    """Nor are the sums of files that state them."""
    _, b = two
    manifest = b / "city" / "release" / "manifest.json"
    readme = b / "city" / "release" / "README.md"
    old = cbdp.load(manifest.parent).manifest["files"]["README.md"]
    readme.write_text(readme.read_text(encoding="utf-8").replace("0.2.0", "0.33.0"), encoding="utf-8")
    text = manifest.read_text(encoding="utf-8").replace("0.2.0", "0.33.0")
    text = text.replace(old["sha256"], _sum(readme)).replace(
        f'"bytes": {old["bytes"]}', f'"bytes": {readme.stat().st_size}'
    )
    manifest.write_text(text, encoding="utf-8")
    left = differences(*two)
    assert [line.split(",")[0] for line in left] == [
        "city/ledger.sqlite: entry 3"
    ]  # which has the sum of the old manifest


def test_every_kind_of_difference_is_named(two: tuple[Path, Path]) -> None:
    _, b = two
    release = b / "city" / "release"
    table = pq.read_table(release / "features" / "zone.parquet")
    counts = table["count"].to_pylist()
    place = table.column_names.index("count")
    pq.write_table(
        table.set_column(place, "count", pa.array([counts[0] + 1, *counts[1:]], pa.int64())),
        release / "features" / "zone.parquet",
    )
    (release / "README.md").write_text("changed\n", encoding="utf-8")
    (b / "city" / "stops.csv").unlink()
    manifest = release / "manifest.json"
    held = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(json.dumps(held | {"status": "draft"}, indent=1), encoding="utf-8")
    found = {line.split(":")[0]: line for line in differences(*two)}
    assert (
        f"column count, row 0 (of 1 that differ): {counts[0]} → {counts[0] + 1}"
        in found["city/release/features/zone.parquet"]
    )
    assert "line 1 " in found["city/release/README.md"]
    assert "only in" in found["city/stops.csv"]
    assert any('status: "release" → "draft"' in line for line in differences(*two))


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
