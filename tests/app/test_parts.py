"""`cbdp parts`: every kind of part, ours and those of other packages."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from house.graph import importable, modules

from cbdp.app import cli
from cbdp.app.cli import PART_KINDS, part_lines
from cbdp.errors import InputError
from cbdp.rounding import Rounding

ROOT = Path(__file__).parents[2]
Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("kind", PART_KINDS)
def test_every_part_of_ours_has_a_row_with_a_line_about_it(kind: str) -> None:
    """In the order of its table, from cbdp."""
    title, *found = PART_KINDS[kind].rows()
    assert title[:3] == ("name", "from", "installed")
    ours = [row for row in found if row[1] == "cbdp"]
    assert [row[0] for row in ours] == list(PART_KINDS[kind].table().table)
    assert all(row[-1].strip() for row in ours)


def test_groups_of_entry_points_are_distinct() -> None:
    """A part of another package is of one kind."""
    groups = [kind.table().group for kind in PART_KINDS.values()]
    assert len(set(groups)) == len(groups)
    assert all(group.startswith("cbdp.") for group in groups)


def test_parts_are_listed_by_kind_or_all_together(capsys: Captured) -> None:
    """Each kind has a heading; one kind is a part of the whole list."""
    assert cli.main(["parts"]) == 0
    everything = capsys.readouterr().out
    for kind in PART_KINDS:
        assert f"{kind} (" in everything
    assert cli.main(["parts", "solvers"]) == 0
    solvers = capsys.readouterr().out
    assert solvers.strip() in everything
    found = [line.split()[0] for line in solvers.splitlines()[2:] if line.strip()]
    assert found[:6] == ["newton", "piqp", "osqp", "cvxpy", "highs", "scipy"]


def test_a_kind_that_is_not_known_is_told(capsys: Captured) -> None:
    """One line with a cure, and exit code 2."""
    assert cli.main(["parts", "solver"]) == 2
    assert capsys.readouterr().err == "cbdp: unknown kind of part 'solver': did you mean 'solvers'?\n"
    with pytest.raises(InputError, match="there are"):
        list(part_lines("x"))


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not installed is a fact in the list, with the cure, and not an error."""
    monkeypatch.setattr("cbdp_solvers.piqp.Piqp.package", "no_such_package")
    row = next(row for row in PART_KINDS["solvers"].rows() if row[0] == "piqp")
    assert row[2] == "no"
    assert "pip install" in row[-1]


@dataclass(frozen=True)
class Down(Rounding):
    """Rounds all down."""

    name: ClassVar[str] = "down"

    def prepared(self, features: Any, index: Any, value: Any, budget: Any) -> Any:
        return index, value // 1


def test_parts_of_other_packages_are_shown_with_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they can be loaded or not; without a line `about` them, their documentation speaks."""
    module = ModuleType("elsewhere")
    module.__dict__.update(Down=Down)
    monkeypatch.setitem(sys.modules, "elsewhere", module)
    group = PART_KINDS["roundings"].table().group
    entries = [EntryPoint("down", "elsewhere:Down", group), EntryPoint("gone", "nowhere.x:Y", group)]
    monkeypatch.setattr("cbdp.parts.entry_points", lambda group: [e for e in entries if e.group == group])
    *_, down, gone = PART_KINDS["roundings"].rows()
    assert down == ("down", "elsewhere", "yes", "Rounds all down.")
    assert gone[:3] == ("gone", "nowhere", "no")
    assert "No module named 'nowhere'" in gone[3]


def test_every_table_of_parts_is_a_kind() -> None:
    """Whoever adds a table adds its line to `cbdp parts`."""
    found = set()
    for module, path in modules(ROOT).items():
        found |= {
            f"{importable(module)}:{node.target.id}"
            for node in ast.parse(path.read_text("utf-8")).body
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(node.value, ast.Call)
            and ast.unparse(node.value.func) == "Parts"
        }
    tables = {id(getattr(import_module(m), n)) for m, _, n in (f.partition(":") for f in found)}
    assert tables == {id(kind.table()) for kind in PART_KINDS.values()}
