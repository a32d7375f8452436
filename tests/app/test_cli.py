"""The command line, as a user meets it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cbdp import __version__
from cbdp.app import cli
from cbdp.app.cli import SECTIONS, program
from cbdp.commands.program import _patience
from cbdp.ledger import Ledger

ROOT = Path(__file__).parents[2]
Captured = pytest.CaptureFixture[str]


@pytest.mark.slow
def test_demo_runs_the_whole_job(tmp_path: Path, capsys: Captured) -> None:
    """`cbdp demo` goes from the city's files to a release and its report, and compares mechanisms with the truth."""
    out = tmp_path / "demo"
    assert cli.main(["demo", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    spent = "ε = 1 for one trip, added or removed."
    words = " ".join(shown.split())  # lines are broken where they are long
    for text in ("37,714", "laplace", "hierarchical", "constraint-based", spent):
        assert text in words
    report = out / "release-1" / "report.html"
    assert str(report) in shown
    assert "<svg" in report.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_quick_demo_is_the_same_job_on_two_hours(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is its own, so that it does not meet the ledger of the whole day."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--quick"]) == 0
    shown = capsys.readouterr().out
    assert "67,600 combinations" in " ".join(shown.split())
    truth = next(line for line in shown.splitlines() if line.startswith("(the truth)"))
    assert truth.split() == ["(the", "truth)", "4,878"]
    assert [p.name for p in tmp_path.iterdir()] == ["cbdp-demo-quick"]
    assert (tmp_path / "cbdp-demo-quick" / "release-1" / "report.html").is_file()
    assert cli.main(["demo", "--quick"]) == 0  # found again, nothing is charged
    assert cli.main(["demo", "--quick", "--epsilon", "2"]) == 0  # another release, on the same ledger
    with Ledger.view(tmp_path / "cbdp-demo-quick" / "ledger.sqlite") as ledger:
        assert ledger.spent.epsilon == 3


# What goes wrong: one line, a defined exit code, and nothing is written


def _one_line(capsys: Captured) -> str:
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("cbdp: ")
    assert said.err.endswith("\n")
    assert said.err.count("\n") == 1
    return said.err


def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, capsys: Captured) -> None:
    """An ε that makes no sense is told in one line, and nothing is written."""
    assert cli.main(["demo", "--epsilon", "-1", "--out", str(tmp_path / "demo")]) == 2
    assert "epsilon is -1" in _one_line(capsys)
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "nowhere.toml"], "nowhere.toml"),
        (["release", "nowhere.toml"], "nowhere.toml"),
        (["ledger", "nowhere.sqlite"], "nowhere.sqlite"),
        (["ledger", "show", "nowhere.sqlite"], "nowhere.sqlite"),
        (["ledger", "create", "nowhere.toml"], "nowhere.toml"),
        (["report", "nowhere"], "nowhere"),
        (["export", "nowhere", "--format", "csv", "--out", "x"], "nowhere"),
        (["init", "nowhere.parquet"], "nowhere.parquet"),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_missing_files_are_one_line_and_exit_code_2(
    arguments: list[str], says: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every command names the file that is missing, and creates none."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    assert says in _one_line(capsys)
    assert not list(tmp_path.iterdir())


def _raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(28, "No space left on device", "release/trips.parquet"), "release/trips.parquet: No space left on device"),
        (OSError(5, "Input/output error"), "a file: Input/output error"),
        (PermissionError("locked\nby somebody"), "a file: locked by somebody"),
    ],
    ids=["named", "unnamed", "two lines"],
)  # fmt: skip
def test_an_error_of_the_system_is_one_line_and_exit_code_2(
    error: OSError, says: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk or a file that cannot be read is no traceback."""
    monkeypatch.setattr("cbdp.app.init.write", _raising(error))
    assert cli.main(["init", "trips.csv"]) == 2
    assert _one_line(capsys) == f"cbdp: {says}\n"


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    """The system's own complaint, with the file that it is about."""
    (tmp_path / "file").write_text("")
    assert cli.main(["demo", "--quick", "--out", str(tmp_path / "file" / "demo")]) == 2
    assert _one_line(capsys) == f"cbdp: {tmp_path / 'file' / 'demo'}: Not a directory\n"


def test_an_interruption_is_one_line_and_exit_code_130(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends as shells expect it, and says what became of ε where any is at stake."""
    monkeypatch.setattr("cbdp.config.read", _raising(KeyboardInterrupt()))
    assert cli.main(["release", "cbdp.toml"]) == 130
    assert "stopped before the charge: nothing was spent" in _one_line(capsys)
    assert cli.main(["check", "cbdp.toml"]) == 130
    assert _one_line(capsys) == "cbdp: interrupted\n"


@pytest.mark.parametrize("wish", ["zone", "zone=", "=5", "zone=five", "zone=-1"])
def test_a_wish_that_cannot_be_read_says_how_to_write_it(city: Path, wish: str, capsys: Captured) -> None:
    """The wrong value, and an example."""
    assert cli.main(["check", str(city / "cbdp.toml"), "--within", wish]) == 2
    said = _one_line(capsys)
    assert repr(wish) in said
    assert "--within takes FEATURE=PERCENT, for example zone=5" in said


def test_a_wish_is_answered(city: Path, capsys: Captured) -> None:
    """After everything else that `check` says."""
    assert cli.main(["check", str(city / "cbdp.toml"), "--within", "zone=5"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "For 'zone' to be within 5 %" in shown[shown.index("--page plan.html") :]


# Help


def test_no_command_shows_help(capsys: Captured) -> None:
    """Asked for nothing, it says what there is, and what exit codes mean."""
    assert cli.main([]) == 2
    shown = capsys.readouterr().out
    for title, names in SECTIONS.items():
        listed = shown.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        for name in names:
            assert re.search(f"^  {name} +[A-Z]", listed, re.MULTILINE)
    assert {name for names in SECTIONS.values() for name in names} == set(program.commands)
    assert "130: interrupted" in " ".join(shown.split())


@pytest.mark.parametrize("name", program.commands)
def test_every_command_explains_itself(name: str, capsys: Captured) -> None:
    """`cbdp COMMAND --help` is about this command."""
    assert cli.main([name, "--help"]) == 0
    assert f"Usage: cbdp {name} [OPTIONS]" in capsys.readouterr().out


def test_an_unknown_command_is_bad_usage(capsys: Captured) -> None:
    """With the one that is meant, or those that there are."""
    assert cli.main(["xyz"]) == 2
    said = _one_line(capsys)
    assert "'xyz'" in said
    assert all(name in said for name in program.commands)
    assert cli.main(["relaese", "cbdp.toml"]) == 2
    assert (
        _one_line(capsys)
        == "cbdp: there is no command 'relaese': did you mean 'release'? (see cbdp --help)\n"
    )
    assert cli.main(["series", "stat", "cbdp.toml"]) == 2
    assert "did you mean 'status'? (see cbdp series --help)" in _one_line(capsys)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ask", "folder", "--shrp"], "there is no option '--shrp': did you mean '--sharp'? (see cbdp ask --help)"),
        (["ask"], "missing argument 'RELEASE' (see cbdp ask --help)"),
        (["export", "folder"], "missing option '--out' (see cbdp export --help)"),
        (["ask", "folder", "--confidence", "high"], "invalid value for '--confidence': 'high' is not a valid float (see cbdp ask --help)"),
        (["ask", "folder", "--format", "xml"], "invalid value for '--format': 'xml' is not one of 'text', 'csv', 'json' (see cbdp ask --help)"),
        (["ask", "folder", "more"], "got unexpected extra argument (more) (see cbdp ask --help)"),
        (["check", "x.toml", "--json", "--all"], "--all, --picture and --json exclude each other: give one of them (see cbdp check --help)"),
        (["series"], "missing command (see cbdp series --help)"),
        (["init"], "missing argument 'TRIPS...' (see cbdp init --help)"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)  # fmt: skip
def test_bad_usage_is_one_line_and_exit_code_2(arguments: list[str], says: str, capsys: Captured) -> None:
    """What is wrong, what is meant where that is clear, and where the right words stand."""
    assert cli.main(arguments) == 2
    assert _one_line(capsys) == f"cbdp: {says}\n"


def test_formats_in_the_help_are_those_of_the_table(capsys: Captured) -> None:
    """Nobody retypes them."""
    from cbdp.config.sections import format_parts

    assert cli.main(["export", "--help"]) == 0
    assert ", ".join(format_parts().names()) in " ".join(capsys.readouterr().out.split())


def test_help_is_light() -> None:
    """Listing the commands loads nothing that computes."""
    script = "import sys; from cbdp.app import cli; cli.main([]); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


# The program


def test_the_installed_command_answers() -> None:
    """`cbdp --version` works as a program."""
    command = Path(sys.executable).parent / "cbdp"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"cbdp {__version__}"


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("cbdp rel", {"release"}),
        ("cbdp series ", {"run", "status", "page", "compare"}),
        ("cbdp ask out --sh", {"--share-of", "--sharp"}),
        ("cbdp parts s", {"solvers", "samplers", "sizers"}),
        ("cbdp export out --format geo", {"geojson", "geopackage", "geoparquet"}),
    ],
)
def test_a_shell_completes_commands_options_and_parts(words: str, completed: set[str]) -> None:
    """As bash asks the program, with the variables of click's own script."""
    command = Path(sys.executable).parent / "cbdp"
    place = str(len(words.split()) - (not words.endswith(" ")))
    asked = {"_CBDP_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": place}
    done = subprocess.run([command], env=os.environ | asked, capture_output=True, text=True, check=True)
    assert {line.partition(",")[2] for line in done.stdout.split()} == completed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(shell: str, capsys: Captured) -> None:
    """Which asks this program."""
    assert cli.main(["completion", shell]) == 0
    assert f"_CBDP_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_the_wheel_holds_the_packages_of_the_top_folders(tmp_path: Path) -> None:
    """A built wheel has the packages of features/ and solvers/ beside cbdp, and nothing else at its top level."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in (
        "cbdp_features/universe.py",
        "cbdp_solvers/newton.py",
        "cbdp/config/config.schema.json",
        "cbdp/py.typed",
    ):
        assert name in names
    tops = {"cbdp", "cbdp_features", "cbdp_solvers", f"cbdp-{__version__}.dist-info"}
    assert {name.split("/")[0] for name in names} == tops


def test_a_silent_command_says_that_it_works(capsys: Captured) -> None:
    """Once after a while and again later, on the stream of errors; nothing is said of one that is done."""
    done = threading.Event()
    told = threading.Thread(target=_patience, args=("inspect", done, 0.01, 0.01))
    told.start()
    said = ""
    while said.count("\n") < 3:
        said += capsys.readouterr().err
    done.set()
    told.join()
    assert said.startswith("cbdp inspect: still working, 0 seconds so far\ncbdp inspect: still working")
    capsys.readouterr()
    _patience("inspect", done, 0.01, 0.01)
    assert capsys.readouterr().err == ""
