"""Folders, tables and questions that others wrote: they are data, run nothing, and what is wrong with them is one clear error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzzing
import pytest
from released import city_features, made_by, release_of

import cbdp
from cbdp.app.cli import main
from cbdp.audit import external_tables, own_release
from cbdp.errors import CbdpError, InputError
from cbdp.untrusted import parse_json, parse_toml, read_parquet, zip_member

EVIL = "evilpart:X"
Change = Callable[[dict[str, Any]], None]


def _running(manifest: dict[str, Any]) -> None:
    one = {"exact": "1", "decimal": 1.0}
    table = {"feature": "time", "file": "features/time.parquet", "law": EVIL, "scale": one, "epsilon": one}
    table |= {"sums": 1, "weight": 1.0, "variance": 1.0, "deviation": 1.0}
    manifest["running"] = {"meaning": "x", "first": "2026-03-02", "number": 1, "periods": 4, "strategy": "x"}
    manifest["running"] |= {"request": "x", "tables": [table]}


def _noise(manifest: dict[str, Any]) -> None:
    manifest["features"][0]["noise"]["name"] = EVIL


NAMING_CODE: dict[str, Change] = {
    "running": _running,
    "measurement": lambda m: m["measurements"][0].update(law=EVIL),
    "noise": _noise,
    "mechanism": lambda m: m["recipe"].update(mechanism=EVIL),
    **{
        key: lambda m, key=key: m["recipe"]["settings"].update({key: EVIL})
        for key in ("estimator", "rounding", "solver", "budget", "law")
    },
}


@pytest.fixture
def received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release folder in which somebody put a module; it is the working folder, where Python may look for modules."""
    folder = release_of("constraint-based").save(tmp_path / "received").path
    (folder / "evilpart.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nX = None\n")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    return folder


def _changed(folder: Path, change: Change) -> None:
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text("utf-8"))
    change(manifest)
    file.write_text(json.dumps(manifest), "utf-8")


@pytest.mark.parametrize("place", NAMING_CODE)
def test_a_release_folder_cannot_name_code_to_run(
    place: str, received: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever a manifest names a module of its own folder, no way to read the folder imports it."""
    _changed(received, NAMING_CODE[place])
    for verify in (True, False):
        with pytest.raises(InputError, match="evilpart:X"):
            cbdp.load(received, verify)
    out = str(received.parent / "out")
    here = str(received)
    commands = (
        ["audit", here],
        ["ask", here, "--by", "time"],
        ["compare", here, here],
        ["report", here, "--out", out],
    )
    for command in (*commands, ["export", here, "--format", "csv", "--out", out]):
        assert main(command) in (1, 2), command
    assert "Traceback" not in capsys.readouterr().err
    assert "evilpart" not in sys.modules
    assert not (received.parent / "ran").exists()


def test_the_command_loads_no_module_of_the_working_folder(tmp_path: Path) -> None:
    """`python -m cbdp` in a received folder that holds modules named like those the program uses."""
    release_of("constraint-based").save(tmp_path / "received")
    for module in ("jsonschema", "duckdb", "json", "evilpart"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    root = str(Path(cbdp.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "cbdp", "ask", "received", "--by", "time", "--no-sharp"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


def test_parts_handed_in_python_are_found_again(tmp_path: Path) -> None:
    """Whoever hands over a part of their own can read the releases that name it; a name alone is not enough."""
    from another_law import Twice  # a noise law of another package

    from cbdp.privacy.noise import NOISE_DISTRIBUTIONS

    assert NOISE_DISTRIBUTIONS.get(Twice) is Twice
    assert NOISE_DISTRIBUTIONS.installed(Twice.name) is Twice
    with pytest.raises(CbdpError, match="is not an installed noise law"):
        NOISE_DISTRIBUTIONS.installed("another_law:TwiceSampler")


def _set(*path: Any, value: Any) -> Change:
    def change(manifest: dict[str, Any]) -> None:
        inner: Any = manifest
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = value

    return change


WRONG: dict[str, Change] = {
    "a division by zero": _set("measurements", 0, "scale", value={"exact": "1/0", "decimal": 1.0}),
    "a scale of zero": _set("measurements", 0, "scale", value={"exact": "0", "decimal": 0.0}),
    "an ε of 1/0": _set("privacy", "epsilon", value={"exact": "1/0", "decimal": 1.0}),
    "a number with an exponent": _set("privacy", "epsilon", value={"exact": "1e999999999", "decimal": 1.0}),
    "a table for a name": _set("features", 0, "name", value={"x": 1}),
    "a list for a mechanism": _set("recipe", "mechanism", value=["constraint-based"]),
    "a table for a noise": _set("measurements", 0, "law", value={"geometric": 1}),
    "a unit among the settings": _set("recipe", "settings", "unit", value={"person": "card"}),
    "features among the settings": _set("recipe", "settings", "features", value="total"),
    "text as public counts": _set("recipe", "settings", "public", value="total"),
    "a text as a public count": _set("recipe", "settings", "public", value={"total": "many"}),
    "a path that leads elsewhere": _set("features", 0, "file", value="../../../etc/passwd"),
    "a day that does not exist": _set(
        "about", value={"period": {"first": "2026-02-31", "last": "2026-13-01"}}
    ),
    "a confidence of two": _set("confidence", value=2),
    "a huge universe": _set("universe", "size", value=2**80),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_in_a_manifest_is_one_error(what: str, tmp_path: Path) -> None:
    """With and without a check of the files, and in an audit."""
    folder = release_of("constraint-based").save(tmp_path / "out").path
    _changed(folder, WRONG[what])
    for verify in (True, False):
        with pytest.raises(InputError):
            cbdp.load(folder, verify)
    assert main(["audit", str(folder)]) in (1, 2)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a": 1, "a": 2}', '{"a": NaN}', f'{{"a": {"9" * 5000}}}', '{"a": 1e999}', '{"a": "\\ud800"}', "\x00"],
)  # fmt: skip
def test_json_is_bounded(text: str) -> None:
    """Depth, numbers, names that stand twice and halves of characters."""
    with pytest.raises(InputError):
        parse_json(text)


@pytest.mark.parametrize(
    "value", ["[" * 200 + "]" * 200, "9" * 5000, "0x" + "f" * 40, "[" * 5000 + "]" * 5000]
)
def test_toml_is_bounded(value: str) -> None:
    """As JSON is."""
    with pytest.raises(InputError):
        parse_toml(f"a = {value}")


@pytest.mark.parametrize(
    "written", ["1e999999999", '"1e999999999"', "1e-999999999", f'"{"9" * 5000}"', f'"1/{"9" * 2000}"']
)
def test_no_number_of_a_configuration_fills_the_memory(written: str, tmp_path: Path) -> None:
    """They are refused by the number of their digits, before they are worked out."""
    from small_city import CONFIG

    from cbdp.config import parse

    with pytest.raises(InputError, match="digits"):
        parse(CONFIG.replace("epsilon = 1.0", f"epsilon = {written}"), tmp_path / "cbdp.toml")


def test_packed_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zip or a Parquet file of a few kilobytes cannot fill the memory."""
    import zipfile

    import pyarrow as pa
    import pyarrow.parquet as pq

    import cbdp.untrusted as limits

    monkeypatch.setattr(limits, "MAX_TEXT_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "feed.zip", "w", zipfile.ZIP_DEFLATED) as feed:
        feed.writestr("stops.txt", "x" * 1001)
    with pytest.raises(InputError, match="once it is unpacked"):
        zip_member(tmp_path / "feed.zip", "stops.txt")
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * 10_000]))
    pq.write_table(pa.table({"name": column}), tmp_path / "long.parquet")
    pq.write_table(pa.table({"name": column.cast(pa.string())}), tmp_path / "text.parquet")
    monkeypatch.setattr(limits, "_memory", lambda: 10**7)
    for name in ("long.parquet", "text.parquet"):
        assert (tmp_path / name).stat().st_size < 10_000
        with pytest.raises(InputError, match="bytes of memory"):
            read_parquet(tmp_path / name)


def test_a_parquet_file_cannot_hide_its_size_in_a_list(tmp_path: Path) -> None:
    """One row may hold a list of billions, and a record a long text again and again: no table of numbers and names does."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    long = pa.ListArray.from_arrays(pa.array([0, 10**6], pa.int32()), pa.array([0] * 10**6, pa.int8()))
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 10**4, pa.int32()), pa.array(["x" * 1000]))
    record = pa.StructArray.from_arrays([texts.cast(pa.string())], ["text"])
    for number, column in enumerate((long, record)):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"name": column}), path)
        with pytest.raises(InputError, match=r"its column 'name' holds (list|struct)"):
            read_parquet(path)


def test_a_parquet_file_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several groups of rows, with gaps, with texts however they are stored; where it would not fit, it is refused by what it holds."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import cbdp.untrusted as limits

    table = pa.table(
        {
            "name": ["a", None, "b", "a"],
            "large": pa.array(["a", "b", "b", None], pa.large_string()),
            "again": pa.array(["x", "y", "x", "x"]).dictionary_encode(),
            "view": pa.array(["x", "y", "x", None], pa.string_view()),
            "count": [1, 2, 3, None],
            "none": pa.nulls(4),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=3)
    assert read_parquet(tmp_path / "t.parquet").to_pylist() == table.to_pylist()
    assert read_parquet(tmp_path / "t.parquet", ["count"]).to_pylist() == table.select(["count"]).to_pylist()
    assert read_parquet(tmp_path / "t.parquet", []).num_rows == 4
    pq.write_table(table.slice(0, 0), tmp_path / "t.parquet")
    assert read_parquet(tmp_path / "t.parquet").column_names == table.column_names
    wide = pa.table({"name": [f"{n}" * 100 for n in range(1000)]})
    pq.write_table(wide, tmp_path / "wide.parquet", row_group_size=100)
    monkeypatch.setattr(limits, "_memory", lambda: 10**5)
    with pytest.raises(InputError, match="bytes of memory"):
        read_parquet(tmp_path / "wide.parquet")


def test_links_in_a_release_are_not_followed(tmp_path: Path) -> None:
    """A link may lead to any file of the reader's computer."""
    folder = release_of("constraint-based").save(tmp_path / "out").path
    (folder / "trips.parquet").rename(tmp_path / "elsewhere.parquet")
    (folder / "trips.parquet").symlink_to(tmp_path / "elsewhere.parquet")
    for verify in (True, False):
        with pytest.raises(InputError, match="is a link"):
            cbdp.load(folder, verify)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe has a name and no end, and a link may lead to a device."""
    folder = release_of("constraint-based").save(tmp_path / "out").path
    manifest, trips = folder / "manifest.json", folder / "trips.parquet"
    content = manifest.read_bytes()
    manifest.unlink()
    manifest.symlink_to("/dev/zero")
    with pytest.raises(InputError, match="is a link"):
        cbdp.load(folder)
    manifest.unlink()
    os.mkfifo(manifest)
    with pytest.raises(InputError, match="a pipe or a device"):
        cbdp.load(folder)
    manifest.unlink()
    manifest.write_bytes(content)
    trips.unlink()
    os.mkfifo(trips)
    for verify in (True, False):
        with pytest.raises(InputError, match="is not a file"):
            cbdp.load(folder, verify)
    assert own_release.open_own_release(folder).release is None
    (tmp_path / "audit.toml").write_text("[[table]]\nfile = 'stops.csv'\nkeys = ['stop']\n")
    os.mkfifo(tmp_path / "stops.csv")
    with pytest.raises(InputError, match="which is not in"):
        external_tables.read(tmp_path)
    (tmp_path / "audit.toml").unlink()
    os.mkfifo(tmp_path / "audit.toml")
    with pytest.raises(InputError, match="can be read"):
        external_tables.read(tmp_path)


@pytest.mark.parametrize(
    "asked",
    [{"by": 7}, {"by": None}, {"by": b"time"}, {"by": {"time": 1}}, {"by": [7]}, {"by": [["time"]]}, {"where": 7}, {"where": 1.5},
     {"where": [7]}, {"where": b"time<1"}, {"where": {7: 1}}, {"where": {"time": 7}}, {"where": {"time": {}}, "by": ()},
     {"by": "time", "share_of": 7}, {"confidence": "0.9"}, {"where": object}],
)  # fmt: skip
def test_a_question_of_the_wrong_kind_is_one_error(asked: dict[str, Any]) -> None:
    """Numbers, bytes and tables where names or conditions belong."""
    with pytest.raises(InputError):
        release_of("constraint-based").ask(**asked, sharp=False)


def test_a_comparison_of_the_wrong_kind_is_one_error() -> None:
    """As of a question."""
    one, two = (made_by(cbdp.ConstraintBased(city_features(), epsilon=1)) for _ in range(2))
    for wrong in ({"by": 7}, {"where": 7}, {"confidence": None}):
        with pytest.raises(InputError):
            cbdp.compare(one, two, **wrong)  # type: ignore[arg-type]


def test_a_description_of_tables_names_no_code(tmp_path: Path) -> None:
    """audit.toml lies in a folder that others wrote."""
    (tmp_path / "stops.csv").write_text("stop,count\nA,41\nB,7\n")
    noise = 'noise = { law = "antigravity:fly", scale = 1 }'
    (tmp_path / "audit.toml").write_text(f"[[table]]\nfile = 'stops.csv'\nkeys = ['stop']\n{noise}\n")
    with pytest.raises(InputError, match="unknown law"):
        external_tables.read(tmp_path)
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("manifests", 40),
        ("configurations", 60),
        ("questions", 150),
        ("heads", 40),
        ("descriptions", 40),
        ("places", 100),
    ],
)
def test_nothing_that_strangers_write_ends_in_a_traceback(kind: str, count: int) -> None:
    """A few of what `python -m fuzzing` draws by thousands."""
    faults = fuzzing.FUZZES[kind](count, seed=20)
    assert not faults, faults[0]
