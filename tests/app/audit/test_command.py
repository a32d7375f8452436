"""The command `cbdp audit`: exit codes, one line for bad input, findings as JSON, sensitive pages kept out of releases."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from audited import change, run

import cbdp
from cbdp.app import cli


@pytest.mark.slow
def test_bad_input_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and one line for what is no release, no ledger, no trips, or no place for a page."""
    nothing = folder / "nothing"
    nothing.mkdir()
    (folder / "text.sqlite").write_text("this is no ledger, and long enough to be taken for something" * 20)
    (folder / "exists.html").write_text("x")
    (folder / "other.parquet").write_bytes((folder / "release" / "features" / "zone.parquet").read_bytes())
    release = str(folder / "release")
    bad = [
        [str(folder / "gone")],
        [str(nothing)],
        [release, "--ledger", str(folder / "gone.sqlite")],
        [release, "--ledger", str(folder / "text.sqlite")],
        [release, "--ledger", str(folder)],
        [release, "--config", str(folder / "gone.toml")],
        [release, "--trips"],
        [release, "--trips", str(folder / "gone.parquet")],
        [release, "--trips", str(folder / "other.parquet")],
        [release, "--out", str(folder / "exists.html")],
        [release, "--out", str(folder / "no" / "such.html")],
        [release, "--out", str(folder / "release" / "audit.html")],
        [release, "--json", str(folder / "release" / "features" / "audit.json")],
        [release, "--trips", str(folder / "trips.parquet"), "--out", str(folder / "release" / "x.html")],
        [
            release,
            "--trips",
            str(folder / "trips.parquet"),
            "--out",
            str(folder / "x.html"),
        ],  # not called internal
        [release, "--trips", str(folder / "trips.parquet"), "--json", str(folder / "x.json")],
        [release, "--out", str(folder / "a.html"), "--json", str(folder / "a.html")],
    ]
    before = sorted(folder.rglob("*"))
    for argv in bad:
        assert cli.main(["audit", *argv]) == 2, argv
        said = capsys.readouterr()
        assert said.out == "", argv
        assert said.err.startswith("cbdp: ")
        assert said.err.count("\n") == 1, argv
    assert sorted(folder.rglob("*")) == before


def test_a_manifest_that_is_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder whose manifest cannot be read is no release of ours."""
    for text in ("{", "[]", '{"format": "another"}'):
        (folder / "release" / "manifest.json").write_text(text)
        assert run(folder) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_a_sensitive_page_stays_out_of_every_release(folder: Path) -> None:
    """With the trips, no file may go into any folder that holds a release, be it another one."""
    shutil.copytree(folder / "release", folder / "second")
    options = ["--trips", "--config", str(folder / "cbdp.toml"), "--out", str(folder / "second" / "a.html")]
    assert run(folder, *options) == 2
    assert not (folder / "second" / "a.html").exists()


DESCRIBED = """
epsilon = 2

[[table]]
name = "by stop"
file = "stops.csv"
keys = ["time", "stop"]
count = "count"
noise = { law = "discrete-laplace", scale = 1 }
threshold = 5
zeros = "skipped"
"""


def test_tables_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A described folder is attacked: 1 where it claims pure ε and skips zeros, 0 where it claims nothing, 2 where it is wrong."""
    rows = [f"{8 + i % 4}:00,S{i // 4},{5 + i * 7 % 30}" for i in range(40)]
    (tmp_path / "stops.csv").write_text("\n".join(["time,stop,count", *rows]) + "\n")
    (tmp_path / "audit.toml").write_text(DESCRIBED)
    assert cli.main(["audit", str(tmp_path)]) == 1
    assert "needs a larger δ than claimed" in capsys.readouterr().out
    (tmp_path / "audit.toml").write_text(DESCRIBED.replace("epsilon = 2", ""))
    assert cli.main(["audit", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "no ε is claimed" in said
    assert "  weakness " in said
    assert cli.main(["audit", str(tmp_path), "--ledger", str(tmp_path / "l.sqlite")]) == 2
    capsys.readouterr()
    (tmp_path / "audit.toml").write_text(DESCRIBED.replace('"stop"]', '"station"]'))
    assert cli.main(["audit", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("out", ["../page.html", "../release-of-may.html", "features/../../page.html"])
def test_the_way_out_of_a_release_is_a_place_outside(
    folder: Path, out: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From inside the release its folder's neighbour is no part of it; a file in it still is refused, however it is spelled."""
    monkeypatch.chdir(folder / "release")
    assert cli.main(["audit", ".", "--out", out]) == 0
    assert (folder / "release" / out).resolve().is_file()
    assert cli.main(["audit", ".", "--out", "../release/page.html"]) == 2
    assert "lies in the release" in capsys.readouterr().err


def test_findings_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON holds the same findings as the table on the screen."""
    change(folder, "features/zone.parquet", "count", 0, 1)
    assert run(folder, "--json", str(folder / "audit.json")) == 1
    said, stated = capsys.readouterr().out, json.loads((folder / "audit.json").read_text())
    assert stated["verdict"] == "contradicts"
    assert stated["subject"] == "release"
    for finding in stated["findings"]:
        assert finding["title"] in said
    assert len(stated["findings"]) == len(cbdp.audit_release(folder / "release").findings)


def test_the_command_is_loaded_when_it_is_asked_for() -> None:
    """`import cbdp.audit` and `cbdp audit --help` load no solver and no data engine of their own accord."""
    script = (
        "import sys, cbdp.audit; heavy = ['scipy', 'numba', 'pyarrow', 'duckdb'];"
        "print([m for m in heavy if m in sys.modules], sorted(set(cbdp.audit.__all__) - set(dir(cbdp.audit))))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cbdp.audit.nonsense
