"""`init`, `release`, `audit`: nobody touched the folder, so nothing contradicts it; whoever touches it, with all hashes corrected, is found."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.audited import network, outcome
from cbdp.app.audit import audit_release
from cbdp.app.cli import main
from cbdp.audit.own_release import open_own_release
from cbdp.release.files import fingerprint

MANY = 600  # the first of so many networks have four to six stops
SMALL = (
    0,
    1,
    2,
    3,
    6,
    11,
    13,
    18,
)  # trips, counts, taps, persons; both noises, both estimators, both roundings


def _here(arguments: Sequence[str]) -> tuple[int, str]:
    """A command of cbdp, in this process."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(list(arguments))
    return code, out.getvalue() + err.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("number", SMALL)
def test_an_untouched_release_passes_its_own_audit(number: int, tmp_path: Path) -> None:
    """Through the real commands, with the ledger and the request: `python -m benchmarks audited` has fifty, up to thousands of stops."""
    result = outcome(network(number, MANY, 4000), tmp_path, _here)
    assert (result.verdict, result.why) == ("clear", "")


# Touched


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("untouched")
    assert outcome(network(4, MANY, 4000), folder, _here).verdict == "clear"
    return folder / "release"


def _rewrite(path: Path, changed: Callable[[pa.Table], pa.Table], **options: Any) -> None:
    table = changed(pq.read_table(path))
    pq.write_table(table, path, **{"compression": "zstd", "store_schema": False, **options})


def _set(column: str, row: int, by: float) -> Callable[[pa.Table], pa.Table]:
    def changed(table: pa.Table) -> pa.Table:
        values = table[column].to_numpy(zero_copy_only=False).copy()
        values[row] += by
        return table.set_column(table.column_names.index(column), column, pa.array(values))

    return changed


def _in_column(table: pa.Table) -> pa.Table:
    marked = table.schema.field(0).with_metadata({"PARQUET:field_id": "7"})
    return table.cast(pa.schema([marked, *list(table.schema)[1:]]))


def _between(path: Path) -> None:
    """Bytes between the last page and the footer: every reader goes by the footer's length and its offsets."""
    content = path.read_bytes()
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:begin] + b"card 4711" + content[begin:])


def _before_footer_end(path: Path) -> None:
    """Bytes after the footer's structure, inside of the footer's stated length."""
    content = path.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:-8] + b"\x00" * 9 + (size + 9).to_bytes(4, "little") + content[-4:])


def _in_statistics(path: Path) -> None:
    """The largest value of a column that the footer states: another number of the same length."""
    statistics = pq.ParquetFile(path).metadata.row_group(0).column(_count(path)).statistics
    content, stated = path.read_bytes(), int(statistics.max).to_bytes(8, "little")
    assert content.rfind(stated) > 0
    at = content.rfind(stated)
    path.write_bytes(content[:at] + (int(statistics.max) + 1).to_bytes(8, "little") + content[at + 8 :])


def _count(path: Path) -> int:
    return pq.read_schema(path).names.index("count")


def _text(old: str, new: str) -> Callable[[Path], None]:
    def changed(path: Path) -> None:
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), "utf-8")

    return changed


def _table(column: str, row: int, by: float) -> Callable[[Path], None]:
    return lambda path: _rewrite(path, _set(column, row, by))


def _metadata(path: Path) -> None:
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False) as out:
        out.write_table(table)
        out.add_key_value_metadata({"note": "card 4711 was here"})


TIME, TRIPS, PAGE = "features/time.parquet", "trips.parquet", "report.html"
WAYS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a count of trips": (TRIPS, _table("count", 0, 1)),
    "a count of a table": (TIME, _table("count", 8, 1)),
    "a noisy count": (TIME, _table("noisy", 8, 40)),
    "a scale": (TIME, _table("scale", 8, 0.5)),
    "an estimate": (TIME, _table("estimate", 8, 0.25)),
    "the low end of an interval": (TIME, _table("low", 8, 10_000)),
    "the high end of an interval": (TIME, _table("high", 8, -10_000)),
    "a further column": (TIME, lambda p: _rewrite(p, lambda t: t.append_column("cards", t["count"]))),
    "a column's type": (TIME, lambda p: _rewrite(p, lambda t: t.set_column(_count(p), "count", pc.cast(t["count"], "int32")))),
    "key-value metadata": (TIME, _metadata),
    "key-value metadata of the trips": (TRIPS, _metadata),
    "metadata of the stops": ("universe/places.parquet", _metadata),
    "a field's id": (TIME, lambda p: _rewrite(p, _in_column)),
    "the schema of Arrow": (TIME, lambda p: _rewrite(p, lambda t: t, store_schema=True)),
    "a page index": (TIME, lambda p: _rewrite(p, lambda t: t, write_page_index=True)),
    "no statistics": (TIME, lambda p: _rewrite(p, lambda t: t, write_statistics=False)),
    "other row groups": (TIME, lambda p: _rewrite(p, lambda t: t, row_group_size=5)),
    "another compression": (TIME, lambda p: _rewrite(p, lambda t: t, compression="gzip")),
    "statistics": (TIME, _in_statistics),
    "bytes between pages and footer": (TIME, _between),
    "bytes inside the footer": (TIME, _before_footer_end),
    "a note in the report": (PAGE, _text("</body>", "<!-- card 4711 --></body>")),
    "a number in the report": (PAGE, _text("<h1", "<h1 title='4711'")),
    "a line of the README": ("README.md", _text("\n", "\nThe numbers are exact.\n")),
    "a description": ("datapackage.json", _text('"', '"x')),
    "a further table that the manifest lists": (
        "features/cards.parquet",
        lambda p: pq.write_table(pa.table({"card": np.arange(3)}), p),
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_whoever_changes_a_file_and_corrects_the_hashes_is_found(
    way: str, released: Path, tmp_path: Path
) -> None:
    """The files alone show it, without the ledger and without making the release again."""
    folder = tmp_path / "release"
    shutil.copytree(released, folder)
    name, change = WAYS[way]
    change(folder / name)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest["files"][name] = fingerprint(folder / name)
    if name == TRIPS:
        manifest["trips"]["total"] = int(pc.sum(pq.read_table(folder / name)["count"]).as_py())
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True), "utf-8")
    verdicts = {f.verdict for f in open_own_release(folder).findings}
    if way == "a noisy count":  # follows from nothing: only what was made of it shows the change
        assert verdicts == {"clear"} or "contradicts" in verdicts
        verdicts = {f.verdict for f in audit_release(folder).findings}
    assert "contradicts" in verdicts


STATEMENTS: dict[str, tuple[Sequence[str], Any]] = {
    "ε": (("privacy", "epsilon"), {"exact": "1/2", "decimal": 0.5}),
    "the statement": (("privacy", "statement"), "0.5-DP for one person"),
    "exact rounding": (("rounding", "exact"), False),
    "the tolerance of the rounding": (("rounding", "tolerance"), 0.0),
    "violations": (("rounding", "violations"), {"time": 3}),
    "the objective": (("estimate", "objective"), 1.0),
    "the size of the universe": (("universe", "size"), 7),
    "the confidence": (("intervals", "features"), ["time"]),
    "the title": (("about",), {"title": "Other trips"}),
}


@pytest.mark.parametrize("what", STATEMENTS)
def test_a_changed_statement_of_the_manifest_is_found(what: str, released: Path, tmp_path: Path) -> None:
    """A field of the manifest against what follows from the files, or from the report that this code writes."""
    folder = tmp_path / "release"
    shutil.copytree(released, folder)
    keys, value = STATEMENTS[what]
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    inside = manifest
    for key in keys[:-1]:
        inside = inside[key]
    assert inside[keys[-1]] != value
    inside[keys[-1]] = value
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True), "utf-8")
    assert audit_release(folder).verdict == "contradicts"


def test_folders_and_files_that_nobody_lists_are_found(released: Path, tmp_path: Path) -> None:
    """Also an empty folder, whose name may say something."""
    for name in ("card 4711", "features/card 4711"):
        folder = tmp_path / name.replace("/", " in ")
        shutil.copytree(released, folder)
        (folder / name).mkdir()
        assert any(name in f.title and f.verdict == "contradicts" for f in open_own_release(folder).findings)
