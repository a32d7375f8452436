"""The command line, as a user meets it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cbdp import __version__
from cbdp.app import cli

ROOT = Path(__file__).parents[2]


def test_demo_runs_the_whole_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`cbdp demo` goes from the city's files to a release and its report, and compares mechanisms with the truth."""
    out = tmp_path / "demo"
    assert cli.main(["demo", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    spent = "5 features: 3/20 + 3/20 + 3/20 + 3/20 + 2/5, same data: 1"
    words = " ".join(shown.split())  # lines are broken where they are long
    for text in ("37,714", "laplace", "hierarchical", "constraint-based", spent):
        assert text in words
    report = out / "release-1" / "report.html"
    assert str(report) in shown
    assert "<svg" in report.read_text(encoding="utf-8")


def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An ε that makes no sense is told in one line, and nothing is written."""
    assert cli.main(["demo", "--epsilon", "-1", "--out", str(tmp_path / "demo")]) == 2
    said = capsys.readouterr()
    assert said.err == "cbdp: epsilon is -1, it must be above 0\n"
    assert not said.out
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "nowhere.toml"], "nowhere.toml"),
        (["release", "nowhere.toml"], "nowhere.toml"),
        (["ledger", "nowhere.sqlite"], "nowhere.sqlite"),
        (["report", "nowhere"], "nowhere"),
        (["export", "nowhere", "--format", "csv", "--out", "x"], "nowhere"),
        (["init", "nowhere.parquet"], "nowhere.parquet"),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_missing_files_are_one_line_and_exit_code_2(
    arguments: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Every command names the file that is missing, and creates none."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_no_command_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Asked for nothing, it says what there is."""
    assert cli.main([]) == 2
    assert "demo" in capsys.readouterr().out


def test_solvers_are_listed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with what it can do; ours first."""
    assert cli.main(["solvers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:7]] == ["newton", "piqp", "osqp", "cvxpy", "highs", "scipy"]


def test_a_missing_solver_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not installed is a fact in the list, with the cure, and not an error."""
    monkeypatch.setattr("cbdp.solvers.piqp.Piqp.package", "no_such_package")
    assert cli.main(["solvers"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("piqp"))
    assert row.split()[1] == "no"
    assert "pip install" in row


def test_the_installed_command_answers() -> None:
    """`cbdp --version` works as a program."""
    command = Path(sys.executable).parent / "cbdp"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"cbdp {__version__}"


def test_the_wheel_holds_the_linked_folders(tmp_path: Path) -> None:
    """A built wheel has features and solvers inside the package, and nothing at its top level."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("cbdp/features/universe.py", "cbdp/solvers/newton.py", "cbdp/engine.py", "cbdp/py.typed"):
        assert name in names
    assert {name.split("/")[0] for name in names} == {"cbdp", f"cbdp-{__version__}.dist-info"}
